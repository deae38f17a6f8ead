//! JSON without a schema: the first pass infers the types of all values, and the second imports them.

use std::collections::{HashMap, HashSet};

use annals::{Command, Error, Result, RowId, Schema, TableNumber, Type, Value};
use annals_schema::shorten;
use indicatif::ProgressBar;

use super::reader::{Reader, Token};
use super::{Layout, Source, stem, twice};
use crate::exchange::arrival::{self, Arrived, Loading, To};
use crate::exchange::naming::Naming;
use crate::exchange::scalar::{Converted, Scalar, Seen, convert, exact_float};
use crate::files;
use crate::notes::note;

/// Makes a database of a file, of which nothing was read yet.
pub(super) fn import(source: &Source, to: &To, bar: &ProgressBar) -> Result<Arrived> {
    let metadata = std::fs::metadata(&source.path);
    if !metadata.is_ok_and(|metadata| metadata.is_file()) {
        let message = "without a schema it is read twice, so that it must be a file";
        return Err(Error::invalid(format!("{}: {message}", source.path.display())));
    }
    bar.inc_length(files::length(&source.path));
    let mut tables = Tables::default();
    walk(source, bar, |table, row| {
        let columns = tables.of(table);
        row.into_iter().for_each(|row| columns.see(row));
        Ok(())
    })?;
    let (schema, plans) = tables.plan(source.times)?;
    arrival::fill(to, &schema, |loading| {
        walk(source, bar, |table, row| match (plans.get(table), row) {
            (Some(plan), Some(row)) => plan.insert(row, loading),
            (Some(_), None) => Ok(()),
            (None, _) => Err(Error::invalid("the file changed while it was read")),
        })
    })
}

/// A value that is no array and no object, or one of them as text; a number that is none of ours as text.
enum Owned {
    Null,
    Bool(bool),
    Int(i128),
    Real(f64),
    Text(String),
    /// The value was not a string.
    Odd(String),
}

impl Owned {
    fn scalar(&self) -> Scalar<'_> {
        match self {
            Self::Null => Scalar::Null,
            Self::Bool(value) => Scalar::Bool(*value),
            Self::Int(value) => Scalar::Int(*value),
            Self::Real(value) => Scalar::Real(*value),
            Self::Text(value) | Self::Odd(value) => Scalar::Text(value),
        }
    }
}

/// The keys and values of a row. The vector is used again for the next.
type Cells = Vec<(String, Owned)>;

/// Passes each table to `each`, and then its rows.
fn walk(
    source: &Source,
    bar: &ProgressBar,
    mut each: impl FnMut(&str, Option<&Cells>) -> Result<()>,
) -> Result<()> {
    let mut reader = source.open(bar)?;
    let name = stem(&source.path);
    let mut cells = Cells::new();
    match (source.layout, reader.peek()?) {
        (Layout::Lines, _) => {
            each(&name, None)?;
            while reader.peek()?.is_some() {
                row(&mut reader, &mut cells)?;
                each(&name, Some(&cells)).map_err(|error| reader.at(error))?;
            }
            return Ok(());
        }
        (Layout::Document, Some(b'{')) => {
            let mut tables = reader.open(b'{')?;
            let (mut table, mut known) = (String::new(), HashSet::new());
            while reader.next_key(&mut tables, &mut table)? {
                if !known.insert(table.clone()) {
                    return Err(twice(&reader, &table));
                }
                if reader.peek()? != Some(b'[') {
                    return Err(reader.wrong(format_args!(
                        "{table:?} is no array of objects; a document without a schema is one, or an object \
                         of such: for an object in each line, use `import ndjson`"
                    )));
                }
                rows(&mut reader, &mut cells, &mut |cells| each(&table, cells))?;
            }
        }
        (Layout::Document, _) => rows(&mut reader, &mut cells, &mut |cells| each(&name, cells))?,
    }
    reader.end()
}

/// Reads an array of rows.
fn rows(
    reader: &mut Reader,
    cells: &mut Cells,
    each: &mut dyn FnMut(Option<&Cells>) -> Result<()>,
) -> Result<()> {
    let mut items = reader.open(b'[')?;
    each(None)?;
    while reader.next(&mut items)? {
        row(reader, cells)?;
        each(Some(cells)).map_err(|error| reader.at(error))?;
    }
    Ok(())
}

fn row(reader: &mut Reader, cells: &mut Cells) -> Result<()> {
    cells.clear();
    let mut items = reader.open(b'{')?;
    let mut key = String::new();
    while reader.next_key(&mut items, &mut key)? {
        if cells.iter().any(|(known, _)| *known == key) {
            return Err(twice(reader, &key));
        }
        let value = value(reader)?;
        cells.push((std::mem::take(&mut key), value));
    }
    Ok(())
}

fn value(reader: &mut Reader) -> Result<Owned> {
    let mut text = String::new();
    if let Some(b'[' | b'{') = reader.peek()? {
        reader.copy_value(&mut text, 0)?;
        return Ok(Owned::Odd(text));
    }
    Ok(match reader.scalar(&mut text)? {
        Token::Null => Owned::Null,
        Token::Bool(value) => Owned::Bool(value),
        Token::String => Owned::Text(text),
        Token::Number => number(text),
    })
}

