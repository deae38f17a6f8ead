//! Compares `docs/format.md` with the code: its tables are parsed, and what they say is held against
//! the constants and against what the encoders do, both ways.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use std::collections::{BTreeMap, BTreeSet};

use super::format::{self, Header, Live, Point, Slot};
use super::frame::FrameHeader;
use super::level::Level;
use crate::event::{self, opcode};

pub(crate) const DOCUMENT: &str = include_str!("../../../../docs/format.md");

/// A row of a table: the heading that it stands under, and its cells.
struct Row {
    section: String,
    cells: Vec<String>,
}

fn rows() -> Vec<Row> {
    let (mut section, mut rows) = (String::new(), Vec::new());
    for line in DOCUMENT.lines().map(str::trim) {
        if line.starts_with('#') {
            section = line.trim_start_matches('#').trim().to_owned();
        } else if let Some(inner) = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) {
            let cells = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
            rows.push(Row { section: section.clone(), cells });
        }
    }
    assert!(rows.len() > 80, "only {} rows of tables were found", rows.len());
    rows
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Reads a constant's value: numbers with commas between, or bytes in hexadecimal.
fn value(text: &str) -> Option<Vec<u64>> {
    let words: Vec<_> = text.split(' ').collect();
    if words.len() > 1 && words.iter().all(|word| word.len() == 2) {
        return words.iter().map(|word| u64::from_str_radix(word, 16).ok()).collect();
    }
    text.split(", ").map(number).collect()
}

/// Gives the named constants that tables define, with their values.
fn documented_constants() -> BTreeMap<String, Vec<u64>> {
    let mut constants = BTreeMap::new();
    for row in rows() {
        let Some(name) = row.cells[0].strip_prefix('`').and_then(|rest| rest.strip_suffix('`'))
        else {
            continue;
        };
        if name.len() < 3 || name.bytes().any(|byte| !byte.is_ascii_uppercase() && byte != b'_') {
            continue;
        }
        let value = value(&row.cells[1]).unwrap_or_else(|| panic!("{name}: {:?}", row.cells));
        assert!(constants.insert(name.to_owned(), value).is_none(), "{name} is there twice");
    }
    constants
}

/// Makes a constant a list of numbers, whatever its type.
trait Numbers {
    fn numbers(&self) -> Vec<u64>;
}
macro_rules! numbers {
    ($($integer:ty),+) => {$(
        impl Numbers for $integer {
            fn numbers(&self) -> Vec<u64> {
                vec![u64::try_from(*self).unwrap()]
            }
        }
    )+};
}
numbers!(u8, u16, u32, u64, usize);
impl<T: Numbers, const N: usize> Numbers for [T; N] {
    fn numbers(&self) -> Vec<u64> {
        self.iter().flat_map(Numbers::numbers).collect()
    }
}

macro_rules! constants {
    ($($room:ident :: $name:ident),+ $(,)?) => {
        BTreeMap::from([$((stringify!($name).to_owned(), $room::$name.numbers())),+])
    };
}

/// Gives the constants of the file's layout.
fn layout() -> BTreeMap<String, Vec<u64>> {
    constants![
        format::VERSION,
        format::MAGIC,
        format::SLOT_MAGIC,
        format::LIVE_MAGIC,
        format::FRAME_MAGIC,
        format::HEADER_AT,
        format::HEADER_LEN,
        format::SLOT_AT,
        format::LIVE_AT,
        format::SLOT_COPY_AT,
        format::LIVE_COPY_AT,
        format::SLOT_LEN,
        format::LIVE_LEN,
        format::FRAMES_AT,
        format::FRAME_HEADER_LEN,
        format::FRAME_TRAILER_LEN,
        format::SECTOR,
        format::FRAME_ALIGN,
        format::MAX_FRAME_LEN,
        format::MAX_PAYLOAD,
        format::KIND_DATA,
        format::KIND_COMMIT,
        format::KIND_SEAL,
        format::KIND_ERASURE,
        format::FEATURE_ERASED,
        format::KIND_IGNORABLE,
        format::MAX_SEGMENTS,
        format::MAX_SEGMENT_LEN,
        format::LEVEL_MASK,
        format::FLAG_EXPLICIT_TIME,
        format::FLAG_COMPRESSED,
        format::FLAG_ENCRYPTED,
        format::FLAG_MORE,
        format::FLAG_FAR_TIME,
        format::FLAG_FIRST,
    ]
}

