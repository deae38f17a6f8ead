//! Merging: the rows of several databases of one schema in a new one.
//!
//! The rows of the first file keep their ids. The ids of each further file, and the references to them, grow by the
//! table's next id before that file. So no list of ids is kept, and rows of one file keep their order. Each
//! file is one transaction.
//!
//! A row that has the key of another is refused, or both become one: only of those the new ids are kept.

mod conflicts;

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use annals_schema::{
    Blob, Field, Relation, RowId, Schema, Table, TableNumber, Type, ValueRef, compare,
    first_difference,
};

use annals::event::Event;
use annals::internals::locate;
use annals::storage::{Clock, Directory, Permissions, SystemClock};
use annals::{Database, Error, ErrorKind, Options, Result, Row, Snapshot, Transaction};

pub use self::conflicts::OnConflict;
use self::conflicts::{Clash, clashes, referenced_first, text};
use crate::names::Names;

/// The report of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// How many rows the new database has.
    pub rows: u64,
    /// How many blobs were copied.
    pub blobs: u64,
    /// How many references were made null because they led to rows that never were: those ids may be
    /// another file's now.
    pub lost_references: u64,
    /// How many rows became one with a row of an earlier file, as [`OnConflict`] says.
    pub conflicts: u64,
}

/// Writes the rows of several databases of the same schema into the new file `to`. The databases aren't changed. The
/// rows of the first keep their ids, those of the others get new ones, and all references still refer to the same rows.
/// Blobs that a row refers to are copied. `on_conflict` resolves two rows with the same key in a unique index, or
/// single rows that differ.
///
/// Cost: as opening each for reading, one at a time, and inserting all rows. Memory for each conflict.
///
/// # Errors
/// `SchemaMismatch` if the schemas differ, showing where; `Unique` if two rows have the same key and that is
/// refused, with the names of both rows and of their files in the error, or if a row has keys of several; `Invalid` if
/// single rows differ and that is refused, no file is given, or a table would have more ids than there are; `InUse` if
/// there is a file `to`; those of [`Options::open_read_only`]; `Io`. Nothing is left of the new file then.
pub fn merge<P: AsRef<Path>>(
    options: &Options,
    from: &[P],
    to: impl AsRef<Path>,
    on_conflict: OnConflict,
) -> Result<Merged> {
    let located: Result<Vec<_>> = from.iter().map(|path| locate(path.as_ref())).collect();
    let located = located?;
    let from: Vec<_> =
        located.iter().map(|(directory, name)| (&**directory, name.as_str())).collect();
    let to = locate(to.as_ref())?;
    merge_in(options, &from, to.0, &to.1, Arc::new(SystemClock), on_conflict)
}

/// Does what [`merge`] does, with directories and a clock that the caller passes.
///
/// # Errors
/// As [`merge`].
pub fn merge_in(
    options: &Options,
    from: &[(&dyn Directory, &str)],
    to: Arc<dyn Directory>,
    new_name: &str,
    clock: Arc<dyn Clock>,
    on_conflict: OnConflict,
) -> Result<Merged> {
    if from.is_empty() {
        return Err(Error::invalid("there is nothing to merge: name at least one file"));
    }
    let to = like_all(from, to, new_name)?;
    let names = Names::new(&to, new_name, "merge", &*clock)?;
    let new = Options::new().background(false).memory(options.budget());
    let database = new.open_in(to, names.temporary(), clock).map_err(|e| names.explain(e))?;
    let mut merging = Merging { on_conflict, files: Vec::new(), merged: Merged::default() };
    for &(directory, name) in from {
        let shown = directory.display(name);
        let reader = options.open_read_only_in(directory, name)?;
        if let Some(unapplied) = reader.unapplied() {
            let error = unapplied.error(&shown).within("nothing was written");
            return Err(names.explain(error));
        }
        let snapshot = reader.read();
        merging
            .file(&database, &shown, &snapshot)
            .map_err(|error| error.within(format_args!("nothing was written: {shown}")))
            .map_err(|error| names.explain(error))?;
    }
    database.close().map_err(|error| names.explain(error))?;
    names.give()?;
    Ok(merging.merged)
}

/// Returns a handle of the directory of a new file that is accessible only to users who may access all of these.
fn like_all(
    from: &[(&dyn Directory, &str)],
    to: Arc<dyn Directory>,
    new_name: &str,
) -> Result<Arc<dyn Directory>> {
    let mut all: Option<Permissions> = None;
    for &(directory, name) in from {
        let found = directory.permissions(name).map_err(|error| {
            Error::io(format!("{}: can't see who may use it", directory.display(name)), error)
        })?;
        all = found.map(|found| all.map_or(found, |all| all.and(found))).or(all);
    }
    Ok(to.for_journal(new_name, all).unwrap_or(to))
}

