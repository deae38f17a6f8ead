//! Looking for values in all of history.
//!
//! The names of the table and of its fields are known only at the end, so all tables' rows of the id are noted: in
//! memory for each of their fields, not for each value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals::event::Event;
use annals::journal::{Erasure, SegmentFacts};
use annals::{
    Blob, Command, Committed, Error, ErrorKind, Field, FieldNumber, Result, RowId, Schema, Sink,
    Table, TableNumber, Txid, ValueRef,
};

use super::report::Erase;
use crate::requests::{Answered, may_be_of_key, read_answer};

/// The values of a field of a row, as they are in the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) count: u64,
    /// The transactions that wrote one.
    pub(super) txids: BTreeSet<u64>,
    pub(super) blobs: BTreeSet<Blob>,
}

/// The names of fields, and what was found of each.
pub(super) type Found = Vec<(String, Values)>;

/// What is to go.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) table: TableNumber,
    pub(super) row: RowId,
    pub(super) fields: BTreeSet<FieldNumber>,
    /// Blobs that nothing else refers to.
    pub(super) blobs: BTreeSet<Blob>,
    /// Transactions whose comments go.
    pub(super) comments: BTreeSet<u64>,
    /// Requests that run once, by their transactions: the answers go, with the hashes of the requests. The keys stay, even
    /// among comments that go, so that none of them runs again and writes what was erased.
    pub(super) answers: BTreeMap<u64, Answers>,
}

/// The comments of a transaction that are answers to requests, by their places; the key is in the place before.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) places: BTreeSet<u64>,
    /// How many of them weren't erased before.
    pub(super) left: u64,
}

impl Target {
    /// Begins with some fields.
    fn new(table: TableNumber, row: RowId, fields: BTreeSet<FieldNumber>) -> Self {
        let (blobs, comments, answers) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        Self { table, row, fields, blobs, comments, answers }
    }

    pub(super) fn has(&self, table: TableNumber, row: RowId, field: FieldNumber) -> bool {
        self.table == table && self.row == row && self.fields.contains(&field)
    }
}

/// What is read of the history.
#[derive(Debug)]
pub(super) struct Search<'w> {
    what: &'w Erase,
    found: BTreeMap<(TableNumber, FieldNumber), Values>,
    /// The transaction that is read, and whether it wrote a value of a row of the id.
    txid: u64,
    wrote: bool,
    /// Its comments: how many there were, how many of them may go, and which are answers to requests.
    place: u64,
    comments: u64,
    answers: Answers,
    /// True if the last event is a comment that may be a key.
    after_key: bool,
    /// How many comments each transaction has whose comments may go.
    commented: BTreeMap<u64, u64>,
    /// The answers of such transactions.
    answered: BTreeMap<u64, Answers>,
    dropped_tables: Vec<Table>,
    dropped_fields: Vec<(TableNumber, Field)>,
    schema: Arc<Schema>,
    /// The schemas at the ends of the segments, by their last transactions.
    ends: BTreeMap<u64, Arc<Schema>>,
    /// The ends of transactions whose chains earlier marks name.
    pub(super) marked: BTreeSet<u64>,
}

