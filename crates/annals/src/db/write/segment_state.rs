//! Writing the state itself: schema, blobs and rows as ordinary events, in one transaction, from which
//! replay makes the same store as from all that was before.
//!
//! ```text
//! 1. the commands of the schema, all of them and in their order: so all numbers are as they were
//! 2. the blobs that a row leads to, with their bytes; an empty one in the place of each other, so that
//!    numbers stay what they are
//! 3. of each table: its next id (a row that is made and deleted), then its rows with their ids
//! ```
//!
//! A command that makes a table one of a single row needs the row to be there: it is made before that
//! command, without values, and its fields are set in 3.

use std::collections::BTreeMap;

use annals_schema::{Blob, Command, FieldNumber, RowId, Schema, TableNumber, Type, ValueRef};

use crate::db::present::snapshot::Snapshot;
use crate::event::{self, Event, MAX_PIECE};
use crate::journal::Writer;
use crate::journal::segments::Place;
use crate::store::{BlobPiece, TableView};
use crate::{Error, ErrorKind, Result};

/// Writes the state that a snapshot shows; returns where its blobs are then. `last_blob` is the number of
/// the last one, and `segment` is the number of the segment that is written.
///
/// # Errors
/// `Corrupt`, `PageLost`, `Io`.
pub fn write_state(
    writer: &mut Writer,
    snapshot: &Snapshot,
    last_blob: u64,
    segment: u64,
) -> Result<Vec<(Blob, BlobPiece)>> {
    let mut state =
        StateWriter { writer, snapshot, schema: Schema::default(), placeholders: BTreeMap::new() };
    state.schema()?;
    let moved = state.blobs(last_blob, segment)?;
    state.rows()?;
    Ok(moved)
}

struct StateWriter<'w> {
    writer: &'w mut Writer,
    snapshot: &'w Snapshot,
    /// The schema as it is with the commands that were written.
    schema: Schema,
    /// The rows that were made for tables that were once of a single row.
    placeholders: BTreeMap<TableNumber, RowId>,
}

impl StateWriter<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.writer.event(&self.schema, event)
    }

    fn schema(&mut self) -> Result<()> {
        let whole = std::sync::Arc::clone(self.snapshot.schema());
        for command in whole.commands() {
            match *command {
                Command::SetSingleRow { table, single: true } => self.place_holder(table)?,
                Command::DropTable { table } => {
                    self.placeholders.remove(&table);
                }
                _ => {}
            }
            self.event(&Event::Schema(command))?;
            self.schema.apply(command.clone())?;
        }
        let left =
            self.placeholders.iter().map(|(table, id)| (*table, *id)).filter(|(table, _)| {
                self.schema.table(*table).is_some_and(|table| !table.single_row)
            });
        let left: Vec<_> = left.collect();
        for (table, id) in left {
            self.event(&Event::Delete { table, id })?;
        }
        Ok(())
    }

    /// Makes the row without which a table can't be made one of a single row.
    fn place_holder(&mut self, table: TableNumber) -> Result<()> {
        if self.placeholders.contains_key(&table) {
            return Ok(());
        }
        let mut id = RowId(0);
        if let Ok(view) = self.snapshot.table(table)
            && view.schema().single_row
        {
            id = view.single()?.id();
            self.next_id(&view)?;
        }
        self.placeholders.insert(table, id);
        self.event(&Event::InsertVector { table, id, count: 1 })
    }

    /// Inserts and deletes the row of the largest id that a table ever had, unless it exists.
    fn next_id(&mut self, view: &TableView<'_>) -> Result<()> {
        let table = view.schema().number;
        match view.next_id().checked_sub(1).map(RowId) {
            Some(id) if !view.contains(id)? => {
                self.event(&Event::InsertVector { table, id, count: 1 })?;
                self.event(&Event::Delete { table, id })
            }
            _ => Ok(()),
        }
    }

    fn blobs(&mut self, last: u64, segment: u64) -> Result<Vec<(Blob, BlobPiece)>> {
        let live = live_blobs(self.snapshot)?;
        let mut moved = Vec::new();
        let mut bytes = vec![0; MAX_PIECE];
        for blob in (1..=last).map(Blob) {
            let mut add = |writer: &mut Writer, offset, bytes: &[u8]| -> Result<()> {
                let position = Place::new(segment, writer.piece(blob, offset, bytes)?).0;
                let len = u32::try_from(bytes.len()).map_err(|_| Error::invalid("a long piece"))?;
                moved.push((blob, BlobPiece { offset, position, len }));
                Ok(())
            };
            if live.binary_search(&blob).is_err() {
                add(self.writer, 0, &[])?;
                continue;
            }
            let (mut reader, mut offset) = (self.snapshot.blob(blob)?, 0);
            loop {
                let count = reader.read_at(offset, &mut bytes)?;
                if count > 0 || offset == 0 {
                    add(self.writer, offset, bytes.get(..count).unwrap_or_default())?;
                }
                offset += count as u64;
                if count < MAX_PIECE {
                    break;
                }
            }
        }
        Ok(moved)
    }

    fn rows(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let whole = std::sync::Arc::clone(snapshot.schema());
        for table in whole.tables() {
            let view = snapshot.table(table.number)?;
            if table.single_row {
                let row = view.single()?;
                for field in &table.fields {
                    let (field, value) = (field.number, row.value(field.number));
                    self.event(&Event::Update { table: table.number, id: row.id(), field, value })?;
                }
                continue;
            }
            self.next_id(&view)?;
            for row in view.rows() {
                let row = row?;
                let values: Vec<_> =
                    table.fields.iter().map(|field| row.value(field.number)).collect();
                // An erased value has its own event.
                match event::has_erased(table, &values) {
                    true => {
                        let (table, id) = (table.number, row.id());
                        self.event(&Event::Insert { table, id, values: &values })?;
                    }
                    false => self.writer.insert(table, row.id(), &values)?,
                }
            }
        }
        Ok(())
    }
}

/// Returns the blobs that a row refers to, sorted.
///
/// # Errors
/// `Corrupt`, `PageLost`, `Io`.
pub fn live_blobs(snapshot: &Snapshot) -> Result<Vec<Blob>> {
    let mut live = Vec::new();
    for table in snapshot.schema().tables() {
        let of_blobs = table.fields.iter().filter(|field| field.ty == Type::Blob);
        let fields: Vec<FieldNumber> = of_blobs.map(|field| field.number).collect();
        if fields.is_empty() {
            continue;
        }
        for row in snapshot.table(table.number)?.rows() {
            let row = row?;
            for &field in &fields {
                if let ValueRef::Blob(blob) = row.value(field) {
                    live.push(blob);
                }
            }
        }
    }
    live.sort_unstable();
    live.dedup();
    Ok(live)
}

/// Returns the error that the new segment can't be made. The current one is unchanged, whatever happened to the
/// other.
pub(in crate::db) fn explain(error: Error, shown: &str) -> Error {
    match error.kind() {
        ErrorKind::Poisoned | ErrorKind::UnknownOutcome => {
            Error::new(ErrorKind::Io, format!("{shown}: can't begin a new segment: {error}"))
        }
        _ => error.within(format_args!("{shown}: can't begin a new segment, nothing was changed")),
    }
}
