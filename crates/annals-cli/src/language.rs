//! The words of the shell's language, as `annals-schema` reads and writes them.

use std::path::Path;

use annals::{
    BackfillMode, Error, ErrorKind, Field, Level, Result, RowId, Schema, Table, Timestamp, Value,
    ValueRef,
};
use annals_schema::{SchemaFile, Token, shorten};

use crate::{files, output};

/// Reads and checks a schema file; the error has all its mistakes, one below the other.
pub(crate) fn read_schema(path: &Path) -> Result<SchemaFile> {
    read_schemas(std::slice::from_ref(&path))
}

/// Reads the text of a schema; the error has all its mistakes, one below the other.
pub(crate) fn schema_of(text: &str) -> Result<Schema> {
    let file = annals_schema::parse(text).map_err(|mistakes| {
        Error::invalid(format!("the schema:\n{}", annals_schema::render_all(&mistakes, "schema")))
    })?;
    Ok(file.schema)
}

/// Reads and checks schema files as one schema; the error has all mistakes of all. Prints a note on standard error if
/// lines of them have no effect.
pub(crate) fn read_schemas(paths: &[impl AsRef<Path>]) -> Result<SchemaFile> {
    let mut files = Vec::new();
    for path in paths {
        let (path, shown) = (path.as_ref(), path.as_ref().display().to_string());
        if files::holds_database(path) {
            return Err(Error::invalid(format!(
                "{shown}: it is a database, not a file with a schema; `annals schema show {shown}` prints its schema"
            )));
        }
        files.push((shown, files::read_text(path)?));
    }
    let named: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let file = annals_schema::parse_files(&named).map_err(|mistakes| {
        let drawn = annals_schema::render_all(&mistakes, "");
        // The program writes the first `error: ` itself.
        Error::invalid(drawn.strip_prefix("error: ").unwrap_or(&drawn))
    })?;
    if let Some(first) = file.ignored.first() {
        let lines = match file.ignored.len() {
            1 => "this line".to_owned(),
            count => format!("this line and {} more", count - 1),
        };
        output::say(&format!(
            "note: {}: line {}: `{}` changes data, and a schema holds none: {lines} did nothing",
            output::plain(&first.file),
            first.line,
            output::plain(&first.command)
        ));
    }
    Ok(file)
}

/// Adds a hint to the error if the file is a schema rather than a database.
pub(crate) fn or_a_schema(path: &Path, error: Error) -> Error {
    /// Longer files are no schemas.
    const LONGEST: u64 = 16 << 20;
    let is_schema = error.kind() == ErrorKind::NotAJournal
        && files::length(path) <= LONGEST
        && files::read_text(path).is_ok_and(|text| annals_schema::parse(&text).is_ok());
    if !is_schema {
        return error;
    }
    let shown = path.display();
    Error::new(
        ErrorKind::NotAJournal,
        format!(
            "{shown}: it is a file with a schema, not a database; `annals compile {shown}` makes Rust of it, and \
             `annals schema diff {shown} FILE` compares it with a database"
        ),
    )
}

/// Returns the first difference of a file's schema from the expected one.
pub(crate) fn difference(file: &Schema, wanted: &Schema) -> Option<String> {
    annals_schema::first_difference(file, wanted).map(|difference| difference.to_string())
}

/// Reads a value for the field from a text that represents it.
pub(crate) fn value(table: &Table, field: &Field, token: &Token<'_>) -> Result<Value> {
    let wrong = |message: &str| {
        Error::invalid(format!("field {} of table {}: {message}", field.name, table.name))
    };
    let value = annals_schema::parse_value(field.ty, token).map_err(|message| wrong(&message))?;
    if !field.accepts(value.as_ref()) {
        return Err(wrong("it can't be null"));
    }
    Ok(value)
}

/// Reads a value of the field from a text without quotes.
pub(crate) fn bare_value(table: &Table, field: &Field, text: &str) -> Result<Value> {
    whole_value(table, field, text, false)
}

/// Reads a value of the field, which holds texts, from a text that is all of it.
pub(crate) fn text_value(table: &Table, field: &Field, text: &str) -> Result<Value> {
    whole_value(table, field, text, true)
}

fn whole_value(table: &Table, field: &Field, text: &str, quoted: bool) -> Result<Value> {
    let length = text.chars().count();
    value(table, field, &Token { text: text.into(), column: 1, length, quoted })
}

