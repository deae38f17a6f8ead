//! Tests of the decoder's errors.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use annals_schema::{
    Blob, Command, FieldNumber, OnDelete, RowId, Schema, TableNumber, Type, ValueRef, Variants,
};

use crate::testing::decoded;
use crate::tests::round_trip::POSITION;
use crate::{Encoder, Event, MAX_VECTOR, Sink, Vector, decode, decode_to};

#[test]
fn what_is_wrong_is_named() {
    use crate::opcode as code;
    let mut schema = Schema::default();
    for table in ["t", "u"] {
        schema.apply(Command::CreateTable { name: table.to_owned() }).unwrap();
    }
    let number = TableNumber(0);
    let types = [Type::Bool, Type::Int16, Type::String];
    let variants = Variants::of(["a", "b"]).unwrap();
    let exact = [Type::Decimal(2), Type::Json, Type::FixedBytes(2), Type::Enum(variants)];
    for (name, ty) in
        ["b", "i", "s", "d", "j", "f", "e"].into_iter().zip(types.into_iter().chain(exact))
    {
        let (name, nullable, default) = (name.to_owned(), false, None);
        schema.apply(Command::AddField { table: number, name, ty, nullable, default }).unwrap();
    }
    let huge = [0, 0, 0, 0, 0, 0, 0, 0, 0x10]; // the compact integer 2^60
    let max = [0, 255, 255, 255, 255, 255, 255, 255, 255];
    let last = (RowId::MAX.0).to_le_bytes();
    let cases: [(&[u8], &str); 29] = [
        (
            &[&[code::TABLE, 3, code::INSERT, 0][..], &last, &[code::APPEND]].concat(),
            "an appended row follows no row",
        ),
        (&[code::INSERT, 1], "names no table"),
        (&[code::TABLE, 5, code::INSERT, 1], "a table that isn't there"),
        (&[&[code::TABLE][..], &max].concat(), "a number is out of range"),
        (&[code::TABLE, 1, code::APPEND, 1], "an appended row follows no row"),
        (&[code::TABLE, 1, code::UPDATE_SAME, 1, 1], "follows no row"),
        (&[code::TABLE, 1, code::UPDATE, 1, 99, 1], "a field that isn't there"),
        (&[code::TABLE, 1, code::UPDATE, 1, 1, 2], "a bool is neither"),
        (&[code::TABLE, 1, code::UPDATE_NULL, 1, 1], "can't be null"),
        (&[code::TABLE, 1, code::UPDATE, 1, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0], "out of range"),
        (&[&[code::TABLE, 1, code::DELETE][..], &max].concat(), "id of a row is out of range"),
        (&[&[code::COMMENT][..], &huge].concat(), "ends too early"),
        (&[code::COMMENT, 3, 0xff], "not UTF-8"),
        (&[code::ADD_FIELD, 1, 3, b'x', 99, 0], "a type that is unknown"),
        (&[code::ADD_FIELD, 1, 3, b'x', 17, 39 << 1 | 1, 0], "a type that is unknown"),
        (&[code::ADD_FIELD, 1, 3, b'x', 21, 1, 0], "a type that is unknown"),
        (&[code::TABLE, 1, code::UPDATE, 1, 7, 1], "a decimal is out of range"),
        (&[&[code::TABLE, 1, code::UPDATE, 1, 7, 35][..], &[0; 17]].concat(), "decimal is out"),
        (&[code::TABLE, 1, code::UPDATE, 1, 9, 3, b'{'], "none of its type"),
        (&[code::TABLE, 1, code::UPDATE, 1, 11, 3, 0], "none of its type"),
        (&[code::TABLE, 1, code::UPDATE, 1, 13, 5], "none of the variants"),
        (&[code::ADD_FIELD, 1, 3, b'x', 22, 5, 3, b'a', 3, b'a', 0], "variants of a field"),
        (&[code::ADD_FIELD, 1, 3, b'x', 1, 8], "flags that are unknown"),
        (&[code::ADD_FIELD, 1, 3, b'x', 1, 32], "flags that are unknown"),
        (&[code::SET_SINGLE_ROW, 1, 2], "neither 0 nor 1"),
        (&[code::SET_HISTORY_INDEX, 1, 2], "neither 0 nor 1"),
        (&[&[code::CREATE_INDEX, 3, b'x', 1, 0][..], &huge].concat(), "ends"),
        (&[0x7f, 1], "code is unknown"),
        (&[0xc0, 1], "only a newer version"),
    ];
    for (payload, expected) in cases {
        let error = decoded(payload, POSITION, &mut schema.clone()).unwrap_err().to_string();
        assert!(error.contains(expected), "{payload:x?}: {error}");
    }
    // An ignorable event is skipped, whatever it holds.
    let skipped = [0x80, 7, 1, 2, 3, code::COMMENT, 3, b'c'];
    assert_eq!(decoded(&skipped, POSITION, &mut schema).unwrap().len(), 1);
}

