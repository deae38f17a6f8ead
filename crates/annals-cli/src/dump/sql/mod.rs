//! The present state as SQL that SQLite and PostgreSQL read.
//!
//! | type | SQLite's column | PostgreSQL's column | value |
//! |---|---|---|---|
//! | `bool` | `BOOLEAN` | `BOOLEAN` | `TRUE` or `FALSE` |
//! | `int8` .. `int64` | `INT8` .. `INT64` | the smallest that holds all | the number |
//! | `uint8` .. `uint64` | `UINT8` .. `UINT64` | the same; `NUMERIC(20)` | the number |
//! | floats | `FLOAT32`, `FLOAT64` | `REAL`, `DOUBLE PRECISION` | the number |
//! | `string` | `TEXT` | `TEXT` | |
//! | `bytes`, `blob` | `BLOB`, `LONGBLOB` | `BYTEA` | the bytes |
//! | `timestamp` | `TIMESTAMP_MICROSECONDS` | `BIGINT` | microseconds since 1970 |
//! | references | `INTEGER REFERENCES` | `BIGINT`, and a constraint | the id |
//!
//! A script for both uses PostgreSQL's words for types, except where SQLite needs its own. Values without a number in
//! SQLite have a substitute: NaN is the text `NaN`; -0 and integers from 2^63 on are the eight bytes of the number,
//! the most significant first, which SQLite sorts right.
//!
//! Of very large and very small floats SQLite may take the last of 17 digits in a script for another one.

mod dialect;
mod history;
mod literal;
mod names;
mod tables;

use annals::event::MAX_PIECE;
use annals::{Blob, Result, Row, ValueRef};

pub(crate) use dialect::Dialect;
pub(crate) use history::HistorySql;
#[cfg(feature = "sqlite")]
pub(crate) use tables::type_word;
pub(crate) use tables::{SqlTable, Tables};

use crate::output::Output;
use crate::present::Present;

/// Settings of PostgreSQL at the beginning, so that it reads texts right under any configuration.
const SETTINGS: &str = "SET client_encoding='UTF8';SET standard_conforming_strings=on;";

/// Prints tables with their rows, then indexes, as one transaction.
pub(crate) fn sql(present: &Present<'_>, dialect: Dialect, output: &mut Output) -> Result<()> {
    let tables = Tables::of(present, dialect)?;
    line(output, &dialect.choose("PRAGMA foreign_keys=OFF;", SETTINGS))?;
    line(output, "BEGIN TRANSACTION;")?;
    for table in &tables.tables {
        line(output, &tables.create(table))?;
    }
    for table in &tables.tables {
        for row in present.table(table.table.number)?.rows() {
            insert(present, table, dialect, &row?, output)?;
        }
    }
    for index in tables.indexes() {
        line(output, &index)?;
    }
    for constraint in tables.constraints() {
        line(output, &dialect.choose("", &constraint))?;
    }
    if !tables.tables.is_empty() {
        line(output, &dialect.choose("DELETE FROM sqlite_sequence;", ""))?;
    }
    for table in &tables.tables {
        let next = present.table(table.table.number)?.next_id();
        line(output, &dialect.choose(&table.sequence(next), &table.identity(next)))?;
    }
    line(output, "COMMIT;")
}

/// Prints a line that may have its end already, or nothing in it.
fn line(output: &mut Output, text: &str) -> Result<()> {
    match text.strip_suffix('\n').unwrap_or(text) {
        "" => Ok(()),
        text => output.line(text),
    }
}

fn insert(
    present: &Present<'_>,
    table: &SqlTable<'_>,
    dialect: Dialect,
    row: &Row<'_>,
    output: &mut Output,
) -> Result<()> {
    let mut text = format!("INSERT INTO {} VALUES({}", table.name, row.id().0);
    for field in &table.table.fields {
        text.push(',');
        match row.value(field.number) {
            ValueRef::Blob(blob) => {
                output.write(&text)?;
                text.clear();
                write_blob(present, blob, dialect, output)?;
            }
            value => literal::push(&mut text, value, dialect),
        }
    }
    text.push_str(");");
    output.line(&text)
}

/// Writes the bytes of a blob, piece by piece: they may be more than memory holds.
fn write_blob(
    present: &Present<'_>,
    blob: Blob,
    dialect: Dialect,
    output: &mut Output,
) -> Result<()> {
    for part in dialect.parts("X'", "'", "'\\x", "'") {
        let dialect::Part::Digits = part else {
            output.write(part.text())?;
            continue;
        };
        let mut reader = present.blob(blob)?;
        let mut bytes = vec![0; MAX_PIECE];
        let mut text = String::new();
        let mut offset = 0;
        while offset < reader.len() {
            let read = reader.read_at(offset, &mut bytes)?;
            text.clear();
            literal::push_digits(&mut text, bytes.get(..read).unwrap_or_default());
            output.write(&text)?;
            offset += read as u64;
        }
    }
    Ok(())
}
