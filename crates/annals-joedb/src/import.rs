//! Makes transactions of entries.
//!
//! Each entry becomes an event at its place. joedb's files have no transactions, but its programs end one with marks:
//! comment, valid data, timestamp. So a commit is made after a timestamp, and after a comment or valid-data mark that
//! no further mark follows; and where a transaction has become long. A commit has the time of the timestamp that ends
//! it, or else of the next one in the file; the clock's after the last one.

use std::borrow::Cow;
use std::io::{BufRead, Seek, SeekFrom};

use annals::event::{Vector, width};
use annals::{
    Blob, Command, Database, Error, ErrorKind, FieldNumber, Result, RowId, TableNumber,
    Transaction, Value, ValueRef,
};

use super::format::{Cell, Context, Entry, HEAD, Kind};
use super::kind;
use super::reader::Reader;
use super::survey::{Survey, Until, left_out, survey};
use super::times::Times;
use crate::text::count;

/// The weight from which a transaction is long: an entry or a value of a vector weighs 1, and so do 64 bytes of a
/// text or of a blob. The weight of an entry doesn't depend on its encoding, so that an exported file is imported
/// with the same transactions.
const LONG: u64 = 1 << 16;
/// So many values of a vector, or bytes of them, are in memory at once.
const PIECE: (usize, usize) = (1024, 1 << 20);
/// So many rows may be inserted as vectors besides one for each byte of the file.
const SPARE_ROWS: u64 = 1 << 16;

/// How to import.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Up to where the file is imported.
    pub until: Until,
    /// True if it continues when something can't be held unchanged.
    pub lossy: bool,
    /// How many rows may be inserted as vectors, if not as many as go with the file's length.
    pub max_rows: Option<u64>,
}

/// The counts of an import.
#[derive(Debug)]
pub struct Imported {
    /// How many entries.
    pub entries: u64,
    /// In how many transactions.
    pub transactions: u64,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Reads a file into the empty database that `create` makes, once the whole file is known to be readable. The file is
/// read through two inputs: one is ahead, for the times of commits.
///
/// # Errors
/// `NotAJournal`, `Unsupported`, `Corrupt`, and the database's error for an entry that doesn't fit; all name the
/// position. `Io`. Then the database can't be used.
pub fn import<R: BufRead + Seek>(
    input: &mut R,
    ahead: &mut R,
    choices: Choices,
    create: impl FnOnce() -> Result<Database>,
) -> Result<(Database, Imported)> {
    let Survey { end, checkpoint, timed, notes } = survey(input, choices.until)?;
    for input in [&mut *input, &mut *ahead] {
        input.seek(SeekFrom::Start(HEAD)).map_err(|error| Error::io("can't be read", error))?;
    }
    let database = create()?;
    let mut import = Import {
        database: &database,
        pending: None,
        weight: 0,
        times: Times::new(ahead, timed),
        must: if choices.until == Until::End { checkpoint } else { end },
        blobs: Vec::new(),
        rows_left: choices.max_rows.unwrap_or(SPARE_ROWS + end),
        lossy: choices.lossy,
        lost: Lost::default(),
        imported: Imported { entries: 0, transactions: 0, notes },
    };
    import.run(&mut Reader::new(input, HEAD, end), end)?;
    let imported = import.told();
    Ok((database, imported))
}

struct Import<'db, R> {
    database: &'db Database,
    pending: Option<Transaction<'db>>,
    /// The weight of the entries since the last commit.
    weight: u64,
    /// The commit times of the entries read.
    times: Times<R>,
    /// Up to where in the file all entries must fit. The first one after it that doesn't is the end.
    must: u64,
    /// Where the bytes of each blob are in the file: blobs are numbered from 1 in this order.
    blobs: Vec<u64>,
    rows_left: u64,
    lossy: bool,
    lost: Lost,
    imported: Imported,
}

/// The parts of a file that weren't imported unchanged.
#[derive(Default)]
struct Lost {
    /// Texts that were changed.
    texts: u64,
    /// Blobs that became null.
    blobs: u64,
    /// Values of vectors, for rows that aren't there.
    values: u64,
    /// Vectors of no rows.
    empty: u64,
}