/// Returns a number as an integer of 64 bits or as a float; as its text if it has more digits than either.
fn number(text: String) -> Owned {
    if !text.contains(['.', 'e', 'E']) && text != "-0" {
        let int = text.parse::<i128>().ok();
        let held = int.filter(|int| (i64::MIN.into()..=u64::MAX.into()).contains(int));
        return held.map_or(Owned::Odd(text), Owned::Int);
    }
    match exact_float(&text) {
        Some(value) => Owned::Real(value),
        None => Owned::Odd(text),
    }
}

/// The values seen of all tables, in order of appearance.
#[derive(Default)]
struct Tables(Vec<(String, Columns)>);

/// The values seen of a table.
#[derive(Default)]
struct Columns {
    rows: u64,
    columns: Vec<Column>,
    places: HashMap<String, usize>,
    /// The last `id`, as long as all are ids of rows that ascend.
    ids: Option<Option<RowId>>,
}

struct Column {
    key: String,
    seen: Seen,
    /// In how many rows it was.
    rows: u64,
    /// The first value that is no string and became text, and the number of its row.
    odd: Option<(u64, String)>,
}

impl Tables {
    /// Returns the columns of a table, none at first.
    fn of(&mut self, table: &str) -> &mut Columns {
        let place = self.0.iter().position(|(name, _)| name == table).unwrap_or(self.0.len());
        if place == self.0.len() {
            let columns = Columns { ids: Some(None), ..Columns::default() };
            self.0.push((table.to_owned(), columns));
        }
        &mut self.0[place].1
    }

    /// Returns the schema that holds all of it, and how the rows go there.
    fn plan(&self, times: bool) -> Result<(Schema, HashMap<String, Plan>)> {
        let mut schema = Schema::default();
        let mut plans = HashMap::new();
        let mut names = Naming::default();
        for (table, (original, columns)) in (0..).map(TableNumber).zip(&self.0) {
            let name = names.take(original);
            let mut add = |command| {
                schema
                    .apply(command)
                    .map_err(|error| Error::invalid(format!("{original}: {error}")))
            };
            add(Command::CreateTable { name: name.clone() })?;
            if columns.columns.is_empty() {
                note(&format!("{original}: no row has a key, so that the table has no fields"));
            }
            let mut plan = Plan { table, fields: Vec::new(), has_ids: columns.has_ids() };
            let mut fields = Naming::default();
            for column in &columns.columns {
                if column.key == "id" && plan.has_ids {
                    continue;
                }
                let (field, ty) = (fields.take(&column.key), column.seen.natural(times));
                let is_named = field == column.key && name == *original;
                if !is_named {
                    note(&format!("{original}: {:?} becomes {name}.{field}", column.key));
                }
                if column.odd.is_some() || column.seen.is_mixed() {
                    let first = match &column.odd {
                        Some((row, text)) => format!(", as {} in row {row}", shorten(text)),
                        None => String::new(),
                    };
                    let what = "has values of several kinds, or that no field holds";
                    note(&format!("{original}: {:?} {what}{first}: they become texts", column.key));
                }
                let nullable = column.seen.nulls || column.rows < columns.rows;
                add(Command::AddField { table, name: field, ty, nullable, default: None })?;
                plan.fields.push((column.key.clone(), ty));
            }
            plans.insert(original.clone(), plan);
        }
        Ok((schema, plans))
    }
}

impl Columns {
    fn see(&mut self, row: &Cells) {
        self.rows += 1;
        self.see_id(row);
        for (key, value) in row {
            let place = *self.places.entry(key.clone()).or_insert_with(|| {
                let (seen, key) = (Seen::default(), key.clone());
                self.columns.push(Column { key, seen, rows: 0, odd: None });
                self.columns.len() - 1
            });
            if let Some(column) = self.columns.get_mut(place) {
                column.rows += 1;
                if let (Owned::Odd(text), None) = (value, &column.odd) {
                    column.odd = Some((self.rows, text.clone()));
                }
                column.seen.see(value.scalar());
            }
        }
    }

    fn see_id(&mut self, row: &Cells) {
        let id = id_of(row);
        self.ids = match (self.ids, id) {
            (Some(None), Some(id)) => Some(Some(id)),
            (Some(Some(last)), Some(id)) if id > last => Some(Some(id)),
            _ => None,
        };
    }

    /// True if `id` is the id of the row, everywhere.
    const fn has_ids(&self) -> bool {
        matches!(self.ids, Some(Some(_)))
    }
}

fn id_of(row: &Cells) -> Option<RowId> {
    row.iter().find(|(key, _)| key == "id").and_then(|(_, value)| match value {
        Owned::Int(id) => u64::try_from(*id).ok().map(RowId).filter(|id| *id <= RowId::MAX),
        _ => None,
    })
}

/// How the rows of a table become rows of ours.
struct Plan {
    table: TableNumber,
    /// The key and type of each field.
    fields: Vec<(String, Type)>,
    has_ids: bool,
}

impl Plan {
    fn insert(&self, row: &Cells, loading: &mut Loading<'_>) -> Result<()> {
        let value = |(key, ty): &(String, Type)| {
            let cell = row.iter().find(|(known, _)| known == key).map(|(_, value)| value.scalar());
            match convert(cell.unwrap_or(Scalar::Null), *ty) {
                Some(Converted::Value(value)) => Ok(value),
                Some(Converted::Blob(bytes)) => loading.write_blob(&*bytes).map(Value::Blob),
                None => Err(Error::invalid(format!("{key:?} has another type than before"))),
            }
        };
        let values = self.fields.iter().map(value).collect::<Result<Vec<_>>>()?;
        loading.insert(self.table, id_of(row).filter(|_| self.has_ids), &values)
    }
}
