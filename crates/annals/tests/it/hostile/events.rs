//! Vectors and blobs that were made to do harm, in frames whose checksums are right.

use annals::event::{MAX_PIECE, MAX_VECTOR};
use annals::journal::format::hash;
use annals::{Blob, RowId};

use super::crafted::{Draft, Frame, open_all, open_within, wide};
use super::journals::CITY;
use super::unapplied::stays_before;

/// Adds to the table 0 a bool (field 1), a blob (2), and a reference to itself (3).
const FIELDS: &[u8] =
    &[0x02, 1, 3, b'b', 1, 0, 0x02, 1, 3, b'p', 16, 1, 0x02, 1, 3, b'r', 15, 1, 1];

/// A journal with one frame of events on the table 0.
fn draft(events: &[&[u8]]) -> Draft {
    Draft::new().with(&Frame::commit(&[FIELDS, &[0x10, 1], &events.concat()].concat()))
}

/// A piece of a blob as an independent writer makes it.
fn piece(blob: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let sum = hash(&[&blob.to_le_bytes()[..], &offset.to_le_bytes(), bytes].concat());
    let len = wide(bytes.len() as u64);
    [&[0x24][..], &wide(blob), &wide(offset), &len, &sum.to_le_bytes(), bytes].concat()
}

/// Two rows.
const ROWS: &[u8] = &[0x18, 1, 5];