impl<'db, R: BufRead> Import<'db, R> {
    fn run(&mut self, reader: &mut Reader<impl BufRead>, end: u64) -> Result<()> {
        loop {
            let at = reader.position();
            match self.step(reader) {
                Ok(true) if self.weight >= LONG => self.commit(reader.position())?,
                Ok(true) => {}
                Ok(false) => return self.commit(at),
                Err(error) if at >= self.must && error.kind() == ErrorKind::Io => {
                    return Err(error);
                }
                Err(error) if at >= self.must => {
                    let note = format!("position {at}: {error}: {}", left_out(end - at));
                    self.imported.notes.push(note);
                    return self.commit(at);
                }
                Err(error) => return Err(error.within(format_args!("position {at}"))),
            }
        }
    }

    fn step(&mut self, reader: &mut Reader<impl BufRead>) -> Result<bool> {
        let at = reader.position();
        let Some(entry) = reader.next()? else { return Ok(false) };
        let is_time = matches!(entry, Entry::Timestamp(_));
        let is_mark = is_time || matches!(entry, Entry::Comment(_) | Entry::ValidData);
        self.weight += match entry {
            Entry::UpdateVector { count, .. } => count,
            Entry::InsertVector { count: 0, .. } | Entry::DeleteVector { count: 0, .. } => 0,
            Entry::Blob { size } => 1 + size / 64,
            _ => 1,
        };
        match entry {
            Entry::UpdateVector { table, row, field, kind, count } => {
                let may_end_here = at >= self.must;
                if may_end_here {
                    // It is written in parts, but takes effect as a whole or not at all.
                    self.commit(at)?;
                }
                let updated =
                    self.update_vector(reader, Context { table, row, field }, kind, count);
                if may_end_here && updated.is_err() {
                    self.pending = None;
                }
                updated?;
            }
            Entry::Blob { size } => {
                self.blobs.push(reader.position());
                let transaction = self.pending()?;
                reader.stream(size, |part| transaction.write_blob(part))?;
            }
            _ => self.entry(entry)?,
        }
        self.imported.entries += 1;
        if is_time || is_mark && !reader.is_at_mark()? {
            self.commit(reader.position())?;
        }
        Ok(true)
    }

    fn entry(&mut self, entry: Entry<'_>) -> Result<()> {
        match entry {
            Entry::Insert { table, row } => {
                let table = self.table(table)?;
                self.pending()?.insert_zero(table, row_id(row)?)
            }
            Entry::Delete { table, row } => {
                let table = self.table(table)?;
                self.pending()?.delete(table, row_id(row)?)
            }
            Entry::InsertVector { count: 0, .. } | Entry::DeleteVector { count: 0, .. } => {
                self.lost.empty += 1;
                Ok(())
            }
            Entry::InsertVector { table, row, count } => {
                let table = self.table(table)?;
                self.take_rows(count)?;
                self.pending()?.insert_vector_at(table, row_id(row)?, count)
            }
            Entry::DeleteVector { table, row, count } => {
                let table = self.table(table)?;
                self.pending()?.delete_vector(table, row_id(row)?, count)
            }
            Entry::Update { table, row, field, value } => {
                let (table, field) = self.field(table, field, value.kind())?;
                let id = row_id(row)?;
                match value {
                    Cell::String(text) => {
                        let text = self.text(text)?;
                        self.pending()?.update(table, id, field, ValueRef::String(&text))
                    }
                    value => {
                        let value = self.value(value)?;
                        self.pending()?.update(table, id, field, value.as_ref())
                    }
                }
            }
            Entry::Comment(text) => {
                let text = self.text(text)?;
                self.pending()?.comment(&text)
            }
            Entry::Timestamp(seconds) => self.pending()?.timestamp(seconds),
            Entry::ValidData => self.pending()?.valid_data(),
            entry => match self.command(entry)? {
                Some(command) => self.pending()?.apply_command(&command),
                None => Ok(()),
            },
        }
    }

    /// Returns the command of the schema language for an entry.
    fn command(&mut self, entry: Entry<'_>) -> Result<Option<Command>> {
        let mut name_of = |name| self.text(name).map(Cow::into_owned);
        Ok(Some(match entry {
            Entry::CreateTable { name } => Command::CreateTable { name: name_of(name)? },
            Entry::Custom(name) => Command::Custom { name: name_of(name)? },
            Entry::RenameTable { table, name } => {
                let name = name_of(name)?;
                Command::RenameTable { table: self.table(table)?, name }
            }
            Entry::RenameField { table, field, name } => {
                let name = name_of(name)?;
                let table = self.table(table)?;
                Command::RenameField { table, field: self.known_field(table, field)?, name }
            }
            Entry::AddField { table, name, kind, target } => {
                let name = name_of(name)?;
                let target = match kind {
                    Kind::Reference => self.table(target)?,
                    _ => TableNumber(0),
                };
                let (table, ty) = (self.table(table)?, kind::to_type(kind, target));
                let nullable = ty.carries_null();
                Command::AddField { table, name, ty, nullable, default: None }
            }
            Entry::DropTable { table } => Command::DropTable { table: self.table(table)? },
            Entry::DropField { table, field } => {
                let table = self.table(table)?;
                Command::DropField { table, field: self.known_field(table, field)? }
            }
            _ => return Ok(None),
        }))
    }

