//! Rows as JSON: one by its id, or those of a table or an index in order, now or at any moment before.

#[cfg(feature = "arrow")]
mod arrow;
mod dropped;
mod file;
mod shown;

use std::sync::Arc;

use annals::store::IndexRows;
use annals::{
    Error, FieldNumber, Index, Moment, Row, RowId, Schema, Snapshot, Table, Value, ValueRef,
};
use axum::extract::{Path, Query};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::forgotten::forgotten;
use crate::means::Kind;
use crate::openapi;
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;

pub(crate) use self::dropped::table_or_when_dropped;
use self::shown::Shown;

/// How many rows an answer has, if the request doesn't say.
const USUAL: usize = 100;
/// The most rows of an answer.
const MOST: usize = 10_000;
/// Finding so many rows, and writing them, takes less than a millisecond.
const FEW: usize = 1000;
/// The longest key of an index, in bytes, that is sent as a place: it must fit into a URL.
const LONGEST_KEY: usize = 2 << 10;
/// A page or log ends after so many bytes, however many rows were asked for.
pub(crate) const LARGEST: usize = 8 << 20;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(rows)).routes(routes!(row))
}

/// Finds a table by its name.
pub(crate) fn table<'s>(schema: &'s Schema, name: &str) -> Answer<&'s Table> {
    schema.table_named(name).ok_or_else(|| {
        let names: Vec<_> = schema.tables().iter().map(|table| table.name.as_str()).collect();
        Refusal::not_found(format!(
            "there is no table {name:?}; the tables are: {}",
            names.join(", ")
        ))
    })
}

/// Reads an id from a URL.
pub(crate) fn id(text: &str) -> Answer<RowId> {
    let id = text.parse().ok().map(RowId).filter(|id| *id <= RowId::MAX);
    id.ok_or_else(|| Refusal::bad(format!("{text:?} isn't the id of a row: write a number")))
}

/// Returns the state of a moment, as `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:..`; without one that of now.
pub(crate) fn state(local: &annals_replica::Local, at: Option<&str>) -> Answer<Snapshot> {
    state_as(local, at, None)
}

/// Reads a moment from a parameter.
pub(crate) fn moment(name: &str, text: &str) -> Answer<Moment> {
    text.parse().map_err(|error| Refusal::bad(format!("{name}: {error}")))
}

/// Returns the refusal of a moment whose state isn't there: it was forgotten, or never was.
pub(crate) fn no_moment(local: &annals_replica::Local, moment: &Moment, error: Error) -> Refusal {
    let was_there = match moment {
        Moment::Txid(txid) => *txid <= local.read().txid(),
        // Before the first transaction the database was empty.
        Moment::Time(_) => true,
        Moment::Comment(_) => false,
    };
    if was_there { forgotten(local, error) } else { error.into() }
}