/// Gives the codes and limits of events.
fn events() -> BTreeMap<String, Vec<u64>> {
    constants![
        opcode::CREATE_TABLE,
        opcode::ADD_FIELD,
        opcode::CREATE_INDEX,
        opcode::DROP_TABLE,
        opcode::RENAME_TABLE,
        opcode::DROP_FIELD,
        opcode::RENAME_FIELD,
        opcode::DROP_INDEX,
        opcode::SET_SINGLE_ROW,
        opcode::TABLE,
        opcode::INSERT,
        opcode::APPEND,
        opcode::UPDATE,
        opcode::UPDATE_SAME,
        opcode::UPDATE_NULL,
        opcode::UPDATE_SAME_NULL,
        opcode::DELETE,
        opcode::INSERT_VECTOR,
        opcode::UPDATE_VECTOR,
        opcode::DELETE_VECTOR,
        opcode::COMMENT,
        opcode::TIMESTAMP,
        opcode::VALID_DATA,
        opcode::CUSTOM,
        opcode::BLOB,
        opcode::VECTOR_CELLS,
        opcode::VECTOR_VALUES,
        opcode::FIRST_IGNORABLE,
        opcode::PAD,
        opcode::FIRST_ESSENTIAL,
        opcode::ERASED_INSERT,
        opcode::ERASED_UPDATE,
        opcode::ERASED_VECTOR,
        opcode::FIELD_NULLABLE,
        opcode::FIELD_DEFAULT,
        opcode::FIELD_DEFAULT_NULL,
        opcode::FIELD_ON_DELETE,
        event::MAX_VECTOR,
        event::BARE_ROWS,
        event::ROWS_PER_BYTE,
        event::MAX_PIECE,
    ]
}

#[test]
fn the_constants_are_those_of_the_document() {
    let mut code = layout();
    code.extend(events());
    code.extend(crate::image::document::constants());
    code.extend(crate::history::document::constants());
    let document = documented_constants();
    for (name, value) in &code {
        assert_eq!(document.get(name), Some(value), "docs/format.md on {name}");
    }
    for name in document.keys() {
        assert!(code.contains_key(name), "docs/format.md has {name}, the code hasn't");
    }
    // The list above is complete: every constant that the code shows is in it.
    let exempt = ["REFERENCE"]; // a type's code: compared with the other types
    let sources = [
        include_str!("format.rs"),
        include_str!("../event/opcode.rs"),
        include_str!("../event/mod.rs"),
        include_str!("../image/format.rs"),
        include_str!("../history/format.rs"),
    ];
    for source in sources {
        for line in source.lines() {
            let shown = line.strip_prefix("pub const ");
            let shown = shown.or_else(|| line.strip_prefix("pub(crate) const "));
            let Some((name, _)) = shown.and_then(|rest| rest.split_once(':')) else { continue };
            assert!(
                code.contains_key(name) || exempt.contains(&name),
                "{name} isn't compared with docs/format.md"
            );
        }
    }
}

/// Gives the code and the name in each row of the table of a section.
fn codes(section: &str) -> BTreeMap<u64, String> {
    let of_section = rows().into_iter().filter(|row| row.section == section);
    of_section.filter_map(|row| Some((number(&row.cells[0])?, row.cells[1].clone()))).collect()
}

#[test]
fn the_codes_of_types_and_levels_are_those_of_the_document() {
    use annals_schema::{OnDelete, TableNumber, Type};
    let types = Type::PLAIN.into_iter().chain([Type::Reference(TableNumber(0), OnDelete::Dangle)]);
    let mut code: BTreeMap<_, _> =
        types.map(|ty| (u64::from(opcode::of_type(ty)), ty.name().to_owned())).collect();
    for (number, name) in [(17, "decimal64"), (18, "decimal128")] {
        assert_eq!(opcode::to_type(number, None), None);
        code.insert(u64::from(number), format!("{name} (reserved)"));
    }
    assert_eq!(codes("Types"), code);

    let code: BTreeMap<_, _> =
        Level::ALL.map(|level| (u64::from(level.code()), level.name().to_owned())).into();
    assert_eq!(Level::of_code(4), None);
    assert_eq!(codes("Levels"), code);
}