#[test]
fn an_independent_writer_s_vectors_and_blobs_are_read() {
    let large = vec![7; MAX_PIECE];
    let events: [&[u8]; 7] = [
        ROWS,
        &[0x19, 1, 3, 5, 0, 1, 0],       // bools as cells
        &[0x19, 1, 1, 5, 1, 3, b'x', 1], // strings
        &piece(1, 0, b"some"),
        &piece(1, 4, &large),
        &[0x19, 1, 5, 5, 1, 3, 1], // blob 1, and null
        &[0x19, 1, 7, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    ];
    let (_, database) = open_all(&draft(&events).bytes, "a good one").unwrap();
    let snapshot = database.read();
    snapshot.check().unwrap();
    assert_eq!(snapshot.table(CITY).unwrap().len(), 2);
    let blob = snapshot.blob(Blob(1)).unwrap().to_vec(1 << 20).unwrap();
    assert_eq!(blob, [b"some", &large[..]].concat());
}

#[test]
fn absurd_vectors_are_named() {
    let counted = |code: u8, id: u64, count: u64| [&[code][..], &wide(id), &wide(count)].concat();
    let update = |field: u64, count: u64, values: &[u8]| {
        [&[0x19, 1][..], &wide(field), &wide(count), values].concat()
    };
    for (what, event) in [
        ("no rows", counted(0x18, 9, 0)),
        ("2^20 + 1 rows", counted(0x18, 9, MAX_VECTOR + 1)),
        ("2^64 - 1 rows", counted(0x18, 9, u64::MAX)),
        ("rows behind the last id", counted(0x18, RowId::MAX.0, 2)),
        ("rows behind the last number", counted(0x18, u64::MAX, 2)),
        ("rows that are there", counted(0x18, 1, 2)),
        ("2^64 - 1 deletions", counted(0x1a, 0, u64::MAX)),
        ("a deletion of a row that isn't there", counted(0x1a, 1, 2)),
        ("an update of rows that aren't there", update(1, 3, &[0, 1, 1, 1])),
        ("an update of a field that isn't there", update(4, 1, &[0, 1])),
        ("2^20 bools in 2 bytes", update(1, MAX_VECTOR, &[0, 1, 1])),
        ("2^20 strings in 2 bytes", update(0, MAX_VECTOR, &[1, 1, 1])),
        ("a string of 2^60 bytes", update(0, 1, &[&[1][..], &wide(1 << 60)].concat())),
        ("a string that isn't UTF-8", update(0, 1, &[1, 3, 0xff])),
        ("cells of strings", update(0, 2, &[0, 1, 1])),
        ("a bool of 2", update(1, 2, &[0, 1, 2])),
        ("a blob that was never written", update(2, 1, &[&[0][..], &[1], &[0; 7]].concat())),
        ("the same, one by one", update(2, 1, &[1, 3])),
        ("a reference that no row can have", update(3, 1, &[&[0][..], &[255; 8]].concat())),
        ("a way of writing that is none", update(1, 1, &[2, 0])),
    ] {
        stays_before(&draft(&[ROWS, &event]).bytes, what, "");
    }
}

#[test]
fn absurd_blobs_are_named() {
    let first = piece(1, 0, b"first");
    let mut wrong_sum = piece(1, 0, b"first");
    let last = wrong_sum.len() - 1;
    wrong_sum[last] ^= 1;
    let too_long = piece(1, 0, &vec![0; MAX_PIECE + 1]);
    let missing = [&[0x24][..], &wide(1), &wide(0), &wide(u64::MAX)].concat();
    let in_two_frames = {
        let mut draft = draft(&[&first]);
        draft.add(&Frame::commit(&piece(1, 5, b"second")));
        draft
    };
    for (what, draft) in [
        ("blob 0", draft(&[&piece(0, 0, b"x")])),
        ("blob 2 first", draft(&[&piece(2, 0, b"x")])),
        ("blob 2^64 - 1", draft(&[&piece(u64::MAX, 0, b"x")])),
        ("a second piece first", draft(&[&piece(1, 5, b"x")])),
        ("a hole", draft(&[&first, &piece(1, 6, b"x")])),
        ("an overlap", draft(&[&first, &piece(1, 4, b"x")])),
        ("the same twice", draft(&[&first, &first])),
        ("a piece of an earlier blob", draft(&[&first, &piece(2, 0, b"x"), &piece(1, 5, b"y")])),
        ("a piece in another transaction", in_two_frames),
        ("something behind nothing", draft(&[&piece(1, 0, b""), &piece(1, 0, b"x")])),
        ("nothing behind something", draft(&[&first, &piece(1, 5, b"")])),
        ("a wrong checksum", draft(&[&wrong_sum])),
        ("a piece of more than 64 KiB", draft(&[&too_long])),
        ("a piece of 2^64 - 1 bytes", draft(&[&missing])),
        ("an offset of 2^64 - 1", draft(&[&first, &piece(1, u64::MAX, b"x")])),
        ("a row with a blob to come", draft(&[&[0x11, 1, 1, 0, 5, 1], &first, &piece(2, 0, b"")])),
    ] {
        stays_before(&draft.bytes, what, "");
    }
}

#[test]
fn a_vector_of_rows_without_values_has_a_byte_for_each_sixteen() {
    let rows = |count: u64, filling: usize| {
        draft(&[&[&[0x18][..], &wide(0), &wide(count), &vec![0; filling]].concat()])
    };
    for (count, filling) in [(65, 3), (1000, 61), (MAX_VECTOR, 0), (MAX_VECTOR, (1 << 16) - 1)] {
        let what = format!("{count} rows with {filling} bytes");
        stays_before(&rows(count, filling).bytes, &what, "ends too early");
    }
    for (count, filling) in [(64, 0), (65, 4), (1000, 62), (MAX_VECTOR, 1 << 16)] {
        let (_, database) = open_all(&rows(count, filling).bytes, "rows with filling").unwrap();
        assert_eq!(database.read().table(CITY).unwrap().len(), count);
    }
    let event = [&[0x18][..], &wide(0), &wide(65), &[0, 0, 1, 0]].concat();
    stays_before(&draft(&[&event]).bytes, "a filling of ones", "is not zero");
}

#[test]
fn a_vector_of_a_million_rows_takes_what_these_rows_take() {
    let event = [&[0x18][..], &wide(0), &wide(MAX_VECTOR), &vec![0; 1 << 16]].concat();
    let million = draft(&[&event]);
    let (_, database) = open_within(48 << 20, &million.bytes, "a million rows").unwrap();
    assert_eq!(database.read().table(CITY).unwrap().len(), MAX_VECTOR);

    // A byte for each value, and an eighth of one, is the least that an update takes.
    let nulls = [&[0x19, 1, 5][..], &wide(MAX_VECTOR), &[1], &vec![1; 1 << 20]].concat();
    let million = draft(&[&event, &nulls]);
    open_all(&million.bytes, "a million null blobs").unwrap();
    let nullable = [&[0x02, 1, 3, b'n', 4, 1, 0x10, 1][..], &event].concat();
    let nulls = [&[0x19, 1, 9][..], &wide(MAX_VECTOR), &[1], &vec![255; 1 << 17]].concat();
    let million = draft(&[&nullable, &nulls]);
    open_within(64 << 20, &million.bytes, "a million null numbers").unwrap();
}

#[test]
fn many_small_blobs_take_memory_in_proportion() {
    let pieces: Vec<u8> = (1..10_000).flat_map(|blob| piece(blob, 0, b"")).collect();
    let (_, database) = open_all(&draft(&[&pieces]).bytes, "10000 empty blobs").unwrap();
    assert!(database.read().blob(Blob(9_999)).unwrap().is_empty());
}
