//! Makes entries of events.
//!
//! Each event becomes an entry, an insert one for the row and one for each field that isn't zero. If a row gets an id
//! that was used before, all fields are written. joedb's interpreter and its pack tool keep the old row's values
//! there.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Seek, Write};

use annals::event::{Event, Vector};
use annals::{
    Blob, Command, Committed, Error, ErrorKind, Field, FieldNumber, Result, RowId, Schema, Sink,
    Snapshot, Table, TableNumber, Type, Value, ValueRef,
};

use super::format::{Cell, Entry};
use super::kind;
use super::live::Live;
use super::losses::{Loss, Losses, full_name};
use super::names::Names;
use super::numbers::{find_field, find_table, number_of, place_of, row_number};
use super::plan::Plan;
use super::unset::Unset;
use super::writer::Writer;
use crate::text::count;

/// A table with larger ids than this, and far fewer rows, makes joedb take much memory.
const SPARSE: u64 = 1 << 24;

/// The counts of an export.
#[derive(Debug)]
pub struct Exported {
    /// How many events.
    pub events: u64,
    /// Of how many transactions.
    pub transactions: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// How to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// True if values that joedb can't hold are an error.
    pub strict: bool,
    /// True if the time of each commit is written, as a timestamp at its end.
    pub times: bool,
    /// True if a row of zeros is written without its values also where the id was used before: as in joedb's files.
    pub same_bytes: bool,
}

/// Takes the history of a database and writes it as a joedb file.
pub struct Export<'o, W> {
    writer: Writer<W>,
    /// The new file's name in messages.
    shown: String,
    losses: Losses,
    manner: Manner,
    tables: BTreeMap<TableNumber, State>,
    names: Names<TableNumber>,
    /// How many tables were created.
    created: u32,
    /// Where the bytes of each blob are in the new file, and how many.
    blobs: HashMap<Blob, (u64, u64)>,
    /// Opens the database, once a blob is to be read.
    open: &'o dyn Fn() -> Result<Snapshot>,
    snapshot: Option<Snapshot>,
    /// The summary of the history before.
    plan: Plan,
    /// The number of remaining rows of a vector whose entry has begun.
    more: u64,
    /// The timestamp that the last entry is.
    timestamp: Option<i64>,
    /// The rows of zeros that were just inserted at ids that were used before.
    unset: Option<Unset>,
    /// How many such rows have fields that nothing sets.
    bare: u64,
    exported: Exported,
}

/// The state of a table.
#[derive(Default)]
struct State {
    name: String,
    rows: Live,
    /// How many fields it ever had.
    fields: u32,
    names: Names<FieldNumber>,
}

impl<'o, W: Write> Export<'o, W> {
    /// Begins a file, which messages call by this name, for a history that `plan` has seen.
    ///
    /// # Errors
    /// `Io`: the head can't be written.
    pub fn new(
        output: W,
        shown: String,
        plan: Plan,
        manner: Manner,
        open: &'o dyn Fn() -> Result<Snapshot>,
    ) -> Result<Self> {
        Ok(Self {
            writer: Writer::new(output).map_err(|error| unwritable(&shown, error))?,
            shown,
            losses: Losses::new(manner.strict),
            manner,
            tables: BTreeMap::new(),
            names: Names::default(),
            created: 0,
            blobs: HashMap::new(),
            open,
            snapshot: None,
            plan,
            more: 0,
            timestamp: None,
            unset: None,
            bare: 0,
            exported: Exported { events: 0, transactions: 0, notes: Vec::new() },
        })
    }

    /// Returns the number of rows of the vector that begins here with `count` rows; `None` if it has begun before.
    fn begin_vector(&mut self, count: u64) -> Result<Option<u64>> {
        let has_begun = self.more > 0;
        // This event is counted already.
        let planned = self.plan.totals.get(&(self.exported.events - 1)).copied();
        let total = if has_begun { self.more } else { planned.unwrap_or(count) };
        self.more = total.checked_sub(count).ok_or_else(|| self.changed())?;
        Ok((!has_begun).then_some(total))
    }

    #[cold]
    fn changed(&self) -> Error {
        let shown = &self.shown;
        Error::new(
            ErrorKind::Busy,
            format!(
                "{shown}: not written: the database's history was changed during the export, which reads it twice; \
                 run the export again"
            ),
        )
    }

    fn write(&mut self, entry: Entry<'_>) -> Result<()> {
        self.writer.entry(entry).map_err(|error| unwritable(&self.shown, error))
    }

    fn state(&mut self, table: TableNumber) -> &mut State {
        self.tables.entry(table).or_default()
    }

