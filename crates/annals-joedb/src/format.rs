//! The parts of a joedb file: the head, the entries after it, and the types of values.
//!
//! Version 5, as joedb 10.4 reads and writes it. All numbers of a fixed size are little-endian. A *compact* number
//! has the number of further bytes in the three highest bits of its first byte. Its own bits follow, most significant
//! first.

use annals::model::Written;

/// The length of the head, where the entries begin, in bytes.
pub(crate) const HEAD: u64 = 41;

/// The same, as the length of an array.
const LEN: usize = 41;
const _: () = assert!(LEN as u64 == HEAD);

/// The version of the format.
pub(crate) const VERSION: u32 = 5;

/// The bytes after the version.
pub(crate) const SIGNATURE: [u8; 5] = *b"joedb";

/// The largest compact number.
pub(crate) const COMPACT_MAX: u64 = (1 << 61) - 1;

/// The first bytes of entries, except updates.
pub(crate) mod code {
    pub(crate) const CREATE_TABLE: u8 = 0x01;
    pub(crate) const DROP_TABLE: u8 = 0x02;
    pub(crate) const ADD_FIELD: u8 = 0x03;
    pub(crate) const DROP_FIELD: u8 = 0x04;
    pub(crate) const INSERT: u8 = 0x05;
    pub(crate) const DELETE: u8 = 0x06;
    /// Inserts the row after the last one that the reader has met.
    pub(crate) const APPEND: u8 = 0x08;
    pub(crate) const COMMENT: u8 = 0x0a;
    pub(crate) const TIMESTAMP: u8 = 0x0b;
    pub(crate) const RENAME_TABLE: u8 = 0x0c;
    pub(crate) const RENAME_FIELD: u8 = 0x0d;
    pub(crate) const VALID_DATA: u8 = 0x0e;
    pub(crate) const INSERT_VECTOR: u8 = 0x0f;
    pub(crate) const CUSTOM: u8 = 0x10;
    pub(crate) const BLOB: u8 = 0x13;
    pub(crate) const DELETE_VECTOR: u8 = 0x14;
    /// Those that joedb once wrote, and doesn't read any more.
    pub(crate) const RETIRED: [u8; 4] = [0x07, 0x09, 0x11, 0x12];
    /// Four codes for each type follow: see [`Way`](super::Way).
    pub(crate) const UPDATES: u8 = 0x80;
}

/// How an update says which row and field it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Table, row, field.
    Full,
    /// The last row; the field.
    Last,
    /// The row after the last one; the last field.
    Next,
    /// Table, first row, field, number of rows: a value for each.
    Vector,
}

impl Way {
    const ALL: [Self; 4] = [Self::Full, Self::Last, Self::Next, Self::Vector];

    /// Returns the first byte of an update.
    pub(crate) const fn code(self, kind: Kind) -> u8 {
        code::UPDATES + 4 * (kind.code() - 1) + 1 + self as u8
    }

    /// Decodes the first byte of an update.
    pub(crate) fn of_code(byte: u8) -> Option<(Self, Kind)> {
        let place = byte.checked_sub(code::UPDATES + 1)?;
        let way = Self::ALL.get(usize::from(place % 4))?;
        Some((*way, Kind::of_code(place / 4 + 1)?))
    }
}

/// A type of joedb's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String = 1,
    Int32,
    Int64,
    Reference,
    Bool,
    Float32,
    Float64,
    Int8,
    Int16,
    Blob,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::String,
        Self::Int32,
        Self::Int64,
        Self::Reference,
        Self::Bool,
        Self::Float32,
        Self::Float64,
        Self::Int8,
        Self::Int16,
        Self::Blob,
    ];

    /// Returns the type's number.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// Finds a type by its number.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Returns joedb's word for the type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Reference => "references",
            Self::Bool => "boolean",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Blob => "blob",
        }
    }

    /// Returns how many bytes a value takes; `None` if that isn't always the same.
    pub(crate) const fn width(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Int8 => Some(1),
            Self::Int16 => Some(2),
            Self::Int32 | Self::Float32 => Some(4),
            Self::Int64 | Self::Float64 => Some(8),
            Self::String | Self::Reference | Self::Blob => None,
        }
    }
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    String(&'a [u8]),
    Int32(i32),
    Int64(i64),
    /// The id of a row plus one; 0 is null.
    Reference(u64),
    Bool(bool),
    Float32(f32),
    Float64(f64),
    Int8(i8),
    Int16(i16),
    /// Where its bytes are in the file, and how many; both are 0 if there is none.
    Blob(u64, u64),
    /// A string that is the text of a value.
    Written(Written),
}