/// Returns the state of a moment; with the schema of that time, if `as_it_was` is true.
pub(crate) fn state_as(
    local: &annals_replica::Local,
    at: Option<&str>,
    as_it_was: Option<bool>,
) -> Answer<Snapshot> {
    let Some(at) = at else { return now(local) };
    let moment = moment("at", at)?;
    let state = match as_it_was {
        Some(true) => local.as_it_was(moment.clone()),
        _ => local.at(moment.clone()),
    };
    state.map_err(|error| no_moment(local, &moment, error))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct At {
    /// The moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`; without it now.
    at: Option<String>,
    /// True: with the schema of that moment, with tables and fields that were dropped since.
    as_it_was: Option<bool>,
    /// The names of the fields to send, with commas between them: no others are read. Without it all.
    fields: Option<String>,
}

/// Returns a row.
#[utoipa::path(get, path = "/v1/{name}/t/{table}/{id}", params(At), responses((status = 200, body = openapi::Row)))]
async fn row(
    allowed: Allowed,
    Path((_, of, number)): Path<(String, String, String)>,
    Query(At { at, as_it_was, fields }): Query<At>,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    let kind = if at.is_none() { Kind::Quick } else { Kind::Long };
    let read = move |_: &mut Work| {
        let now = state_as(&local, at.as_deref(), as_it_was)?;
        let table = table(now.schema(), &of)?;
        let id = id(&number)?;
        let shown = Shown::new(table, fields.as_deref())?;
        let found = shown.by_id(now.table(table.number)?.range(id..=id)).next().transpose()?;
        let missing = || Refusal::not_found(format!("table {of:?} has no row {}", id.0));
        let mut text = String::new();
        annals_json::push_row(&mut text, &shown.table, &found.ok_or_else(missing)?);
        text.push('\n');
        Ok(text)
    };
    allowed.text(kind, read).await
}

/// Which rows of a table.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// The moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`; without it now.
    pub(crate) at: Option<String>,
    /// True: with the schema of that moment, with tables, fields and indexes that were dropped since.
    pub(crate) as_it_was: Option<bool>,
    /// The name of an index, in whose order the rows are; without one in that of their ids.
    pub(crate) index: Option<String>,
    /// The first key, or the first id: values of the schema language, with commas between them.
    pub(crate) from: Option<String>,
    /// The key that all rows have.
    pub(crate) key: Option<String>,
    /// After what the answer begins: `next` of the page before, or the id of a row.
    pub(crate) after: Option<String>,
    /// How many rows of the index are before the first one of the answer.
    pub(crate) rank: Option<u64>,
    /// The most rows of the answer, 1 to 10,000; 100 if it isn't said. A page ends after about 8 MiB, too. As Arrow up to
    /// 1,000,000, and all if it isn't said; all of a file.
    pub(crate) limit: Option<usize>,
    /// All rows as a file to save, rather than a page: `csv`, or `ndjson`, an object a line.
    pub(crate) file: Option<Format>,
    /// The names of the fields to send, with commas between them: no others are read. Without it all.
    pub(crate) fields: Option<String>,
}

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    Csv,
    Ndjson,
}

/// Returns rows, as `{"rows":[..],"next":..}`: `next` is the `after` of the next page, null at the end. With `Accept:
/// application/vnd.apache.arrow.stream` all rows, as record batches; with `file` all rows, as text.
#[utoipa::path(get, path = "/v1/{name}/t/{table}", params(Asked), responses((status = 200, body = openapi::Rows)))]
async fn rows(
    allowed: Allowed,
    Path((_, of)): Path<(String, String)>,
    Query(asked): Query<Asked>,
    #[cfg(feature = "arrow")] headers: axum::http::HeaderMap,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    #[cfg(feature = "arrow")]
    if crate::arrow::is_wanted(&headers) {
        return arrow::table(&allowed, of, asked).await;
    }
    if let Some(format) = asked.file {
        return file::answer(&allowed, of, asked, format).await;
    }
    // A page of some rows is quick. One of thousands isn't, nor is a state of the past, which may have to be made.
    let is_quick = asked.at.is_none() && asked.limit.unwrap_or(USUAL) <= FEW;
    let kind = if is_quick { Kind::Quick } else { Kind::Long };
    let read = move |work: &mut Work| {
        let now = state_as(&local, asked.at.as_deref(), asked.as_it_was)?;
        page(work, &now, &of, &asked)
    };
    allowed.text(kind, read).await
}

fn page(work: &mut Work, now: &Snapshot, of: &str, asked: &Asked) -> Answer<String> {
    let limit = asked.limit.unwrap_or(USUAL);
    if limit == 0 || limit > MOST {
        return Err(Refusal::bad(format!("limit: write a number from 1 to {MOST}")));
    }
    let table = table(now.schema(), of)?;
    let text = "{\"rows\":[".to_owned();
    let shown = Shown::new(table, asked.fields.as_deref())?;
    let mut page = Page { taken: text, table, shown: &shown, left: limit, last: None };
    let is_more = page.fill(work, now, asked)?;
    let next = match (page.last.filter(|_| is_more), &asked.index) {
        (None, _) => "null".to_owned(),
        (Some(last), None) => last.0.to_string(),
        (Some(last), Some(name)) => Place::of(now, index(now.schema(), table, name)?, last)?,
    };
    Ok(page.taken + &format!("],\"next\":{next}}}\n"))
}

/// Finds an index of a table by its name.
fn index<'s>(schema: &'s Schema, table: &Table, name: &str) -> Answer<&'s Index> {
    let found = schema.indexes().iter().find(|it| it.name == name && it.table == table.number);
    found
        .map(Arc::as_ref)
        .ok_or_else(|| Refusal::not_found(format!("table {:?} has no index {name:?}", table.name)))
}

