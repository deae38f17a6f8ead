//! The present state as a script for `annals shell`.

use std::collections::HashMap;

use annals::event::{MAX_PIECE, write_field_value};
use annals::{Blob, Result, RowId, Table, TableView, ValueRef};

use super::finishing;
use crate::language;
use crate::output::Output;
use crate::present::Present;

/// Prints the commands of the tables; then the next ids that don't follow from the rows; then the rows; and last the
/// tables of a single row, those that the history index leaves out, and the indexes, which are then built at once.
pub(crate) fn text(present: &Present<'_>, output: &mut Output) -> Result<()> {
    let schema = present.schema();
    let mut blobs = Blobs::default();
    for (command, line) in schema.commands().iter().zip(schema.lines()) {
        if command.is_ordered() {
            output.line(&line)?;
        }
    }
    for table in schema.tables() {
        print_next_id(table, &present.table(table.number)?, output)?;
    }
    let mut line = String::new();
    for table in schema.tables() {
        for row in present.table(table.number)?.rows() {
            let row = row?;
            line.clear();
            line.push_str(&format!("insert_at {} {}", table.name, row.id().0));
            for field in &table.fields {
                let value = match row.value(field.number) {
                    ValueRef::Blob(blob) => ValueRef::Blob(blobs.write(present, blob, output)?),
                    value => value,
                };
                line.push(' ');
                write_field_value(field, value, &mut line);
            }
            output.line(&line)?;
        }
    }
    finishing(schema).iter().try_for_each(|command| output.line(&schema.command_text(command)))
}

/// Uses and frees the last id that was ever used, unless a row has it now.
fn print_next_id(table: &Table, rows: &TableView<'_>, output: &mut Output) -> Result<()> {
    let Some(last) = rows.next_id().checked_sub(1) else { return Ok(()) };
    if rows.contains(RowId(last))? {
        return Ok(());
    }
    output.line(&format!("insert_into {} {last}", table.name))?;
    output.line(&format!("delete_from {} {last}", table.name))
}

/// The blobs that were written, and the numbers that they get where the script runs.
#[derive(Default)]
struct Blobs(HashMap<Blob, Blob>);

impl Blobs {
    /// Prints a blob, if it wasn't yet; returns its new number.
    fn write(&mut self, present: &Present<'_>, blob: Blob, output: &mut Output) -> Result<Blob> {
        if let Some(&number) = self.0.get(&blob) {
            return Ok(number);
        }
        let mut reader = present.blob(blob)?;
        let mut bytes = vec![0; MAX_PIECE];
        let mut offset = 0;
        loop {
            let read = reader.read_at(offset, &mut bytes)?;
            let piece = language::bytes_text(bytes.get(..read).unwrap_or_default());
            let command = if offset == 0 { "write_blob" } else { "append_blob" };
            output.line(&format!("{command} {piece}"))?;
            offset += read as u64;
            if offset >= reader.len() {
                break;
            }
        }
        let number = Blob(self.0.len() as u64 + 1);
        self.0.insert(blob, number);
        Ok(number)
    }
}
