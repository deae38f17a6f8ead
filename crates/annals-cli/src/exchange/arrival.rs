//! The database that an import creates: under a temporary name until it is complete and durable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals::event::{Event, has_erased};
use annals::storage::{Directory, FileDirectory, SystemClock};
use annals::{
    Blob, Command, Commit, Database, Error, ErrorKind, Field, FieldNumber, Result, RowId, Schema,
    Table, TableNumber, Timestamp, Transaction, Value, ValueRef,
};
use annals_tools::Names;
use clap::Args;

use crate::output::{Output, count};
use crate::unfinished::Unfinished;
use crate::{Outcome, files, language, progress};

/// The target of an import.
#[derive(Debug, Args)]
pub(crate) struct To {
    /// The database, which must not be there yet
    pub(crate) file: PathBuf,
    /// The time of the commit, as in 2021-11-02T00:00:00Z; the clock's if left out
    #[arg(long, value_name = "TIME", value_parser = language::time_option)]
    pub(crate) at: Option<Timestamp>,
}

/// The result of an import.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    rows: u64,
    tables: usize,
    commit: Commit,
}

impl Arrived {
    /// Prints the counts of the import on standard output.
    pub(crate) fn tell(self) -> Result<Outcome> {
        let Commit { txid, position, level, .. } = self.commit;
        let level = level.name();
        let mut output = Output::new();
        let (rows, tables) = (count(self.rows, "row"), count(self.tables, "table"));
        output.line(&format!("imported {rows} into {tables}"))?;
        output.line(&format!("committed txid={txid} position={position} level={level}"))?;
        output.flush()?;
        Ok(Outcome::Done)
    }
}

/// Refuses an existing database.
pub(crate) fn refuse_existing(path: &Path) -> Result<()> {
    match path.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(exists(&path.display().to_string())),
        Err(error) => Err(files::cannot("look for", path, error)),
    }
}

fn exists(shown: &str) -> Error {
    let message = format!("{shown}: there is such a file already; choose another name");
    Error::new(ErrorKind::InUse, message)
}

/// Creates a new database with a schema and the rows of `fill`, in one transaction. It gets its name only when it is
/// complete and durable; after an error nothing is left.
pub(crate) fn fill(
    to: &To,
    schema: &Schema,
    fill: impl FnOnce(&mut Loading<'_>) -> Result<()>,
) -> Result<Arrived> {
    create(&to.file, |database| {
        let mut loading = Loading::begin(database.begin()?, schema)?;
        loading.set_time(to.at);
        fill(&mut loading)?;
        loading.finish(schema.tables().len())
    })
}

/// Makes a new database, which has its name only once `fill` and closing it succeed.
pub(crate) fn create<T>(path: &Path, fill: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
    named(path, |directory, temporary| {
        let options = progress::options().background(false);
        let database = options.open_in(Arc::clone(directory), temporary, Arc::new(SystemClock))?;
        let filled = fill(&database);
        crate::notes::tell_damage(&database.image_damage());
        let closed = database.close();
        filled.and_then(|filled| closed.map(|()| filled))
    })
}

/// Writes a new database under a temporary name, and renames it once it is whole and on permanent storage. There must
/// be none of that name. Its image goes with it.
pub(crate) fn named<T>(
    path: &Path,
    write: impl FnOnce(&Arc<dyn Directory>, &str) -> Result<T>,
) -> Result<T> {
    refuse_existing(path)?;
    let (directory, name) =
        FileDirectory::split(path).map_err(|error| files::cannot("create", path, error))?;
    let names = Names::new(&directory, &name, "import", &SystemClock)?;
    let _unfinished = Unfinished::new(path, names.temporary());
    let written = write(&directory, names.temporary()).map_err(|error| names.explain(error))?;
    names.give()?;
    Ok(written)
}

/// The transaction that takes everything in.
pub(crate) struct Loading<'db> {
    transaction: Transaction<'db>,
    schema: Schema,
    /// The work after the rows.
    ahead: Vec<Command>,
    /// Fields that may not be null, where null says that a value was erased.
    erased: Vec<(TableNumber, FieldNumber)>,
    rows: u64,
}

impl<'db> Loading<'db> {
    /// Makes the tables and fields.
    pub(crate) fn begin(mut transaction: Transaction<'db>, schema: &Schema) -> Result<Self> {
        for command in schema.commands().iter().filter(|command| command.is_ordered()) {
            transaction.apply_command(command)?;
        }
        let ahead = crate::dump::finishing(schema);
        Ok(Self { transaction, schema: schema.clone(), ahead, erased: Vec::new(), rows: 0 })
    }

    /// Makes the indexes first, so that each row with a duplicate key is refused individually.
    pub(crate) fn index_now(&mut self) -> Result<()> {
        let is_index = |command: &mut Command| matches!(command, Command::CreateIndex { .. });
        for command in self.ahead.extract_if(.., is_index) {
            self.transaction.apply_command(&command)?;
        }
        Ok(())
    }

    /// Continues in a database with this schema.
    pub(crate) const fn resume(transaction: Transaction<'db>, schema: Schema) -> Self {
        Self { transaction, schema, ahead: Vec::new(), erased: Vec::new(), rows: 0 }
    }

    /// Sets the time of the commit, if there is one.
    pub(crate) fn set_time(&mut self, at: Option<Timestamp>) {
        if let Some(time) = at {
            self.transaction.set_time(time);
        }
    }

    /// Returns the schema.
    pub(crate) const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Makes the next row without an id get this one or a later one. Call it before the table's rows.
    pub(crate) fn set_next_id(&mut self, table: TableNumber, next: u64) -> Result<()> {
        let Some(last) = next.checked_sub(1).map(RowId) else { return Ok(()) };
        if last > RowId::MAX {
            return Err(Error::invalid(format!("{next} can't be the next id of a table")));
        }
        self.transaction.insert_zero(table, last)?;
        self.transaction.delete(table, last)
    }

    /// Takes null for a value that was erased, in a field that may not be null. Call it before the table's rows.
    pub(crate) fn expect_erased(&mut self, table: TableNumber, field: FieldNumber) {
        self.erased.push((table, field));
    }

    /// True if null says that a value was erased.
    pub(crate) fn is_erased(&self, table: &Table, field: &Field) -> bool {
        self.erased.contains(&(table.number, field.number))
    }

    /// Inserts a row, with the next id if none is given.
    pub(crate) fn insert(
        &mut self,
        table: TableNumber,
        id: Option<RowId>,
        values: &[Value],
    ) -> Result<()> {
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        self.rows += 1;
        let is_erased = self.schema.table(table).is_some_and(|table| has_erased(table, &values));
        if is_erased && !self.erased.is_empty() {
            let next = RowId(self.transaction.view().table(table)?.next_id());
            let id = id.unwrap_or(next);
            return self.transaction.apply_erased(&Event::Insert { table, id, values: &values });
        }
        match id {
            Some(id) => self.transaction.insert_at(table, id, &values),
            None => self.transaction.insert(table, &values).map(drop),
        }
    }

    /// Writes a blob for a later row.
    pub(crate) fn write_blob(&mut self, bytes: impl std::io::Read) -> Result<Blob> {
        self.transaction.write_blob(bytes)
    }

    /// Makes the indexes that aren't there yet, and commits; `tables` is how many got rows.
    pub(crate) fn finish(mut self, tables: usize) -> Result<Arrived> {
        for command in &self.ahead {
            self.transaction.apply_command(command)?;
        }
        Ok(Arrived { rows: self.rows, tables, commit: self.transaction.commit()? })
    }
}