    fn command(&mut self, schema: &Schema, command: &Command) -> Result<()> {
        match command {
            Command::CreateTable { name } => {
                let number = TableNumber(self.created);
                let state = State { name: name.clone(), ..State::default() };
                self.tables.insert(number, state);
                self.created += 1;
                let name = self.name_table(number, name)?;
                self.write(Entry::CreateTable { name: name.as_bytes() })
            }
            Command::DropTable { table } => {
                self.tables.remove(table);
                self.names.drop(table);
                self.write(Entry::DropTable { table: number_of(*table) })
            }
            Command::RenameTable { table, name } => {
                self.state(*table).name.clone_from(name);
                let name = self.name_table(*table, name)?;
                self.write(Entry::RenameTable { table: number_of(*table), name: name.as_bytes() })
            }
            Command::AddField { .. } => self.add_field(schema, command),
            Command::DropField { table, field } => {
                self.state(*table).names.drop(field);
                self.write(Entry::DropField { table: number_of(*table), field: place_of(*field) })
            }
            Command::RenameField { table, field, name } => {
                let owner = find_table(schema, *table)?;
                let name = self.name_field(owner, *field, name)?;
                let (table, field) = (number_of(*table), place_of(*field));
                self.write(Entry::RenameField { table, field, name: name.as_bytes() })
            }
            Command::Custom { name } => self.write(Entry::Custom(name.as_bytes())),
            Command::CreateIndex { .. }
            | Command::RenameVariant { .. }
            | Command::AddVariant { .. }
            | Command::DropVariant { .. }
            | Command::DropIndex { .. }
            | Command::SetSingleRow { .. }
            | Command::SetHistoryIndex { .. } => self.losses.note_command(schema, command),
        }
    }

    /// Returns the name of a table in the new file.
    fn name_table(&mut self, table: TableNumber, name: &str) -> Result<String> {
        let given = self.names.give(table, name);
        let place = (table, FieldNumber(u32::MAX));
        let loss = u64::from(given != name);
        self.losses.note(Loss::Name, place, || format!("table {name}"), loss)?;
        Ok(given)
    }

    /// Returns the name of a field in the new file.
    fn name_field(&mut self, table: &Table, field: FieldNumber, name: &str) -> Result<String> {
        let given = self.state(table.number).names.give(field, name);
        let named = || format!("{}.{name}", table.name);
        let loss = u64::from(given != name);
        self.losses.note(Loss::Name, (table.number, field), named, loss)?;
        Ok(given)
    }

    /// Adds a field, and writes its default to the existing rows.
    fn add_field(&mut self, schema: &Schema, command: &Command) -> Result<()> {
        let Command::AddField { table, name, ty, nullable, default } = command else {
            return Ok(());
        };
        let owner = find_table(schema, *table)?;
        let state = self.state(*table);
        let field = Field {
            number: FieldNumber(state.fields),
            name: name.clone(),
            ty: *ty,
            nullable: *nullable,
            default: default.clone(),
        };
        state.fields += 1;
        let named = || full_name(owner, &field);
        let place = (*table, field.number);
        let kind = kind::of_type(*ty);
        let loss = match ty {
            Type::Reference(..) => Loss::Rule,
            _ => Loss::Type(ty.name(), kind.name()),
        };
        self.losses.note(loss, place, named, u64::from(!kind::is_joedbs(*ty)))?;
        let target = if let Type::Reference(target, _) = ty { number_of(*target) } else { 0 };
        let owner_number = number_of(*table);
        let given = self.name_field(owner, field.number, name)?;
        self.write(Entry::AddField { table: owner_number, name: given.as_bytes(), kind, target })?;
        let default = field.existing_value();
        let cell = to_cell(owner, &field, default.as_ref(), &self.blobs)?;
        let rows = self.state(*table).rows.len();
        if matches!(default, Value::Null) && !ty.carries_null() {
            self.losses.note(Loss::Null, place, named, rows)?;
        }
        if cell.is_zero() {
            return Ok(());
        }
        let runs: Vec<_> = self.state(*table).rows.runs().collect();
        for id in runs.into_iter().flatten() {
            let (row, field) = (row_number(owner, RowId(id))?, place_of(field.number));
            self.write(Entry::Update { table: owner_number, row, field, value: cell })?;
        }
        Ok(())
    }

