//! Lookups of many keys at once.
//!
//! A lookup is a few steps, and before each of them it waits for memory: for the hints of a leaf, for slots, for an
//! entry, for the row. The keys of a batch take each step in sequence, so that their memory is fetched while the
//! processor works on the others.

use std::fmt;

use annals_schema::{RowId, ValueRef};

use crate::Result;
use crate::btree::Way;
use crate::index::key::Sought;
use crate::lookup::{IndexView, id_in};
use crate::row::Row;

/// The number of keys in a batch. A larger batch gains nothing: a processor waits for only so many cache lines at a
/// time.
const BATCH: usize = 16;

/// The first row of each of some keys, in their order. See [`IndexView::first_of_each`].
pub struct FirstOfEach<'a, I> {
    index: IndexView<'a>,
    keys: I,
    sought: Vec<Sought>,
    /// The results of a batch, the last one first.
    found: Vec<Result<Option<Row<'a>>>>,
}

impl<I> fmt::Debug for FirstOfEach<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstOfEach").field("index", &self.index).finish_non_exhaustive()
    }
}

impl<'a> IndexView<'a> {
    /// Returns the result of [`first`](Self::first) for each of many keys, in their order, in a fraction of the time:
    /// they are searched in batches.
    ///
    /// Values that don't fit the index are an error in the place of that key.
    pub fn first_of_each<'v, K, I>(&self, keys: I) -> FirstOfEach<'a, I::IntoIter>
    where
        K: AsRef<[ValueRef<'v>]>,
        I: IntoIterator<Item = K>,
    {
        let (sought, found) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        FirstOfEach { index: *self, keys: keys.into_iter(), sought, found }
    }

    /// Searches a batch of keys: each step for all of them, before the next step.
    fn find_batch(&self, sought: &[Sought], found: &mut Vec<Result<Option<Row<'a>>>>) {
        let Ok(tree) = self.data.tree() else {
            found.extend(sought.iter().map(|key| self.first_with(key.bytes())));
            return;
        };
        let mut ways: [Option<Way>; BATCH] = [None; BATCH];
        let mut ids: [Option<Option<RowId>>; BATCH] = [None; BATCH];
        // A failed step is repeated below, which returns the error.
        for (way, key) in ways.iter_mut().zip(sought) {
            *way = tree.ask_for_hints(key.bytes()).ok().flatten();
        }
        let on_way = || ways.iter().zip(sought).filter_map(|(way, key)| Some((way.as_ref()?, key)));
        for (way, key) in on_way() {
            tree.ask_for_slots(way, key.bytes());
        }
        for (way, key) in on_way() {
            tree.ask_for_cell(way, key.bytes());
        }
        for ((way, key), id) in ways.iter().zip(sought).zip(&mut ids) {
            let Some(way) = way else { continue };
            *id = tree.first_on(way, key.bytes(), id_in).ok();
            if let Some(Some(id)) = id {
                self.table.data.ask_for_cells(*id);
            }
        }
        for id in ids.iter().flatten().flatten() {
            if let Some(slot) = self.table.data.rows.slot_in_tail(id.0) {
                self.table.data.ask_for_texts(slot);
            }
        }
        for (id, key) in ids.iter().zip(sought) {
            found.push(match id {
                Some(id) => id.map(|id| self.table.get(id)).transpose(),
                None => self.first_with(key.bytes()),
            });
        }
    }
}

impl<'a, 'v, K, I> Iterator for FirstOfEach<'a, I>
where
    K: AsRef<[ValueRef<'v>]>,
    I: Iterator<Item = K>,
{
    type Item = Result<Option<Row<'a>>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(found) = self.found.pop() {
            return Some(found);
        }
        self.sought.clear();
        let mut failed = None;
        while self.sought.len() < BATCH && failed.is_none() {
            let Some(key) = self.keys.next() else { break };
            let mut sought = Sought::new();
            match self.index.encode_to(key.as_ref(), &mut sought) {
                Ok(()) => self.sought.push(sought),
                Err(error) => failed = Some(error),
            }
        }
        self.index.find_batch(&self.sought, &mut self.found);
        self.found.extend(failed.map(Err));
        self.found.reverse();
        self.found.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.keys.size_hint();
        let ready = self.found.len();
        (least.saturating_add(ready), most.and_then(|most| most.checked_add(ready)))
    }
}
