//! Tests of the codec: all that can be encoded comes back, and no bytes make it panic.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use annals_schema::{
    Blob, Command, FieldNumber, OnDelete, RowId, Schema, TableNumber, Type, Value,
};

use super::{Encoder, Event, decode};
use crate::Result;
#[cfg(test)]
use crate::storage::simulated::Rng;

/// An event that owns what it speaks of. Floats are compared by their bits.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Schema(Command),
    Insert(TableNumber, RowId, Vec<Value>),
    Update(TableNumber, RowId, FieldNumber, Value),
    Delete(TableNumber, RowId),
    Comment(String),
    Timestamp(i64),
    ValidData,
}

impl Owned {
    pub(crate) fn of(event: &Event<'_>) -> Self {
        match *event {
            Event::Schema(command) => Self::Schema(command.clone()),
            Event::Insert { table, id, values } => {
                Self::Insert(table, id, values.iter().map(|value| value.to_value()).collect())
            }
            Event::Update { table, id, field, value } => {
                Self::Update(table, id, field, value.to_value())
            }
            Event::Delete { table, id } => Self::Delete(table, id),
            Event::Comment(text) => Self::Comment(text.to_owned()),
            Event::Timestamp(seconds) => Self::Timestamp(seconds),
            Event::ValidData => Self::ValidData,
            Event::InsertVector { .. }
            | Event::UpdateVector { .. }
            | Event::DeleteVector { .. }
            | Event::Blob { .. } => unimplemented!(),
        }
    }

    pub(crate) fn encode(&self, encoder: &mut Encoder, schema: &Schema, out: &mut Vec<u8>) {
        match self {
            Self::Schema(command) => encoder.encode(schema, &Event::Schema(command), out),
            Self::Insert(table, id, values) => {
                let values: Vec<_> = values.iter().map(Value::as_ref).collect();
                let event = Event::Insert { table: *table, id: *id, values: &values };
                encoder.encode(schema, &event, out);
            }
            Self::Update(table, id, field, value) => {
                let (table, id, field, value) = (*table, *id, *field, value.as_ref());
                encoder.encode(schema, &Event::Update { table, id, field, value }, out);
            }
            Self::Delete(table, id) => {
                encoder.encode(schema, &Event::Delete { table: *table, id: *id }, out);
            }
            Self::ValidData => encoder.encode(schema, &Event::ValidData, out),
            Self::Comment(text) => encoder.encode(schema, &Event::Comment(text), out),
            Self::Timestamp(seconds) => encoder.encode(schema, &Event::Timestamp(*seconds), out),
        }
    }

    /// Two events are the same if they look the same: that tells floats by their bits but for NaNs.
    fn text(&self) -> String {
        format!("{self:?}")
    }
}