    fn insert(&mut self, table: &Table, id: RowId, values: &[ValueRef<'_>]) -> Result<()> {
        let (number, row) = (number_of(table.number), row_number(table, id)?);
        let rows = &mut self.state(table.number).rows;
        let is_reused = id.0 < rows.next;
        rows.insert(id.0, 1);
        self.write(Entry::Insert { table: number, row })?;
        let pairs = || table.fields.iter().zip(values);
        let mut says_all = false;
        if is_reused {
            for (field, value) in pairs() {
                says_all |= !to_cell(table, field, *value, &self.blobs)?.is_zero();
            }
            self.unset = (!says_all).then(|| Unset::new(table, id, 1));
        }
        for (field, value) in pairs() {
            let value = self.cell(table, field, *value)?;
            if says_all || !value.is_zero() {
                self.write(Entry::Update {
                    table: number,
                    row,
                    field: place_of(field.number),
                    value,
                })?;
            }
        }
        Ok(())
    }

    fn insert_vector(&mut self, table: &Table, id: RowId, count: u64) -> Result<()> {
        row_number(table, RowId(id.0.saturating_add(count - 1)))?;
        let rows = &mut self.state(table.number).rows;
        let reused = rows.next.saturating_sub(id.0).min(count);
        rows.insert(id.0, count);
        for field in table.fields.iter().filter(|field| field.nullable) {
            if !field.ty.carries_null() {
                let place = (table.number, field.number);
                self.losses.note(Loss::Null, place, || full_name(table, field), count)?;
            }
        }
        if let Some(count) = self.begin_vector(count)? {
            let (table, row) = (number_of(table.number), row_number(table, id)?);
            self.write(Entry::InsertVector { table, row, count })?;
        }
        self.unset = Unset::of_zeros(table, id, count, reused);
        Ok(())
    }

    /// Writes zeros to rows that an event doesn't set, if there are any: joedb would show the values of deleted rows
    /// there.
    fn settle(&mut self, schema: &Schema, event: Option<&Event<'_>>) -> Result<()> {
        if let (Some(unset), Some(event)) = (&mut self.unset, event) {
            // No other entry may be among the values of a vector.
            let goes_on = self.more > 0 && matches!(event, Event::UpdateVector { .. });
            if goes_on || unset.is_set_by(schema, event)? {
                return Ok(());
            }
        }
        let Some(Unset { table, first, count, fields }) = self.unset.take() else { return Ok(()) };
        if self.manner.same_bytes {
            self.bare += if fields.is_empty() { 0 } else { count };
            return Ok(());
        }
        let owner = find_table(schema, table)?;
        let (table, row) = (number_of(table), row_number(owner, first)?);
        for number in fields {
            let known = find_field(owner, number)?;
            let (field, kind, zero) =
                (place_of(number), kind::of_type(known.ty), known.zero_value());
            let value = to_cell(owner, known, zero.as_ref(), &self.blobs)?;
            if count == 1 {
                self.write(Entry::Update { table, row, field, value })?;
                continue;
            }
            self.write(Entry::UpdateVector { table, row, field, kind, count })?;
            for _ in 0..count {
                let written = self.writer.value(value);
                written.map_err(|error| unwritable(&self.shown, error))?;
            }
        }
        Ok(())
    }

    fn update_vector(
        &mut self,
        table: &Table,
        id: RowId,
        field: &Field,
        values: Vector<'_>,
    ) -> Result<()> {
        let count = values.len(field.ty).unwrap_or_default() as u64;
        if let Some(count) = self.begin_vector(count)? {
            let (table, row) = (number_of(table.number), row_number(table, id)?);
            let (field, kind) = (place_of(field.number), kind::of_type(field.ty));
            self.write(Entry::UpdateVector { table, row, field, kind, count })?;
        }
        for value in values.iter(field.ty) {
            let value = self.cell(table, field, value)?;
            self.writer.value(value).map_err(|error| unwritable(&self.shown, error))?;
        }
        Ok(())
    }

    /// Writes a whole blob where its first piece is.
    fn blob(&mut self, blob: Blob, first: &[u8]) -> Result<()> {
        if self.snapshot.is_none() {
            self.snapshot = Some((self.open)()?);
        }
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        let mut reader = snapshot.blob(blob)?;
        let size = reader.len();
        self.write(Entry::Blob { size })?;
        self.blobs.insert(blob, (self.writer.position(), size));
        let mut first = first;
        let bytes: &mut dyn Read =
            if size == first.len() as u64 { &mut first } else { &mut reader };
        self.writer.stream(bytes).map_err(|error| {
            let shown = &self.shown;
            Error::io(format!("{shown}: the bytes of blob:{} can't be copied", blob.0), error)
        })
    }

    /// Returns joedb's value for one of a field; notes where that is null.
    fn cell<'v>(&mut self, table: &Table, field: &Field, value: ValueRef<'v>) -> Result<Cell<'v>> {
        if matches!(value, ValueRef::Null) && !field.ty.carries_null() {
            let place = (table.number, field.number);
            self.losses.note(Loss::Null, place, || full_name(table, field), 1)?;
        }
        to_cell(table, field, value, &self.blobs)
    }
}

