//! The present state as SQL that SQLite reads.
//!
//! | type | column | value |
//! |---|---|---|
//! | `bool` | `BOOLEAN` | 0 or 1 |
//! | integers, `timestamp` | `INTEGER` | the number; of a time the microseconds since 1970 |
//! | `uint64` | no type | the number; as text, from 2^63 on, where SQLite has no integers |
//! | floats | `REAL` | the number; `9e999` is infinity; not a number is the text `NaN` |
//! | `string` | `TEXT` | |
//! | `bytes`, `blob` | `BLOB` | the bytes |
//! | references | `INTEGER REFERENCES` | the id; the row may be gone, so SQLite is told not to look |
//!
//! Of very large and very small floats SQLite may take the last of 17 digits for another one.

use std::fmt::Write;

use annals::event::MAX_PIECE;
use annals::{Blob, Field, Index, OnDelete, Result, Row, Table, TableView, Type, ValueRef};

use super::names::{Names, quoted};
use crate::json;
use crate::output::Output;
use crate::present::Present;

/// Prints tables with their rows, then indexes, as one transaction.
pub(crate) fn sql(present: &Present<'_>, output: &mut Output) -> Result<()> {
    let schema = present.schema();
    let mut names = Names::default();
    let tables: Vec<SqlTable<'_>> =
        schema.tables().iter().map(|table| SqlTable::new(table, &mut names)).collect();
    output.line("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;")?;
    for table in &tables {
        output.line(&table.create(&tables, &present.table(table.table.number)?))?;
    }
    for table in &tables {
        for row in present.table(table.table.number)?.rows() {
            table.insert(present, &row?, output)?;
        }
    }
    for index in schema.indexes() {
        let name = names.take(&index.name);
        if let Some(table) = table_of(&tables, index.table) {
            output.line(&table.index(index, &name))?;
        }
    }
    output.line("COMMIT;")
}

/// A table, and the names that it and its columns have in SQL.
struct SqlTable<'s> {
    table: &'s Table,
    name: String,
    columns: Vec<String>,
}

fn table_of<'t, 's>(
    tables: &'t [SqlTable<'s>],
    number: annals::TableNumber,
) -> Option<&'t SqlTable<'s>> {
    tables.iter().find(|table| table.table.number == number)
}

impl<'s> SqlTable<'s> {
    fn new(table: &'s Table, names: &mut Names) -> Self {
        let mut columns = Names::default();
        // The row's id is the first column.
        columns.take("id");
        let columns =
            table.fields.iter().map(|field| quoted(&columns.take(&json::key(table, field))));
        Self { table, name: quoted(&names.take(&table.name)), columns: columns.collect() }
    }

