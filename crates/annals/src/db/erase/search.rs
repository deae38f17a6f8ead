//! Looking for values in all of history.
//!
//! The names of the table and its fields are known only at the end, so rows with the id are noted in all tables: in
//! memory for each of their fields, not for each value.
//!
//! A value that nothing ever wrote (a field's default, a zero of `insert_vector`) isn't the row's own, and stays. A
//! segment that begins with the state writes it out nevertheless; it stays there too, since a reader of the earlier
//! segment knows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals_schema::{
    Blob, Command, Field, FieldNumber, RowId, Schema, Table, TableNumber, ValueRef,
};

use crate::db::erase::report::Erase;
use crate::event::{self, Event};
use crate::journal::format::Header;
use crate::journal::{Committed, Erasure, Frame};
use crate::{Error, ErrorKind, Result};

/// The values of a field of a row, as they are in the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) count: u64,
    /// The place of the first segment that has one.
    pub(super) segment: usize,
    /// The first transaction and the last.
    pub(super) txids: (u64, u64),
    pub(super) blobs: BTreeSet<Blob>,
    /// All transactions that wrote one.
    wrote: BTreeSet<u64>,
}

/// Comments of a transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Comments {
    txid: u64,
    /// The place of the segment.
    segment: usize,
    count: u64,
    /// True if the transaction wrote a value of a row of the id.
    wrote: bool,
}

/// The names of fields, and the counts for each.
pub(super) type Found = Vec<(String, Values)>;

/// The values to erase.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) table: TableNumber,
    pub(super) row: RowId,
    pub(super) fields: BTreeSet<FieldNumber>,
    /// Blobs without other references.
    pub(super) blobs: BTreeSet<Blob>,
    /// Transactions whose comments go.
    pub(super) comments: BTreeSet<u64>,
}

impl Target {
    /// Begins with nothing.
    fn new(table: TableNumber, row: RowId) -> Self {
        let (blobs, comments) = (BTreeSet::new(), BTreeSet::new());
        Self { table, row, fields: BTreeSet::new(), blobs, comments }
    }

    pub(super) fn has(&self, table: TableNumber, row: RowId, field: FieldNumber) -> bool {
        self.table == table && self.row == row && self.fields.contains(&field)
    }
}

/// The state of reading the history.
#[derive(Debug)]
pub(super) struct Search {
    row: RowId,
    /// Transactions whose comments go in any case.
    comments_of: BTreeSet<u64>,
    schema: Schema,
    /// The schema at the beginning of each segment.
    pub(super) schemas: Vec<Arc<Schema>>,
    found: BTreeMap<(TableNumber, FieldNumber), Values>,
    /// Which fields of rows of the id have a value that was written.
    written: BTreeSet<(TableNumber, FieldNumber)>,
    /// Which haven't, at the beginning of a segment that repeats the state, by its place.
    unwritten: BTreeMap<usize, BTreeSet<(TableNumber, FieldNumber)>>,
    dropped_tables: Vec<Table>,
    dropped_fields: Vec<(TableNumber, Field)>,
    /// The ends of transactions with chains in earlier marks.
    pub(super) marked: BTreeSet<u64>,
    /// The last commit.
    pub(super) last: Option<Committed>,
    /// The comments of the current transaction, and of those that may be erased.
    open: Comments,
    commented: BTreeMap<u64, Comments>,
    /// Points to find, as txid and chain, and those that the history has.
    wanted: BTreeSet<(u64, u64)>,
    pub(super) known: BTreeSet<(u64, u64)>,
}

impl Search {
    pub(super) fn new(what: &Erase, wanted: BTreeSet<(u64, u64)>) -> Self {
        Self {
            row: what.row,
            comments_of: what.comments_of.iter().copied().collect(),
            schema: Schema::default(),
            schemas: Vec::new(),
            found: BTreeMap::new(),
            written: BTreeSet::new(),
            unwritten: BTreeMap::new(),
            dropped_tables: Vec::new(),
            dropped_fields: Vec::new(),
            marked: BTreeSet::new(),
            last: None,
            open: Comments::default(),
            commented: BTreeMap::new(),
            wanted,
            known: BTreeSet::new(),
        }
    }

    /// Notes that a segment begins.
    pub(super) fn begin(&mut self, header: &Header) {
        self.note_point(header.first_txid.saturating_sub(1), header.hash());
        if header.begins_with_state() {
            self.schema = Schema::default();
        }
        let last = self.schemas.last();
        let same = last.filter(|last| last.commands().len() == self.schema.commands().len());
        self.schemas.push(same.map_or_else(|| Arc::new(self.schema.clone()), Arc::clone));
    }