fn random_value(rng: &mut Rng, ty: Type, nullable: bool) -> Value {
    if nullable && rng.percent(25) {
        return Value::Null;
    }
    // As often a small number as one of any size.
    let wide = rng.number() >> rng.below(64);
    let bytes = wide.to_le_bytes();
    match ty {
        Type::Bool => Value::Bool(rng.percent(50)),
        Type::Int8 => Value::Int8(i8::from_le_bytes([bytes[0]])),
        Type::Int16 => Value::Int16(i16::from_le_bytes([bytes[0], bytes[1]])),
        Type::Int32 => Value::Int32(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        Type::Int64 => Value::Int64(wide.cast_signed()),
        Type::UInt8 => Value::UInt8(bytes[0]),
        Type::UInt16 => Value::UInt16(u16::from_le_bytes([bytes[0], bytes[1]])),
        Type::UInt32 => Value::UInt32(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        Type::UInt64 => Value::UInt64(wide),
        Type::Float32 => {
            Value::Float32(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        }
        Type::Float64 => Value::Float64(f64::from_le_bytes(bytes)),
        Type::Timestamp => Value::Timestamp(wide.cast_signed().wrapping_neg()),
        Type::String => Value::String("äb\0".repeat(rng.index(60))),
        Type::Bytes => {
            let mut bytes = vec![0; rng.index(200)];
            rng.fill(&mut bytes);
            Value::Bytes(bytes)
        }
        Type::Blob => Value::Blob(Blob(1 + wide % Blob::MAX.0)),
        Type::Reference(..) => Value::Reference(RowId(wide % RowId::MAX.0)),
    }
}

fn random_type(rng: &mut Rng, tables: usize) -> Type {
    match rng.index(Type::PLAIN.len() + 1) {
        plain if plain < Type::PLAIN.len() => Type::PLAIN[plain],
        _ => Type::Reference(
            TableNumber(u32::try_from(rng.index(tables)).unwrap()),
            [OnDelete::Dangle, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull]
                [rng.index(4)],
        ),
    }
}

fn random_command(rng: &mut Rng, schema: &Schema) -> Command {
    let tables = schema.tables();
    if tables.is_empty() || rng.percent(15) {
        return Command::CreateTable { name: format!("t{}", tables.len()) };
    }
    let table = &tables[rng.index(tables.len())];
    if table.fields.is_empty() || rng.percent(80) {
        let ty = random_type(rng, tables.len());
        let nullable = rng.percent(40) || matches!(ty, Type::Reference(..));
        let default =
            (ty != Type::Blob && rng.percent(40)).then(|| random_value(rng, ty, nullable));
        let name = format!("f{}", table.fields.len());
        return Command::AddField { table: table.number, name, ty, nullable, default };
    }
    let name = format!("i{}", schema.indexes().len());
    let count = 1 + rng.index(table.fields.len().min(3));
    let fields = table.fields.iter().rev().take(count).map(|field| field.number).collect();
    Command::CreateIndex { name, table: table.number, fields, unique: rng.percent(50) }
}

fn random_event(rng: &mut Rng, schema: &Schema, last: &mut RowId) -> Owned {
    if schema.tables().is_empty() || rng.percent(10) {
        return Owned::Schema(random_command(rng, schema));
    }
    let table = &schema.tables()[rng.index(schema.tables().len())];
    let id = match rng.index(4) {
        0 => *last,
        1 | 2 if *last < RowId::MAX => RowId(last.0 + 1),
        _ => RowId((rng.number() >> rng.below(64)).min(RowId::MAX.0)),
    };
    *last = id;
    match rng.index(8) {
        0 => Owned::Comment("a comment: \u{1F4DC}".repeat(rng.index(3))),
        1 => Owned::Timestamp(rng.number().cast_signed() >> rng.below(64)),
        2 => Owned::Delete(table.number, id),
        3 | 4 if !table.fields.is_empty() => {
            let field = &table.fields[rng.index(table.fields.len())];
            let value = random_value(rng, field.ty, field.nullable);
            Owned::Update(table.number, id, field.number, value)
        }
        _ => {
            let fields = table.fields.iter();
            let values = fields.map(|field| random_value(rng, field.ty, field.nullable)).collect();
            Owned::Insert(table.number, id, values)
        }
    }
}

/// Makes a frame of random events. Gives the events and the schema behind them too.
fn random_frame(rng: &mut Rng, schema: &mut Schema) -> (Vec<u8>, Vec<Owned>) {
    let (mut encoder, mut payload, mut events) = (Encoder::default(), Vec::new(), Vec::new());
    encoder.start_frame();
    let mut last = RowId(0);
    for _ in 0..rng.index(40) {
        let event = random_event(rng, schema, &mut last);
        event.encode(&mut encoder, schema, &mut payload);
        if let Owned::Schema(command) = &event {
            schema.apply(command.clone()).unwrap();
        }
        events.push(event);
    }
    (payload, events)
}

pub(crate) fn decoded(payload: &[u8], schema: &mut Schema) -> Result<Vec<Owned>> {
    let mut events = Vec::new();
    decode(payload, schema, &mut |_, event| {
        events.push(Owned::of(event));
        Ok(())
    })?;
    Ok(events)
}

#[test]
fn random_events_come_back() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (mut written, mut read) = (Schema::default(), Schema::default());
        for frame in 0..10 {
            let before = written.clone();
            let (payload, events) = random_frame(&mut rng, &mut written);
            let found = decoded(&payload, &mut read).unwrap_or_else(|error| {
                panic!("seed {seed}, frame {frame}: {error}");
            });
            let text = |events: &[Owned]| events.iter().map(Owned::text).collect::<Vec<_>>();
            assert_eq!(text(&found), text(&events), "seed {seed}, frame {frame}");
            assert_eq!(read.commands(), written.commands());
            // The encoding is a function of the events: it comes back byte for byte.
            let (mut schema, mut again, mut encoder) = (before, Vec::new(), Encoder::default());
            for event in &found {
                event.encode(&mut encoder, &schema, &mut again);
                if let Owned::Schema(command) = event {
                    schema.apply(command.clone()).unwrap();
                }
            }
            assert_eq!(again, payload, "seed {seed}, frame {frame}");
        }
    }
}

#[test]
fn truncated_and_changed_events_never_panic() {
    for seed in 0..20 {
        let mut rng = Rng::new(1000 + seed);
        let mut schema = Schema::default();
        let _ = random_frame(&mut rng, &mut schema);
        let before = schema.clone();
        let (payload, _) = random_frame(&mut rng, &mut schema);
        for end in 0..payload.len() {
            let _ = decoded(&payload[..end], &mut before.clone());
        }
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            for bit in 0..8 {
                changed[at] = payload[at] ^ (1 << bit);
                let _ = decoded(&changed, &mut before.clone());
            }
            for extreme in [0, 1, 0x7f, 0x80, 0xbf, 0xc0, 0xff] {
                changed[at] = extreme;
                let _ = decoded(&changed, &mut before.clone());
            }
        }
    }
    let mut rng = Rng::new(7);
    for _ in 0..20_000 {
        let mut garbage = vec![0; rng.index(60)];
        rng.fill(&mut garbage);
        let mut schema = Schema::default();
        schema.apply(Command::CreateTable { name: "t".to_owned() }).unwrap();
        let _ = decoded(&garbage, &mut schema);
    }
}