#[test]
fn compact_integers_are_those_of_the_document() {
    let of_section = rows().into_iter().filter(|row| row.section == "Numbers, strings, values");
    let mut examples = 0;
    for row in of_section.filter(|row| row.cells[0].starts_with('`')) {
        let bytes: Vec<u8> = row.cells[0]
            .trim_matches('`')
            .split(' ')
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect();
        let (unsigned, signed) = (row.cells[1].parse().unwrap(), row.cells[2].parse().unwrap());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        crate::event::compact::put(&mut first, unsigned);
        crate::event::compact::put_signed(&mut second, signed);
        assert_eq!((&first, &second), (&bytes, &bytes));
        examples += 1;
    }
    assert!(examples >= 7);
}

/// Compares the layout in a section with an encoder. `variants` are, for each field, the encoding
/// of something that differs from `base` in that field alone.
pub(crate) fn compare_layout(section: &str, base: &[u8], variants: &[(&str, Vec<u8>)]) {
    let sum_at = base.len() - 8;
    compare_fields(section, base, variants, sum_at);
    let sum = format::hash(&base[..sum_at]).to_le_bytes();
    assert_eq!(&base[sum_at..], sum, "{section}: its checksum");
}

/// As [`compare_layout`], where a checksum is at `sum_at`; one that is behind the end isn't there.
pub(crate) fn compare_fields(
    section: &str,
    base: &[u8],
    variants: &[(&str, Vec<u8>)],
    sum_at: usize,
) {
    let mut at = 0;
    let mut documented = BTreeSet::new();
    let of_section: Vec<Row> = rows().into_iter().filter(|row| row.section == section).collect();
    for row in &of_section {
        let (Some(offset), Some(len)) = (number(&row.cells[0]), number(&row.cells[1])) else {
            continue;
        };
        let (offset, len) = (usize::try_from(offset).unwrap(), usize::try_from(len).unwrap());
        let field = row.cells[2].as_str();
        assert_eq!(offset, at, "{section}: {field} leaves a gap or overlaps");
        at += len;
        documented.insert(field.to_owned());
        let bytes = &base[offset..at];
        match variants.iter().find(|(name, _)| *name == field) {
            Some((_, variant)) => {
                let changed = (0..sum_at).filter(|&byte| variant[byte] != base[byte]);
                let changed: Vec<_> = changed.collect();
                let all: Vec<_> = (offset..at).collect();
                assert_eq!(changed, all, "{section}: where {field} is");
            }
            None => match field {
                "magic" | "checksum" | "check" => {}
                "length" if section.ends_with("eader") => assert_eq!(bytes, [0, 1, 0, 0]),
                "reserved" => assert!(bytes.iter().all(|&byte| byte == 0)),
                _ => panic!("{section}: the code has no field {field}"),
            },
        }
    }
    assert_eq!(at, base.len(), "{section}: its length");
    for (name, _) in variants {
        assert!(documented.contains(*name), "{section}: docs/format.md lacks {name}");
    }
}

/// Builds variants of a value: `variants!(base; field.path = value, ..)` encodes each.
macro_rules! variants {
    ($base:expr, $encode:expr; $($name:literal: $($field:ident).+ = $value:expr),+ $(,)?) => {
        vec![$(($name, {
            let mut variant = $base;
            variant.$($field).+ = $value;
            $encode(&variant)
        })),+]
    };
}
pub(crate) use variants;

