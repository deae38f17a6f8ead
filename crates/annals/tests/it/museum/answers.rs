//! What a database answers about its past, in each way of asking that there is.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};

use annals::{
    Database, ErrorKind, Moment, Reader, Result, RowId, Snapshot, TableNumber, Txid, Version,
};

use crate::store_model::Random;

/// A way of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// The state at a moment, through the present schema: rows, ids and indexes of a table.
    At,
    /// The same through the schema of then.
    AsItWas,
    /// The schema of then.
    Schema,
    /// The blobs that a table had.
    Blobs,
    /// What a time, as that of this transaction, means.
    Time,
    /// The header and the comments of a transaction.
    Transaction,
    /// The rows that it changed.
    Changes,
    /// The fields that it changed.
    Fields,
    /// What differs between the state before it and the state after the last one that is asked for.
    Differences,
    /// The version of a row that it made.
    History,
    /// The first row from this one on, and its deletion.
    Deletions,
}

/// A question: a moment, a table, a row, and a way of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub(super) txid: u64,
    pub(super) table: Option<u32>,
    pub(super) row: Option<u64>,
    pub(super) way: Way,
}

/// All that was answered: a text that differs where the answers do, or the kind of an error.
pub(super) type Answers = BTreeMap<Question, Result<String, ErrorKind>>;

/// What is asked about.
#[derive(Clone, Debug)]
pub(super) struct Topics {
    pub(super) txids: Vec<u64>,
    rows: Vec<u64>,
}

impl Topics {
    /// Draws some of the moments up to `last`, and some rows.
    pub(super) fn draw(random: &mut Random, last: u64) -> Self {
        let mut txids: Vec<_> = (0..5).map(|_| random.below(last + 1)).collect();
        txids.sort_unstable();
        txids.dedup();
        Self { txids, rows: (0..4).map(|_| random.below(12)).collect() }
    }
}

/// A database, or one who reads beside it.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    Database(&'a Database),
    Reader(&'a Reader),
}

impl Asked<'_> {
    fn now(&self) -> Snapshot {
        match self {
            Self::Database(database) => database.read(),
            Self::Reader(reader) => reader.read(),
        }
    }

    fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        match self {
            Self::Database(database) => database.at(moment),
            Self::Reader(reader) => reader.at(moment),
        }
    }

    fn as_it_was(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        match self {
            Self::Database(database) => database.as_it_was(moment),
            Self::Reader(reader) => reader.as_it_was(moment),
        }
    }

    /// Asks everything about some moments and rows.
    pub(super) fn ask(&self, topics: &Topics) -> Answers {
        let mut all = Asking { asked: self, now: self.now(), answers: Answers::new() };
        for &txid in &topics.txids {
            all.moment(txid);
            all.transaction(txid);
        }
        all.differences(&topics.txids);
        all.rows(&topics.rows);
        all.answers
    }
}

struct Asking<'a> {
    asked: &'a Asked<'a>,
    now: Snapshot,
    answers: Answers,
}