#[test]
fn what_is_wrong_is_named() {
    use super::opcode as code;
    let mut schema = Schema::default();
    for table in ["t", "u"] {
        schema.apply(Command::CreateTable { name: table.to_owned() }).unwrap();
    }
    let number = TableNumber(0);
    for (name, ty) in [("b", Type::Bool), ("i", Type::Int16), ("s", Type::String)] {
        let (name, nullable, default) = (name.to_owned(), false, None);
        schema.apply(Command::AddField { table: number, name, ty, nullable, default }).unwrap();
    }
    let huge = [0, 0, 0, 0, 0, 0, 0, 0, 0x10]; // the compact integer 2^60
    let max = [0, 255, 255, 255, 255, 255, 255, 255, 255];
    let last = (RowId::MAX.0).to_le_bytes();
    let cases: [(&[u8], &str); 18] = [
        (
            &[&[code::TABLE, 3, code::INSERT, 0][..], &last, &[code::APPEND]].concat(),
            "an appended row follows no row",
        ),
        (&[code::INSERT, 1], "names no table"),
        (&[code::TABLE, 5, code::INSERT, 1], "a table that isn't there"),
        (&[&[code::TABLE][..], &max].concat(), "a number is out of range"),
        (&[code::TABLE, 1, code::APPEND, 1], "an appended row follows no row"),
        (&[code::TABLE, 1, code::UPDATE_SAME, 1, 1], "follows no row"),
        (&[code::TABLE, 1, code::UPDATE, 1, 9, 1], "a field that isn't there"),
        (&[code::TABLE, 1, code::UPDATE, 1, 1, 2], "a bool is neither"),
        (&[code::TABLE, 1, code::UPDATE_NULL, 1, 1], "can't be null"),
        (&[code::TABLE, 1, code::UPDATE, 1, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0], "out of range"),
        (&[&[code::TABLE, 1, code::DELETE][..], &max].concat(), "id of a row is out of range"),
        (&[&[code::COMMENT][..], &huge].concat(), "ends too early"),
        (&[code::COMMENT, 3, 0xff], "not UTF-8"),
        (&[code::ADD_FIELD, 1, 3, b'x', 16, 0], "a type that is unknown"),
        (&[code::ADD_FIELD, 1, 3, b'x', 1, 8], "flags that are unknown"),
        (&[&[code::CREATE_INDEX, 3, b'x', 1, 0][..], &huge].concat(), "ends"),
        (&[0x7f, 1], "code is unknown"),
        (&[0xc0, 1], "only a newer version"),
    ];
    for (payload, expected) in cases {
        let error = decoded(payload, &mut schema.clone()).unwrap_err().to_string();
        assert!(error.contains(expected), "{payload:x?}: {error}");
    }
    // An ignorable event is skipped, whatever it holds.
    let skipped = [0x80, 7, 1, 2, 3, code::COMMENT, 3, b'c'];
    assert_eq!(decoded(&skipped, &mut schema).unwrap().len(), 1);
}
