//! Random commands and values.

use annals::model::OnDelete;
use annals::{Blob, Command, FieldNumber, IndexNumber, RowId, TableNumber, Type, Value};

use super::model::Model;
use crate::locales::collations;
use crate::store_model::Random;

pub(super) const RULES: [OnDelete; 4] =
    [OnDelete::Dangle, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull];

/// Draws a value that a field of this type can hold.
pub(super) fn value(random: &mut Random, model: &Model, ty: Type, nullable: bool) -> Value {
    match ty {
        Type::Blob if !model.blobs.is_empty() && random.chance(80) => {
            Value::Blob(Blob(1 + random.below(model.blobs.len() as u64)))
        }
        Type::Reference(..) if !nullable || random.chance(75) => {
            Value::Reference(RowId(random.below(12)))
        }
        Type::Blob | Type::Reference(..) => Value::Null,
        _ => random.value(ty, nullable),
    }
}

/// Draws a value that a field can't hold.
pub(super) fn bad_value(random: &mut Random, model: &Model, ty: Type, nullable: bool) -> Value {
    match ty {
        Type::Blob => Value::Blob(Blob(model.blobs.len() as u64 + 1 + random.below(3))),
        Type::Reference(..) => Value::Reference(RowId(RowId::MAX.0 + 1)),
        _ if !nullable && random.chance(50) => Value::Null,
        Type::Int8 => Value::UInt8(1),
        _ => Value::Int8(1),
    }
}

/// Draws a command, which may be one that must be refused.
pub(super) fn command(random: &mut Random, model: &Model) -> Command {
    let tables: Vec<_> = model.tables.keys().copied().collect();
    let name = name(random);
    if tables.len() < 2 || (tables.len() < 4 && random.chance(12)) {
        return Command::CreateTable { name };
    }
    let table = *random.pick(&tables);
    let fields: Vec<_> = model.table(table).fields.iter().map(|f| FieldNumber(f.number)).collect();
    if fields.len() < 2 || (fields.len() < 7 && random.chance(40)) {
        return add_field(random, model, TableNumber(table), name);
    }
    let (table, field) = (TableNumber(stray(random, table)), *random.pick(&fields));
    let field = FieldNumber(stray(random, field.0));
    let of_enum = model.tables.get(&table.0).and_then(|table| {
        let mut fields = table.fields.iter();
        fields
            .find(|field| matches!(field.ty, Type::Enum(_)))
            .map(|field| FieldNumber(field.number))
    });
    let field = of_enum.filter(|_| random.chance(70)).unwrap_or(field);
    let variant = u16::try_from(random.below(6)).unwrap();
    match random.below(32) {
        26..28 => Command::AddVariant { table, field, name },
        28..30 => Command::RenameVariant { table, field, variant, name },
        30.. => Command::DropVariant { table, field, variant },
        0 => Command::DropTable { table },
        1..4 => Command::DropField { table, field },
        4 => Command::RenameTable { table, name },
        5 => Command::RenameField { table, field, name },
        6..9 => {
            let known: Vec<_> = model.indexes.keys().copied().collect();
            let index = if known.is_empty() { 0 } else { *random.pick(&known) };
            Command::DropIndex { index: IndexNumber(stray(random, index)) }
        }
        9..12 => Command::SetSingleRow { table, single: random.chance(50) },
        12..14 => Command::Custom { name },
        14..16 => Command::SetHistoryIndex { table, indexed: random.chance(50) },
        _ => {
            let mut on = vec![field];
            for _ in 0..random.below(3) {
                on.push(*random.pick(&fields));
            }
            if random.chance(90) {
                on.sort_unstable_by_key(|field| field.0);
                on.dedup();
            }
            let descending = on.iter().copied().filter(|_| random.chance(30)).collect();
            let unique = random.chance(30);
            let owner = model.tables.get(&table.0);
            let is_string = |field: FieldNumber| {
                let field = owner.and_then(|owner| Some(&owner.fields[owner.place(field.0)?]));
                field.is_some_and(|field| field.ty == Type::String)
            };
            let collated = collations(random, &on, is_string);
            Command::CreateIndex { name, table, fields: on, descending, collated, unique }
        }
    }
}

/// Draws a name: few, so that they meet; and some that are none.
fn name(random: &mut Random) -> String {
    match random.below(40) {
        0 => (*random.pick(&["", "9a", "a-b", "é", "a b"])).to_owned(),
        1 => "n".repeat(256),
        _ => format!("n{}", random.below(60)),
    }
}

/// Leads astray at times.
fn stray(random: &mut Random, number: u32) -> u32 {
    if random.chance(3) { number + 50 } else { number }
}

fn add_field(random: &mut Random, model: &Model, table: TableNumber, name: String) -> Command {
    let tables: Vec<_> = model.tables.keys().copied().collect();
    let ty = if random.chance(40) {
        let target = *random.pick(&tables);
        Type::Reference(TableNumber(stray(random, target)), *random.pick(&RULES))
    } else {
        *random.pick(&Type::samples())
    };
    let nullable = random.chance(40) || ty.is_always_nullable();
    let default = match ty {
        _ if random.chance(50) => None,
        _ if random.chance(4) => Some(bad_value(random, model, ty, nullable)),
        Type::Reference(..) => Some(Value::Reference(RowId(random.below(6)))),
        _ => Some(random.value(ty, nullable)),
    };
    Command::AddField { table, name, ty, nullable, default }
}