/// After what a page of an index begins.
enum Place {
    /// A row, where it is now.
    Row(RowId),
    /// A place in the order of the index, whatever became of the row that was there.
    Key(Vec<u8>),
}

impl Place {
    /// Returns the place of a row as JSON: `"INDEX-KEY"`, in hexadecimal digits; of a very long key the id.
    fn of(now: &Snapshot, index: &Index, id: RowId) -> Answer<String> {
        let key = now.index(index.number)?.key_of(id)?;
        if key.len() > LONGEST_KEY {
            return Ok(id.0.to_string());
        }
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("\"{}-{digits}\"", index.number.0))
    }

    fn read(text: &str, index: &Index) -> Answer<Self> {
        let Some((number, digits)) = text.split_once('-') else { return id(text).map(Self::Row) };
        let is_of_this = number.parse() == Ok(index.number.0);
        let digit =
            |digit: &u8| char::from(*digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let key: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
        key.filter(|key| is_of_this && !key.is_empty()).map(Self::Key).ok_or_else(|| {
            Refusal::bad(format!(
                "after: {text:?} isn't a place in the index {:?}: send `next` of the page before, or the id of a row",
                index.name
            ))
        })
    }

    fn rows_after<'a>(&self, rows: IndexRows<'a>) -> IndexRows<'a> {
        match self {
            Self::Row(id) => rows.after(*id),
            Self::Key(key) => rows.after_key(key),
        }
    }
}

/// Returns the ids of the rows that are asked for, `most` of them, and whether there are more.
#[cfg(feature = "arrow")]
pub(crate) fn ids(
    work: &mut Work,
    now: &Snapshot,
    table: &Table,
    asked: &Asked,
    most: usize,
) -> Answer<(Vec<RowId>, bool)> {
    let shown = Shown::nothing(table);
    let mut page = Page { taken: Vec::new(), table, shown: &shown, left: most, last: None };
    let is_more = page.fill(work, now, asked)?;
    Ok((page.taken, is_more))
}

