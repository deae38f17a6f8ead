//! Merging: the rows of several databases of one schema in a new one.
//!
//! The rows of the first file keep their ids. Those of each further one come behind all that were there before:
//! their ids, and the references that lead to them, become larger by as much as the table's next id was. So no
//! list of ids is kept, and rows of one file keep their order. Each file is one transaction.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use annals_schema::{
    Blob, Relation, RowId, Schema, Table, TableNumber, Type, ValueRef, compare, first_difference,
    write_value,
};

use super::database::Database;
use super::options::{Options, locate};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::event::Event;
use crate::replica::Names;
use crate::storage::{Clock, Directory, SystemClock};
use crate::store::Row;
use crate::{Error, ErrorKind, Result};

/// What was merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// How many rows the new database has.
    pub rows: u64,
    /// How many blobs were copied.
    pub blobs: u64,
    /// How many references were made null because they led to rows that never were: those ids may be
    /// another file's now.
    pub lost_references: u64,
}

impl Options {
    /// Writes the rows of several databases of the same schema into the new file `to`; they aren't changed. The
    /// rows of the first keep their ids, those of the others get new ones, and all references lead to the same
    /// rows as before. Blobs that a row leads to are copied. A table of a single row must be the same in all.
    ///
    /// Cost: as opening each for reading, one after another, and inserting all rows.
    ///
    /// # Errors
    /// `SchemaMismatch` if the schemas differ, showing where; `Unique` if two rows have the same key in a unique
    /// index, naming both and their files; `Invalid` if single rows differ, no file is given, or ids don't fit
    /// behind each other; `InUse` if there is a file `to`; those of [`open_read_only`](Self::open_read_only); `Io`.
    /// Nothing is left of the new file then.
    pub fn merge<P: AsRef<Path>>(&self, from: &[P], to: impl AsRef<Path>) -> Result<Merged> {
        let located: Result<Vec<_>> = from.iter().map(|path| locate(path.as_ref())).collect();
        let located = located?;
        let from: Vec<_> =
            located.iter().map(|(directory, name)| (&**directory, name.as_str())).collect();
        let to = locate(to.as_ref())?;
        self.merge_in(&from, (to.0, &to.1), Arc::new(SystemClock))
    }

    /// As [`Self::merge`], in any directories, with any clock.
    ///
    /// # Errors
    /// As [`Self::merge`].
    pub fn merge_in(
        &self,
        from: &[(&dyn Directory, &str)],
        (to, new_name): (Arc<dyn Directory>, &str),
        clock: Arc<dyn Clock>,
    ) -> Result<Merged> {
        if from.is_empty() {
            return Err(Error::invalid("there is nothing to merge: name at least one file"));
        }
        let names = Names::new(&to, new_name, "merge", &*clock)?;
        let options = Self::new().background(false).memory(self.budget());
        let database =
            options.open_in(to, names.temporary(), clock).map_err(|e| names.explain(e))?;
        let mut merging = Merging { files: Vec::new(), merged: Merged::default() };
        for &(directory, name) in from {
            let shown = directory.display(name);
            let snapshot = self.open_read_only_in(directory, name)?.read();
            merging
                .file(&database, &shown, &snapshot)
                .map_err(|error| error.within(format_args!("nothing was written: {shown}")))
                .map_err(|error| names.explain(error))?;
        }
        database.close().map_err(|error| names.explain(error))?;
        names.give()?;
        Ok(merging.merged)
    }
}

