//! The present state as a script for `annals shell`.

use annals::{Command, Index, Result, RowId, Table, TableView, View};

use crate::language;
use crate::output::Output;

/// Prints how the tables came to be; then the next ids that the rows don't give by themselves; then
/// the rows; and at last which tables have a single row, and the indexes, which are then built in one
/// go.
pub(crate) fn text(view: &View, output: &mut Output) -> Result<()> {
    let schema = view.schema();
    for (command, line) in schema.commands().iter().zip(schema.lines()) {
        if command.is_ordered() {
            output.line(&line)?;
        }
    }
    for table in schema.tables() {
        print_next_id(table, &view.table(table.number)?, output)?;
    }
    let mut line = String::new();
    for table in schema.tables() {
        for row in view.table(table.number)?.rows() {
            let row = row?;
            line.clear();
            line.push_str(&format!("insert_at {} {}", table.name, row.id().0));
            for field in &table.fields {
                line.push(' ');
                language::write_value(row.value(field.number), &mut line);
            }
            output.line(&line)?;
        }
    }
    for table in schema.tables().iter().filter(|table| table.single_row) {
        let single = Command::SetSingleRow { table: table.number, single: true };
        output.line(&schema.command_text(&single))?;
    }
    for index in schema.indexes() {
        let Index { name, table, fields, unique, .. } = index.clone();
        let command = Command::CreateIndex { name, table, fields, unique };
        output.line(&schema.command_text(&command))?;
    }
    Ok(())
}

/// Uses and frees the last id that was ever used, if no row has it now.
fn print_next_id(table: &Table, rows: &TableView<'_>, output: &mut Output) -> Result<()> {
    let Some(last) = rows.next_id().checked_sub(1) else { return Ok(()) };
    if rows.contains(RowId(last)) {
        return Ok(());
    }
    output.line(&format!("insert_into {} {last}", table.name))?;
    output.line(&format!("delete_from {} {last}", table.name))
}