/// Erased values: too short, too long, none, one of no field, and one that may be null by itself.
#[test]
fn what_is_wrong_with_erased_values_is_named() {
    use crate::opcode as code;
    let mut other = Schema::default();
    for table in ["t", "u"] {
        other.apply(Command::CreateTable { name: table.to_owned() }).unwrap();
    }
    let field = |nullable| Command::AddField {
        table: TableNumber(1),
        name: format!("n{}", u8::from(nullable)),
        ty: Type::Int8,
        nullable,
        default: None,
    };
    [true, false].into_iter().for_each(|nullable| other.apply(field(nullable)).unwrap());
    let erased = |code, body: &[u8]| {
        let len = u8::try_from(body.len()).unwrap() * 2 + 1;
        let payload = [&[code::TABLE, 3, code, len][..], body].concat();
        decoded(&payload, POSITION, &mut other.clone()).map_err(|error| error.to_string())
    };
    assert!(erased(code::ERASED_INSERT, &[1, 2, 7]).is_ok());
    assert!(erased(code::ERASED_UPDATE, &[1, 3]).is_ok());
    assert!(erased(code::ERASED_VECTOR, &[1, 3, 5, 1, 7]).is_ok());
    for (code, body, expected) in [
        (code::ERASED_INSERT, &[1, 2][..], "ends too early"),
        (code::ERASED_INSERT, &[1, 2, 7, 7], "more than it says"),
        (code::ERASED_INSERT, &[1, 1, 7], "has none"),
        (code::ERASED_UPDATE, &[1, 9], "a field that isn't there"),
        (code::ERASED_UPDATE, &[1, 1], "may be null"),
        (code::ERASED_UPDATE, &[1, 3, 1], "more than it says"),
        (code::ERASED_VECTOR, &[1, 1, 3, 1], "may be null"),
        (code::ERASED_VECTOR, &[1, 3, 1], "out of range"),
        (code::ERASED_VECTOR, &[1, 3, 5, 1], "ends too early"),
    ] {
        let error = erased(code, body).unwrap_err();
        assert!(error.contains(expected), "{code:x} {body:?}: {error}");
    }
}

/// A table of number 0 with a bool, an int16 that may be null, a reference, a blob and a string.
fn wide() -> Schema {
    let mut schema = Schema::default();
    schema.apply(Command::CreateTable { name: "t".to_owned() }).unwrap();
    let table = TableNumber(0);
    let types = [
        Type::Bool,
        Type::Int16,
        Type::Reference(table, OnDelete::Dangle),
        Type::Blob,
        Type::String,
    ];
    for (place, ty) in types.into_iter().enumerate() {
        let (name, nullable) = (format!("f{place}"), ty == Type::Int16);
        schema.apply(Command::AddField { table, name, ty, nullable, default: None }).unwrap();
    }
    schema
}