/// The state of a merge.
struct Merging {
    on_conflict: OnConflict,
    files: Vec<File>,
    merged: Merged,
}

/// A file that was merged: its name, and the table's next ids before it, by number.
struct File {
    shown: String,
    offsets: HashMap<TableNumber, u64>,
}

/// One file, while it is merged.
struct Source<'s> {
    shown: &'s str,
    snapshot: &'s Snapshot,
    /// By how much ids become larger, and which were ever given out, for each table.
    spans: HashMap<TableNumber, (u64, u64)>,
    blobs: HashMap<Blob, Blob>,
    /// The rows that became one with another, and the id of that.
    merged: HashMap<(TableNumber, RowId), RowId>,
}

impl Merging {
    /// Merges one file.
    fn file(&mut self, database: &Database, shown: &str, snapshot: &Snapshot) -> Result<()> {
        let schema = Arc::clone(snapshot.schema());
        match self.files.first() {
            None => database.write(|tx| begin(tx, &schema))?,
            Some(first) => same_schema(&first.shown, database.read().schema(), &schema)?,
        }
        database.write(|tx| {
            let mut spans = HashMap::new();
            for table in schema.tables() {
                spans.insert(table.number, span(tx, snapshot, table)?);
            }
            let offsets = spans.iter().map(|(&table, &(offset, _))| (table, offset)).collect();
            self.files.push(File { shown: shown.to_owned(), offsets });
            let (blobs, merged) = (HashMap::new(), HashMap::new());
            let mut source = Source { shown, snapshot, spans, blobs, merged };
            let tables = referenced_first(&schema);
            for table in &tables {
                match table.single_row {
                    true => self.single(tx, &mut source, table)?,
                    false => self.rows(tx, &mut source, table)?,
                }
            }
            for (place, table) in tables.iter().enumerate() {
                self.redirect(tx, &source, table, tables.get(place..).unwrap_or_default())?;
            }
            self.merged.blobs += source.blobs.len() as u64;
            tx.comment(&format!("merged from {shown}"))
        })
    }

    fn rows(
        &mut self,
        tx: &mut Transaction<'_>,
        source: &mut Source<'_>,
        table: &Table,
    ) -> Result<()> {
        let (offset, next) = source.spans.get(&table.number).copied().unwrap_or_default();
        let rows = source.snapshot.table(table.number)?;
        let has_erased = table.fields.iter().any(|field| rows.has_erased(field.number));
        for row in rows.rows() {
            let row = row?;
            if self.on_conflict != OnConflict::Refuse && self.is_one(tx, source, table, &row)? {
                continue;
            }
            let values = self.values(tx, source, table, &row)?;
            let id = RowId(row.id().0 + offset);
            let inserted = match has_erased {
                true => {
                    tx.apply_erased(&Event::Insert { table: table.number, id, values: &values })
                }
                false => tx.insert_at(table.number, id, &values),
            };
            inserted.map_err(|error| self.explain(tx, row.id(), table, &values, error))?;
            self.merged.rows += 1;
        }
        // Ids of deleted rows aren't reused.
        match (offset + next).checked_sub(1).map(RowId) {
            Some(last) if tx.view().table(table.number)?.next_id() <= last.0 => {
                tx.insert_zero(table.number, last)?;
                tx.delete(table.number, last)
            }
            _ => Ok(()),
        }
    }

    /// Makes a row one with the row that has its key. False if there is none.
    fn is_one(
        &mut self,
        tx: &mut Transaction<'_>,
        source: &mut Source<'_>,
        table: &Table,
        row: &Row<'_>,
    ) -> Result<bool> {
        let values = table.fields.iter().map(|field| match (row.value(field.number), field.ty) {
            (ValueRef::Reference(id), Type::Reference(to, _)) => source.reference(to, id),
            (value, _) => value,
        });
        let clashes = clashes(tx, table, &values.collect::<Vec<_>>())?;
        let Some(Clash { id, index, key }) = clashes.first() else { return Ok(false) };
        if let Some(other) = clashes.iter().find(|other| other.id != *id) {
            let (number, name) = (row.id().0, &table.name);
            return Err(Error::new(
                ErrorKind::Unique,
                format!(
                    "row {number} of `{name}` in {} has keys of two rows: index `{index}`: {key}; index `{}`: {}: \
                     change or delete one of them first",
                    source.shown, other.index, other.key
                ),
            ));
        }
        source.merged.insert((table.number, row.id()), *id);
        self.merged.conflicts += 1;
        if self.on_conflict == OnConflict::Replace {
            let values = self.values(tx, source, table, row)?;
            replace(tx, table, *id, values)?;
        }
        Ok(true)
    }

