//! The part of a history index that is of the kept history.

use std::cell::Cell;

use crate::Result;
use crate::db::past::history::about::{BLOCKS, COMMANDS, COMMENTED, MARKS, TRANSACTIONS};
use crate::store::history::{Entry, HistoryIndex};

/// Returns the part of an index from a unit on, with all commands of the schema.
///
/// # Errors
/// A node of it can't be loaded.
pub(super) fn filtered(index: &HistoryIndex, from: u64, about: Vec<u8>) -> Result<HistoryIndex> {
    let mark = Cell::new((0, false));
    let stays = |entry: &Entry| match entry.key.table {
        COMMANDS => true,
        // The first number of a mark is its unit.
        MARKS if mark.get().0 == entry.key.row + 1 => mark.get().1,
        MARKS => {
            mark.set((entry.key.row + 1, entry.place >= from));
            entry.place >= from
        }
        TRANSACTIONS => entry.key.row >= from,
        BLOCKS | COMMENTED => entry.key.row / 2 >= from,
        _ => entry.place / 2 >= from,
    };
    index.filtered(&stays, about)
}

/// Returns an entry as if a unit were the first.
pub(super) fn moved(entry: Entry, first: u64) -> Entry {
    let Entry { mut key, count, mut place } = entry;
    match key.table {
        TRANSACTIONS | COMMANDS => key.row = key.row.saturating_sub(first),
        BLOCKS | COMMENTED => key.row = key.row.saturating_sub(first * 2),
        _ if count > 0 => place = place.saturating_sub(first * 2),
        _ => {}
    }
    Entry { key, count, place }
}