/// Has as many of the rows that are asked for taken as there is room for; returns the last of them, if there are more.
fn fill(
    work: &mut Work,
    now: &Snapshot,
    (table, shown): (&Table, &Shown<'_>),
    asked: &Asked,
    taken: impl Take,
) -> Answer<Option<RowId>> {
    let mut page = Page { taken, table, shown, left: usize::MAX, last: None };
    let is_more = page.fill(work, now, asked)?;
    Ok(page.last.filter(|_| is_more))
}

/// What takes the rows of a page.
pub(crate) trait Take {
    /// True if it takes no more.
    fn is_full(&self) -> bool;

    /// Returns how many bytes it has.
    fn bytes(&self) -> usize;

    fn take(&mut self, table: &Table, row: &Row<'_>);
}

/// JSON: the rows of a list.
impl Take for String {
    fn is_full(&self) -> bool {
        self.len() > LARGEST
    }

    fn bytes(&self) -> usize {
        self.capacity()
    }

    fn take(&mut self, table: &Table, row: &Row<'_>) {
        self.push_str(if self.ends_with('[') { "\n" } else { ",\n" });
        annals_json::push_row(self, table, row);
    }
}

#[cfg(feature = "arrow")]
impl Take for Vec<RowId> {
    fn is_full(&self) -> bool {
        false
    }

    fn bytes(&self) -> usize {
        self.capacity() * size_of::<RowId>()
    }

    fn take(&mut self, _: &Table, row: &Row<'_>) {
        self.push(row.id());
    }
}

/// A page that is being filled.
struct Page<'t, T> {
    taken: T,
    table: &'t Table,
    shown: &'t Shown<'t>,
    left: usize,
    last: Option<RowId>,
}

impl<T: Take> Page<'_, T> {
    /// Adds the rows that are asked for; returns true if there are more.
    fn fill(&mut self, work: &mut Work, now: &Snapshot, asked: &Asked) -> Answer<bool> {
        match &asked.index {
            Some(index) => self.by_index(work, now, index, asked),
            None => self.by_id(work, now, asked),
        }
    }

    /// Adds a row; returns true if there was no room for it.
    fn add(&mut self, row: &Row<'_>) -> bool {
        if self.left == 0 || self.taken.is_full() {
            return true;
        }
        self.left -= 1;
        self.taken.take(&self.shown.table, row);
        self.last = Some(row.id());
        false
    }

    fn add_all<'r>(
        &mut self,
        work: &mut Work,
        rows: impl Iterator<Item = annals::Result<Row<'r>>>,
    ) -> Answer<bool> {
        for row in rows {
            if self.add(&row?) {
                return Ok(true);
            }
            work.cover(self.taken.bytes())?;
        }
        Ok(false)
    }

    fn by_id(&mut self, work: &mut Work, now: &Snapshot, asked: &Asked) -> Answer<bool> {
        if asked.key.is_some() || asked.rank.is_some() {
            let message = "key, rank: name the index that they are of, as index=NAME";
            return Err(Refusal::bad(message));
        }
        let first = match (&asked.after, &asked.from) {
            (Some(after), _) => RowId(id(after)?.0 + 1),
            (None, Some(from)) => id(from)?,
            (None, None) => RowId(0),
        };
        let rows = now.table(self.table.number)?;
        self.add_all(work, self.shown.by_id(rows.range(first..)))
    }

    fn by_index(
        &mut self,
        work: &mut Work,
        now: &Snapshot,
        name: &str,
        asked: &Asked,
    ) -> Answer<bool> {
        let index = index(now.schema(), self.table, name)?;
        let view = now.index(index.number)?;
        let key = |what: &str, text: &Option<String>| {
            text.as_ref().map(|text| values(self.table, &index.fields, text, what)).transpose()
        };
        let (whole, from) = (key("key", &asked.key)?, key("from", &asked.from)?);
        if whole.is_some() && (from.is_some() || asked.rank.is_some()) {
            return Err(Refusal::bad("key: its rows are all sent; leave out from and rank"));
        }
        let after = asked.after.as_ref().map(|after| Place::read(after, index)).transpose()?;
        let rows = match (&whole, after) {
            (Some(key), None) => view.equal(&refs(key)),
            (Some(key), Some(after)) => after.rows_after(view.equal(&refs(key))),
            (None, Some(after)) => after.rows_after(view.rows()),
            (None, None) => {
                let before = match &from {
                    Some(from) => view.rank(&refs(from))?,
                    None => asked.rank.unwrap_or(0),
                };
                // The row before them is read, too: of it no more than of others.
                let mut rows = self.shown.by_key(view.rows());
                if let Some(last) = before.checked_sub(1) {
                    // It takes logarithmic time.
                    rows.nth(usize::try_from(last).unwrap_or(usize::MAX)).transpose()?;
                }
                rows
            }
        };
        self.add_all(work, self.shown.by_key(rows))
    }
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// Reads values of the first fields of an index, with commas between them. A text needs no quotes, unless it has a comma.
fn values(table: &Table, fields: &[FieldNumber], text: &str, what: &str) -> Answer<Vec<Value>> {
    let wrong = |why: String| Refusal::bad(format!("{what}: {why}"));
    let parts = parts(text);
    if parts.len() > fields.len() {
        return Err(wrong(format!(
            "the index has {} fields; write so many values at most",
            fields.len()
        )));
    }
    let read = |(part, number): (&String, &FieldNumber)| {
        let field = table.field(*number).ok_or_else(|| wrong("a field is missing".to_owned()))?;
        let quoted = match field.ty {
            annals::Type::String if !part.starts_with('"') => {
                let mut quoted = String::new();
                // Writing to a string doesn't fail.
                let _infallible = annals_schema::write_value(&mut quoted, ValueRef::String(part));
                quoted
            }
            _ => part.clone(),
        };
        let tokens = annals_schema::tokenize(&quoted).map_err(|error| wrong(error.to_string()))?;
        let [token] = tokens.as_slice() else {
            return Err(wrong(format!("{part:?} isn't a value of `{}`", field.name)));
        };
        let value = annals_schema::parse_value(field.ty, token);
        value.map_err(|error| wrong(format!("`{}`: {error}", field.name)))
    };
    parts.iter().zip(fields).map(read).collect()
}

/// Divides a text at the commas that aren't in quotes.
fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut is_quoted, mut is_escaped) = (vec![String::new()], false, false);
    for c in text.chars() {
        if c == ',' && !is_quoted {
            parts.push(String::new());
            continue;
        }
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}
