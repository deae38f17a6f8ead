//! Tests of the codec: decoding restores everything that can be encoded, and no bytes cause a
//! panic.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use annals_schema::{
    Blob, Collated, Command, Field, FieldNumber, OnDelete, RowId, Schema, Table, Type, Value,
};

use crate::testing::{Owned, decoded};
use crate::{Encoder, MAX_VECTOR};
use annals_simulated::Rng;

fn random_value(rng: &mut Rng, ty: Type, nullable: bool) -> Value {
    if nullable && rng.percent(25) {
        return Value::Null;
    }
    // As often a small number as one of any size.
    let wide = rng.number() >> rng.below(64);
    let bytes = wide.to_le_bytes();
    match ty {
        Type::Bool => Value::Bool(rng.percent(50)),
        Type::Float32 => {
            Value::Float32(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        }
        Type::Float64 => Value::Float64(f64::from_le_bytes(bytes)),
        Type::String => Value::String("äb\0".repeat(rng.index(60))),
        Type::Bytes => {
            let mut bytes = vec![0; rng.index(200)];
            rng.fill(&mut bytes);
            Value::Bytes(bytes)
        }
        Type::Blob => Value::Blob(Blob(1 + wide % Blob::MAX.0)),
        Type::Reference(..) => Value::Reference(RowId(wide % RowId::MAX.0)),
        ty => ty.sample(wide.cast_signed()),
    }
}

fn random_type(rng: &mut Rng, tables: &[std::sync::Arc<Table>]) -> Type {
    let samples = Type::samples();
    match rng.index(samples.len() + 1) {
        sample if sample < samples.len() => samples[sample],
        _ => Type::Reference(
            tables[rng.index(tables.len())].number,
            [OnDelete::Dangle, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull]
                [rng.index(4)],
        ),
    }
}

fn random_change(rng: &mut Rng, schema: &Schema, owner: &Table, name: String) -> Command {
    let table = owner.number;
    let field = |rng: &mut Rng| match owner.fields.len() {
        0 => FieldNumber(0),
        len => owner.fields[rng.index(len)].number,
    };
    let variant = u16::try_from(rng.index(4)).unwrap();
    match rng.index(10) {
        6 => Command::AddVariant { table, field: field(rng), name },
        7 => Command::RenameVariant { table, field: field(rng), variant, name },
        8 => Command::DropVariant { table, field: field(rng), variant },
        0 => Command::DropTable { table },
        1 => Command::RenameTable { table, name },
        2 => Command::DropField { table, field: field(rng) },
        3 => Command::RenameField { table, field: field(rng), name },
        4 => Command::SetSingleRow { table, single: rng.percent(50) },
        5 => Command::SetHistoryIndex { table, indexed: rng.percent(50) },
        _ => match schema.indexes() {
            [] => Command::Custom { name },
            indexes => Command::DropIndex { index: indexes[rng.index(indexes.len())].number },
        },
    }
}

fn random_command(rng: &mut Rng, schema: &Schema) -> Command {
    let tables = schema.tables();
    let name = format!("n{}", schema.commands().len());
    if tables.is_empty() || rng.percent(15) {
        return Command::CreateTable { name };
    }
    let table = &tables[rng.index(tables.len())];
    if rng.percent(25) {
        let change = random_change(rng, schema, table, name);
        return if schema.check(&change).is_ok() {
            change
        } else {
            Command::Custom { name: "c".to_owned() }
        };
    }
    if table.fields.is_empty() || rng.percent(80) {
        let ty = random_type(rng, tables);
        let nullable = rng.percent(40) || matches!(ty, Type::Reference(..));
        let default =
            (ty != Type::Blob && rng.percent(40)).then(|| random_value(rng, ty, nullable));
        return Command::AddField { table: table.number, name, ty, nullable, default };
    }
    let count = 1 + rng.index(table.fields.len().min(3));
    let fields: Vec<_> = table.fields.iter().rev().take(count).map(|f| f.number).collect();
    let descending = fields.iter().copied().filter(|_| rng.percent(40)).collect();
    let is_string = |field: FieldNumber| table.field(field).is_some_and(|f| f.ty == Type::String);
    let strings = fields.iter().copied().filter(|&field| is_string(field));
    let strings: Vec<_> = strings.collect();
    let collate = |field| {
        let (locale, version) = ("de-u-co-phonebk-ks-level2".to_owned(), "é 1".to_owned());
        rng.percent(60).then_some(Collated { field, locale, version })
    };
    let collated = strings.into_iter().filter_map(collate).collect();
    let unique = rng.percent(50);
    Command::CreateIndex { name, table: table.number, fields, descending, collated, unique }
}

fn random_count(rng: &mut Rng, id: RowId) -> u64 {
    let count = (rng.number() >> rng.below(64)) % MAX_VECTOR + 1;
    count.min(RowId::MAX.0 - id.0 + 1)
}

fn random_piece(rng: &mut Rng) -> Owned {
    let offset = if rng.percent(50) { 0 } else { rng.number() >> (1 + rng.below(63)) };
    let mut bytes = vec![0; rng.index(40)];
    rng.fill(&mut bytes);
    bytes.resize(bytes.len().max(usize::from(offset > 0)), 7);
    Owned::Blob(Blob(1 + rng.number() % Blob::MAX.0), offset, bytes, 0)
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
    match rng.index(14) {
        8 => Owned::ValidData,
        9 => random_piece(rng),
        10 => {
            let count = random_count(rng, id).min(2000);
            last.0 += count - 1;
            Owned::InsertVector(table.number, id, count)
        }
        11 => Owned::DeleteVector(table.number, id, random_count(rng, id)),
        12 | 13 if !table.fields.is_empty() => {
            let field = &table.fields[rng.index(table.fields.len())];
            // Half of the vectors have no null, so that they are written as cells.
            let nullable = (field.nullable || rng.percent(10)) && rng.percent(50);
            let count = random_count(rng, id).min(40);
            let values = (0..count).map(|_| random_value(rng, field.ty, nullable)).collect();
            last.0 += count - 1;
            Owned::UpdateVector(table.number, id, field.number, values)
        }
        0 => Owned::Comment("a comment: \u{1F4DC}".repeat(rng.index(3))),
        1 => Owned::Timestamp(rng.number().cast_signed() >> rng.below(64)),
        2 => Owned::Delete(table.number, id),
        3 | 4 if !table.fields.is_empty() => {
            let field = &table.fields[rng.index(table.fields.len())];
            // Null in a field that may not be null says that the value was erased.
            let nullable = field.nullable || rng.percent(10);
            let value = random_value(rng, field.ty, nullable);
            Owned::Update(table.number, id, field.number, value)
        }
        _ => {
            let fields = table.fields.iter();
            let erases = rng.percent(10);
            let value = |field: &Field| random_value(rng, field.ty, field.nullable || erases);
            Owned::Insert(table.number, id, fields.map(value).collect())
        }
    }
}

/// Where payloads are said to be in their file.
pub(super) const POSITION: u64 = 1 << 40;

/// Makes a frame of random events. Returns the events and the schema after them too.
pub(crate) fn random_frame(rng: &mut Rng, schema: &mut Schema) -> (Vec<u8>, Vec<Owned>) {
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

#[test]
fn random_events_come_back() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (mut written, mut read) = (Schema::default(), Schema::default());
        for frame in 0..10 {
            let before = written.clone();
            let (payload, events) = random_frame(&mut rng, &mut written);
            let found = decoded(&payload, POSITION, &mut read).unwrap_or_else(|error| {
                panic!("seed {seed}, frame {frame}: {error}");
            });
            let text = |events: &[Owned]| events.iter().map(Owned::text).collect::<Vec<_>>();
            assert_eq!(text(&found), text(&events), "seed {seed}, frame {frame}");
            assert_eq!(read.commands(), written.commands());
            for event in &found {
                if let Owned::Blob(.., bytes, position) = event {
                    let at = usize::try_from(position - POSITION).unwrap();
                    assert_eq!(&payload[at..at + bytes.len()], bytes, "where it says it is");
                }
            }
            // The encoding is a function of the events: encoding again gives the same bytes.
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
            let _ = decoded(&payload[..end], POSITION, &mut before.clone());
        }
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            for bit in 0..8 {
                changed[at] = payload[at] ^ (1 << bit);
                let _ = decoded(&changed, POSITION, &mut before.clone());
            }
            for extreme in [0, 1, 0x7f, 0x80, 0xbf, 0xc0, 0xff] {
                changed[at] = extreme;
                let _ = decoded(&changed, POSITION, &mut before.clone());
            }
        }
    }
    let mut rng = Rng::new(7);
    for _ in 0..20_000 {
        let mut garbage = vec![0; rng.index(60)];
        rng.fill(&mut garbage);
        let mut schema = Schema::default();
        schema.apply(Command::CreateTable { name: "t".to_owned() }).unwrap();
        let _ = decoded(&garbage, POSITION, &mut schema);
    }
}
