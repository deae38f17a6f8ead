//! A CSV file and the table of its rows; and the contents of a folder of them.

use std::path::{Path, PathBuf};

use annals::{Error, Field, FieldNumber, Result, RowId, Schema, Table, TableNumber, Type, Value};
use indicatif::ProgressBar;

use super::SCHEMA_FILE;
use super::records::{Record, Records};
use crate::exchange::arrival::Loading;
use crate::exchange::naming;
use crate::notes::note;
use crate::{cell, files, language};

/// How the cells of files are written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner<'a> {
    /// The text of a cell that is null; without one, an empty cell without quotes is.
    pub(crate) null: Option<&'a str>,
    /// The byte between cells; without one, it is what the first line has.
    pub(crate) separator: Option<u8>,
}

impl Manner<'_> {
    /// True if a cell is null, where it may be.
    pub(super) fn is_null(&self, text: &str, quoted: bool) -> bool {
        self.null.map_or(text.is_empty() && !quoted, |null| null == text)
    }
}

/// The target of a column of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// It is the row's id.
    Id,
    /// It is the field with this place among the table's.
    Field(usize),
}

/// A file, and the table that its rows go to.
pub(crate) struct Source {
    /// The table.
    pub(crate) table: TableNumber,
    path: PathBuf,
    pub(super) columns: Vec<Column>,
    records: Records,
}

impl Source {
    /// Opens a file for a table and reads its header.
    pub(crate) fn open(
        table: &Table,
        path: &Path,
        manner: Manner<'_>,
        bar: &ProgressBar,
    ) -> Result<Self> {
        let (mut records, mut heading) = (open(path, manner, bar)?, Record::default());
        records.read(&mut heading)?;
        let columns = columns(table, &heading).map_err(|error| error.within(path.display()))?;
        Ok(Self { table: table.number, path: path.to_owned(), columns, records })
    }

    /// Takes a file that is opened again, of which it is known where its columns go.
    pub(super) fn known(
        table: TableNumber,
        path: &Path,
        columns: Vec<Column>,
        mut records: Records,
    ) -> Result<Self> {
        records.read(&mut Record::default())?;
        Ok(Self { table, path: path.to_owned(), columns, records })
    }

    /// Inserts all rows.
    pub(crate) fn import(&mut self, loading: &mut Loading<'_>, manner: Manner<'_>) -> Result<()> {
        let schema = loading.schema().clone();
        let Some(table) = schema.table(self.table) else { return Ok(()) };
        let mut values: Vec<Value> = table.fields.iter().map(Field::default_value).collect();
        let mut record = Record::default();
        while self.records.read(&mut record)? {
            self.insert(table, &record, manner, &mut values, loading).map_err(|error| {
                error.within(format_args!("{}: line {}", self.path.display(), record.line))
            })?;
        }
        Ok(())
    }

    /// Inserts one row. `values` is space for its values.
    fn insert(
        &self,
        table: &Table,
        record: &Record,
        manner: Manner<'_>,
        values: &mut [Value],
        loading: &mut Loading<'_>,
    ) -> Result<()> {
        let mut id = None;
        if record.len() != self.columns.len() {
            let (cells, wanted) = (record.len(), self.columns.len());
            return Err(Error::invalid(format!("{cells} cells, where the header has {wanted}")));
        }
        for (column, (text, quoted)) in self.columns.iter().zip(record.cells()) {
            match *column {
                Column::Id => id = Some(row_id(text)?),
                Column::Field(place) => {
                    let slot = table.fields.get(place).zip(values.get_mut(place));
                    let Some((field, value)) = slot else { continue };
                    *value = match (field.ty, text.strip_prefix("0x")) {
                        (Type::Blob, Some(_)) if manner.null != Some(text) => {
                            Value::Blob(loading.write_blob(&*cell::bytes(table, field, text)?)?)
                        }
                        _ if loading.is_erased(table, field) && manner.is_null(text, quoted) => {
                            Value::Null
                        }
                        _ => cell::cell(table, field, text, quoted, manner.null)?,
                    };
                }
            }
        }
        loading.insert(table.number, id, values)
    }
}

fn row_id(text: &str) -> Result<RowId> {
    language::row_id(text).map_err(|error| error.within("column id"))
}

/// Opens the records of a file.
pub(super) fn open(path: &Path, manner: Manner<'_>, bar: &ProgressBar) -> Result<Records> {
    bar.inc_length(files::length(path));
    let records = Records::new(files::open_input(path, bar)?, path, manner.separator)?;
    if manner.separator.is_none() && records.separator != b',' {
        let separator = char::from(records.separator);
        note(&format!(
            "{}: {separator:?} separates its columns, by its first line; --separator says another",
            path.display()
        ));
    }
    Ok(records)
}