#[test]
fn what_is_wrong_with_a_vector_or_a_piece_is_named() {
    use crate::opcode as code;
    let compact = |number: u64| {
        let mut out = Vec::new();
        crate::compact::put(&mut out, number);
        out
    };
    let on_table = |bytes: &[&[u8]]| [&[code::TABLE, 1][..], &bytes.concat()].concat();
    let rows = |code, id, count| on_table(&[&[code], &compact(id), &compact(count)]);
    // Field, how many values, and how they are written.
    let update = |field: u64, count: u64, values: &[u8]| {
        on_table(&[&[code::UPDATE_VECTOR, 1], &compact(field), &compact(count), values])
    };
    let piece = |blob: u64, offset: u64, len: u64, stored: &[u8]| {
        [&[code::BLOB][..], &compact(blob), &compact(offset), &compact(len), stored].concat()
    };
    let (one, last) = (1u64.to_le_bytes(), RowId::MAX.0);
    let cells = |number: u64| [&[0][..], &one, &number.to_le_bytes()].concat();
    let cases = [
        (rows(code::INSERT_VECTOR, 0, 0), "the number of rows is out of range"),
        (rows(code::INSERT_VECTOR, 0, MAX_VECTOR + 1), "the number of rows is out of range"),
        (rows(code::DELETE_VECTOR, 0, u64::MAX), "the number of rows is out of range"),
        (rows(code::INSERT_VECTOR, last, 2), "the id of a row is out of range"),
        (rows(code::INSERT_VECTOR, 0, 65), "it ends too early"),
        (rows(code::INSERT_VECTOR, 0, MAX_VECTOR), "it ends too early"),
        (rows(code::INSERT_VECTOR, u64::MAX, 2), "the id of a row is out of range"),
        (vec![code::INSERT_VECTOR, 1, 3], "names no table"),
        (update(9, 1, &[0, 0]), "a field that isn't there"),
        (update(0, 0, &[0]), "the number of rows is out of range"),
        (update(0, MAX_VECTOR, &[0, 1, 1]), "it ends too early"),
        (update(1, MAX_VECTOR, &[1, 1, 1]), "it ends too early"),
        (update(4, MAX_VECTOR, &[1, 1, 1]), "ends"),
        (update(0, 2, &[0, 1, 2]), "a value that its type hasn't"),
        (update(0, 2, &[1, 1, 2]), "a bool is neither"),
        (update(0, 1, &[2, 1]), "written in an unknown way"),
        (update(4, 1, &[0, 1]), "written in an unknown way"),
        (update(2, 2, &cells(last + 1)), "a value that its type hasn't"),
        (update(3, 2, &cells(0)), "a value that its type hasn't"),
        (update(3, 2, &cells(Blob::MAX.0 + 1)), "a value that its type hasn't"),
        (piece(0, 0, 0, &[0; 8]), "the number of a blob is out of range"),
        (piece(u64::MAX, 0, 0, &[0; 8]), "the number of a blob is out of range"),
        (piece(1, 0, 65537, &[0; 70_000]), "a piece of a blob is out of range"),
        (piece(1, 0, u64::MAX, &[]), "a piece of a blob is out of range"),
        (piece(1, u64::MAX, 1, &[0; 9]), "a piece of a blob is out of range"),
        (piece(1, 5, 0, &[0; 8]), "a piece of a blob is out of range"),
        (piece(1, 0, 9, &[0; 16]), "it ends too early"),
        (piece(1, 0, 1, &[0; 9]), "the checksum of a piece of a blob is wrong"),
    ];
    for (payload, expected) in cases {
        let error = decoded(&payload, POSITION, &mut wide()).unwrap_err().to_string();
        let start = payload.get(..40).unwrap_or(&payload);
        assert!(error.contains(expected), "{start:x?}: {error}");
    }
    // The largest that there may be.
    let good = [
        rows(code::INSERT_VECTOR, last - 1, 2),
        rows(code::DELETE_VECTOR, 0, MAX_VECTOR),
        update(2, 2, &cells(last)),
        update(3, 2, &cells(Blob::MAX.0)),
        update(0, 3, &[0, 1, 0, 1]),
    ];
    for payload in good {
        assert_eq!(decoded(&payload, POSITION, &mut wide()).unwrap().len(), 1, "{payload:x?}");
    }
}