    fn create(&self, tables: &[SqlTable<'_>], rows: &TableView<'_>) -> String {
        let mut text = format!("CREATE TABLE {} (\n  \"id\" INTEGER PRIMARY KEY", self.name);
        for (field, column) in self.table.fields.iter().zip(&self.columns) {
            text.push_str(",\n  ");
            text.push_str(column);
            push_type(&mut text, field, tables);
            // What was erased is null, whatever the schema says.
            if !field.nullable && !rows.has_erased(field.number) {
                text.push_str(" NOT NULL");
            }
            push_default(&mut text, field);
        }
        text + "\n);"
    }

    fn insert(&self, present: &Present<'_>, row: &Row<'_>, output: &mut Output) -> Result<()> {
        let mut line = format!("INSERT INTO {} VALUES({}", self.name, row.id().0);
        for field in &self.table.fields {
            line.push(',');
            match row.value(field.number) {
                ValueRef::Blob(blob) => {
                    output.write(&line)?;
                    line.clear();
                    write_blob(present, blob, output)?;
                }
                value => push_value(&mut line, value),
            }
        }
        line.push_str(");");
        output.line(&line)
    }

    fn index(&self, index: &Index, name: &str) -> String {
        let unique = if index.unique { "UNIQUE " } else { "" };
        let column = |number| {
            let place = self.table.fields.iter().position(|field| field.number == number);
            place.and_then(|place| self.columns.get(place)).map_or("", String::as_str)
        };
        let columns: Vec<&str> = index.fields.iter().map(|&number| column(number)).collect();
        let columns = columns.join(", ");
        format!("CREATE {unique}INDEX {} ON {} ({columns});", quoted(name), self.name)
    }
}

fn push_type(text: &mut String, field: &Field, tables: &[SqlTable<'_>]) {
    match field.ty {
        Type::Bool => text.push_str(" BOOLEAN"),
        Type::Int8
        | Type::Int16
        | Type::Int32
        | Type::Int64
        | Type::UInt8
        | Type::UInt16
        | Type::UInt32
        | Type::Timestamp => text.push_str(" INTEGER"),
        // A column of numbers would round what is no integer of SQLite's.
        Type::UInt64 => {}
        Type::Float32 | Type::Float64 => text.push_str(" REAL"),
        Type::String => text.push_str(" TEXT"),
        Type::Bytes | Type::Blob => text.push_str(" BLOB"),
        Type::Reference(target, on_delete) => {
            text.push_str(" INTEGER");
            if let Some(target) = table_of(tables, target) {
                let _ = write!(text, " REFERENCES {}(\"id\")", target.name);
            }
            text.push_str(match on_delete {
                OnDelete::Dangle => "",
                OnDelete::Restrict => " ON DELETE RESTRICT",
                OnDelete::Cascade => " ON DELETE CASCADE",
                OnDelete::SetNull => " ON DELETE SET NULL",
            });
        }
    }
}

fn push_default(text: &mut String, field: &Field) {
    // The bytes of a blob are not at hand here.
    if let Some(default) = field.default.as_ref().filter(|_| field.ty != Type::Blob) {
        text.push_str(" DEFAULT (");
        push_value(text, default.as_ref());
        text.push(')');
    }
}

fn push_value(text: &mut String, value: ValueRef<'_>) {
    // Writing to a string can't fail.
    let _ = match value {
        ValueRef::Null => text.write_str("NULL"),
        ValueRef::Bool(value) => write!(text, "{}", u8::from(value)),
        ValueRef::UInt64(value) if i64::try_from(value).is_err() => write!(text, "'{value}'"),
        // SQLite takes this number for one that is too large, and then for another.
        ValueRef::Int64(i64::MIN) | ValueRef::Timestamp(i64::MIN) => {
            write!(text, "(-{}-1)", i64::MAX)
        }
        ValueRef::Timestamp(value) => write!(text, "{value}"),
        ValueRef::Float32(value) => push_float(text, f64::from(value), &format!("{value:?}")),
        ValueRef::Float64(value) => push_float(text, value, &format!("{value:?}")),
        ValueRef::String(value) => push_string(text, value),
        ValueRef::Bytes(value) => push_hex(text, value),
        value => write!(text, "{value}"),
    };
}

fn push_float(text: &mut String, value: f64, digits: &str) -> std::fmt::Result {
    if value.is_nan() {
        return text.write_str("'NaN'");
    }
    if value.is_infinite() {
        return text.write_str(if value > 0.0 { "9e999" } else { "-9e999" });
    }
    text.write_str(digits)
}

/// Writes the bytes of a blob, piece by piece: they may be more than memory holds.
fn write_blob(present: &Present<'_>, blob: Blob, output: &mut Output) -> Result<()> {
    let mut reader = present.blob(blob)?;
    let mut bytes = vec![0; MAX_PIECE];
    let mut text = String::new();
    let mut offset = 0;
    output.write("X'")?;
    while offset < reader.len() {
        let read = reader.read_at(offset, &mut bytes)?;
        text.clear();
        push_digits(&mut text, bytes.get(..read).unwrap_or_default());
        output.write(&text)?;
        offset += read as u64;
    }
    output.write("'")
}

/// Appends a string. SQLite's text of a statement ends at a zero, and a terminal may obey control
/// characters: a string with such goes by its bytes.
fn push_string(text: &mut String, value: &str) -> std::fmt::Result {
    if value.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        text.push_str("CAST(");
        push_hex(text, value.as_bytes())?;
        return text.write_str(" AS TEXT)");
    }
    text.push('\'');
    text.push_str(&value.replace('\'', "''"));
    text.write_char('\'')
}

fn push_hex(text: &mut String, bytes: &[u8]) -> std::fmt::Result {
    text.push_str("X'");
    push_digits(text, bytes);
    text.write_char('\'')
}

fn push_digits(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02X}");
    }
}
