//! Walking over rows in the order of an index.

use annals_schema::{FieldNumber, RowId};

use super::{IndexView, id_in};
use crate::ahead::{End, LoadedAhead, Read};
use crate::btree::Range;
use crate::pages::cells::place;
use crate::row::Row;
use crate::{Error, Result};
use annals_storage::debug::brief;

/// The number of rows that a walk prefetches.
const AHEAD: usize = 16;

/// Rows in the order of an index, from both ends.
///
/// `count`, `nth`, `skip` and `last` visit only rows that they return, and take logarithmic time. Values that don't
/// fit the index are one error instead of rows; a page that can't be loaded is one error, and the end.
pub struct IndexRows<'a> {
    pub(crate) index: IndexView<'a>,
    pub(super) entries: Range<'a>,
    pub(super) error: Option<Error>,
    /// The keys that it began with.
    pub(super) low: Vec<u8>,
    pub(super) high: Option<Vec<u8>>,
    ahead: LoadedAhead,
    read: Read,
}

brief!(IndexRows<'_>, "IndexRows", "index": |it| it.index);

impl<'a> IndexRows<'a> {
    pub(super) fn new(
        index: IndexView<'a>,
        entries: Range<'a>,
        (low, high): (Vec<u8>, Option<Vec<u8>>),
    ) -> Self {
        let (ahead, read) = Default::default();
        Self { index, entries, error: None, low, high, ahead, read }
    }

    pub(super) fn failed(index: IndexView<'a>, error: Error) -> Self {
        let entries = index.data.entries.nothing();
        Self { error: Some(error), ..Self::new(index, entries, (Vec::new(), None)) }
    }

    /// Reads only these fields of the rows to come, as [`Rows::reading`](crate::Rows::reading).
    #[doc(hidden)]
    #[must_use]
    pub fn reading(self, fields: &[FieldNumber]) -> Self {
        Self { read: Read::only(fields), ..self }
    }

    /// Counts the rows that neither end has given, without visiting them.
    ///
    /// # Errors
    /// The searched values don't fit the index, unless that was reported already; the index can't be loaded.
    pub fn left(&mut self) -> Result<u64> {
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self.entries.left()? + self.ahead.len() as u64),
        }
    }

    /// Returns the ids of the rows instead, from both ends. It reads no row, so that it takes a fraction of the
    /// time.
    pub fn ids(self) -> impl DoubleEndedIterator<Item = Result<RowId>> + use<'a> {
        Ids(self)
    }

    /// Prefetches a row that will be returned soon: neighbours in an index are scattered, and each would be a cache
    /// miss. `glance` returns the row at a given distance.
    #[inline]
    fn ask_ahead(&self, glance: impl Fn(usize) -> Option<RowId>) {
        let table = self.index.table.data;
        if let Some(id) = glance(AHEAD) {
            table.ask_for_cells(id);
        }
        if table.rows.has_base()
            && let Some(id) = glance(AHEAD / 2)
            && let Some(slot) = table.rows.slot_in_tail(id.0)
        {
            table.ask_for_texts(slot);
        }
    }

    /// Returns the row of an entry, at the front or at the back.
    #[inline]
    fn row(&mut self, end: End, id: Result<Option<RowId>>) -> Option<Result<Row<'a>>> {
        match id {
            Ok(Some(id)) => {
                let data = self.index.table.data;
                match data.rows.at_hand(id.0) {
                    Some(slot) if data.is_at_hand(slot) => Some(self.index.table.get(id)),
                    _ => self.load(end, id),
                }
            }
            Ok(None) => {
                let rest = self.ahead.rest(end, self.index.table);
                rest.or_else(|| self.error.take().map(Err))
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Loads a row that isn't at hand; if its pages don't stay in memory, the rows after it, too.
    #[inline(never)] // so that walks over what is at hand stay short
    fn load(&mut self, end: End, id: RowId) -> Option<Result<Row<'a>>> {
        let Self { index: IndexView { table, .. }, entries, ahead, read, .. } = self;
        let slot = table.data.rows.find(id.0).ok().flatten();
        let stays = |slot| !read.is_partial() && table.data.values_stay(slot).unwrap_or(true);
        if slot.is_none_or(stays) {
            return Some(table.get(id));
        }
        let rest = std::iter::from_fn(|| {
            let next = match end {
                End::Front => entries.next_with(id_in),
                End::Back => entries.next_back_with(id_in),
            };
            next.transpose()
        });
        ahead.load_scattered(end, table.data, read, std::iter::once(Ok(id)).chain(rest));
        ahead.next(end, *table)
    }

    /// Leaves out `n` rows of an end, and returns the next one. An error isn't skipped.
    fn nth_of(&mut self, end: End, n: usize) -> Option<Result<Row<'a>>> {
        let mut n = n;
        if !self.ahead.is_unused() {
            n -= self.ahead.skip(end, n);
            let left = self.entries.left().map_or(0, place);
            if n > left && self.ahead.is_at_end(end) {
                self.entries = self.index.data.entries.nothing();
                self.ahead.skip_at_other(end, n - left);
                n = 0;
            } else if n == 0 || !self.ahead.is_at_end(end) {
                return self.next_of(end);
            }
        }
        let id = match end {
            End::Front => self.entries.nth_with(n, id_in),
            End::Back => self.entries.nth_back_with(n, id_in),
        };
        self.row(end, id)
    }

    /// Returns the next row of an end.
    #[inline]
    fn next_of(&mut self, end: End) -> Option<Result<Row<'a>>> {
        if !self.ahead.is_unused()
            && let Some(row) = self.ahead.next(end, self.index.table)
        {
            return Some(row);
        }
        let id = match end {
            End::Front => self.entries.next_with(id_in),
            End::Back => self.entries.next_back_with(id_in),
        };
        match end {
            End::Front => self.ask_ahead(|ahead| self.entries.glance(ahead, id_in)),
            End::Back => self.ask_ahead(|ahead| self.entries.glance_back(ahead, id_in)),
        }
        self.row(end, id)
    }

    /// Passes the next entry of an end to `read`: of rows that weren't loaded ahead.
    #[inline]
    pub(crate) fn next_entry<T>(
        &mut self,
        end: End,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<Result<T>> {
        let next = match end {
            End::Front => self.entries.next_with(|key, _| read(key)),
            End::Back => self.entries.next_back_with(|key, _| read(key)),
        };
        next.transpose().or_else(|| self.error.take().map(Err))
    }

    /// Takes back the rows that were loaded ahead and not given.
    pub(crate) fn forget_ahead(&mut self) -> Result<()> {
        match self.ahead.forget() {
            (0, 0) => Ok(()),
            (front, back) => self.entries.take_back(front, back),
        }
    }

    /// Returns the id of the next row of an end.
    #[inline]
    fn next_id(&mut self, end: End) -> Option<Result<RowId>> {
        if !self.ahead.is_unused()
            && let Some(id) = self.ahead.next_id(end)
        {
            return Some(id);
        }
        let id = match end {
            End::Front => self.entries.next_with(id_in),
            End::Back => self.entries.next_back_with(id_in),
        };
        let rest = || self.ahead.rest_id(end).or_else(|| self.error.take().map(Err));
        id.transpose().or_else(rest)
    }
}

impl<'a> Iterator for IndexRows<'a> {
    type Item = Result<Row<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_of(End::Front)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // An error is returned alone.
        if self.error.is_some() {
            return (1, Some(1));
        }
        let ((least, most), ahead) = (self.entries.size_hint(), self.ahead.len());
        (least.saturating_add(ahead), most.and_then(|most| most.checked_add(ahead)))
    }

    /// An error is counted as one row.
    fn count(mut self) -> usize {
        self.left().map_or(1, |left| usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// An error isn't skipped.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.nth_of(End::Front, n)
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
    }
}

impl DoubleEndedIterator for IndexRows<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_of(End::Back)
    }

    /// An error isn't skipped.
    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.nth_of(End::Back, n)
    }
}

/// The ids of rows in the order of an index, from both ends.
struct Ids<'a>(IndexRows<'a>);

impl Iterator for Ids<'_> {
    type Item = Result<RowId>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_id(End::Front)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Ids<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_id(End::Back)
    }
}
