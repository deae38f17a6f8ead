//! The setters of a row in a transaction.

use super::names::plain;
use super::types::Column;
use super::{Function, block, call};
use annals_schema::Table;

/// Generates the type that changes a row.
pub(super) fn edit(table: &Table, kind: &str, columns: &[Column<'_>]) -> String {
    let name = &table.name;
    let only = if table.single_row { only(kind) } else { String::new() };
    let setters: Vec<_> = columns.iter().map(setter).collect();
    let setters = match setters.is_empty() {
        true => String::new(),
        false => format!("\n{}", block("impl Edit<'_, '_>", &setters)),
    };
    format!(
        "\
{only}/// A row of `{name}` that a transaction changes: see [`edit`](::annals::typed::Transaction::edit).
#[derive(Debug)]
#[must_use]
pub struct Edit<'t, 'db>(::annals::typed::Editor<'t, 'db, {kind}>);

impl<'t, 'db> From<::annals::typed::Editor<'t, 'db, {kind}>> for Edit<'t, 'db> {{
    #[inline]
    fn from(editor: ::annals::typed::Editor<'t, 'db, {kind}>) -> Self {{
        Self(editor)
    }}
}}
{setters}"
    )
}

/// Writes the constant that names the only row.
fn only(kind: &str) -> String {
    format!(
        "\
/// The only row of the table, to be changed: `tx.edit(ROW)`.
pub const ROW: ::annals::typed::OnlyRow<{kind}> = ::annals::typed::OnlyRow::new();

"
    )
}

/// Writes the setter of a field.
fn setter(column: &Column<'_>) -> String {
    let doc = format!("Sets the field `{}`.", column.field.name);
    let lifetime = if column.names_lifetime() { "<'k>" } else { "" };
    let set = call("self.0.set", &[column.number(), column.argument()]);
    Function {
        doc: &[&doc, "", "# Errors", "The journal can't be written."],
        name: &format!("set_{}{lifetime}", plain(column.name)),
        parameters: vec!["&mut self".to_owned(), column.parameter()],
        gives: "::annals::Result<&mut Self>",
        body: &format!("{set}?;\nOk(self)"),
    }
    .write()
}
