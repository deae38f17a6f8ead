//! The outer module: the schema's text, the database, its snapshots and transactions.

use super::names::Names;
use super::{Function, block, indent};
use crate::Schema;

/// What doesn't depend on the schema at all.
const DATABASE: &str = include_str!("database.rs.in");

/// Writes everything that stands beside the tables' modules.
pub(super) fn outer_items(schema: &Schema, names: &Names) -> String {
    let mut code = schema_text(schema);
    code.push('\n');
    code += DATABASE;
    let (view, snapshot, transaction) = accessors(schema, names);
    for (head, items) in [
        ("impl<'a> View<'a>", view),
        ("impl Snapshot", snapshot),
        ("impl<'db> Transaction<'db>", transaction),
    ] {
        if !items.is_empty() {
            code.push('\n');
            code += &block(head, &items);
        }
    }
    code
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

/// Writes the methods that give tables and indexes, of view, snapshot and transaction.
fn accessors(schema: &Schema, names: &Names) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (mut view, mut snapshot, mut transaction) = (Vec::new(), Vec::new(), Vec::new());
    for (table, names) in schema.tables().iter().zip(&names.tables) {
        let name = &names.name;
        let doc = format!("Gives the table `{}`.", table.name);
        let function = |parameter: &str, gives: &str, body: &str| {
            let parameters = vec![parameter.to_owned()];
            Function { doc: &[&doc], name, parameters, gives, body }.write()
        };
        let table = format!("{name}::Table");
        view.push(must_use(&function(
            "self",
            &format!("{table}<'a>"),
            "::annals::typed::Table::new(self.0)",
        )));
        snapshot.push(must_use(&function(
            "&self",
            &format!("{table}<'_>"),
            &format!("self.view().{name}()"),
        )));
        transaction.push(function(
            "&mut self",
            &format!("{name}::Writer<'_, 'db>"),
            &format!("{name}::Writer::new(&mut self.0)"),
        ));
    }
    for (index, names_of_index) in schema.indexes().iter().zip(&names.indexes) {
        let name = &names_of_index.name;
        let doc = format!("Gives the index `{}`.", index.name);
        let Some(table) = names.table(index.table) else { continue };
        let ty = format!("{}::{}", table.name, names_of_index.ty);
        let function = |parameter: &str, lifetime: &str, body: &str| {
            let parameters = vec![parameter.to_owned()];
            let gives = format!("{ty}<{lifetime}>");
            must_use(&Function { doc: &[&doc], name, parameters, gives: &gives, body }.write())
        };
        view.push(function("self", "'a", &format!("{ty}::new(self.0)")));
        let body = format!("self.view().{name}()");
        snapshot.push(function("&self", "'_", &body));
        transaction.push(function("&self", "'_", &body));
    }
    (view, snapshot, transaction)
}

/// Marks a function's result as one that shouldn't be dropped.
fn must_use(function: &str) -> String {
    function.replacen("pub fn", "#[must_use]\npub fn", 1)
}
