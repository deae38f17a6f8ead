//! Past states that are made when they are read: a row by its id comes from the history index, without a replay.

use std::fmt;
use std::ops::Range as Ids;
use std::sync::{Arc, Mutex};

use annals_schema::{FieldNumber, RowId, Schema, TableNumber, Value};

use crate::db::follow::segments::Since;
use crate::db::past::at::{Present, Through};
use crate::db::past::history::ask::ask;
use crate::db::past::history::places::{Places, TransactionEnd};
use crate::db::past::history::row::{PartOfRow, Running};
use crate::db::present::snapshot::Published;
use crate::db::progress::watch_of_reader;
use crate::journal::lock;
use crate::storage::{self, Clock, SystemClock};
use crate::store::{Past, PastRow, View};
use crate::{ErrorKind, Result};

/// A row with more versions than this is read from the whole state: finding it there takes less than these reads.
const MOST_VERSIONS: usize = 64;
/// So many rows that didn't exist are passed over in search of the next one.
const MOST_ABSENT: usize = 8;

/// What is needed for making past states.
#[derive(Clone)]
pub(in crate::db) struct Source {
    pub(in crate::db) published: Arc<Published>,
    pub(in crate::db) clock: Arc<dyn Clock>,
    /// How much of the image may be kept in memory, in bytes; none: the default.
    pub(in crate::db) budget: Option<u64>,
}

/// A past state.
pub(in crate::db) struct PastState {
    source: Source,
    /// The end of its last transaction.
    end: TransactionEnd,
    places: Mutex<Places>,
}

impl fmt::Debug for PastState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PastState").field("end", &self.end).finish_non_exhaustive()
    }
}

impl Source {
    /// Returns the whole state after a transaction, through the present schema. The last one is kept for the next
    /// question, until the next backfill or restart.
    pub(in crate::db) fn whole(&self, txid: u64) -> Result<Arc<View>> {
        let last = &self.published.file.images.last_past;
        let read = (txid, self.published.view.schema().commands().len());
        if let Some(view) = last.after(read) {
            return Ok(view);
        }
        let view = self.present().view_of(txid, Through::Present)?;
        last.keep(read, &view);
        Ok(view)
    }

    pub(in crate::db) fn present(&self) -> Present<'_> {
        let published = Arc::clone(&self.published);
        let budget = self.budget.unwrap_or_else(storage::memory_for_pages);
        Present { published, clock: &*self.clock, budget, watch: watch_of_reader() }
    }

    /// Begins with what is published, for reading changes.
    pub(in crate::db) fn of(published: &Arc<Published>) -> Self {
        Self { published: Arc::clone(published), clock: Arc::new(SystemClock), budget: None }
    }

    /// Returns the state after a transaction, of which nothing is read yet; `None` if the history index doesn't lead
    /// there.
    pub(in crate::db) fn lazily(&self, txid: u64) -> Result<Option<Published>> {
        let Some(past) = self.past_state(txid)? else { return Ok(None) };
        let Since { segment, point } = past.end.since;
        let file = self.published.file.ending_in(segment)?;
        let view = Arc::new(View::lazily(&self.published.view, Arc::new(past)));
        Ok(Some(Published { view, point, file }))
    }

    /// Returns the same view, the place in the journal after the transaction, and the schema there.
    pub(in crate::db) fn beginning(&self, txid: u64) -> Result<Option<Beginning>> {
        let Some(past) = self.past_state(txid)? else { return Ok(None) };
        let since = past.end.since;
        let Ok(schema) = lock(&past.places).schema_after(&past.end) else { return Ok(None) };
        let past = Arc::new(past);
        let base = Arc::new(View::lazily(&self.published.view, Arc::clone(&past) as Arc<dyn Past>));
        Ok(Some(Beginning { base, since, schema, past }))
    }

    fn past_state(&self, txid: u64) -> Result<Option<PastState>> {
        let (end, places) = match ask(&self.published, |places| places.end_of(txid)) {
            Ok((Some(end), places)) => (end, places),
            Ok((None, _)) => return Ok(None),
            // The whole state needs no index.
            Err(error) if error.kind() != ErrorKind::Cancelled && !error.is_remote() => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Ok(Some(PastState { source: self.clone(), end, places: Mutex::new(places) }))
    }
}