#[test]
fn the_header_is_laid_out_as_documented() {
    let base = Header {
        version: 0,
        compatible: 0,
        read_only_compatible: 0,
        incompatible: 0,
        journal_id: [0; 16],
        segment: 0,
        first_txid: 0,
        previous_chain: 0,
        created: 0,
        cipher: 0,
        key_id: [0; 16],
        salt: [0; 32],
        state: 0,
        erasure: 0,
        reserved: [0; 88],
    };
    let encode = |header: &Header| header.encode().to_vec();
    let variants = variants![base, encode;
        "version": version = u32::MAX,
        "compatible": compatible = u64::MAX,
        "read_only_compatible": read_only_compatible = u64::MAX,
        "incompatible": incompatible = u64::MAX,
        "journal_id": journal_id = [255; 16],
        "segment": segment = u64::MAX,
        "first_txid": first_txid = u64::MAX,
        "previous_chain": previous_chain = u64::MAX,
        "created": created = -1,
        "cipher": cipher = u64::MAX,
        "key_id": key_id = [255; 16],
        "salt": salt = [255; 32],
        "state": state = u64::MAX,
        "erasure": erasure = u64::MAX,
        "reserved": reserved = [255; 88],
    ];
    compare_layout("Header", &encode(&base), &variants);
    for (name, bytes) in variants {
        let bytes: [u8; format::HEADER_LEN] = bytes.try_into().unwrap();
        assert_eq!(Header::decode(&bytes).unwrap().encode(), bytes, "{name} survives reading");
    }
}

/// What one copy of a slot says.
#[derive(Clone, Copy)]
struct SlotCopy {
    slot: Slot,
    header: u64,
}

#[test]
fn slots_and_live_block_are_laid_out_as_documented() {
    let point = Point { position: 0, txid: 0, chain: 0 };
    let slot = Slot { point, zeroed_to: 0, sequence: 0, secret: [0; 16] };
    let base = SlotCopy { slot, header: 0 };
    let encode = |copy: &SlotCopy| copy.slot.encode(copy.header).to_vec();
    let variants = variants![base, encode;
        "position": slot.point.position = u64::MAX,
        "txid": slot.point.txid = u64::MAX,
        "chain": slot.point.chain = u64::MAX,
        "zeroed_to": slot.zeroed_to = u64::MAX,
        "header": header = u64::MAX,
        "sequence": slot.sequence = u64::MAX,
        "secret": slot.secret = [255; 16],
    ];
    compare_layout("Slots", &encode(&base), &variants);

    let base = Live { pid: 0, soft: point, hard: 0, suspect: false };
    let encode = |live: &Live| live.encode().to_vec();
    let variants = variants![base, encode;
        "pid": pid = u32::MAX,
        "soft": soft.position = u64::MAX,
        "hard": hard = u64::MAX,
        "txid": soft.txid = u64::MAX,
        "chain": soft.chain = u64::MAX,
    ];
    // `suspect` is one bit of its field; its place is compared here.
    let suspect = Live { suspect: true, ..base }.encode();
    assert_eq!((suspect[40], base.encode()[40]), (1, 0));
    let mut variants = variants;
    let mut whole_field = encode(&base);
    whole_field[40..44].fill(255);
    variants.push(("suspect", whole_field));
    compare_layout("Live block", &encode(&base), &variants);
}

#[test]
fn frames_are_laid_out_as_documented() {
    let base = FrameHeader {
        kind: 0,
        level: 0,
        flags: 0,
        length: 0,
        txid: 0,
        position: 0,
        durable: Some(0),
        nonce: 0,
        time: 0,
    };
    let encode = |header: &FrameHeader| header.encode(0).to_vec();
    let mut variants = variants![base, encode;
        "kind": kind = u8::MAX,
        "length": length = (1 << 24) - 1,
        "txid": txid = u64::from(u32::MAX),
        "durable": durable = None,
        "nonce": nonce = u64::MAX,
        "time": time = -1,
    ];
    // The level and the flags share a byte.
    variants.push(("flags", encode(&FrameHeader { level: 3, flags: 0xFC, ..base })));
    compare_fields("Frames", &encode(&base), &variants, format::FRAME_HEADER_LEN - 4);
    let trailer = rows().into_iter().filter(|row| row.section == "The end of a frame");
    let fields: Vec<_> = trailer
        .filter_map(|row| {
            Some((number(&row.cells[0])?, number(&row.cells[1])?, row.cells[2].clone()))
        })
        .collect();
    let expected = [(0, 4, "check"), (4, 4, "tag"), (8, 8, "chain")];
    assert_eq!(fields, expected.map(|(at, len, name)| (at, len, name.to_owned())));
}
