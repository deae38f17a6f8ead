//! `schema`: tables with their fields, types, defaults, indexes, and how many rows they have.

use annals::{Field, Index, Result, Schema, Table, Type};

use super::cell::literal;
use crate::output::count;
use crate::present::Present;
use crate::shell::screen::{Screen, Style};
use crate::shell::words::Words;

/// Shows the schema.
pub(crate) fn schema(present: &Present<'_>, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let [] = words.exactly()?;
    let schema = present.schema();
    if schema.tables().is_empty() {
        return screen.output.line("there are no tables");
    }
    for table in schema.tables() {
        let rows = present.table(table.number)?;
        let name = screen.paint(Style::Heading, &table.name).into_owned();
        let next = rows.next_id();
        screen
            .output
            .line(&format!("table {name}: {}, next id {next}", count(rows.len(), "row")))?;
        if table.single_row {
            screen.output.line("  always has one row")?;
        }
        if !table.history_index {
            screen.output.line("  is not in the history index")?;
        }
        let longest = table.fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
        for field in &table.fields {
            let meaning = meaning(schema, field);
            screen.output.line(&format!("  {:longest$}  {meaning}", field.name))?;
        }
        for index in schema.indexes().iter().filter(|index| index.table == table.number) {
            let line = screen.paint(Style::Aside, &index_line(table, index)).into_owned();
            screen.output.line(&format!("  {line}"))?;
        }
    }
    Ok(())
}

/// Returns a field's type and its other properties, in the form of `add_field`.
fn meaning(schema: &Schema, field: &Field) -> String {
    let mut text = field.ty.to_string();
    match field.ty {
        Type::Reference(target, on_delete) => {
            text.push(' ');
            text.push_str(schema.table(target).map_or("?", |table| &table.name));
            text.push_str(on_delete.words(!field.nullable));
        }
        Type::Blob => {}
        _ if field.nullable => text.push_str(" null"),
        _ => {}
    }
    if let Some(default) = &field.default {
        text.push_str(" default ");
        text.push_str(&if field.has_new_uuids() {
            "v7".to_owned()
        } else {
            literal(default.as_ref())
        });
    }
    text
}

fn index_line(table: &Table, index: &Index) -> String {
    let name = |number| table.field(number).map_or("?", |field| field.name.as_str());
    let column = |(number, words)| format!("{}{words}", name(number));
    let fields: Vec<_> = index.columns().map(column).collect();
    let kind = if index.unique { "unique index" } else { "index" };
    format!("{kind} {}: {}", index.name, fields.join(", "))
}