#[test]
fn a_vector_is_borrowed_as_it_stands_in_the_journal() {
    let (table, schema) = (TableNumber(0), wide());
    let cells: Vec<u8> = (0..5i16).flat_map(i16::to_le_bytes).collect();
    let values: Vec<_> = (0..5).map(ValueRef::Int16).collect();
    let nulls: Vec<_> =
        values.iter().map(|&v| if v == ValueRef::Int16(3) { ValueRef::Null } else { v }).collect();
    let encode = |values| {
        let mut out = Vec::new();
        let event = Event::UpdateVector { table, id: RowId(7), field: FieldNumber(1), values };
        Encoder::default().encode(&schema, &event, &mut out);
        out
    };
    let payload = encode(Vector::Cells(&cells));
    assert_eq!(payload, encode(Vector::Values(&values)), "values without null become cells");
    decode(&payload, 0, &mut schema.clone(), &mut |_, event| {
        let Event::UpdateVector { values: Vector::Cells(found), .. } = *event else { panic!() };
        assert!(payload.as_ptr_range().contains(&found.as_ptr()), "no copy");
        assert_eq!(found, cells);
        Ok(())
    })
    .unwrap();
    decode(&encode(Vector::Values(&nulls)), 0, &mut schema.clone(), &mut |_, event| {
        let Event::UpdateVector { values: Vector::Values(found), .. } = *event else { panic!() };
        assert_eq!(found, nulls);
        Ok(())
    })
    .unwrap();
}

/// Takes runs of at most three rows: the ids of all rows, in their order, and the length of each run.
#[derive(Default)]
struct Runs(Vec<(RowId, u64)>);

impl Sink for Runs {
    const RUN: usize = 3;

    fn event(&mut self, _: &Schema, event: &Event<'_>) -> crate::Result<()> {
        if let Event::Insert { id, .. } = *event {
            self.0.push((id, 1));
        }
        Ok(())
    }

    fn rows(
        &mut self,
        _: TableNumber,
        first: RowId,
        count: u64,
        _: &[Vec<ValueRef<'_>>],
    ) -> crate::Result<()> {
        self.0.push((first, count));
        Ok(())
    }
}

#[test]
fn a_run_ends_with_the_largest_id() {
    use crate::opcode as code;
    let mut schema = Schema::default();
    schema.apply(Command::CreateTable { name: "t".to_owned() }).unwrap();
    let from = |id: u64, count: usize| {
        let begin = [&[code::TABLE, 1, code::INSERT, 0][..], &id.to_le_bytes()].concat();
        [begin, vec![code::APPEND; count - 1]].concat()
    };
    let max = RowId::MAX.0;
    let cases: [(u64, usize, &[u64], bool); 5] = [
        (max - 7, 8, &[3, 3, 2], true),
        (max, 1, &[1], true),
        (max - 1, 2, &[2], true),
        (max - 1, 3, &[2], false),
        (max - 3, 5, &[3, 1], false),
    ];
    for (id, count, lens, fits) in cases {
        let mut runs = Runs::default();
        let decoded = decode_to(&from(id, count), POSITION, &mut schema.clone(), &mut runs);
        assert_eq!(decoded.is_ok(), fits, "{count} rows from {id} on");
        assert_eq!(runs.0.iter().map(|run| run.1).collect::<Vec<_>>(), lens);
        assert!(runs.0.is_sorted_by_key(|run| run.0) && runs.0[0].0 == RowId(id));
    }
}
