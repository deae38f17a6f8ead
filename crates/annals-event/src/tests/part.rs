//! Parts of the values of a vector, read alone.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use annals_schema::{Command, Schema, Type};

use crate::{Encoder, Event, decode};
use crate::{Vector, part_value, parts};
use annals_schema::ValueRef;
use annals_schema::{FieldNumber, RowId, TableNumber};

#[test]
fn each_value_is_read_from_its_part() {
    for (ty, nullable) in [(Type::Int64, false), (Type::String, true), (Type::UInt16, true)] {
        let mut schema = Schema::default();
        let table = TableNumber(0);
        schema.apply(Command::CreateTable { name: "t".to_owned() }).unwrap();
        let name = "a".to_owned();
        schema.apply(Command::AddField { table, name, ty, nullable, default: None }).unwrap();
        let texts: Vec<String> = (0..700).map(|n| "x".repeat(n % 50)).collect();
        let value = |n: usize| match ty {
            _ if nullable && n % 7 == 3 => ValueRef::Null,
            Type::Int64 => ValueRef::Int64(-i64::try_from(n).unwrap()),
            Type::UInt16 => ValueRef::UInt16(u16::try_from(n).unwrap()),
            _ => ValueRef::String(&texts[n]),
        };
        let values: Vec<_> = (0..700).map(value).collect();
        let event = Event::UpdateVector {
            table,
            id: RowId(5),
            field: FieldNumber(0),
            values: Vector::Values(&values),
        };
        let mut payload = Vec::new();
        Encoder::default().encode(&schema, &event, &mut payload);
        decode(&payload, 0, &mut schema.clone(), &mut |schema, event| {
            let Event::UpdateVector { field, values: read, .. } = *event else { return Ok(()) };
            let field = schema.table(table).unwrap().field(field).unwrap();
            let parts = parts(field, read, 300).unwrap();
            assert!(parts.len() > 3);
            let total = parts.last().map_or(0, |part| part.at + part.len);
            let start = payload.len() - total;
            for part in &parts {
                let bytes = &payload[start + part.at..start + part.at + part.len];
                for place in 0..part.count {
                    let at = usize::try_from(part.first + place).unwrap();
                    assert_eq!(part_value(field, part, bytes, place).unwrap(), values[at]);
                }
            }
            Ok(())
        })
        .unwrap();
    }
}
