//! The canonical text of a schema: parsing it gives the schema again.

use std::fmt::Write;

use crate::model::columns;
use crate::{Command, FieldNumber, Schema, TableNumber, Type, Variant, write_default};

impl Schema {
    /// Returns the text of a command that this schema could apply. Missing items are printed as
    /// `?`.
    #[must_use]
    pub fn command_text(&self, command: &Command) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _infallible = self.write_command(&mut text, command);
        text
    }

    /// Returns the text of the whole schema, one command a line; each line ends with a line feed.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for line in self.lines() {
            text += &line;
            text.push('\n');
        }
        text
    }

    /// Returns the text of each command, with the names that things had when it was applied.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut schema = Self::default();
        let line = |command: &Command| {
            let text = schema.command_text(command);
            schema.apply(command.clone()).expect("the command was applied to such a schema before");
            text
        };
        self.commands().iter().map(line).collect()
    }

    fn write_command(&self, out: &mut String, command: &Command) -> std::fmt::Result {
        match command {
            Command::CreateTable { name } => write!(out, "create_table {name}"),
            Command::AddField { table, name, ty, nullable, default } => {
                write!(out, "add_field {} {name} {ty}", self.table_name(*table))?;
                match ty {
                    Type::Reference(target, on_delete) => {
                        write!(out, " {}", self.table_name(*target))?;
                        let required = !nullable && !ty.is_always_nullable();
                        out.write_str(on_delete.words(required))?;
                    }
                    Type::Blob => {}
                    _ if *nullable => out.write_str(" null")?,
                    _ => {}
                }
                if let Some(value) = default {
                    out.write_str(" default ")?;
                    write_default(out, value)?;
                }
                Ok(())
            }
            Command::CreateIndex { name, table, fields, descending, collated, unique } => {
                let verb = if *unique { "create_unique_index" } else { "create_index" };
                write!(out, "{verb} {name} {} ", self.table_name(*table))?;
                for (place, (field, words)) in columns(fields, descending, collated).enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    write!(out, "{comma}{}{words}", self.field_name(*table, field))?;
                }
                Ok(())
            }
            Command::DropTable { table } => write!(out, "drop_table {}", self.table_name(*table)),
            Command::RenameTable { table, name } => {
                write!(out, "rename_table {} {name}", self.table_name(*table))
            }
            Command::DropField { table, field } => {
                let field = self.field_name(*table, *field);
                write!(out, "drop_field {} {field}", self.table_name(*table))
            }
            Command::RenameField { table, field, name } => {
                let field = self.field_name(*table, *field);
                write!(out, "rename_field {} {field} {name}", self.table_name(*table))
            }
            Command::AddVariant { table, field, name } => {
                let field = self.field_name(*table, *field);
                write!(out, "add_variant {} {field} {name}", self.table_name(*table))
            }
            Command::RenameVariant { table, field, variant, name } => {
                let (owner, on) = (self.table_name(*table), self.field_name(*table, *field));
                let variant = self.variant_name(*table, *field, *variant);
                write!(out, "rename_variant {owner} {on} {variant} {name}")
            }
            Command::DropVariant { table, field, variant } => {
                let (owner, on) = (self.table_name(*table), self.field_name(*table, *field));
                let variant = self.variant_name(*table, *field, *variant);
                write!(out, "drop_variant {owner} {on} {variant}")
            }
            Command::DropIndex { index } => {
                let name = self.index(*index).map_or("?", |index| &index.name);
                write!(out, "drop_index {name}")
            }
            Command::SetSingleRow { table, single } => {
                write!(out, "set_single_row {} {single}", self.table_name(*table))
            }
            Command::SetHistoryIndex { table, indexed } => {
                let verb = if *indexed { "history_index" } else { "no_history_index" };
                write!(out, "{verb} {}", self.table_name(*table))
            }
            Command::Custom { name } => write!(out, "custom {name}"),
        }
    }

    fn table_name(&self, number: TableNumber) -> &str {
        self.table(number).map_or("?", |table| &table.name)
    }

    fn variant_name(&self, table: TableNumber, field: FieldNumber, variant: u16) -> &'static str {
        let ty = self.table(table).and_then(|table| table.field(field)).map(|field| field.ty);
        let Some(Type::Enum(variants)) = ty else { return "?" };
        variants.get(variant).map_or("?", Variant::name)
    }

    fn field_name(&self, table: TableNumber, field: FieldNumber) -> &str {
        self.table(table).and_then(|table| table.field(field)).map_or("?", |field| &field.name)
    }
}
