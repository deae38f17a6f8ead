//! Blocks: parts of a long frame that are read and verified alone.

use annals_schema::{FieldNumber, RowId, TableNumber, Txid};

use crate::Result;
use crate::db::past::history::about::damaged;
use crate::event::{Context, VectorPart};
use crate::journal::Point;

/// A part of the journal that an index leads to, if it isn't a whole small frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// Whole events.
    Events { bytes: Bytes, context: Context },
    /// New rows of zero values: there is nothing to read.
    Zeros { commands: u64, rows: RowRange },
    /// Values of one field.
    Values { bytes: Bytes, rows: RowRange, field: FieldNumber, part: VectorPart },
    /// The frames of an event that is longer than a frame.
    Frames { commands: u64, from: Point, end: u64 },
}

/// Where the bytes of a block are, and what they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes {
    /// How far they begin after their unit, plus 8.
    pub(super) shift: u64,
    pub(super) len: u64,
    pub(super) hash: u64,
    /// The number of commands of the schema before.
    pub(super) commands: u64,
}

/// Consecutive rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    pub(super) table: TableNumber,
    pub(super) first: RowId,
    pub(super) count: u64,
}

impl RowRange {
    /// Returns which of them a row is.
    pub(super) const fn place_of(&self, table: TableNumber, row: RowId) -> Option<u64> {
        match row.0.checked_sub(self.first.0) {
            Some(place) if self.table.0 == table.0 && place < self.count => Some(place),
            _ => None,
        }
    }
}

pub(super) const EVENTS: u64 = 0;
pub(super) const ZEROS: u64 = 1;
pub(super) const VALUES: u64 = 2;
pub(super) const FRAMES: u64 = 3;

impl Block {
    /// Returns the numbers of its record.
    pub(super) fn encode(&self) -> Vec<u64> {
        let with = |kind: u64, Bytes { shift, len, hash, commands }: &Bytes| {
            vec![shift * 4 + kind, *len, *hash, *commands]
        };
        match self {
            Self::Events { bytes, context } => {
                let mut numbers = with(EVENTS, bytes);
                numbers.push(context.table.map_or(0, |table| u64::from(table.0) + 1));
                numbers.push(context.last_id.map_or(0, |id| id.0 + 1));
                numbers
            }
            Self::Zeros { commands, rows: RowRange { table, first, count } } => {
                vec![ZEROS, *commands, u64::from(table.0), first.0, *count]
            }
            Self::Values { bytes, rows: RowRange { table, first, count }, field, part } => {
                let mut numbers = with(VALUES, bytes);
                let is_cells = u64::from(part.is_cells);
                numbers.extend([u64::from(table.0), first.0, *count]);
                numbers.push(u64::from(field.0) * 2 + is_cells);
                numbers.extend_from_slice(&part.nulls);
                numbers
            }
            Self::Frames { commands, from: Point { position, txid, chain }, end } => {
                vec![FRAMES, *commands, *position, txid.0, *chain, *end]
            }
        }
    }

    /// Reads the numbers of a record.
    pub(super) fn decode(numbers: &[u64]) -> Result<Self> {
        let &kind = numbers.first().ok_or_else(damaged)?;
        let bytes = |len, hash, commands| Bytes { shift: kind / 4, len, hash, commands };
        let table = |number: u64| u32::try_from(number).map(TableNumber).map_err(|_| damaged());
        match (kind % 4, numbers) {
            (EVENTS, &[_, len, hash, commands, of, last]) => {
                let table = of.checked_sub(1).map(table).transpose()?;
                let context = Context { table, last_id: last.checked_sub(1).map(RowId) };
                Ok(Self::Events { bytes: bytes(len, hash, commands), context })
            }
            (ZEROS, &[_, commands, of, first, count]) => {
                let rows = RowRange { table: table(of)?, first: RowId(first), count };
                Ok(Self::Zeros { commands, rows })
            }
            (VALUES, &[_, len, hash, commands, of, first, count, field, ref nulls @ ..]) => {
                let number = u32::try_from(field / 2).map_err(|_| damaged())?;
                let (is_cells, nulls) = (field % 2 == 1, nulls.to_vec());
                Ok(Self::Values {
                    bytes: bytes(len, hash, commands),
                    rows: RowRange { table: table(of)?, first: RowId(first), count },
                    field: FieldNumber(number),
                    part: VectorPart { is_cells, count, nulls, ..VectorPart::default() },
                })
            }
            (FRAMES, &[_, commands, position, txid, chain, end]) => Ok(Self::Frames {
                commands,
                from: Point { position, txid: Txid(txid), chain },
                end,
            }),
            _ => Err(damaged()),
        }
    }
}