impl Asking<'_> {
    fn note(&mut self, of: (u64, Option<u32>, Option<u64>), way: Way, answer: Result<String>) {
        let (txid, table, row) = of;
        let question = Question { txid, table, row, way };
        self.answers.insert(question, answer.map_err(|error| error.kind()));
    }

    /// Asks for the states after a transaction.
    fn moment(&mut self, txid: u64) {
        for way in [Way::At, Way::AsItWas] {
            let state = match way {
                Way::At => self.asked.at(Txid(txid)),
                _ => self.asked.as_it_was(Txid(txid)),
            };
            let state = match state {
                Ok(state) => state,
                Err(error) => {
                    self.note((txid, None, None), way, Err(error));
                    continue;
                }
            };
            for table in state.schema().tables() {
                let of = (txid, Some(table.number.0), None);
                self.note(of, way, rows_of(&state, table.number));
                if way == Way::AsItWas {
                    self.note(of, Way::Blobs, blobs_of(&state, table.number));
                }
            }
            if way == Way::AsItWas {
                let schema = format!("{:?}", state.schema().lines());
                self.note((txid, None, None), Way::Schema, Ok(schema));
            }
        }
    }

    /// Asks for what a transaction did.
    fn transaction(&mut self, txid: u64) {
        if txid == 0 {
            return;
        }
        let changed = self.now.changes(Txid(txid)..=Txid(txid)).and_then(|mut all| {
            let first = all.next().transpose()?;
            first.ok_or_else(|| annals::Error::new(ErrorKind::NotFound, "no such transaction"))
        });
        let changed = match changed {
            Ok(changed) => changed,
            Err(error) => return self.note((txid, None, None), Way::Transaction, Err(error)),
        };
        let head = format!("{} {:?} {:?}", changed.txid, changed.time, changed.comments);
        self.note((txid, None, None), Way::Transaction, Ok(head));
        let meant = self.now.txid_of(changed.time).map(|txid| txid.to_string());
        self.note((txid, None, None), Way::Time, meant);
        for table in self.tables() {
            let of = (txid, Some(table.0), None);
            let rows: Vec<_> = changed.rows.iter().filter(|row| row.table == table).collect();
            self.note(of, Way::Changes, Ok(format!("{rows:?}")));
            let fields = self.now.changed_fields(Txid(txid), Some(table), 100);
            let rows = fields.map(|fields| fields.map(|fields| (fields.rows, fields.left_out)));
            self.note(of, Way::Fields, shown(rows));
        }
    }

    fn tables(&self) -> Vec<TableNumber> {
        self.now.schema().tables().iter().map(|table| table.number).collect()
    }

    /// Asks for what differs between moments.
    fn differences(&mut self, txids: &[u64]) {
        let Some(&last) = txids.last() else { return };
        for &txid in txids {
            match self.now.differences(Txid(txid), Txid(last)) {
                Ok(rows) => {
                    for table in self.tables() {
                        let rows: Vec<_> = rows.iter().filter(|row| row.table == table).collect();
                        let of = (txid, Some(table.0), None);
                        self.note(of, Way::Differences, Ok(format!("{rows:?}")));
                    }
                }
                Err(error) => self.note((txid, None, None), Way::Differences, Err(error)),
            }
        }
    }

    /// Asks for the histories of rows of each table, and for what was deleted.
    fn rows(&mut self, rows: &[u64]) {
        for table in self.tables() {
            for &row in rows {
                let versions = self
                    .now
                    .history_of(table, RowId(row))
                    .and_then(|history| history.collect::<Result<Vec<Version>>>());
                let versions = versions.expect("a row has a history, be it empty");
                self.check_row(table, row, &versions);
                for version in versions {
                    let of = (version.txid.0, Some(table.0), Some(row));
                    self.note(of, Way::History, Ok(format!("{version:?}")));
                }
            }
            // An index that is wanted no more may be there until the next backfill, or not.
            let is_indexed = self.now.schema().table(table).expect("a table").history_index;
            for &row in rows.iter().filter(|_| is_indexed) {
                let deleted = self.now.deletions(table).and_then(|all| {
                    let Some(all) = all else { return Ok(None) };
                    all.first_in(RowId(row)..RowId(row + 8), self.now.txid())
                });
                let of = (self.now.txid().0, Some(table.0), Some(row));
                self.note(of, Way::Deletions, shown(deleted));
            }
        }
    }

    /// Checks that the ways of asking about one row agree.
    fn check_row(&self, table: TableNumber, row: u64, versions: &[Version]) {
        let last = self.now.last_change(table, RowId(row)).expect("a last change");
        assert_eq!(last.as_ref(), versions.last(), "the last change of {row} of {table:?}");
        let there = self.now.table(table).unwrap().find(RowId(row)).unwrap().is_some();
        let exists = versions.last().is_some_and(|version| version.change.after.is_some());
        assert_eq!(there, exists, "row {row} of {table:?}");
        let Ok(blame) = self.now.blame(table, RowId(row)) else {
            return assert!(!there);
        };
        for of in blame {
            let version = versions.iter().find(|version| version.txid == of.txid).unwrap();
            let after = version.change.after.as_ref().unwrap();
            let value = &after[usize::try_from(of.field.0).unwrap()];
            assert!(crate::history_model::look::same(value.as_ref(), &of.value), "{of:?}");
        }
    }
}

fn shown<T: Debug>(answer: Result<T>) -> Result<String> {
    answer.map(|answer| format!("{answer:?}"))
}

/// Returns all of a table: its rows, its next id, and its rows in the order of each index.
fn rows_of(state: &Snapshot, number: TableNumber) -> Result<String> {
    let (table, mut all) = (state.table(number)?, String::new());
    let fields = &state.schema().table(number).expect("a table").fields;
    let _ = write!(all, "{} {}", table.len(), table.next_id());
    for row in table.rows() {
        let row = row?;
        let _ = write!(all, "\n{}", row.id().0);
        for field in fields {
            let _ = write!(all, " {:?}", row.value(field.number));
        }
    }
    for index in state.schema().indexes().iter().filter(|index| index.table == number) {
        let _ = write!(all, "\n{}:", index.name);
        for row in state.index(index.number)?.rows() {
            let _ = write!(all, " {}", row?.id().0);
        }
    }
    Ok(all)
}

/// Returns the bytes of all blobs that rows of a table refer to.
fn blobs_of(state: &Snapshot, number: TableNumber) -> Result<String> {
    let (table, mut all) = (state.table(number)?, String::new());
    let fields = &state.schema().table(number).expect("a table").fields;
    for row in table.rows() {
        let row = row?;
        for field in fields {
            if let annals::ValueRef::Blob(blob) = row.value(field.number) {
                let bytes = state.blob(blob)?.to_vec(1 << 20)?;
                let _ = write!(all, "{blob:?} {bytes:?}");
            }
        }
    }
    Ok(all)
}