/// What has been merged so far.
struct Merging {
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
            let mut source = Source { shown, snapshot, spans, blobs: HashMap::new() };
            for table in schema.tables() {
                match table.single_row {
                    true => self.single(tx, &mut source, table)?,
                    false => self.rows(tx, &mut source, table)?,
                }
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
            let values = self.values(tx, source, table, &row)?;
            let id = RowId(row.id().0 + offset);
            let inserted = match has_erased {
                true => tx.restore(&Event::Insert { table: table.number, id, values: &values }),
                false => tx.insert_at(table.number, id, &values),
            };
            inserted.map_err(|error| {
                self.explain(tx, (source.shown, row.id()), table, &values, error)
            })?;
            self.merged.rows += 1;
        }
        // No id is given out again that a row had which is gone.
        match (offset + next).checked_sub(1).map(RowId) {
            Some(last) if tx.view().table(table.number)?.next_id() <= last.0 => {
                tx.insert_zero(table.number, last)?;
                tx.delete(table.number, last)
            }
            _ => Ok(()),
        }
    }

    /// Gives the values of a row as they are in the new database.
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
                    let (offset, next) = source.spans.get(&to).copied().unwrap_or_default();
                    match id.0 < next {
                        true => ValueRef::Reference(RowId(id.0 + offset)),
                        false => {
                            self.merged.lost_references += 1;
                            ValueRef::Null
                        }
                    }
                }
                (ValueRef::Blob(blob), _) => ValueRef::Blob(source.copy(tx, blob)?),
                (value, _) => value,
            });
        }
        Ok(values)
    }

    /// Takes the row of a table that has one: it must be the same in all files.
    fn single(
        &mut self,
        tx: &mut Transaction<'_>,
        source: &mut Source<'_>,
        table: &Table,
    ) -> Result<()> {
        let row = source.snapshot.table(table.number)?.single()?;
        if let [first, .., _] = self.files.as_slice() {
            let view = tx.view().table(table.number)?;
            let ours = view.single()?;
            for field in &table.fields {
                let (theirs, ours) = (row.value(field.number), ours.value(field.number));
                let is_same = theirs == ours && !matches!(theirs, ValueRef::Blob(_));
                if !is_same {
                    return Err(Error::invalid(format!(
                        "table `{}` has a single row, whose `{}` is {} there and {} in {}: make them the \
                         same first",
                        table.name,
                        field.name,
                        text(theirs),
                        text(ours),
                        first.shown
                    )));
                }
            }
            return Ok(());
        }
        let values = self.values(tx, source, table, &row)?;
        let id = tx.view().table(table.number)?.single()?.id();
        for (field, value) in table.fields.iter().zip(values) {
            let (table, field) = (table.number, field.number);
            tx.restore(&Event::Update { table, id, field, value })?;
        }
        self.merged.rows += 1;
        Ok(())
    }

    /// Names both rows and files, if two rows have the same key.
    fn explain(
        &self,
        tx: &Transaction<'_>,
        (shown, id): (&str, RowId),
        table: &Table,
        values: &[ValueRef<'_>],
        error: Error,
    ) -> Error {
        let found = match error.kind() {
            ErrorKind::Unique => same_key(tx, table, values),
            _ => return error.within(format_args!("row {} of table `{}`", id.0, table.name)),
        };
        let Ok(Some((index, key, other))) = found else { return error };
        let offset = |file: &&File| file.offsets.get(&table.number).copied().unwrap_or_default();
        // The one being merged is the last, and none of its rows has a key twice.
        let before = self.files.split_last().map_or(&[][..], |(_, before)| before);
        let Some(file) = before.iter().rev().find(|file| offset(file) <= other.0) else {
            return error;
        };
        Error::new(
            ErrorKind::Unique,
            format!(
                "index `{index}`: {key} is the key of row {} of `{}` in {shown}, and of row {} in {}: a key can \
                 be there only once, so change or delete one of them first",
                id.0,
                table.name,
                other.0 - offset(&file),
                file.shown
            ),
        )
    }
}

impl Source<'_> {
    /// Copies a blob, once; gives its new number.
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

/// Refuses a schema that isn't the first file's.
fn same_schema(first: &str, ours: &Schema, theirs: &Schema) -> Result<()> {
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

/// Gives where the ids of a table begin in the new database, and how many were given out in the file.
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

/// Finds the row that has a key of these values already: the index, the key as text, and its id.
fn same_key(
    tx: &Transaction<'_>,
    table: &Table,
    values: &[ValueRef<'_>],
) -> Result<Option<(String, String, RowId)>> {
    let schema = tx.view().schema();
    for index in schema.indexes().iter().filter(|index| index.table == table.number && index.unique)
    {
        let place = |number| table.fields.iter().position(|field| field.number == number);
        let key: Vec<_> =
            index.fields.iter().filter_map(|&number| values.get(place(number)?).copied()).collect();
        if key.contains(&ValueRef::Null) {
            continue;
        }
        if let Some(row) = tx.view().index(index.number)?.first(&key)? {
            let texts: Vec<_> = key.into_iter().map(text).collect();
            return Ok(Some((index.name.clone(), texts.join(", "), row.id())));
        }
    }
    Ok(None)
}

fn text(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    // A text takes all of it.
    let _infallible = write_value(&mut text, value);
    text
}
