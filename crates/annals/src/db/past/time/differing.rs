//! The rows that differ between two moments, part by part: memory for one part, however many rows differ.
//!
//! Each part reads the journal between the moments once, and keeps the first rows after the part before, by table and
//! id, that there is room for.

use std::sync::Arc;
use std::vec;

use annals_schema::{RowId, Schema, TableNumber, Txid};

use crate::Result;
use crate::db::follow::scan::Sink;
use crate::db::past::time::changes::{Changes, ChangesBeginning, state_of};
use crate::db::past::time::cursor::End;
use crate::db::present::snapshot::Published;
use crate::db::write::changed::RowChange;
use crate::db::write::rows::RowChanges;
use crate::db::write::window::Key;
use crate::db::write::window::Window;
use crate::debug::brief;
use crate::event::Event;
use crate::journal::Committed;

/// The rows that differ between two moments, in order: see [`Snapshot::differing`](crate::Snapshot::differing).
#[must_use = "it reads only when it is stepped"]
pub struct Differing {
    published: Arc<Published>,
    early: ChangesBeginning,
    late: u64,
    /// True if the first moment is the later one.
    is_back: bool,
    only: Option<TableNumber>,
    /// How many bytes a part may take.
    room: usize,
    /// The row with which the next part begins; none after the last part.
    from: Option<Key>,
    part: vec::IntoIter<RowChange>,
}

brief!(Differing, "Differing", "file": |it| it.published.file.name, "last": |it| it.late);

impl Differing {
    pub(in crate::db) fn between(
        published: &Arc<Published>,
        [from, to]: [Txid; 2],
        room: usize,
    ) -> Result<Self> {
        let last = published.point.txid;
        let (early, late) = (from.min(to), from.max(to));
        if late > last {
            return Err(crate::Error::invalid(format!(
                "there is no transaction {late} yet: the last one is {last}"
            )));
        }
        Ok(Self {
            published: Arc::clone(published),
            early: match early < late {
                true => Changes::begin(published, early.0)?,
                // Nothing will be read.
                false => state_of(published),
            },
            late: late.0,
            is_back: from > to,
            only: None,
            room,
            from: (early < late).then_some((TableNumber(0), RowId(0))),
            part: Vec::new().into_iter(),
        })
    }

    /// Returns the rows of one table only.
    pub const fn of(mut self, table: TableNumber) -> Self {
        self.only = Some(table);
        self
    }

    /// Begins with a row, rather than with the first one of all tables.
    pub fn starting_at(mut self, table: TableNumber, id: RowId) -> Self {
        self.from = self.from.map(|_| (table, id));
        self
    }

    /// Returns how many rows it returns before it reads the journal again.
    pub fn at_hand(&self) -> usize {
        self.part.len()
    }

    /// Returns with which row it continues, at the earliest; `None` at the end.
    pub fn place(&self) -> Option<(TableNumber, RowId)> {
        self.part.as_slice().first().map(|row| (row.table, row.id)).or(self.from)
    }

    /// Reads the journal for the part that begins with a row.
    fn read_part(&mut self, from: Key) -> Result<()> {
        let ChangesBeginning { base, cursor } = &self.early;
        let window = Window::from(from, self.only, self.room);
        let present = Arc::clone(self.published.view.schema());
        let mut all = AsOne(RowChanges::within(Arc::clone(base), present, window));
        let end = End { file: &self.published.file, position: self.published.point.position };
        cursor.clone().read(&end, self.late, u64::MAX, &mut all)?;
        let (mut rows, window) = all.0.into_differing();
        rows.sort_unstable_by_key(|row| (row.table, row.id));
        if self.is_back {
            rows.iter_mut().for_each(|row| std::mem::swap(&mut row.before, &mut row.after));
        }
        self.part = rows.into_iter();
        self.from = window.bound();
        Ok(())
    }
}

impl Iterator for Differing {
    type Item = Result<RowChange>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.part.next() {
                return Some(Ok(row));
            }
            // After an error it ends.
            let from = self.from.take()?;
            if let Err(error) = self.read_part(from) {
                return Some(Err(error));
            }
        }
    }
}

impl std::iter::FusedIterator for Differing {}

/// Takes transactions for one.
struct AsOne(RowChanges);

impl Sink for AsOne {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Comment(_) => Ok(()),
            event => self.0.event(schema, event),
        }
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}