    /// Sets references to rows that weren't merged yet when the reference was written: rows of the same table, or of
    /// a later one.
    fn redirect(
        &self,
        tx: &mut Transaction<'_>,
        source: &Source<'_>,
        table: &Table,
        later: &[&Table],
    ) -> Result<()> {
        let is_late = |to| later.iter().any(|table| table.number == to);
        let has_merged = |to| source.merged.keys().any(|(table, _)| *table == to);
        for field in &table.fields {
            let Type::Reference(to, _) = field.ty else { continue };
            if !is_late(to) || !has_merged(to) {
                continue;
            }
            for row in source.snapshot.table(table.number)?.rows() {
                let row = row?;
                let is_one = source.merged.contains_key(&(table.number, row.id()));
                let ValueRef::Reference(led) = row.value(field.number) else { continue };
                if !source.merged.contains_key(&(to, led))
                    || (is_one && self.on_conflict == OnConflict::Keep)
                {
                    continue;
                }
                let ValueRef::Reference(id) = source.reference(table.number, row.id()) else {
                    continue;
                };
                tx.update(table.number, id, field.number, source.reference(to, led))?;
            }
        }
        Ok(())
    }

    /// Returns the values of a row as they are in the new database.
    fn values<'r>(
        &mut self,
        tx: &mut Transaction<'_>,
        source: &mut Source<'_>,
        table: &Table,
        row: &'r Row<'_>,
    ) -> Result<Vec<ValueRef<'r>>> {
        let mut values = Vec::with_capacity(table.fields.len());
        for field in &table.fields {
            values.push(match (row.value(field.number), field.ty) {
                (ValueRef::Reference(id), Type::Reference(to, _)) => {
                    let led = source.reference(to, id);
                    self.merged.lost_references += u64::from(led == ValueRef::Null);
                    led
                }
                (ValueRef::Blob(blob), _) => ValueRef::Blob(source.copy(tx, blob)?),
                (value, _) => value,
            });
        }
        Ok(values)
    }

    /// Takes the row of a table that has one: it must be the same in all files, unless one may win.
    fn single(
        &mut self,
        tx: &mut Transaction<'_>,
        source: &mut Source<'_>,
        table: &Table,
    ) -> Result<()> {
        let row = source.snapshot.table(table.number)?.single()?;
        if let [first, .., _] = self.files.as_slice() {
            let difference = differing(tx, table, &row)?;
            match (difference, self.on_conflict) {
                (None, _) => return Ok(()),
                (Some((field, theirs, ours)), OnConflict::Refuse) => {
                    return Err(Error::invalid(format!(
                        "table `{}` has a single row, whose `{field}` is {theirs} there and {ours} in {}: make them \
                         the same first, or choose which one wins",
                        table.name, first.shown
                    )));
                }
                (Some(_), _) => self.merged.conflicts += 1,
            }
            if self.on_conflict == OnConflict::Keep {
                return Ok(());
            }
        } else {
            self.merged.rows += 1;
        }
        let values = self.values(tx, source, table, &row)?;
        let id = tx.view().table(table.number)?.single()?.id();
        replace(tx, table, id, values)
    }

    /// Names both rows and files, if two rows have the same key.
    fn explain(
        &self,
        tx: &Transaction<'_>,
        id: RowId,
        table: &Table,
        values: &[ValueRef<'_>],
        error: Error,
    ) -> Error {
        let found = match error.kind() {
            ErrorKind::Unique => clashes(tx, table, values),
            _ => return error.within(format_args!("row {} of table `{}`", id.0, table.name)),
        };
        let found = found.ok().and_then(|found| found.into_iter().next());
        let Some(Clash { index, key, id: other }) = found else { return error };
        let offset = |file: &&File| file.offsets.get(&table.number).copied().unwrap_or_default();
        // The one being merged is the last, and none of its rows has a key twice.
        let Some((merged, before)) = self.files.split_last() else { return error };
        let shown = &merged.shown;
        let Some(file) = before.iter().rev().find(|file| offset(file) <= other.0) else {
            return error;
        };
        Error::new(
            ErrorKind::Unique,
            format!(
                "index `{index}`: {key} is the key of row {} of `{}` in {shown}, and of row {} in {}: keys of \
                 a unique index must be distinct, so change or delete one of them first",
                id.0,
                table.name,
                other.0 - offset(&file),
                file.shown
            ),
        )
    }
}

