//! The present state as a database of SQLite.

use std::path::Path;

use annals::model::WideValue;
use annals::{Error, Result, ValueRef};
use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef as Bound};
use rusqlite::{Connection, Statement};

use super::failed;
use crate::dump::Dialect;
use crate::dump::sql::{SqlTable, Tables};
use crate::new_file::NewFile;
use crate::notes::note;
use crate::present::Present;
use crate::progress::Rows;

/// SQLite's own limit for a value, in bytes.
const LONGEST: usize = 1_000_000_000;

/// Writes everything into a new file, which has its name only when it is complete.
pub(crate) fn write(present: &Present<'_>, path: &Path, file: NewFile) -> Result<()> {
    let sqlite = |error: rusqlite::Error| failed(path.display(), &error);
    let place = file.path().ok_or_else(|| {
        Error::invalid(format!("{} is no file: SQLite's databases are", path.display()))
    })?;
    let connection = Connection::open(place).map_err(sqlite)?;
    // Until the file has its name a crash leaves nothing to recover.
    let begin = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF; BEGIN";
    connection.execute_batch(begin).map_err(sqlite)?;
    let tables = Tables::of(present, Dialect::Sqlite)?;
    for (name, there) in tables.renamed() {
        note(&format!("{name} is {there} in SQLite"));
    }
    let mut total = 0;
    for table in &tables.tables {
        connection.execute_batch(&tables.create(table)).map_err(sqlite)?;
        total += present.table(table.table.number)?.len();
        if table.table.single_row {
            note(&format!(
                "table {}: SQLite doesn't know that it always has one row",
                table.table.name
            ));
        }
    }
    let mut rows = Rows::new("writing", total);
    for table in &tables.tables {
        write_rows(present, table, &connection, path, &mut rows)?;
    }
    for index in present.schema().indexes().iter().filter(|index| !index.collated.is_empty()) {
        note(&format!(
            "index {}: `collate` was left out: SQLite compares texts by bytes",
            index.name
        ));
    }
    for index in tables.indexes() {
        connection.execute_batch(&index).map_err(sqlite)?;
    }
    if !tables.tables.is_empty() {
        connection.execute_batch("DELETE FROM sqlite_sequence").map_err(sqlite)?;
    }
    for table in &tables.tables {
        let next = present.table(table.table.number)?.next_id();
        connection.execute_batch(&table.sequence(next)).map_err(sqlite)?;
    }
    connection.execute_batch("COMMIT").map_err(sqlite)?;
    connection.close().map_err(|(_, error)| failed(path.display(), &error))?;
    file.finish()
}

fn write_rows(
    present: &Present<'_>,
    table: &SqlTable<'_>,
    connection: &Connection,
    path: &Path,
    rows: &mut Rows,
) -> Result<()> {
    let sqlite = |error: rusqlite::Error| failed(path.display(), &error);
    let places = ",?".repeat(table.table.fields.len());
    let insert = format!("INSERT INTO {} VALUES(?{places})", table.name);
    let mut statement = connection.prepare(&insert).map_err(sqlite)?;
    for row in present.table(table.table.number)?.rows() {
        let row = row?;
        bind(&mut statement, 1, &row.id().0.cast_signed().into()).map_err(sqlite)?;
        for (place, field) in (2..).zip(&table.table.fields) {
            let value = match row.value(field.number) {
                ValueRef::Blob(blob) => {
                    let bytes = present.blob(blob)?.to_vec(LONGEST).map_err(|error| {
                        error.within(format_args!("field {} of row {}", field.name, row.id().0))
                    })?;
                    ToSqlOutput::Owned(Owned::Blob(bytes))
                }
                value => output(value),
            };
            bind(&mut statement, place, &value).map_err(sqlite)?;
        }
        statement.raw_execute().map_err(sqlite)?;
        rows.count();
    }
    Ok(())
}

fn bind(
    statement: &mut Statement<'_>,
    place: usize,
    value: &ToSqlOutput<'_>,
) -> rusqlite::Result<()> {
    statement.raw_bind_parameter(place, value)
}

/// Returns SQLite's form of a value; for a blob null, since its bytes are not in memory.
fn output(value: ValueRef<'_>) -> ToSqlOutput<'_> {
    match value.widen() {
        WideValue::Null | WideValue::Blob(_) => ToSqlOutput::Owned(Owned::Null),
        WideValue::Bool(value) => value.into(),
        WideValue::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => bits(value),
            _ => ToSqlOutput::Owned(Owned::Text(value.to_string())),
        },
        WideValue::Timestamp(value) => value.into(),
        WideValue::Written(value) => ToSqlOutput::Owned(Owned::Text(value.to_string())),
        WideValue::Float32(value) => float(f64::from(value)),
        WideValue::Float64(value) => float(value),
        WideValue::String(value) => ToSqlOutput::Borrowed(Bound::Text(value.as_bytes())),
        WideValue::Bytes(value) => ToSqlOutput::Borrowed(Bound::Blob(value)),
        WideValue::Reference(id) => id.0.cast_signed().into(),
    }
}

fn float(value: f64) -> ToSqlOutput<'static> {
    match value {
        // SQLite makes null of one, and forgets the sign of the other.
        value if value.is_nan() => ToSqlOutput::Borrowed(Bound::Text(b"NaN")),
        0.0 if value.is_sign_negative() => bits(value.to_bits()),
        value => value.into(),
    }
}

/// Returns the eight bytes of a number that SQLite doesn't have, in the order in which it sorts them right.
#[expect(clippy::big_endian_bytes, reason = "SQLite compares bytes from the first on")]
fn bits(value: u64) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(Owned::Blob(value.to_be_bytes().to_vec()))
}