/// Finds a table, or says which there are.
pub(crate) fn table<'s>(schema: &'s Schema, name: &str) -> Result<&'s Table> {
    schema.table_named(name).ok_or_else(|| {
        let names = schema.tables().iter().map(|table| table.name.as_str());
        Error::new(
            annals::ErrorKind::NotFound,
            format!(
                "there is no table {:?}; {}{}",
                shorten(name),
                near(name, names.clone()),
                those("tables", names)
            ),
        )
    })
}

/// Finds the table of a file: if none has that name, `-` is read as `_`.
pub(crate) fn table_of_file<'s>(schema: &'s Schema, name: &str) -> Result<&'s Table> {
    schema.table_named(name).map_or_else(|| table(schema, &name.replace('-', "_")), Ok)
}

/// Finds a field, or says which there are.
pub(crate) fn field<'s>(table: &'s Table, name: &str) -> Result<&'s Field> {
    table.field_named(name).ok_or_else(|| {
        let names = table.fields.iter().map(|field| field.name.as_str());
        Error::new(
            annals::ErrorKind::NotFound,
            format!(
                "table {} has no field {:?}; {}{}",
                table.name,
                shorten(name),
                near(name, names.clone()),
                those("fields", names)
            ),
        )
    })
}

/// Returns a question for the name that is probably meant, to stand before a list; empty if none is.
pub(crate) fn near<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> String {
    // One letter is near to each other one.
    let name = Some(name).filter(|name| name.len() > 1);
    let near = name.and_then(|name| annals_schema::nearest(name, names));
    near.map_or_else(String::new, |near| format!("did you mean `{near}`? "))
}

/// Lists names for the end of an error message.
pub(crate) fn those<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 30;
    let mut names = names;
    let shown: Vec<&str> = names.by_ref().take(MOST).collect();
    if shown.is_empty() {
        return format!("there are no {what}");
    }
    let more = if names.next().is_some() { ", .." } else { "" };
    format!("the {what} are: {}{more}", shown.join(", "))
}

/// Reads the id of a row.
pub(crate) fn row_id(text: &str) -> Result<RowId> {
    match text.parse::<u64>() {
        Ok(id) if id <= RowId::MAX.0 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(RowId(id))
        }
        _ => Err(Error::invalid(format!(
            "{:?} is not the id of a row: ids go from 0 to {}",
            shorten(text),
            RowId::MAX.0
        ))),
    }
}

/// Returns the names of all commit levels.
pub(crate) fn levels() -> String {
    Level::ALL.map(Level::name).join(", ")
}

/// Reads the name of a commit level given as an option.
pub(crate) fn level_option(name: &str) -> Result<Level, String> {
    Level::named(name).ok_or_else(|| format!("the levels are: {}", levels()))
}

/// Reads the name of a mode of backfills.
pub(crate) fn backfill_mode(name: &str) -> Result<BackfillMode> {
    let unknown = |modes| Error::invalid(format!("unknown mode {:?}; {modes}", shorten(name)));
    backfill_mode_option(name).map_err(unknown)
}

/// Reads the name of a mode of backfills given as an option.
pub(crate) fn backfill_mode_option(name: &str) -> Result<BackfillMode, String> {
    let modes = || BackfillMode::ALL.map(BackfillMode::name).join(", ");
    BackfillMode::named(name).ok_or_else(|| format!("the modes are: {}", modes()))
}

/// Reads a time.
pub(crate) fn time(text: &str) -> Result<Timestamp> {
    text.parse::<Timestamp>().map_err(|error| Error::invalid(error.to_string()))
}

/// Reads a time given as an option.
pub(crate) fn time_option(text: &str) -> Result<Timestamp, String> {
    time(text).map_err(|error| error.to_string())
}

/// Returns a value as the shell reads it.
pub(crate) fn value_text(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

/// Returns the bytes of a blob as `write_blob` reads them: as a text in quotes, if they are one.
pub(crate) fn bytes_text(bytes: &[u8]) -> String {
    let strange = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(strange) => value_text(ValueRef::String(text)),
        _ => value_text(ValueRef::Bytes(bytes)),
    }
}

/// Appends a value as the shell reads it.
pub(crate) fn write_value(value: ValueRef<'_>, text: &mut String) {
    // Writing to a string can't fail.
    let _infallible = annals_schema::write_value(text, value);
}
