//! The outer module: the schema's text, the database, its snapshots and transactions.

use super::custom::Customs;
use super::names::{Names, TableNames};
use super::table::accessors;
use super::{block, indent};
use annals_schema::Schema;

/// The handles: types of the library over this schema, and those that carry its tables' names.
const HANDLES: &str = include_str!("handles.rs.in");
const PLAIN: &str = "impl ::annals::typed::PlainSchema for Schema {}\n";

/// Generates everything besides the tables' modules.
pub(super) fn outer_items(schema: &Schema, names: &Names, customs: &Customs) -> String {
    let mut code = schema_text(schema);
    code.push('\n');
    let opened = if customs.is_empty() { PLAIN.to_owned() } else { customs.parameter() };
    let marker = customs.marker().replace("super::", "");
    code += &HANDLES.replace("@customs", &opened).replace("@schema", &marker);
    code.push('\n');
    code += &change(schema, names);
    let accessors = accessors(schema, names, "self.0.view()");
    if !accessors.is_empty() {
        code.push('\n');
        code += &block("impl<V: ::annals::typed::Viewed> Tables<V>", &accessors);
    }
    code
}

/// Writes the changes of any table.
fn change(schema: &Schema, names: &Names) -> String {
    let (mut variants, mut arms, mut kinds) = (String::new(), String::new(), String::new());
    let mut rows = String::new();
    for (table, names) in schema.tables().iter().zip(&names.tables) {
        let TableNames { name, variant, .. } = names;
        variants +=
            &format!("    /// Of a row of `{}`.\n    {variant}({name}::Change),\n", table.name);
        arms += &format!(
            "            {} => ::annals::typed::any_change(change, Self::{variant}),\n",
            table.number.0
        );
        rows += &format!("            Self::{variant}(change) => change.row(),\n");
        kinds += &format!(
            "
impl From<{name}::Change> for Change {{
    fn from(change: {name}::Change) -> Self {{
        Self::{variant}(change)
    }}
}}
"
        );
    }
    let row = match rows.is_empty() {
        true => "match *self {}".to_owned(),
        false => format!("match self {{\n{rows}        }}"),
    };
    let variants = if variants.is_empty() { "{}".to_owned() } else { format!("{{\n{variants}}}") };
    format!(
        "\
/// What became of a row, of whichever table.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {variants}

impl Change {{
    /// Returns the row, of whichever table, and what became of it.
    #[must_use]
    pub fn row(&self) -> ::annals::typed::ChangedRow<'_> {{
        {row}
    }}
}}

impl ::annals::typed::AnyChange for Change {{
    fn of(change: ::annals::RowChange) -> ::annals::Result<Option<Self>> {{
        match change.table.0 {{
{arms}            _ => Ok(None),
        }}
    }}
}}
{kinds}"
    )
}

/// Writes the schema's text as a constant, one line a command.
fn schema_text(schema: &Schema) -> String {
    let mut lines = String::new();
    for line in schema.to_text().lines() {
        lines += &format!("{}\\n\\\n", line.escape_debug());
    }
    format!(
        "/// The schema, in the schema language.\npub const SCHEMA: &str = \"\\\n{}\";\n",
        indent(&lines)
    )
}