/// Finds the target of each column. All fields must be present, but for those with a default, and nothing else.
fn columns(table: &Table, headings: &Record) -> Result<Vec<Column>> {
    let names: Vec<String> = table.fields.iter().map(|field| cell::heading(table, field)).collect();
    let known = || language::those("fields", names.iter().map(String::as_str));
    let mut columns = Vec::new();
    for (heading, _) in headings.cells() {
        let column = match names.iter().position(|name| name == heading) {
            Some(place) => Column::Field(place),
            None if heading == "id" => Column::Id,
            None => {
                let (name, known) = (&table.name, known());
                let message = format!("table {name} has no field for column {heading:?}; {known}");
                return Err(Error::invalid(message));
            }
        };
        if columns.contains(&column) {
            return Err(Error::invalid(format!("column {heading:?} is there twice")));
        }
        columns.push(column);
    }
    let places = names.iter().enumerate();
    let missing = places.filter(|(place, _)| {
        let has_default = table.fields.get(*place).is_some_and(|field| field.default.is_some());
        !has_default && !columns.contains(&Column::Field(*place))
    });
    let missing: Vec<&str> = missing.map(|(_, name)| name.as_str()).collect();
    if !missing.is_empty() {
        let (table, missing) = (&table.name, missing.join(", "));
        let message = format!("no column for these fields of table {table}: {missing}");
        return Err(Error::invalid(message));
    }
    Ok(columns)
}

/// The contents of a folder.
#[derive(Default)]
pub(crate) struct Folder {
    /// The schema, if there is one.
    pub(crate) schema: Option<Schema>,
    /// The next ids of tables that don't follow from the rows.
    pub(crate) next_ids: Vec<(TableNumber, u64)>,
    /// Fields that may not be null, where null says that a value was erased.
    pub(crate) erased: Vec<(TableNumber, FieldNumber)>,
    /// The names of tables, and their files.
    pub(crate) files: Vec<(String, PathBuf)>,
}

/// Reads a folder of files with one of these endings; or one file, as if it were alone in one. `given` is a schema
/// from elsewhere.
pub(crate) fn folder(path: &Path, given: Option<&Schema>, endings: &[&str]) -> Result<Folder> {
    if !path.is_dir() {
        return Ok(Folder { files: vec![(stem(path), path.to_owned())], ..Folder::default() });
    }
    let failed = |error| files::cannot("read the directory", path, error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let ending = name.split_once('.').map_or("", |(_, ending)| ending);
        if !name.starts_with('.') && endings.contains(&ending) {
            found.push((stem(&path), path));
        }
    }
    found.sort();
    let schema_path = path.join(SCHEMA_FILE);
    if given.is_some() || !schema_path.exists() {
        if found.is_empty() {
            let endings = endings.join(" or .");
            let message = format!("{}: no file there ends with .{endings}", path.display());
            return Err(Error::new(annals::ErrorKind::NotFound, message));
        }
        return Ok(Folder { files: found, ..Folder::default() });
    }
    let schema = language::read_schema(&schema_path)?.schema;
    let text = files::read_text(&schema_path)?;
    let within = |error: Error| error.within(schema_path.display());
    let next_ids = next_ids(&schema, &text).map_err(within)?;
    let erased = erased(&schema, &text).map_err(within)?;
    let mut listed = Vec::new();
    for (table, name) in schema.tables().iter().zip(naming::file_names(&schema)) {
        let place = found.iter().position(|(found, _)| *found == name).ok_or_else(|| {
            let (name, dir) = (&table.name, path.display());
            Error::new(annals::ErrorKind::NotFound, format!("{dir}: no file for table {name}"))
        })?;
        listed.push((table.name.clone(), found.swap_remove(place).1));
    }
    for (_, path) in found {
        note(&format!("{}: the schema has no such table: it was left out", path.display()));
    }
    Ok(Folder { schema: Some(schema), next_ids, erased, files: listed })
}

/// Reads the lines `# next_id TABLE ID`.
fn next_ids(schema: &Schema, text: &str) -> Result<Vec<(TableNumber, u64)>> {
    let mut all = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# next_id ")) {
        let wrong = || Error::invalid(format!("{line:?} is no table and its next id"));
        let (name, next) = line.split_once(' ').ok_or_else(wrong)?;
        let next = next.trim().parse().map_err(|_| wrong())?;
        all.push((language::table(schema, name)?.number, next));
    }
    Ok(all)
}

/// Reads the lines `# erased TABLE FIELD`.
fn erased(schema: &Schema, text: &str) -> Result<Vec<(TableNumber, FieldNumber)>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# erased "));
    let field = |line: &str| {
        let wrong = || Error::invalid(format!("{line:?} is no table and a field of it"));
        let (name, field) = line.split_once(' ').ok_or_else(wrong)?;
        let table = language::table(schema, name)?;
        let field = table.fields.iter().find(|known| known.name == field.trim());
        Ok((table.number, field.ok_or_else(wrong)?.number))
    };
    lines.map(field).collect()
}

/// Returns the name of the table that a file is of.
fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}