    fn note_point(&mut self, txid: u64, chain: u64) {
        if self.wanted.contains(&(txid, chain)) {
            self.known.insert((txid, chain));
        }
    }

    /// Takes a frame; one that repeats the state has no values that weren't counted.
    pub(super) fn frame(&mut self, frame: &Frame<'_>, is_repeated: bool) -> Result<()> {
        if let Some(erasure) = Erasure::of(frame) {
            self.marked.extend(erasure.chains.iter().map(|known| known.txid));
        }
        if frame.header.is_commit() {
            self.note_point(frame.header.txid, frame.chain);
        }
        if !frame.header.has_events() {
            return Ok(());
        }
        if self.open.txid != frame.header.txid {
            let segment = self.schemas.len().saturating_sub(1);
            self.open = Comments { txid: frame.header.txid, segment, ..Comments::default() };
        }
        let Self { row, schema, schemas, found, written, unwritten, open, .. } = self;
        let (dropped_tables, dropped_fields) = (&mut self.dropped_tables, &mut self.dropped_fields);
        let (segment, txid) = (schemas.len().saturating_sub(1), frame.header.txid);
        let mut note = |written: &mut BTreeSet<_>, table, field, value: ValueRef<'_>| {
            if is_repeated && !written.contains(&(table, field)) {
                unwritten.entry(segment).or_default().insert((table, field));
                return;
            }
            written.insert((table, field));
            if matches!(value, ValueRef::Null) {
                return;
            }
            let first = || Values { segment, txids: (txid, txid), ..Values::default() };
            let values = found.entry((table, field)).or_insert_with(first);
            values.count += u64::from(!is_repeated);
            values.txids.1 = txid;
            if !is_repeated {
                values.wrote.insert(txid);
                open.wrote = true;
            }
            if let ValueRef::Blob(blob) = value {
                values.blobs.insert(blob);
            }
        };
        let mut comments = 0;
        event::decode(frame.payload, 0, schema, &mut |schema, event| {
            match *event {
                Event::Comment(text) => comments += u64::from(!text.is_empty()),
                // The state repeats fields that were dropped before it.
                Event::Schema(_) if is_repeated => {}
                Event::Schema(Command::DropTable { table }) => {
                    dropped_tables.extend(schema.table(*table).cloned());
                }
                Event::Schema(Command::DropField { table, field }) => {
                    let dropped = schema.table(*table).and_then(|table| table.field(*field));
                    dropped_fields.extend(dropped.map(|field| (*table, field.clone())));
                }
                Event::InsertVector { table, id, count } if !is_repeated => {
                    if row.0.checked_sub(id.0).is_some_and(|at| at < count) {
                        written.retain(|(of, _)| *of != table);
                    }
                }
                _ => each_value(schema, event, &mut |table, id, field, value| {
                    if id == *row {
                        note(written, table, field, value);
                    }
                }),
            }
            Ok(())
        })?;
        self.open.count += comments;
        let is_wanted = self.open.wrote || self.comments_of.contains(&frame.header.txid);
        if frame.header.is_commit() && self.open.count > 0 && is_wanted {
            self.commented.insert(self.open.txid, self.open);
        }
        self.last = Committed::of(frame).or(self.last);
        Ok(())
    }

    /// Adds to a target the comments that go with the values that were found of it. Returns the number of such
    /// values, the place of the first segment that has one, and the first and the last transaction; `None` if there
    /// are none.
    pub(super) fn comments(
        &self,
        what: &Erase,
        (target, found): (&mut Target, &Found),
    ) -> Option<Values> {
        let wrote = found.iter().filter(|_| what.comments).flat_map(|(_, values)| &values.wrote);
        target.comments = wrote.chain(&what.comments_of).copied().collect();
        let mut all: Option<Values> = None;
        for comments in self.commented.values().filter(|it| target.comments.contains(&it.txid)) {
            let (segment, txid) = (comments.segment, comments.txid);
            let first = || Values { segment, txids: (txid, txid), ..Values::default() };
            let all = all.get_or_insert_with(first);
            all.count += comments.count;
            all.txids.1 = txid;
        }
        all
    }

    /// Returns the fields of a table that have values in the state that a segment repeats which nothing wrote.
    pub(super) fn unwritten(&self, segment: usize, table: TableNumber) -> BTreeSet<FieldNumber> {
        let all = self.unwritten.get(&segment).into_iter().flatten();
        all.filter(|(of, _)| *of == table).map(|&(_, field)| field).collect()
    }

    /// Returns the values to erase, except blobs, and the names of the fields with their counts. Also returns the
    /// number of values of other fields with the same names, which were dropped before.
    ///
    /// # Errors
    /// `NotFound`: there never was such a table or field, or nothing was found.
    pub(super) fn target(&self, what: &Erase) -> Result<(Target, Found, u64)> {
        let not_found = |message| Err(Error::new(ErrorKind::NotFound, message));
        let dropped = self.dropped_tables.iter().rev().filter(|table| table.name == what.table);
        let tables: Vec<_> =
            self.schema.table_named(&what.table).into_iter().chain(dropped).collect();
        if tables.is_empty() {
            return not_found(format!("there is no table `{}`, and never was one", what.table));
        }
        let choices: Vec<_> = tables.iter().flat_map(|table| self.choices(table, what)).collect();
        if let (Some(name), true) = (&what.field, choices.is_empty()) {
            let table = &what.table;
            return not_found(format!("table `{table}` has no field `{name}`, and never had one"));
        }
        let mut found = choices.iter().map(|(table, fields)| {
            let values = |field: &&Field| {
                let values = self.found.get(&(*table, field.number));
                Some((field.name.clone(), values?.clone()))
            };
            (*table, fields, fields.iter().filter_map(values).collect::<Vec<_>>())
        });
        let first = found.find(|(_, _, values)| !values.is_empty());
        let commented = what.comments_of.iter().any(|txid| self.commented.contains_key(txid));
        if let (None, true, Some(table)) = (&first, commented, tables.first()) {
            return Ok((Target::new(table.number, what.row), Vec::new(), 0));
        }
        let Some((table, fields, values)) = first else {
            return not_found(format!(
                "no value to erase: the history has none of row {} of table `{}`{}; nothing was changed",
                what.row.0,
                what.table,
                what.field.as_ref().map_or_else(String::new, |field| format!(", field `{field}`"))
            ));
        };
        let left = found.flat_map(|(_, _, values)| values).map(|(_, values)| values.count).sum();
        let fields = fields.iter().map(|field| field.number).collect();
        Ok((Target { fields, ..Target::new(table, what.row) }, values, left))
    }

    /// Returns the candidates in a table, existing ones before dropped ones: all fields, or each one that has the
    /// name.
    fn choices<'s>(&'s self, table: &'s Table, what: &Erase) -> Vec<(TableNumber, Vec<&'s Field>)> {
        let dropped = self.dropped_fields.iter().rev();
        let dropped = dropped.filter(|(of, _)| *of == table.number).map(|(_, field)| field);
        let all = table.fields.iter().chain(dropped);
        match &what.field {
            Some(name) => {
                let named = all.filter(|field| field.name == *name);
                named.map(|field| (table.number, vec![field])).collect()
            }
            None => vec![(table.number, all.collect())],
        }
    }
}