impl Cell<'_> {
    /// Returns the value's type.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::String(_) | Self::Written(_) => Kind::String,
            Self::Int32(_) => Kind::Int32,
            Self::Int64(_) => Kind::Int64,
            Self::Reference(_) => Kind::Reference,
            Self::Bool(_) => Kind::Bool,
            Self::Float32(_) => Kind::Float32,
            Self::Float64(_) => Kind::Float64,
            Self::Int8(_) => Kind::Int8,
            Self::Int16(_) => Kind::Int16,
            Self::Blob(..) => Kind::Blob,
        }
    }

    /// True if it equals, to the bit, the value of a new row.
    pub(crate) const fn is_zero(&self) -> bool {
        match *self {
            Self::String(text) => text.is_empty(),
            Self::Int32(value) => value == 0,
            Self::Int64(value) => value == 0,
            Self::Reference(value) => value == 0,
            Self::Bool(value) => !value,
            Self::Float32(value) => value.to_bits() == 0,
            Self::Float64(value) => value.to_bits() == 0,
            Self::Int8(value) => value == 0,
            Self::Int16(value) => value == 0,
            Self::Blob(position, size) => position == 0 && size == 0,
            Self::Written(_) => false,
        }
    }
}

/// One entry. Tables and fields are numbered from 1 in the order in which they were made; rows are the ids plus one,
/// so that 0 is none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    CreateTable {
        name: &'a [u8],
    },
    DropTable {
        table: u64,
    },
    RenameTable {
        table: u64,
        name: &'a [u8],
    },
    /// `target` is the table that a reference refers to; 0 for other types.
    AddField {
        table: u64,
        name: &'a [u8],
        kind: Kind,
        target: u64,
    },
    DropField {
        table: u64,
        field: u64,
    },
    RenameField {
        table: u64,
        field: u64,
        name: &'a [u8],
    },
    Insert {
        table: u64,
        row: u64,
    },
    Delete {
        table: u64,
        row: u64,
    },
    InsertVector {
        table: u64,
        row: u64,
        count: u64,
    },
    DeleteVector {
        table: u64,
        row: u64,
        count: u64,
    },
    Update {
        table: u64,
        row: u64,
        field: u64,
        value: Cell<'a>,
    },
    /// The values follow; the caller reads them.
    UpdateVector {
        table: u64,
        row: u64,
        field: u64,
        kind: Kind,
        count: u64,
    },
    /// This many bytes follow; the caller reads them.
    Blob {
        size: u64,
    },
    Comment(&'a [u8]),
    Timestamp(i64),
    ValidData,
    Custom(&'a [u8]),
}

/// The parts that an entry may leave out, since an earlier one had them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context {
    pub(crate) table: u64,
    /// The row, as in an [`Entry`].
    pub(crate) row: u64,
    pub(crate) field: u64,
}

/// The head of a file: four positions, in two pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head(pub(crate) [i64; 4]);

impl Head {
    /// Returns the head of a file that was made in one go, and flushed, up to its end.
    pub(crate) fn whole(end: u64) -> Self {
        let [start, end] = [HEAD, end].map(|position| position.try_into().unwrap_or(i64::MAX));
        Self([start, start, end, end])
    }

    /// Returns the bytes.
    pub(crate) fn encode(self) -> [u8; LEN] {
        let positions = self.0.into_iter().flat_map(i64::to_le_bytes);
        let mut bytes = [0; LEN];
        let all = positions.chain(VERSION.to_le_bytes()).chain(SIGNATURE);
        bytes.iter_mut().zip(all).for_each(|(to, byte)| *to = byte);
        bytes
    }

    /// Returns the last hard checkpoint, which a pair of equal positions says; the start if there is none.
    pub(crate) fn hard(self) -> u64 {
        let [a, b, c, d] = self.0;
        let pairs = [(a, b), (c, d)].into_iter().filter(|(one, other)| one == other);
        pairs.filter_map(|(position, _)| u64::try_from(position).ok()).fold(HEAD, u64::max)
    }

    /// Returns the last soft checkpoint, which is a negative position, in a file of `len` bytes; the start if there
    /// is none.
    pub(crate) fn soft(self, len: u64) -> u64 {
        let negative = self.0.into_iter().filter(|position| *position < 0);
        negative.map(i64::unsigned_abs).filter(|&position| position <= len).fold(HEAD, u64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_updates_are_joedbs() {
        assert_eq!(Way::Full.code(Kind::String), 0x81);
        assert_eq!(Way::Vector.code(Kind::Float32), 0x98);
        assert_eq!(Way::Vector.code(Kind::Blob), 0xa8);
        for byte in 0x81..=0xa8 {
            let (way, kind) = Way::of_code(byte).unwrap();
            assert_eq!(way.code(kind), byte);
        }
        assert!([0, 0x80, 0xa9, 0xff].into_iter().all(|byte| Way::of_code(byte).is_none()));
    }

    #[test]
    fn the_newest_checkpoint_counts_and_a_torn_one_does_not() {
        let checkpoints = |positions, len| (Head(positions).hard(), Head(positions).soft(len));
        assert_eq!(checkpoints([41; 4], 41), (41, 41));
        assert_eq!(checkpoints([41, 41, 41, -109], 109), (41, 109));
        assert_eq!(checkpoints([41, 41, 41, -109], 108), (41, 41));
        assert_eq!(checkpoints([90, 41, 60, 60], 90), (60, 41));
        assert_eq!(checkpoints([90, 90, -120, -100], 200), (90, 120));
        assert_eq!(checkpoints([i64::MIN, -1, 7, 7], 200), (41, 41));
        assert_eq!(checkpoints(Head::whole(77).0, 77), (77, 41));
    }
}
