//! The commands that show what there is: rows, the schema, and everything as text, SQL or JSON.

mod cell;
mod layout;
mod record;
mod schema;
mod table;

pub(crate) use record::record;
pub(crate) use schema::schema;
pub(crate) use table::table;

use annals::{Result, View};

use super::screen::Screen;
use super::words::Words;

/// `dump`
pub(crate) fn dump(view: &View, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [] = words.exactly()?;
    crate::dump::text(view, &mut screen.output)
}

/// `sql`
pub(crate) fn sql(view: &View, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [] = words.exactly()?;
    crate::dump::sql(view, &mut screen.output)
}

/// `json`
pub(crate) fn json(view: &View, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [] = words.exactly()?;
    crate::dump::json(view, &mut screen.output)
}