/// A past state, and the place in the journal after it.
pub(in crate::db) struct Beginning {
    pub(in crate::db) base: Arc<View>,
    pub(in crate::db) since: Since,
    /// The schema there.
    pub(in crate::db) schema: Schema,
    /// What knows single fields of it.
    pub(in crate::db) past: Arc<PastState>,
}

impl Past for PastState {
    fn whole(&self) -> Result<Arc<View>> {
        self.source.whole(self.end.since.point.txid.0)
    }

    fn row(&self, table: TableNumber, ids: &Ids<u64>) -> Result<PastRow> {
        let mut places = lock(&self.places);
        // Should the journal be damaged, making the whole state says so.
        Ok(self.first_in(&mut places, table, ids).unwrap_or(PastRow::Unknown))
    }
}

impl PastState {
    /// Returns some fields of a row, each from the last place before the end of this state that set it; `None` if they
    /// aren't all found in the last few places.
    ///
    /// Cost: reading these places, which for a field that has just been changed is the place before. A row's other
    /// changes don't count.
    pub(in crate::db) fn fields(
        &self,
        table: TableNumber,
        id: RowId,
        wanted: &[FieldNumber],
    ) -> Result<Option<Vec<Value>>> {
        let mut places = lock(&self.places);
        let Some(all) = places.of_row(table, id)? else { return Ok(None) };
        let before = all.iter().rev().filter(|place| **place / 2 < self.end.unit);
        let mut found: Vec<Option<Value>> = vec![None; wanted.len()];
        for place in before.take(MOST_VERSIONS) {
            let mut part = PartOfRow::new(self.source.published.view.schema(), table, id)?;
            places.read(*place, Some((table, id)), &mut |schema, event| part.see(schema, event))?;
            for (found, field) in found.iter_mut().zip(wanted) {
                if found.is_none() {
                    *found = part.take(*field);
                }
            }
            if found.iter().all(Option::is_some) {
                return Ok(found.into_iter().collect());
            }
        }
        Ok(None)
    }

    fn first_in(&self, places: &mut Places, table: TableNumber, ids: &Ids<u64>) -> Result<PastRow> {
        let mut next = Some(ids.start);
        for _ in 0..MOST_ABSENT {
            let Some(id) = next.filter(|id| ids.contains(id)) else { return Ok(PastRow::Absent) };
            match self.row_of(places, table, RowId(id))? {
                PastRow::Absent => {}
                found => return Ok(found),
            }
            next = match ids.contains(&(id + 1)) {
                true => places.row_from(table, id + 1)?,
                false => None,
            };
        }
        Ok(PastRow::Unknown)
    }

    fn row_of(&self, places: &mut Places, table: TableNumber, id: RowId) -> Result<PastRow> {
        let schema = self.source.published.view.schema();
        let mut row = Running::new(schema, table, id)?;
        let Some(mut all) = places.of_row(table, id)? else { return Ok(PastRow::Unknown) };
        all.retain(|place| place / 2 < self.end.unit);
        if all.len() > MOST_VERSIONS {
            return Ok(PastRow::Unknown);
        }
        for place in all {
            places.read(place, Some((table, id)), &mut |schema, event| match row
                .is_changed_by(schema, event)
            {
                true => row.apply(schema, event),
                false => Ok(()),
            })?;
        }
        let Some(mut values) = row.values else { return Ok(PastRow::Absent) };
        let fields = schema.table(table).map_or(&[][..], |table| &table.fields);
        let take = |number: u32| {
            let value = usize::try_from(number).ok().and_then(|number| values.get_mut(number));
            value.map_or(Value::Null, |value| std::mem::replace(value, Value::Null))
        };
        Ok(PastRow::There(id, fields.iter().map(|field| field.number.0).map(take).collect()))
    }
}