    fn update_vector(
        &mut self,
        reader: &mut Reader<impl BufRead>,
        at: Context,
        kind: Kind,
        count: u64,
    ) -> Result<()> {
        if count == 0 {
            self.lost.empty += 1;
            return Ok(());
        }
        let (table, field) = self.field(at.table, at.field, kind)?;
        let first = row_id(at.row)?;
        let mut done = 0;
        while done < count {
            let id = RowId(first.0 + done);
            if let Some(width) = kind.width() {
                let part = (count - done).min((PIECE.1 / width) as u64);
                let cells = Vector::Cells(reader.cells(part * width as u64)?);
                self.update_rows(table, id, field, cells)?;
                done += part;
                continue;
            }
            let (mut values, mut bytes) = (Vec::new(), 0);
            while values.len() < PIECE.0 && bytes < PIECE.1 && done < count {
                let value = self.value(reader.value(kind)?)?;
                if let Value::String(text) = &value {
                    bytes += text.len();
                }
                values.push(value);
                done += 1;
            }
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            self.update_rows(table, id, field, Vector::Values(&values))?;
        }
        Ok(())
    }

    /// Updates the rows of a part of a vector. Where some aren't there, joedb updates the others; here that is an
    /// error, unless something may be lost.
    fn update_rows(
        &mut self,
        table: TableNumber,
        first: RowId,
        field: FieldNumber,
        values: Vector<'_>,
    ) -> Result<()> {
        let updated = self.pending()?.update_vector(table, first, field, values);
        let is_hole = updated.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if !is_hole {
            return updated;
        }
        if !self.lossy {
            return updated.map_err(|error| {
                Error::new(
                    error.kind(),
                    format!("{error}: --lossy leaves out what is for such rows"),
                )
            });
        }
        let schema = self.pending()?.view().table(table)?.schema().field(field);
        let Some(ty) = schema.map(|field| field.ty) else { return updated };
        for (id, value) in (first.0..).map(RowId).zip(values.iter(ty)) {
            let transaction = self.pending()?;
            match transaction.view().table(table)?.contains(id)? {
                true => transaction.update(table, id, field, value)?,
                false => self.lost.values += 1,
            }
        }
        Ok(())
    }

    /// Makes a value of one of the file's.
    fn value(&mut self, cell: Cell<'_>) -> Result<Value> {
        Ok(match cell {
            Cell::String(text) => Value::String(self.text(text)?.into_owned()),
            Cell::Written(value) => Value::String(value.to_string()),
            Cell::Int32(value) => Value::Int32(value),
            Cell::Int64(value) => Value::Int64(value),
            Cell::Reference(0) | Cell::Blob(0, 0) => Value::Null,
            Cell::Reference(row) => Value::Reference(row_id(row)?),
            Cell::Bool(value) => Value::Bool(value),
            Cell::Float32(value) => Value::Float32(value),
            Cell::Float64(value) => Value::Float64(value),
            Cell::Int8(value) => Value::Int8(value),
            Cell::Int16(value) => Value::Int16(value),
            Cell::Blob(position, size) => self.blob(position, size)?,
        })
    }

    fn blob(&mut self, position: u64, size: u64) -> Result<Value> {
        if let Ok(place) = self.blobs.binary_search(&position) {
            let blob = Blob(place as u64 + 1);
            if self.pending()?.blob(blob)?.len() == size {
                return Ok(Value::Blob(blob));
            }
        }
        if self.lossy {
            self.lost.blobs += 1;
            return Ok(Value::Null);
        }
        Err(Error::invalid(format!(
            "the entry refers to a blob of {size} bytes at position {position}, but this file has no such blob; use \
             --lossy to import null instead"
        )))
    }

