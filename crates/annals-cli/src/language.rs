//! The words of the shell's language, as `annals-schema` reads and writes them.

use std::path::Path;

use annals::{Error, Field, Level, Result, RowId, Schema, Table, Timestamp, Value, ValueRef};
use annals_schema::Token;

use crate::files;

/// Reads and checks a schema file; the error has all its mistakes, one below the other.
pub(crate) fn read_schema(path: &Path) -> Result<Schema> {
    let text = files::read_text(path)?;
    annals_schema::parse(&text).map_err(|diagnostics| {
        let place = path.display().to_string();
        Error::invalid(diagnostics.render(&place))
    })
}

/// Reads a value that stands for one of the field's.
pub(crate) fn value(table: &Table, field: &Field, token: &Token) -> Result<Value> {
    let place = || format!("field {} of table {}", field.name, table.name);
    let value = annals_schema::parse_value(field.ty, token)
        .map_err(|message| Error::invalid(format!("{}: {message}", place())))?;
    if !field.accepts(value.as_ref()) {
        return Err(Error::invalid(format!("{} can't be null", place())));
    }
    Ok(value)
}

/// Finds a table, or says which there are.
pub(crate) fn table<'s>(schema: &'s Schema, name: &str) -> Result<&'s Table> {
    schema.table_named(name).ok_or_else(|| {
        let names = schema.tables().iter().map(|table| table.name.as_str());
        Error::new(
            annals::ErrorKind::NotFound,
            format!("there is no table {name:?}; {}", those("tables", names)),
        )
    })
}

/// Finds a field, or says which there are.
pub(crate) fn field<'s>(table: &'s Table, name: &str) -> Result<&'s Field> {
    table.field_named(name).ok_or_else(|| {
        let names = table.fields.iter().map(|field| field.name.as_str());
        Error::new(
            annals::ErrorKind::NotFound,
            format!("table {} has no field {name:?}; {}", table.name, those("fields", names)),
        )
    })
}

/// Lists names for the end of an error message.
pub(crate) fn those<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 30;
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return format!("there are no {what}");
    }
    let more = if names.len() > MOST { ", .." } else { "" };
    let shown = names.get(..MOST).unwrap_or(&names);
    format!("the {what} are: {}{more}", shown.join(", "))
}

/// Reads the id of a row.
pub(crate) fn row_id(text: &str) -> Result<RowId> {
    match text.parse::<u64>() {
        Ok(id) if id <= RowId::MAX.0 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(RowId(id))
        }
        _ => Err(Error::invalid(format!(
            "{text:?} is not the id of a row: ids go from 0 to {}",
            RowId::MAX.0
        ))),
    }
}

/// Reads the name of a commit level.
pub(crate) fn level(name: &str) -> Option<Level> {
    match name {
        "soft" => Some(Level::Soft),
        "checksummed" => Some(Level::Checksummed),
        _ => None,
    }
}

/// Gives the name of a commit level.
pub(crate) const fn level_name(level: Level) -> &'static str {
    match level {
        Level::Soft => "soft",
        Level::Checksummed => "checksummed",
    }
}

/// Reads the name of a commit level given as an option.
pub(crate) fn level_option(name: &str) -> Result<Level, String> {
    level(name).ok_or_else(|| "the levels are: soft, checksummed".to_owned())
}

/// Reads a time.
pub(crate) fn time(text: &str) -> Result<Timestamp> {
    text.parse::<Timestamp>().map_err(|error| Error::invalid(error.to_string()))
}

/// Reads a time given as an option.
pub(crate) fn time_option(text: &str) -> Result<Timestamp, String> {
    time(text).map_err(|error| error.to_string())
}

/// Appends a value as the shell reads it.
pub(crate) fn write_value(value: ValueRef<'_>, text: &mut String) {
    annals_schema::write_value(value, text);
}
