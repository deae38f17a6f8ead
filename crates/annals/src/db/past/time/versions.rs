//! The history of a row: one version for each transaction that changed it.

use std::collections::VecDeque;
use std::sync::Arc;

use annals_schema::{RowId, Schema, TableNumber, Txid, Value};

use crate::db::past::history::ask::may_be_of_index;
use crate::db::past::history::places::{Places, Whose};
use crate::db::past::history::row::Running;
use crate::db::present::snapshot::Published;
use crate::db::write::changed::RowChange;
use crate::db::write::changed::Version;
use crate::db::write::changed::is_same_row;
use crate::debug::brief;
use crate::event::Event;
use crate::{Error, Result};

/// The history of a row, the oldest version first: an iterator.
///
/// The first one of all has no `before`: the row was inserted. So has each that is after a deletion, which is a
/// version without `after`. A change that the same transaction reverts is no version. Values are those of the present
/// schema's fields: one that wasn't there yet has its default, and one that was dropped is null.
///
/// Where older history was forgotten, the history begins with the state at that point: that version
/// [`is_beginning`](Version::is_beginning), and has no `before` either.
///
/// While the iterator exists, older segments aren't removed. It reads one version at a time; [`History::newest`]
/// returns the newest ones. After an error the iterator ends.
pub struct History {
    published: Arc<Published>,
    places: Places,
    /// The places to read, the next one first.
    left: VecDeque<u64>,
    row: Running,
    /// The transaction under way that touches the row.
    transaction: Option<ReadTransaction>,
    /// How many versions were returned, and how many of those are still to be passed over after a new start.
    returned: usize,
    again: usize,
    problem: Option<String>,
}

brief!(History, "History", "bytes": |it| it.bytes_read());

/// A transaction as far as it was read.
#[derive(Debug)]
struct ReadTransaction {
    whose: Whose,
    comments: Vec<String>,
    /// The row before the transaction.
    before: Option<Vec<Value>>,
}

impl History {
    /// Begins to read the history of a row up to the published state.
    pub(in crate::db) fn open(
        published: &Arc<Published>,
        table: TableNumber,
        id: RowId,
    ) -> Result<Self> {
        let row = Running::new(published.view.schema(), table, id)?;
        let found = Places::open(published).and_then(|places| places.reading(table, id));
        let (left, places, problem) = match found {
            Ok((left, places)) => (left, places, None),
            Err(error) if may_be_of_index(&error) => {
                let (left, places) = Places::anew(published)?.reading(table, id)?;
                (left, places, Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            published: Arc::clone(published),
            places,
            left: left.into(),
            row,
            transaction: None,
            returned: 0,
            again: 0,
            problem,
        })
    }

    /// Returns the `most` newest versions, the newest first.
    ///
    /// Cost: that of the whole history of the row, and memory for the returned versions.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn newest(mut self, most: usize) -> Result<Vec<Version>> {
        let mut newest = VecDeque::new();
        for version in &mut self {
            newest.push_front(version?);
            newest.truncate(most);
        }
        Ok(newest.into())
    }

    /// Returns why an existing history index can't be used; then the whole journal is read.
    #[must_use]
    pub fn index_problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns how many bytes of the journal were read so far, without those that the index was made of.
    #[must_use]
    pub const fn bytes_read(&self) -> u64 {
        self.places.bytes
    }

    /// Returns the next version.
    fn step(&mut self) -> Result<Option<Version>> {
        while let Some(place) = self.left.pop_front() {
            let (mut comments, mut before) = (Vec::new(), None);
            let row = &mut self.row;
            let of = Some((row.table, row.id));
            let whose = self.places.read(place, of, &mut |schema, event| {
                see(row, schema, event, &mut before, &mut comments)
            })?;
            let same = self.transaction.as_ref().is_some_and(|it| it.whose.txid == whose.txid);
            let ended = if same { None } else { self.transaction.take() };
            // A place of a comment's hash, or of a row that is near, may not change the row.
            if let (Some(before), false) = (before, same) {
                self.transaction = Some(ReadTransaction { whose, comments, before });
            }
            if let Some(version) = ended.map(|ended| self.end(ended)).transpose()?.flatten() {
                return Ok(Some(version));
            }
        }
        let ended = self.transaction.take();
        Ok(ended.map(|ended| self.end(ended)).transpose()?.flatten())
    }

    /// Returns the version that a transaction made; `None` if it changed nothing in the end.
    fn end(&mut self, ended: ReadTransaction) -> Result<Option<Version>> {
        let ReadTransaction { whose, mut comments, before } = ended;
        let after = match &self.transaction {
            Some(next) => next.before.clone(),
            None => self.row.values.clone(),
        };
        if is_same_row(before.as_deref(), after.as_deref()) {
            return Ok(None);
        }
        if !whose.has_own_comments() {
            comments = self.places.comments_of(&whose)?;
        }
        let change = RowChange { table: self.row.table, id: self.row.id, before, after };
        let Whose { txid, time, is_state, .. } = whose;
        Ok(Some(Version { txid: Txid(txid), time, comments, change, is_beginning: is_state }))
    }

    /// Starts anew with an index made of the journal: what the present one says can't be.
    fn start_anew(&mut self, error: &Error) -> Result<()> {
        let (table, id) = (self.row.table, self.row.id);
        let (left, places) = Places::anew(&self.published)?.reading(table, id)?;
        (self.left, self.places) = (left.into(), places);
        self.row = Running::new(self.published.view.schema(), table, id)?;
        (self.transaction, self.again) = (None, self.returned);
        self.problem = Some(error.to_string());
        Ok(())
    }
}

/// Takes an event of a place.
fn see(
    row: &mut Running,
    schema: &Schema,
    event: &Event<'_>,
    before: &mut Option<Option<Vec<Value>>>,
    comments: &mut Vec<String>,
) -> Result<()> {
    if let Event::Comment(text) = *event {
        comments.push(text.to_owned());
    }
    if !row.is_changed_by(schema, event) {
        return Ok(());
    }
    before.get_or_insert_with(|| row.values.clone());
    row.apply(schema, event)
}

impl Iterator for History {
    type Item = Result<Version>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step() {
                Ok(Some(_)) if self.again > 0 => self.again -= 1,
                Ok(Some(version)) => {
                    self.returned += 1;
                    return Some(Ok(version));
                }
                Ok(None) => return None,
                Err(error) => {
                    let is_anew = self.problem.is_some() || !may_be_of_index(&error);
                    let anew = if is_anew { Err(error) } else { self.start_anew(&error) };
                    if let Err(error) = anew {
                        self.left.clear();
                        self.transaction = None;
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}
