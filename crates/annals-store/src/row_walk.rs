//! Walking over the rows of a table.

use annals_schema::{FieldNumber, RowId};

use crate::Result;
use crate::ahead::{End, LoadedAhead, Read};
use crate::row::Row;
use crate::rows::RowIter;
use crate::view::TableView;
use annals_storage::debug::brief;

/// Rows in order of their ids, from both ends.
#[derive(Clone)]
pub struct Rows<'a> {
    pub(super) table: TableView<'a>,
    pub(super) rows: RowIter<'a>,
    ahead: LoadedAhead,
    read: Read,
}

brief!(Rows<'_>, "Rows", "table": |it| it.table);

impl<'a> Rows<'a> {
    pub(super) fn new(table: TableView<'a>, rows: RowIter<'a>) -> Self {
        Self { table, rows, ahead: LoadedAhead::default(), read: Read::default() }
    }

    /// Reads only these fields of the rows to come: those of a row that isn't in memory hold nothing else, and other
    /// fields must not be read from them. For callers that know what a question reads, as [`select`](Self::select)
    /// does for programs.
    #[doc(hidden)]
    #[must_use]
    pub fn reading(self, fields: &[FieldNumber]) -> Self {
        Self { read: Read::only(fields), ..self }
    }

    /// Returns where the rows are that neither end has given.
    pub(super) fn into_rest(self) -> RowIter<'a> {
        match self.ahead.bounds() {
            None => self.rows,
            Some((first, last)) => {
                let rest = self.rows.rest();
                let start = first.map_or(rest.start, |id| id.0);
                let end = last.map_or(rest.end, |id| id.0.saturating_add(1));
                self.table.data.rows.range(start..end)
            }
        }
    }

    /// Loads a row that isn't at hand; if its pages don't stay in memory, the rows after it, too.
    #[inline(never)] // so that walks over what is at hand stay short
    fn load(&mut self, end: End, (id, slot): (RowId, usize)) -> Option<Result<Row<'a>>> {
        let Self { table, rows, ahead, read } = self;
        let stays = if read.is_partial() { Ok(false) } else { table.data.values_stay(slot) };
        match stays {
            Ok(true) => Some(Row::load(*table, id, slot)),
            Ok(false) => {
                let rest = std::iter::from_fn(|| match end {
                    End::Front => rows.next(),
                    End::Back => rows.next_back(),
                });
                let all = std::iter::once(Ok((id, slot))).chain(rest);
                ahead.load_in_order(end, table.data, read, all);
                ahead.next(end, *table)
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.ahead.is_unused()
            && let Some(row) = self.ahead.next(End::Front, self.table)
        {
            return Some(row);
        }
        match self.rows.next() {
            Some(Ok((id, slot))) if self.table.data.is_at_hand(slot) => {
                Some(Ok(Row::at_hand(self.table, id, slot)))
            }
            Some(Ok(row)) => self.load(End::Front, row),
            Some(Err(error)) => Some(Err(error)),
            None => self.ahead.rest(End::Front, self.table).or_else(|| self.next_past_row()),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.table.view.lazy {
            Some(_) => (0, None),
            None => {
                let ((least, most), ahead) = (self.rows.size_hint(), self.ahead.len());
                (least.saturating_add(ahead), most.and_then(|most| most.checked_add(ahead)))
            }
        }
    }

    /// Counts without reading rows: at once for all rows of a table, else 64 ids in a step.
    fn count(mut self) -> usize {
        let ahead = self.ahead.len();
        match self.continue_in_whole() {
            Some(Err(_)) => ahead + 1,
            _ => ahead + self.rows.count(),
        }
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
    }
}

impl DoubleEndedIterator for Rows<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if !self.ahead.is_unused()
            && let Some(row) = self.ahead.next(End::Back, self.table)
        {
            return Some(row);
        }
        loop {
            match self.rows.next_back() {
                Some(Ok((id, slot))) if self.table.data.is_at_hand(slot) => {
                    return Some(Ok(Row::at_hand(self.table, id, slot)));
                }
                Some(Ok(row)) => return self.load(End::Back, row),
                Some(Err(error)) => return Some(Err(error)),
                None => match self.ahead.rest(End::Back, self.table) {
                    Some(row) => return Some(row),
                    None => {
                        if let Err(error) = self.continue_in_whole()? {
                            return Some(Err(error));
                        }
                    }
                },
            }
        }
    }
}
