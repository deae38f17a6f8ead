//! The canonical text of a schema: what parsing it gives back is the schema again.

use std::fmt::Write;

use crate::{Command, FieldNumber, Schema, TableNumber, Type, write_value};

impl Schema {
    /// Gives the text of a command, whose tables and fields this schema must have (it may be one
    /// that this schema has applied, or could apply). Numbers that it doesn't have read `?`.
    #[must_use]
    pub fn command_text(&self, command: &Command) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _infallible = self.write_command(&mut text, command);
        text
    }

    /// Gives the text of the whole schema, one command a line; each line ends with a line feed.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for command in self.commands() {
            text += &self.command_text(command);
            text.push('\n');
        }
        text
    }

    fn write_command(&self, out: &mut String, command: &Command) -> std::fmt::Result {
        match command {
            Command::CreateTable { name } => write!(out, "create_table {name}"),
            Command::AddField { table, name, ty, nullable, default } => {
                write!(out, "add_field {} {name} {}", self.table_name(*table), ty.name())?;
                match ty {
                    Type::Reference(target) => write!(out, " {}", self.table_name(*target))?,
                    _ if *nullable => out.write_str(" null")?,
                    _ => {}
                }
                if let Some(value) = default {
                    out.write_str(" default ")?;
                    write_value(out, value.as_ref())?;
                }
                Ok(())
            }
            Command::CreateIndex { name, table, fields, unique } => {
                let verb = if *unique { "create_unique_index" } else { "create_index" };
                write!(out, "{verb} {name} {} ", self.table_name(*table))?;
                for (place, &field) in fields.iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    write!(out, "{comma}{}", self.field_name(*table, field))?;
                }
                Ok(())
            }
        }
    }

    fn table_name(&self, number: TableNumber) -> &str {
        self.table(number).map_or("?", |table| &table.name)
    }

    fn field_name(&self, table: TableNumber, field: FieldNumber) -> &str {
        self.table(table).and_then(|table| table.field(field)).map_or("?", |field| &field.name)
    }
}
