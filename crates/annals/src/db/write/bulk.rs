//! Bulk data in a transaction: runs of rows that are inserted, updated and deleted as wholes, and blobs.
//!
//! Both are written to the journal in pieces, so that their length costs no memory. All of a run is checked before
//! anything of it is written: a statement that fails leaves nothing.

use std::io::Read;
use std::ops::Range;

use crate::db::write::{references, statement};
use annals_schema::{Blob, FieldNumber, RowId, TableNumber};

use crate::db::write::blobs::BlobReader;
use crate::db::write::core::Writing;
use crate::db::write::transaction::Transaction;
use crate::event::{Event, MAX_PIECE, MAX_VECTOR};
use crate::journal::segments::Place;
use crate::store::{Store, Values, View};
use crate::{Error, Result};

/// The most rows that a statement inserts without values.
const MAX_ROWS: u64 = 1 << 26;

impl Transaction<'_> {
    /// Inserts rows of zero values (0, false, empty; null where that is allowed) with the table's
    /// next ids, and returns the first. Unique keys are checked at commit.
    ///
    /// # Errors
    /// `NotFound`: no such table; `Invalid`: it has a single row, or no more ids.
    pub fn insert_vector(&mut self, table: TableNumber, count: u64) -> Result<RowId> {
        let id = self.next_id_for(table, count)?;
        self.insert_vector_at(table, id, count)?;
        Ok(id)
    }

    /// Inserts rows of zero values at free ids from `id` on, at most 67,108,864 in a statement. Unique
    /// keys are checked at commit.
    ///
    /// Cost: a byte in the journal for each 16 rows.
    ///
    /// # Errors
    /// As [`Self::insert_vector`]; `Invalid`: too many rows; `InUse`: a row has one of the ids (the message names the
    /// first).
    pub fn insert_vector_at(&mut self, table: TableNumber, id: RowId, count: u64) -> Result<()> {
        self.usable()?;
        statement::change(self, |store| store.check_free(table, id, count))?;
        if count > MAX_ROWS {
            return Err(Error::invalid(format!(
                "cannot insert {count} rows without values: a statement inserts at most {MAX_ROWS}; \
                 insert fewer rows at a time"
            )));
        }
        for (id, count) in pieces(id, count) {
            statement::change(self, |store| store.insert_vector(table, id, count, true))?;
            self.note(&Event::InsertVector { table, id, count })?;
        }
        Ok(())
    }

    /// Inserts rows with the table's next ids: the values of each field, in the order of the schema. All have the
    /// same length. Returns the first row's id. Unique keys and references are checked at commit.
    ///
    /// Cost: for a field of a type of fixed size a copy for each page.
    ///
    /// # Errors
    /// `NotFound`: no such table; `Invalid`: not one run of values for each field, or of different
    /// lengths, or a value that doesn't fit its field; or the table has a single row, or no more
    /// ids.
    pub fn insert_rows(&mut self, table: TableNumber, fields: &[Values<'_>]) -> Result<RowId> {
        self.usable()?;
        let run = self.check_fields(table, fields)?;
        let id = self.next_id_for(table, run.count)?;
        self.insert_checked(table, id, &run, fields)?;
        Ok(id)
    }

    /// Inserts rows at free ids from `id` on.
    ///
    /// # Errors
    /// As [`Self::insert_rows`]; `InUse`: a row has one of the ids.
    pub fn insert_rows_at(
        &mut self,
        table: TableNumber,
        id: RowId,
        fields: &[Values<'_>],
    ) -> Result<()> {
        self.usable()?;
        let run = self.check_fields(table, fields)?;
        self.insert_checked(table, id, &run, fields)
    }

    /// Inserts rows whose values were checked: as many at a time as leave most of the memory free.
    fn insert_checked(
        &mut self,
        table: TableNumber,
        id: RowId,
        run: &CheckedRows,
        fields: &[Values<'_>],
    ) -> Result<()> {
        statement::change(self, |store| store.check_free(table, id, run.count))?;
        let most = self.room.rows_of(run.bytes, run.count);
        self.wholly(|tx| {
            for begin in (0..run.count).step_by(usize::try_from(most).unwrap_or(usize::MAX)) {
                tx.insert_part(table, id, begin..run.count.min(begin + most), run, fields)?;
                tx.make_room()?;
            }
            Ok(())
        })
    }

    /// Inserts a part of the rows; `id` is that of the first row of all.
    fn insert_part(
        &mut self,
        table: TableNumber,
        id: RowId,
        part: Range<u64>,
        run: &CheckedRows,
        fields: &[Values<'_>],
    ) -> Result<()> {
        let (first, count) = (RowId(id.0 + part.start), part.end - part.start);
        for (id, count) in pieces(first, count) {
            self.writing.store.add_rows(table, id, count)?;
            self.note(&Event::InsertVector { table, id, count })?;
        }
        let place = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
        for (field, values) in run.filled.iter().zip(fields) {
            // A field of zeros stays as inserted.
            if let Some(field) = *field {
                let to = PartOf { id, range: place(part.start)..place(part.end), are_new: true };
                self.write_pieces(table, field, values, to)?;
            }
        }
        self.writing.store.index_rows(table, first, count)
    }

    /// Runs a change that must apply as a whole or not at all. If it fails, or if reading the program's values
    /// panics, the transaction can only be rolled back.
    pub(in crate::db) fn wholly(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.broken = true;
        let changed = change(self);
        self.broken = changed.is_err();
        changed
    }

    /// Sets one field of the rows with ids from `id` on: as many as there are values. Unique keys and
    /// references are checked at commit.
    ///
    /// `values` are a slice of the field's type, of `Option`s of it, or an
    /// [`event::Vector`](crate::event::Vector).
    ///
    /// Cost: for a field of a type of fixed size, which no index is on, a copy for each page.
    ///
    /// # Errors
    /// `NotFound`: no such table or field, or one of the rows doesn't exist (the message names the first); `Invalid`:
    /// a value that doesn't fit the field.
    pub fn update_vector<'v>(
        &mut self,
        table: TableNumber,
        id: RowId,
        field: FieldNumber,
        values: impl Into<Values<'v>>,
    ) -> Result<()> {
        self.ready()?;
        let values = values.into();
        let checked =
            statement::change(self, |store| store.check_vector(table, id, field, &values))?;
        let count = usize::try_from(checked.count).unwrap_or(usize::MAX);
        let to = PartOf { id, range: 0..count, are_new: false };
        self.wholly(|tx| tx.write_pieces(table, field, &values, to))
    }

    /// Deletes rows with ids from `id` on, the last one first, and rows that enforced references delete with them
    /// (see [`Self::delete`]).
    ///
    /// # Errors
    /// `NotFound`: no such table, or one of the rows doesn't exist (the message names the first); `Invalid`: the
    /// table has a single row.
    pub fn delete_vector(&mut self, table: TableNumber, id: RowId, count: u64) -> Result<()> {
        self.ready()?;
        statement::change(self, |store| store.check_there(table, id, count))?;
        references::delete_referring(self, table, id, count)?;
        let pieces: Vec<_> = pieces(id, count).collect();
        for (id, count) in pieces.into_iter().rev() {
            statement::change(self, |store| store.delete_vector(table, id, count))?;
            self.note(&Event::DeleteVector { table, id, count })?;
        }
        Ok(())
    }

    /// Writes all bytes of a reader as a new blob, and returns its number, to be stored in a field.
    ///
    /// The bytes go through memory in pieces of 64 KiB, so that a blob may be larger than memory. If the reader
    /// fails, no number is returned: pieces that were written already stay in the journal without references, and the
    /// transaction can continue.
    ///
    /// # Errors
    /// `Io` if the reader fails, or if the journal can't be written (then all that is left is to roll
    /// back).
    pub fn write_blob(&mut self, mut reader: impl Read) -> Result<Blob> {
        self.usable()?;
        let written = self.stream_blob(&mut reader);
        // Only `append_blob` adds to a blob that was written.
        if written.is_err() {
            self.writing.store.end_blob();
        }
        written
    }

    fn stream_blob(&mut self, reader: &mut dyn Read) -> Result<Blob> {
        let (mut bytes, mut offset) = (Vec::new(), 0);
        let mut written = None;
        loop {
            bytes.clear();
            Read::take(&mut *reader, MAX_PIECE as u64)
                .read_to_end(&mut bytes)
                .map_err(|error| Error::io("can't read what is to be written as a blob", error))?;
            let blob = match written {
                Some(blob) if bytes.is_empty() => return Ok(blob),
                Some(blob) => blob,
                None => self.writing.store.next_blob()?,
            };
            self.write_piece(blob, offset, &bytes)?;
            if bytes.len() < MAX_PIECE {
                return Ok(blob);
            }
            offset += bytes.len() as u64;
            written = Some(blob);
        }
    }

    /// Appends bytes to the blob that this transaction wrote last, and returns its number. (A blob
    /// never changes once its transaction has ended.)
    ///
    /// # Errors
    /// `Invalid` if this transaction wrote no blob yet, or an empty one, or if there are no bytes;
    /// `Io` if the journal can't be written.
    pub fn append_blob(&mut self, bytes: &[u8]) -> Result<Blob> {
        self.usable()?;
        let (blob, mut offset) = match self.writing.store.open_blob() {
            Some((_, 0)) => {
                return Err(Error::invalid(
                    "the blob is empty, and stays so: write a new one with `write_blob`",
                ));
            }
            Some(open) => open,
            None => {
                return Err(Error::invalid(
                    "this transaction has written no blob to append to: begin one with \
                     `write_blob`",
                ));
            }
        };
        if bytes.is_empty() {
            return Err(Error::invalid("there are no bytes to append to the blob"));
        }
        for piece in bytes.chunks(MAX_PIECE) {
            self.write_piece(blob, offset, piece)?;
            offset += piece.len() as u64;
        }
        Ok(blob)
    }

    /// Applies an event of another journal to the store by `apply`, and writes it to the journal.
    ///
    /// # Errors
    /// Those of `apply`; `Io`. Then all that is left is to roll back.
    #[doc(hidden)]
    pub fn take_event(
        &mut self,
        event: &Event<'_>,
        apply: impl FnOnce(&mut Store) -> Result<()>,
    ) -> Result<()> {
        self.usable()?;
        if !event.is_insertion() {
            self.settle()?;
        }
        let applied = apply(&mut self.writing.store);
        self.broken |= applied.is_err();
        applied?;
        self.note(event)
    }

    /// Checks the constraints of a commit.
    ///
    /// # Errors
    /// `Unique`, `Reference`.
    #[doc(hidden)]
    pub fn check_constraints(&self) -> Result<()> {
        self.writing.store.check_constraints()
    }

    /// Adds a piece to a blob, the last one or a new one.
    ///
    /// # Errors
    /// `Invalid`: it is no such blob; `Io`. Then all that is left is to roll back.
    #[doc(hidden)]
    pub fn write_piece(&mut self, blob: Blob, offset: u64, bytes: &[u8]) -> Result<()> {
        let Writing { writer, store, file, .. } = &mut *self.writing;
        let written = writer.piece(blob, offset, bytes).and_then(|position| {
            let place = Place::new(file.segment, position);
            store.add_piece(blob, offset, bytes.len(), place.0)
        });
        self.broken |= written.is_err();
        written
    }

    /// Opens a blob for reading: one that was committed, or that this transaction wrote.
    ///
    /// # Errors
    /// `NotFound`: there is no such blob; `Io`, `Corrupt`: its position can't be loaded.
    pub fn blob(&self, blob: Blob) -> Result<BlobReader<'_>> {
        self.usable()?;
        BlobReader::of_transaction(&self.writing, blob)
    }

    /// Returns the state that this transaction sees, for reading its schema, its tables and its unique indexes: what a load
    /// owes to others isn't settled.
    #[inline]
    pub(crate) fn unsettled(&self) -> &View {
        self.writing.store.unsettled()
    }

    /// Returns the table's next id, if there are `count` more.
    fn next_id_for(&self, table: TableNumber, count: u64) -> Result<RowId> {
        let id = self.unsettled().table(table)?.next_id();
        if id.saturating_add(count.saturating_sub(1)) > RowId::MAX.0 {
            return Err(self.no_next_id(table));
        }
        Ok(RowId(id))
    }

    /// Checks the values of rows to be inserted.
    fn check_fields(&self, table: TableNumber, given: &[Values<'_>]) -> Result<CheckedRows> {
        let store = &self.writing.store;
        let schema = store.unsettled().table(table)?.schema();
        if schema.fields.len() != given.len() {
            let (name, fields, given) = (&schema.name, schema.fields.len(), given.len());
            return Err(Error::invalid(format!(
                "table `{name}` has {fields} fields, but values for {given} were given: pass values for each field"
            )));
        }
        let mut count = None;
        let (mut filled, mut bytes) = (Vec::with_capacity(given.len()), 0_usize);
        for (field, values) in schema.fields.iter().zip(given) {
            let checked = store.check_values(table, field.number, values)?;
            if *count.get_or_insert(checked.count) != checked.count {
                return Err(Error::invalid(format!(
                    "table `{}`: {} values of field `{}` were given, but {} of those before it",
                    schema.name,
                    checked.count,
                    field.name,
                    count.unwrap_or_default(),
                )));
            }
            filled.push((!checked.is_zero).then_some(field.number));
            bytes = bytes.saturating_add(checked.bytes);
        }
        Ok(CheckedRows { count: count.unwrap_or_default(), filled, bytes })
    }

    /// Sets a field of rows, piece by piece, in store and journal; all was checked. If this fails, the
    /// transaction can only be rolled back.
    fn write_pieces(
        &mut self,
        table: TableNumber,
        field: FieldNumber,
        values: &Values<'_>,
        to: PartOf,
    ) -> Result<()> {
        let PartOf { id: first, range, are_new } = to;
        let ty = self
            .writing
            .store
            .unsettled()
            .schema()
            .table(table)
            .and_then(|table| table.field(field));
        let Some(ty) = ty.map(|field| field.ty) else { return Ok(()) };
        let Writing { writer, store, .. } = &mut *self.writing;
        let may_change = values.may_change();
        let touched = &mut self.touched;
        values.each_piece(ty, range, |at, values| {
            if may_change {
                store.check_again(table, field, values)?;
            }
            let id = RowId(first.0 + at as u64);
            if are_new {
                store.fill_rows(table, id, field, values)?;
            } else {
                store.set_rows(table, id, field, values, true)?;
            }
            let (schema, event) =
                (store.unsettled().schema(), Event::UpdateVector { table, id, field, values });
            if let Some(touched) = touched {
                touched.note(schema, &event);
            }
            writer.event(schema, &event)
        })
    }
}

/// The facts of rows whose values were checked.
struct CheckedRows {
    count: u64,
    /// Which of the fields have other values than zeros.
    filled: Vec<Option<FieldNumber>>,
    /// How many bytes all values have.
    bytes: usize,
}

/// A part of a run of rows.
struct PartOf {
    /// The first row of the run.
    id: RowId,
    range: Range<usize>,
    are_new: bool,
}

/// Divides a run of rows into the runs of single events.
fn pieces(id: RowId, count: u64) -> impl Iterator<Item = (RowId, u64)> {
    let end = id.0 + count;
    let step = usize::try_from(MAX_VECTOR).unwrap_or(usize::MAX);
    (id.0..end).step_by(step).map(move |id| (RowId(id), MAX_VECTOR.min(end - id)))
}
