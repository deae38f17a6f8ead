//! The commands that show the present state: rows, the schema, and everything as text, SQL or JSON.

mod cell;
mod layout;
mod record;
mod schema;
mod table;

pub(crate) use cell::{cut, harmless};
pub(crate) use layout::{Column, fit};
pub(crate) use record::record;
pub(crate) use schema::schema;
pub(crate) use table::table;

use annals::Result;

use super::screen::Screen;
use super::words::Words;
use crate::present::Present;

/// `dump`
pub(crate) fn dump(present: &Present<'_>, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [] = words.exactly()?;
    crate::dump::text(present, &mut screen.output)
}

/// `sql`
pub(crate) fn sql(present: &Present<'_>, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [] = words.exactly()?;
    crate::dump::sql(present, crate::dump::Dialect::Both, &mut screen.output)
}

/// `json`
pub(crate) fn json(present: &Present<'_>, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [] = words.exactly()?;
    crate::dump::json(present, &mut screen.output)
}
