//! `record T ID`: one row, a field a line.

use annals::Result;

use super::cell::literal;
use crate::present::Present;
use crate::shell::screen::{Screen, Style};
use crate::shell::words::{self, Words};

/// Shows one row.
pub(crate) fn record(present: &Present<'_>, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [name, id] = words.exactly()?;
    let schema = present.schema();
    let table = words::table(schema, name)?;
    let id = words::row_id(id)?;
    let rows = present.table(table.number)?;
    let row = rows.get(id)?;
    let longest = table.fields.iter().map(|field| field.name.len()).max().unwrap_or(0).max(2);
    let mut print = |name: &str, value: &str| {
        let heading = format!("{name:longest$}");
        let heading = screen.paint(Style::Heading, &heading).into_owned();
        screen.output.line(&format!("{heading}  {value}"))
    };
    print("id", &id.0.to_string())?;
    for field in &table.fields {
        print(&field.name, &literal(row.value(field.number)))?;
    }
    Ok(())
}