impl Sink for Search<'_> {
    fn begin(&mut self, txid: Txid) -> Result<()> {
        (self.txid, self.comments, self.wrote) = (txid.0, 0, false);
        (self.place, self.answers, self.after_key) = (0, Answers::default(), false);
        Ok(())
    }

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let after_key = std::mem::take(&mut self.after_key);
        match *event {
            Event::Comment(text) => self.comment(text, after_key),
            Event::Schema(Command::DropTable { table }) => {
                self.dropped_tables.extend(schema.table(*table).cloned());
            }
            Event::Schema(Command::DropField { table, field }) => {
                let dropped = schema.table(*table).and_then(|table| table.field(*field));
                self.dropped_fields.extend(dropped.map(|field| (*table, field.clone())));
            }
            _ => each_value(schema, event, &mut |table, id, field, value| {
                if id != self.what.row || matches!(value, ValueRef::Null) {
                    return;
                }
                let values = self.found.entry((table, field)).or_default();
                values.count += 1;
                values.txids.insert(self.txid);
                if let ValueRef::Blob(blob) = value {
                    values.blobs.insert(blob);
                }
                self.wrote = true;
            }),
        }
        Ok(())
    }

    fn commit(&mut self, schema: &Schema, committed: &Committed) -> Result<()> {
        let Txid(txid) = committed.txid;
        if self.wrote || self.what.comments_of.contains(&txid) {
            if self.comments > 0 {
                self.commented.insert(txid, self.comments);
            }
            if !self.answers.places.is_empty() {
                self.answered.insert(txid, std::mem::take(&mut self.answers));
            }
        }
        if self.schema.commands().len() != schema.commands().len() {
            self.schema = Arc::new(schema.clone());
        }
        self.ends.entry(txid).and_modify(|end| *end = Arc::clone(&self.schema));
        Ok(())
    }

    fn erasure(&mut self, _: &Schema, erasure: &Erasure) -> Result<()> {
        self.marked.extend(erasure.chains.iter().map(|known| known.txid.0));
        Ok(())
    }
}

impl<'w> Search<'w> {
    pub(super) fn new(what: &'w Erase, segments: &[SegmentFacts]) -> Self {
        Self {
            what,
            found: BTreeMap::new(),
            txid: 0,
            wrote: false,
            place: 0,
            comments: 0,
            answers: Answers::default(),
            after_key: false,
            commented: BTreeMap::new(),
            answered: BTreeMap::new(),
            dropped_tables: Vec::new(),
            dropped_fields: Vec::new(),
            schema: Arc::default(),
            ends: segments.iter().map(|facts| (facts.last_txid.0, Arc::default())).collect(),
            marked: BTreeSet::new(),
        }
    }

    /// Notes a comment.
    fn comment(&mut self, text: &str, after_key: bool) {
        match read_answer(text).filter(|_| after_key) {
            Some(answered) => {
                self.answers.places.insert(self.place);
                self.answers.left += u64::from(answered != Answered::Erased);
                self.comments -= 1; // the key
            }
            None => {
                self.comments += u64::from(!text.is_empty());
                self.after_key = may_be_of_key(text);
            }
        }
        self.place += 1;
    }

    /// Returns the schema at the end of a segment, by its last transaction.
    pub(super) fn schema_at(&self, txid: u64) -> Arc<Schema> {
        self.ends.get(&txid).cloned().unwrap_or_default()
    }

    /// Adds to a target the comments and the answers to requests that go with the values that were found of it. Returns how
    /// many comments those are, by their transactions.
    pub(super) fn comments(&self, target: &mut Target, found: &Found) -> BTreeMap<u64, u64> {
        let Self { what, commented, answered, .. } = self;
        let wrote = || found.iter().flat_map(|(_, values)| &values.txids);
        target.comments =
            wrote().filter(|_| what.comments).chain(&what.comments_of).copied().collect();
        let all = wrote().chain(&what.comments_of);
        target.answers =
            all.filter_map(|txid| Some((*txid, answered.get(txid)?.clone()))).collect();
        let all = target.comments.iter();
        all.filter_map(|txid| Some((*txid, *commented.get(txid)?))).collect()
    }

