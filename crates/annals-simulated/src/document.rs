//! Compares `docs/format.md` with the code, for tests: parses its tables, and compares them with the constants and
//! the encoders, in both directions.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "it is for tests, which fail where it is wrong, as they should"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use annals_storage::bytes::hash;

/// The document. A package doesn't have it, so it is read when it is needed.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
    std::fs::read_to_string(path).unwrap()
});

/// A row of a table: the heading above it, and its cells.
pub struct Row {
    pub section: String,
    pub cells: Vec<String>,
}

/// Returns all rows of its tables.
pub fn rows() -> Vec<Row> {
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

/// Reads a number, decimal or hexadecimal.
pub fn number(text: &str) -> Option<u64> {
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

/// Returns the named constants that tables define, with their values.
pub fn documented_constants() -> BTreeMap<String, Vec<u64>> {
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
pub trait Numbers {
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

/// Lists constants by their names.
#[doc(hidden)]
#[macro_export]
macro_rules! constants {
    ($($room:ident :: $name:ident),+ $(,)?) => {
        ::std::collections::BTreeMap::from([$((
            stringify!($name).to_owned(),
            $crate::document::Numbers::numbers(&$room::$name),
        )),+])
    };
}
pub use crate::constants;

/// Returns the code and the name in each table row of a section of `docs/format.md`.
pub fn codes(section: &str) -> BTreeMap<u64, String> {
    let of_section = rows().into_iter().filter(|row| row.section == section);
    of_section.filter_map(|row| Some((number(&row.cells[0])?, row.cells[1].clone()))).collect()
}

/// Compares the layout in a section with an encoder. `variants` are, for each field, the encoding
/// of something that differs from `base` in that field alone.
pub fn compare_layout(section: &str, base: &[u8], variants: &[(&str, Vec<u8>)]) {
    let sum_at = base.len() - 8;
    compare_fields(section, base, variants, sum_at);
    let sum = hash(&base[..sum_at]).to_le_bytes();
    assert_eq!(&base[sum_at..], sum, "{section}: its checksum");
}

/// Does what [`compare_layout`] does, with a checksum at `sum_at`; if that is after the end, there is none.
pub fn compare_fields(section: &str, base: &[u8], variants: &[(&str, Vec<u8>)], sum_at: usize) {
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
#[doc(hidden)]
#[macro_export]
macro_rules! variants {
    ($base:expr, $encode:expr; $($name:literal: $($field:ident).+ = $value:expr),+ $(,)?) => {
        vec![$(($name, {
            let mut variant = $base;
            variant.$($field).+ = $value;
            $encode(&variant)
        })),+]
    };
}
pub use crate::variants;

/// Returns the fenced block that follows a marker in the document.
pub fn block(marker: &str) -> &'static str {
    let fence = format!("```{marker}\n");
    let (_, rest) = DOCUMENT.split_once(&fence).unwrap_or_else(|| panic!("no block {marker}"));
    rest.split_once("```").unwrap().0
}

/// Reads a dump: `length N`, then lines of a position and bytes, all else zeros.
pub fn parse_dump(dump: &str) -> Vec<u8> {
    let mut lines = dump.lines();
    let length = lines.next().and_then(|line| line.strip_prefix("length ")).unwrap();
    let mut bytes = vec![0; length.parse().unwrap()];
    for line in lines {
        let (at, row) = line.split_once("  ").unwrap();
        let at = usize::from_str_radix(at, 16).unwrap();
        for (place, byte) in row.split(' ').enumerate() {
            bytes[at + place] = u8::from_str_radix(byte, 16).unwrap();
        }
    }
    bytes
}

pub fn dump(bytes: &[u8]) -> String {
    let mut dump = format!("length {}\n", bytes.len());
    for (row, chunk) in bytes.chunks(16).enumerate() {
        if chunk.iter().any(|&byte| byte != 0) {
            let hex: Vec<_> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(dump, "{:04x}  {}", row * 16, hex.join(" ")).unwrap();
        }
    }
    dump
}