/// Writes other values to a row.
fn replace(
    tx: &mut Transaction<'_>,
    table: &Table,
    id: RowId,
    values: Vec<ValueRef<'_>>,
) -> Result<()> {
    for (field, value) in table.fields.iter().zip(values) {
        let (table, field) = (table.number, field.number);
        tx.apply_erased(&Event::Update { table, id, field, value })?;
    }
    Ok(())
}

/// Finds the first field in which a single row differs from the existing one, and the texts of both values. Blobs are
/// taken for different ones.
fn differing(
    tx: &Transaction<'_>,
    table: &Table,
    row: &Row<'_>,
) -> Result<Option<(String, String, String)>> {
    let view = tx.view().table(table.number)?;
    let ours = view.single()?;
    let differs = |field: &&Field| {
        let (theirs, ours) = (row.value(field.number), ours.value(field.number));
        theirs != ours || matches!(theirs, ValueRef::Blob(_))
    };
    let found = table.fields.iter().find(differs).map(|field| {
        let values = (row.value(field.number), ours.value(field.number));
        (field.name.clone(), text(values.0), text(values.1))
    });
    Ok(found)
}

impl Source<'_> {
    /// Returns a reference to a row as it is in the new database; null if there never was such a row.
    fn reference(&self, to: TableNumber, id: RowId) -> ValueRef<'static> {
        if let Some(&one) = self.merged.get(&(to, id)) {
            return ValueRef::Reference(one);
        }
        let (offset, next) = self.spans.get(&to).copied().unwrap_or_default();
        match id.0 < next {
            true => ValueRef::Reference(RowId(id.0 + offset)),
            false => ValueRef::Null,
        }
    }

    /// Copies a blob, once; returns its new number.
    fn copy(&mut self, tx: &mut Transaction<'_>, blob: Blob) -> Result<Blob> {
        if let Some(&copied) = self.blobs.get(&blob) {
            return Ok(copied);
        }
        let copied = tx.write_blob(self.snapshot.blob(blob)?)?;
        self.blobs.insert(blob, copied);
        Ok(copied)
    }
}

/// Makes the schema, with all numbers as they are.
fn begin(tx: &mut Transaction<'_>, schema: &Schema) -> Result<()> {
    for command in schema.commands() {
        tx.apply_command(command)?;
    }
    // A table that was one of a single row once has it still.
    for table in schema.tables().iter().filter(|table| !table.single_row) {
        let ids: Vec<_> =
            tx.view().table(table.number)?.rows().map(|row| row.map(|row| row.id())).collect();
        for id in ids {
            tx.delete(table.number, id?)?;
        }
    }
    Ok(())
}

/// Returns a schema without the versions of its collations.
fn unversioned(schema: &Schema) -> Schema {
    let Ok(schema) = schema.with_collations(|_, _| Ok::<_, Infallible>(String::new()));
    schema
}

/// Refuses a schema that isn't the first file's.
fn same_schema(first: &str, ours: &Schema, theirs: &Schema) -> Result<()> {
    // The index is sorted here, whatever the version of its collation.
    let theirs = &unversioned(theirs);
    if matches!(compare(ours, theirs), Relation::Same) {
        return Ok(());
    }
    let place = first_difference(ours, theirs).map_or(String::new(), |found| format!("\n{found}"));
    Err(Error::new(
        ErrorKind::SchemaMismatch,
        format!(
            "has another schema than {first} (`the file` below is {first}, `the program` this one): upgrade \
             the older one first{place}"
        ),
    ))
}

/// Returns the first id of a table's rows in the new database, and the table's next id in the file.
fn span(tx: &Transaction<'_>, snapshot: &Snapshot, table: &Table) -> Result<(u64, u64)> {
    let next = snapshot.table(table.number)?.next_id();
    let ours = tx.view().table(table.number)?;
    let offset = if table.single_row { 0 } else { ours.next_id() };
    match offset.checked_add(next).filter(|&sum| sum <= RowId::MAX.0 + 1) {
        Some(_) => Ok((offset, next)),
        None => Err(Error::invalid(format!(
            "table `{}`: its ids go up to {}, and {} are taken already: together they are more than there are",
            table.name,
            next.saturating_sub(1),
            offset
        ))),
    }
}