    /// Returns what is to go, but for blobs, the names of the fields with what was found of them, and how many values
    /// others of the same names have, which were dropped before.
    ///
    /// # Errors
    /// `NotFound`: there never was such a table or field, or nothing was found.
    pub(super) fn target(&self) -> Result<(Target, Found, u64)> {
        let Self { what, schema, commented, answered, .. } = self;
        let not_found = |message| Err(Error::new(ErrorKind::NotFound, message));
        let dropped = self.dropped_tables.iter().rev().filter(|table| table.name == what.table);
        let tables: Vec<_> = schema.table_named(&what.table).into_iter().chain(dropped).collect();
        let Some(newest) = tables.first() else {
            return not_found(format!("there is no table `{}`, and never was one", what.table));
        };
        let choices: Vec<_> = tables.iter().flat_map(|table| self.choices(table)).collect();
        if let (Some(name), true) = (&what.field, choices.is_empty()) {
            let table = &what.table;
            return not_found(format!("table `{table}` has no field `{name}`, and never had one"));
        }
        let mut found = choices.iter().map(|(table, fields)| {
            let values = |field: &&Field| {
                let values = self.found.get(&(*table, field.number))?;
                Some((field.name.clone(), values.clone()))
            };
            (*table, fields, fields.iter().filter_map(values).collect::<Vec<_>>())
        });
        if let Some((table, fields, values)) = found.find(|(_, _, values)| !values.is_empty()) {
            let left = found.flat_map(|(_, _, left)| left).map(|(_, left)| left.count).sum();
            let fields = fields.iter().map(|field| field.number).collect();
            return Ok((Target::new(table, what.row, fields), values, left));
        }
        let has_some = |txid: &u64| {
            commented.contains_key(txid) || answered.get(txid).is_some_and(|it| it.left > 0)
        };
        if what.comments_of.iter().any(has_some) {
            let target = Target::new(newest.number, what.row, BTreeSet::new());
            return Ok((target, Vec::new(), 0));
        }
        not_found(format!(
            "no value to erase: the history has none of row {} of table `{}`{}; nothing was changed",
            what.row.0,
            what.table,
            what.field.as_ref().map_or_else(String::new, |field| format!(", field `{field}`"))
        ))
    }

    /// Returns what may be meant in a table, the fields that are there before dropped ones: all of them, or each one
    /// that has the name.
    fn choices<'s>(&'s self, table: &'s Table) -> Vec<(TableNumber, Vec<&'s Field>)> {
        let dropped = self.dropped_fields.iter().rev();
        let dropped = dropped.filter(|(of, _)| *of == table.number).map(|(_, field)| field);
        let all = table.fields.iter().chain(dropped);
        match &self.what.field {
            Some(name) => {
                let named = all.filter(|field| field.name == *name);
                named.map(|field| (table.number, vec![field])).collect()
            }
            None => vec![(table.number, all.collect())],
        }
    }
}

/// Looks which blobs of a target something else refers to, too.
#[derive(Debug)]
pub(super) struct Others<'t> {
    target: &'t Target,
    txid: u64,
    /// Those that nothing else was found to refer to.
    pub(super) blobs: BTreeSet<Blob>,
    /// The transactions that have their bytes.
    bytes: BTreeMap<Blob, u64>,
}

impl<'t> Others<'t> {
    pub(super) const fn new(target: &'t Target, blobs: BTreeSet<Blob>) -> Self {
        Self { target, txid: 0, blobs, bytes: BTreeMap::new() }
    }

    /// Returns the first transaction that has bytes of one of the blobs.
    pub(super) fn first_txid(&self) -> Option<u64> {
        self.blobs.iter().filter_map(|blob| self.bytes.get(blob).copied()).min()
    }
}

impl Sink for Others<'_> {
    fn begin(&mut self, txid: Txid) -> Result<()> {
        self.txid = txid.0;
        Ok(())
    }

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        if let Event::Blob { blob, .. } = event
            && self.blobs.contains(blob)
        {
            self.bytes.entry(*blob).or_insert(self.txid);
        }
        each_value(schema, event, &mut |table, row, field, value| {
            if let ValueRef::Blob(blob) = value
                && !self.target.has(table, row, field)
            {
                self.blobs.remove(&blob);
            }
        });
        Ok(())
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}

/// Passes on each value that an event writes, with its table, row and field.
fn each_value(
    schema: &Schema,
    event: &Event<'_>,
    take: &mut impl FnMut(TableNumber, RowId, FieldNumber, ValueRef<'_>),
) {
    match *event {
        Event::Insert { table, id, values } => {
            let fields = schema.table(table).map_or(&[][..], |table| &table.fields);
            for (field, &value) in fields.iter().zip(values) {
                take(table, id, field.number, value);
            }
        }
        Event::Update { table, id, field, value } => take(table, id, field, value),
        Event::UpdateVector { table, id, field, values } => {
            let described = schema.table(table).and_then(|table| table.field(field));
            let Some(described) = described else { return };
            for (id, value) in (id.0..).zip(values.iter(described.ty)) {
                take(table, RowId(id), field, value);
            }
        }
        _ => {}
    }
}
