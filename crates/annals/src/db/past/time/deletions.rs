//! The rows of a table that were deleted, found by the history index.

use std::ops::Range;
use std::sync::Arc;

use annals_schema::{RowId, TableNumber, Txid};

use crate::Result;
use crate::db::past::history::ask::ask;
use crate::db::past::history::places::Places;
use crate::db::past::history::row::existing;
use crate::db::past::time::versions::History;
use crate::db::present::snapshot::Published;
use crate::db::write::changed::Version;
use crate::debug::brief;

/// The rows of a table that were deleted: see [`Snapshot::deletions`](crate::Snapshot::deletions).
pub struct Deletions {
    published: Arc<Published>,
    table: TableNumber,
    places: Places,
}

brief!(Deletions, "Deletions", "table": |it| it.table.0);

impl Deletions {
    pub(in crate::db) fn open(
        published: &Arc<Published>,
        table: TableNumber,
    ) -> Result<Option<Self>> {
        if !existing(published.view.schema(), table)?.history_index {
            return Ok(None);
        }
        let (found, mut places) = ask(published, |places| places.of_row(table, RowId(0)))?;
        if found.is_none() {
            // The index is older than the line of the schema that asks for this table.
            places = Places::anew(published)?;
        }
        Ok(Some(Self { published: Arc::clone(published), table, places }))
    }

    /// Returns the first row with one of these ids that the history knows; and the version that deleted it, if it wasn't there
    /// any more after the transaction `upto`. A row whose id was used again is there.
    ///
    /// So a caller passes over the ids of rows that are there, and decides after each row whether to continue.
    ///
    /// Cost: a few pages of the index, and the history of that row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn first_in(
        &self,
        ids: Range<RowId>,
        upto: Txid,
    ) -> Result<Option<(RowId, Option<Version>)>> {
        let row = self.places.row_from(self.table, ids.start.0)?.map(RowId);
        let Some(row) = row.filter(|row| *row < ids.end) else { return Ok(None) };
        let mut last = None;
        for version in History::open(&self.published, self.table, row)? {
            let version = version?;
            if version.txid > upto {
                break;
            }
            last = Some(version);
        }
        Ok(Some((row, last.filter(|version| version.change.after.is_none()))))
    }
}