/// Finds which blobs of a target have other references, too.
#[derive(Debug)]
pub(super) struct Others<'t> {
    schema: Schema,
    target: &'t Target,
    /// Those without other references.
    pub(super) blobs: BTreeSet<Blob>,
    segments: usize,
    /// The place of the first segment that has bytes of them, as far as was known then.
    pub(super) first: Option<usize>,
}

impl<'t> Others<'t> {
    pub(super) fn new(target: &'t Target, blobs: BTreeSet<Blob>) -> Self {
        Self { schema: Schema::default(), target, blobs, segments: 0, first: None }
    }

    /// Notes that a segment begins.
    pub(super) fn begin(&mut self, header: &Header) {
        self.segments += 1;
        if header.begins_with_state() {
            self.schema = Schema::default();
        }
    }

    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> Result<()> {
        if !frame.header.has_events() {
            return Ok(());
        }
        let Self { schema, target, blobs, segments, first } = self;
        event::decode(frame.payload, 0, schema, &mut |schema, event| {
            if let Event::Blob { blob, .. } = event
                && blobs.contains(blob)
            {
                first.get_or_insert(*segments - 1);
            }
            each_value(schema, event, &mut |table, row, field, value| {
                if let ValueRef::Blob(blob) = value
                    && !target.has(table, row, field)
                {
                    blobs.remove(&blob);
                }
            });
            Ok(())
        })
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
