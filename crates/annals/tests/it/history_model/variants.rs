//! Enums, as the model understands them.

use annals::model::Variants;
use annals::{Command, Type, Value};

use super::language::is_name;
use super::model::Model;

impl Model {
    fn variants(&self, table: u32, field: u32) -> Option<Variants> {
        let table = self.table(table);
        match table.fields[table.place(field).unwrap()].ty {
            Type::Enum(variants) => Some(variants),
            _ => None,
        }
    }

    pub(super) fn variant_name(&self, table: u32, field: u32, variant: u16) -> &'static str {
        self.variants(table, field).unwrap().get(variant).unwrap().name()
    }

    /// True if a command about a variant fits its field.
    pub(super) fn variant_fits(&self, table: u32, field: u32, command: &Command) -> bool {
        let Some(variants) = self.variants(table, field) else { return false };
        let is_new = |name: &str, own: Option<u16>| {
            let held = variants.named(name).map(annals::model::Variant::number);
            is_name(name) && name != "null" && (held.is_none() || held == own)
        };
        match command {
            Command::AddVariant { name, .. } => is_new(name, None),
            Command::RenameVariant { variant, name, .. } => {
                variants.has(*variant) && is_new(name, Some(*variant))
            }
            Command::DropVariant { variant, .. } => {
                let table = self.table(table);
                let default = &table.fields[table.place(field).unwrap()].default;
                let is_default = matches!(default, Value::Enum(v) if v.number() == *variant);
                variants.has(*variant) && *variant > 0 && !is_default
            }
            _ => true,
        }
    }

    pub(super) fn define_variant(&mut self, table: u32, field: u32, command: &Command) {
        let variants = self.variants(table, field).unwrap();
        let table = self.table_mut(table);
        let place = table.place(field).unwrap();
        table.fields[place].ty = Type::Enum(match command {
            Command::AddVariant { name, .. } => variants.with(name),
            Command::RenameVariant { variant, name, .. } => variants.renamed(*variant, name),
            Command::DropVariant { variant, .. } => variants.without(*variant),
            _ => variants,
        });
    }
}