impl<W: Write> Sink for Export<'_, W> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.settle(schema, Some(event))?;
        self.timestamp = if let Event::Timestamp(seconds) = *event { Some(seconds) } else { None };
        self.exported.events += 1;
        if self.more > 0
            && !matches!(event, Event::InsertVector { .. } | Event::UpdateVector { .. })
        {
            return Err(self.changed());
        }
        match *event {
            Event::Schema(command) => self.command(schema, command),
            Event::Insert { table, id, values } => {
                self.insert(find_table(schema, table)?, id, values)
            }
            Event::Update { table, id, field, value } => {
                let table = find_table(schema, table)?;
                let field = find_field(table, field)?;
                let value = self.cell(table, field, value)?;
                let (row, field) = (row_number(table, id)?, place_of(field.number));
                self.write(Entry::Update { table: number_of(table.number), row, field, value })
            }
            Event::Delete { table, id } => {
                self.state(table).rows.remove(id.0, 1);
                let row = row_number(find_table(schema, table)?, id)?;
                self.write(Entry::Delete { table: number_of(table), row })
            }
            Event::InsertVector { table, id, count } => {
                self.insert_vector(find_table(schema, table)?, id, count)
            }
            Event::UpdateVector { table, id, field, values } => {
                let table = find_table(schema, table)?;
                self.update_vector(table, id, find_field(table, field)?, values)
            }
            Event::DeleteVector { table, id, count } => {
                self.state(table).rows.remove(id.0, count);
                let row = row_number(find_table(schema, table)?, id)?;
                self.write(Entry::DeleteVector { table: number_of(table), row, count })
            }
            Event::Blob { blob, offset: 0, bytes, .. } => self.blob(blob, bytes),
            // It went with the first piece.
            Event::Blob { .. } => Ok(()),
            Event::ValidData => self.write(Entry::ValidData),
            Event::Comment(text) => self.write(Entry::Comment(text.as_bytes())),
            Event::Timestamp(seconds) => self.write(Entry::Timestamp(seconds)),
        }
    }

    fn commit(&mut self, schema: &Schema, committed: &Committed) -> Result<()> {
        self.settle(schema, None)?;
        self.exported.transactions += 1;
        let seconds = committed.time.seconds();
        if self.manner.times && self.timestamp.take() != Some(seconds) {
            self.write(Entry::Timestamp(seconds))?;
        }
        Ok(())
    }
}

impl<W: Write + Seek> Export<'_, W> {
    /// Ends the file; returns it for the caller to flush, with the counts.
    ///
    /// # Errors
    /// `Io`: the end can't be written.
    pub fn finish(self) -> Result<(W, Exported)> {
        let Self { writer, shown, losses, mut exported, tables, bare, .. } = self;
        exported.notes.extend(losses.lines());
        if bare > 0 {
            exported.notes.push(format!(
                "{} of zeros at ids that were used before: joedb's interpreter and joedb_pack show there what the \
                 deleted rows had; without --same-bytes the zeros are written",
                count(bare, "row")
            ));
        }
        for State { name, rows: Live { next, inserted, .. }, .. } in tables.values() {
            if *next > SPARSE && *next / 16 > *inserted {
                let last = next - 1;
                exported.notes.push(format!(
                    "table {name}: joedb takes memory for each id up to the largest, which is {last}"
                ));
            }
        }
        let output = writer.finish().map_err(|error| unwritable(&shown, error))?;
        Ok((output, exported))
    }
}

/// Returns joedb's value for one of a field.
fn to_cell<'v>(
    table: &Table,
    field: &Field,
    value: ValueRef<'v>,
    blobs: &HashMap<Blob, (u64, u64)>,
) -> Result<Cell<'v>> {
    kind::to_cell(field.ty, value, |blob| blobs.get(&blob).copied()).ok_or_else(|| {
        let (name, what) = (full_name(table, field), crate::text::value_text(value));
        Error::invalid(format!("{name}: joedb's files have no room for the value {what}"))
    })
}

#[cold]
fn unwritable(shown: &str, error: io::Error) -> Error {
    Error::io(format!("cannot write {shown}"), error)
}