    /// Reads a text.
    fn text<'t>(&mut self, bytes: &'t [u8]) -> Result<Cow<'t, str>> {
        match String::from_utf8_lossy(bytes) {
            Cow::Owned(_) if !self.lossy => Err(Error::invalid(
                "a text that isn't UTF-8: --lossy puts U+FFFD where it is wrong",
            )),
            text => {
                self.weight += bytes.len() as u64 / 64;
                self.lost.texts += u64::from(matches!(text, Cow::Owned(_)));
                Ok(text)
            }
        }
    }

    fn table(&mut self, number: u64) -> Result<TableNumber> {
        let found = number.checked_sub(1).and_then(|number| u32::try_from(number).ok());
        let found = found.map(TableNumber);
        let schema = self.pending()?.view().schema();
        found.filter(|&table| schema.table(table).is_some()).ok_or_else(|| {
            Error::invalid(format!("table number {number} isn't there, or was dropped"))
        })
    }

    fn known_field(&mut self, table: TableNumber, number: u64) -> Result<FieldNumber> {
        let found = number.checked_sub(1).and_then(|number| u32::try_from(number).ok());
        let found = found.map(FieldNumber);
        let table = self.pending()?.view().table(table)?.schema();
        found.filter(|&field| table.field(field).is_some()).ok_or_else(|| {
            let name = &table.name;
            Error::invalid(format!(
                "field number {number} of table {name} isn't there, or was dropped"
            ))
        })
    }

    /// Finds a field, which must be of this type.
    fn field(&mut self, table: u64, field: u64, kind: Kind) -> Result<(TableNumber, FieldNumber)> {
        let table = self.table(table)?;
        let number = self.known_field(table, field)?;
        let schema = self.pending()?.view().table(table)?.schema();
        let field = schema.field(number);
        if field.is_some_and(|field| kind::of_type(field.ty) == kind) {
            return Ok((table, number));
        }
        let (owner, name) = (&schema.name, field.map(|field| field.name.as_str()));
        let (name, kind) = (name.unwrap_or_default(), kind.name());
        Err(Error::invalid(format!(
            "a value of type {kind} for field {owner}.{name}, which is of another"
        )))
    }

    /// Takes rows from the allowed number.
    fn take_rows(&mut self, count: u64) -> Result<()> {
        let left = self.rows_left;
        self.rows_left = left.checked_sub(count).ok_or_else(|| {
            Error::invalid(format!(
                "a vector of {count} rows, and only {left} more go with a file of this length, so that a damaged \
                 number doesn't fill the memory: if the rows are meant, say --max-rows"
            ))
        })?;
        Ok(())
    }

    fn pending(&mut self) -> Result<&mut Transaction<'db>> {
        let transaction = match self.pending.take() {
            Some(transaction) => transaction,
            None => self.database.begin()?,
        };
        Ok(self.pending.insert(transaction))
    }

    /// Commits pending entries, if there are any: all up to a position.
    fn commit(&mut self, position: u64) -> Result<()> {
        self.weight = 0;
        match self.pending.take() {
            Some(mut transaction) if !transaction.is_empty() => {
                if let Some(time) = self.times.of(position)? {
                    transaction.set_time(time);
                }
                self.imported.transactions += 1;
                transaction.commit().map(drop)
            }
            _ => Ok(()),
        }
    }

    fn told(self) -> Imported {
        let Self { lost: Lost { texts, blobs, values, empty }, mut imported, .. } = self;
        let notes = [
            (texts, "text", "had what is no UTF-8: it is U+FFFD now"),
            (blobs, "blob", "not in the file became null"),
            (values, "value", "of vectors left out, for rows that aren't there"),
            (empty, "vector", "of no rows left out"),
        ];
        let met = notes.into_iter().filter(|(times, ..)| *times > 0);
        imported.notes.extend(met.map(|(times, of, what)| format!("{} {what}", count(times, of))));
        imported
    }
}

/// Returns the id of a row of the file.
fn row_id(row: u64) -> Result<RowId> {
    row.checked_sub(1).map(RowId).ok_or_else(|| Error::invalid("row -1, which is none"))
}

/// Cells are as wide in Annals as in joedb's files.
const _: () = {
    let kinds = Kind::ALL;
    let mut place = 0;
    while place < kinds.len() {
        #[expect(clippy::indexing_slicing, reason = "it is compiled, or not")]
        let kind = kinds[place];
        if let Some(ours) = kind.width() {
            let theirs = width(kind::to_type(kind, TableNumber(0)));
            assert!(matches!(theirs, Some(theirs) if theirs == ours));
        }
        place += 1;
    }
};
