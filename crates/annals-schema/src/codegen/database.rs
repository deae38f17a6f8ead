//! The outer module: the schema's text, the database, its snapshots and transactions.

use super::custom::Customs;
use super::names::{Names, TableNames};
use super::{Function, block, indent};
use crate::{Index, Schema, Table};

/// The handles: types of the library over this schema, and those that carry its tables' names.
const HANDLES: &str = include_str!("handles.rs.in");
const PLAIN: &str = "impl ::annals::typed::PlainSchema for Schema {}\n";

/// Generates everything besides the tables' modules.
pub(super) fn outer_items(schema: &Schema, names: &Names, customs: &Customs) -> String {
    let mut code = schema_text(schema);
    code.push('\n');
    let (marker, opened) = if customs.is_empty() {
        ("Schema", PLAIN.to_owned())
    } else {
        ("::annals::typed::WithCustoms<Schema>", customs.parameter())
    };
    code += &HANDLES.replace("@customs", &opened).replace("@schema", marker);
    code.push('\n');
    code += &change(schema, names);
    let accessors = Accessors::new(schema, names, "&mut self.0");
    for (head, items) in [
        ("impl<'a> View<'a>", accessors.view),
        ("impl Tables", accessors.snapshot),
        ("impl<'db> Writers<'db>", accessors.transaction),
    ] {
        if !items.is_empty() {
            code.push('\n');
            code += &block(head, &items);
        }
    }
    code
}

/// Writes the changes of any table.
fn change(schema: &Schema, names: &Names) -> String {
    let (mut variants, mut arms, mut kinds) = (String::new(), String::new(), String::new());
    for (table, names) in schema.tables().iter().zip(&names.tables) {
        let TableNames { name, variant, .. } = names;
        variants +=
            &format!("    /// Of a row of `{}`.\n    {variant}({name}::Change),\n", table.name);
        arms += &format!(
            "            {} => ::annals::typed::any_change(change, Self::{variant}),\n",
            table.number.0
        );
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
    let variants = if variants.is_empty() { "{}".to_owned() } else { format!("{{\n{variants}}}") };
    format!(
        "\
/// What became of a row, of whichever table.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {variants}

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

/// The methods that return tables and indexes.
#[derive(Default)]
pub(super) struct Accessors {
    /// Those of a view.
    pub(super) view: Vec<String>,
    /// Those of a snapshot.
    pub(super) snapshot: Vec<String>,
    /// Those of a transaction.
    pub(super) transaction: Vec<String>,
}

impl Accessors {
    /// Writes them; `transaction` is the expression that borrows the transaction without types.
    pub(super) fn new(schema: &Schema, names: &Names, transaction: &str) -> Self {
        let mut accessors = Self::default();
        for (table, names) in schema.tables().iter().zip(&names.tables) {
            accessors.table(table, &names.name, transaction);
        }
        for (index, names_of_index) in schema.indexes().iter().zip(&names.indexes) {
            if let Some(table) = names.table(index.table) {
                let ty = format!("{}::{}", table.name, names_of_index.ty);
                accessors.index(index, &names_of_index.name, &ty);
            }
        }
        accessors
    }

    fn table(&mut self, table: &Table, name: &str, transaction: &str) {
        let function = |doc: &[&str], parameter: &str, gives: &str, body: &str| {
            let parameters = vec![parameter.to_owned()];
            Function { doc, name, parameters, gives, body }.write()
        };
        let of_snapshot = format!("View(&self.0).{name}()");
        let doc = if table.single_row {
            let doc = format!("Returns the only row of the table `{}`.", table.name);
            let can_fail: [&str; 4] = [&doc, "", "# Errors", "It can't be loaded."];
            let row = |lifetime| format!("::annals::Result<{name}::Row<{lifetime}>>");
            let of_view = format!("::annals::typed::Single::<{name}::Kind>::new(self.0).row()");
            self.view.push(function(&can_fail, "self", &row("'a"), &of_view));
            self.snapshot.push(function(&can_fail, "&self", &row("'_"), &of_snapshot));
            doc
        } else {
            let doc = format!("Returns the table `{}`.", table.name);
            let of_view = "::annals::typed::Table::new(self.0)";
            let gives = format!("{name}::Table<'a>");
            self.view.push(must_use(&function(&[&doc], "self", &gives, of_view)));
            let gives = format!("{name}::Table<'_>");
            self.snapshot.push(must_use(&function(&[&doc], "&self", &gives, &of_snapshot)));
            doc
        };
        let gives = format!("{name}::Writer<'_, 'db>");
        let body = format!("{name}::Writer::new({transaction})");
        self.transaction.push(function(&[&doc], "&mut self", &gives, &body));
    }

    fn index(&mut self, index: &Index, name: &str, ty: &str) {
        let doc = format!("Returns the index `{}`.", index.name);
        let function = |parameter: &str, lifetime: &str, body: &str| {
            let parameters = vec![parameter.to_owned()];
            let gives = format!("{ty}<{lifetime}>");
            must_use(&Function { doc: &[&doc], name, parameters, gives: &gives, body }.write())
        };
        self.view.push(function("self", "'a", &format!("{ty}::new(self.0)")));
        let body = format!("View(&self.0).{name}()");
        self.snapshot.push(function("&self", "'_", &body));
        let body = format!("View(self.0.view()).{name}()");
        self.transaction.push(function("&self", "'_", &body));
    }
}

/// Marks a function's result as one that shouldn't be dropped.
fn must_use(function: &str) -> String {
    function.replacen("pub fn", "#[must_use]\npub fn", 1)
}
