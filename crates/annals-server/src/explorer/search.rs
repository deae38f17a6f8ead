//! Finding rows by their values: a scan, which ends after a while and says where to continue.
//!
//! It passes over the ids of a table in order. With deleted rows, it asks the history index for each gap between the ids
//! that are in use.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Deletions, FieldNumber, RowId, Snapshot, Table, Txid, ValueRef};
use annals_replica::Local;
use axum::extract::Query;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::means::Kind;
use crate::rights::Allowed;
use crate::rows::{self, LARGEST, table};
use crate::shared::Shared;
use crate::state;
use crate::work::Work;

/// The most rows that an answer has.
const MOST: usize = 100;
/// How long an answer takes at most: the rest is for the next one.
const LONGEST: Duration = Duration::from_millis(500);
/// The found rows are in memory once as they are, and once in the answer.
const COPIES: usize = 2;
/// After so many rows it looks at the clock.
const STRIDE: u32 = 512;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(search))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The text that a value must have in it, whatever its case; or the id of a row; or `FIELD=VALUE`, as `closed=yes`.
    text: String,
    /// The moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`; without it now.
    at: Option<String>,
    /// The table in which to begin: `next.table` of the answer before.
    table: Option<String>,
    /// The row of that table to begin with: `next.id` of the answer before.
    from: Option<u64>,
    /// True: only that table.
    only: Option<bool>,
    /// True: also rows that were deleted before the moment, by their last values.
    deleted: Option<bool>,
}

/// Rows that were found.
#[derive(Serialize, ToSchema)]
struct Searched {
    found: Vec<Hit>,
    /// Where to continue; null if all was searched.
    next: Option<Place>,
    /// Tables without a history index: their deleted rows can't be found.
    left_out: Vec<String>,
}

/// A row that was found.
#[derive(Serialize, ToSchema)]
struct Hit {
    table: String,
    id: u64,
    /// The field whose value has the text; null if it is the id.
    field: Option<String>,
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
    /// All of its values.
    #[schema(value_type = serde_json::Value)]
    row: Box<RawValue>,
    /// When it was deleted; null if it is there.
    deleted: Option<Deleted>,
}

/// The transaction that deleted a row.
#[derive(Serialize, ToSchema)]
struct Deleted {
    txid: u64,
    time: String,
}

/// A place in a table.
#[derive(Serialize, ToSchema)]
struct Place {
    table: String,
    id: u64,
}

/// Returns rows that have a text in a value, or that have an id: up to 100, of what half a second is enough for.
#[utoipa::path(get, path = "/v1/{name}/search", params(Asked), responses((status = 200, body = Searched)))]
async fn search(allowed: Allowed, Query(asked): Query<Asked>) -> Answer {
    let local = Arc::clone(&allowed.local);
    allowed.value(Kind::Long, move |work| find(work, &local, &asked)).await
}

/// A search that is going on.
struct Search {
    /// In small letters, as `value`.
    text: String,
    /// The name of a field and the value that it must have, if the text has this form.
    wanted: Option<(String, String)>,
    deadline: Duration,
    looked_at: u32,
    found: Vec<Hit>,
    /// The bytes of the found rows as JSON.
    bytes: usize,
}

/// A row that may be found.
struct Candidate<'v, V: Fn(FieldNumber) -> ValueRef<'v>> {
    id: RowId,
    value: V,
    deleted: Option<Deleted>,
}

fn find(work: &mut Work, local: &Local, asked: &Asked) -> Answer<Searched> {
    let mut search = Search::of(&asked.text)?;
    let now = rows::state(local, asked.at.as_deref())?;
    // History is read up to the moment, from the present.
    let past = asked.deleted.unwrap_or(false).then(|| state::now(local)).transpose()?;
    let schema = now.schema();
    let first = asked.table.as_ref().map(|name| table(schema, name)).transpose()?;
    let tables = schema.tables().iter();
    let tables = tables.skip_while(|table| first.is_some_and(|first| first.number != table.number));
    let most = if asked.only == Some(true) { 1 } else { usize::MAX };
    let mut left_out = Vec::new();
    for (place, table) in tables.take(most).enumerate() {
        let from = asked.from.filter(|_| place == 0 && first.is_some()).unwrap_or(0);
        let deletions = past.as_ref().map(|past| past.deletions(table.number)).transpose()?;
        if matches!(deletions, Some(None)) {
            left_out.push(table.name.clone());
        }
        let is_late = place > 0 && search.is_late();
        let next = match is_late {
            true => Some(from),
            false => search.look_in(work, &now, table, from, deletions.flatten().as_ref())?,
        };
        if let Some(id) = next {
            let next = Some(Place { table: table.name.clone(), id });
            return Ok(Searched { found: search.found, next, left_out });
        }
    }
    Ok(Searched { found: search.found, next: None, left_out })
}

impl Search {
    fn of(text: &str) -> Answer<Self> {
        if text.is_empty() {
            return Err(Refusal::bad("text: write what to look for"));
        }
        let wanted = text.split_once('=');
        let wanted =
            wanted.map(|(field, value)| (field.trim().to_owned(), value.trim().to_lowercase()));
        let deadline = SystemClock.elapsed() + LONGEST;
        Ok(Self {
            text: text.to_lowercase(),
            wanted,
            deadline,
            looked_at: 0,
            found: Vec::new(),
            bytes: 0,
        })
    }

    fn is_late(&self) -> bool {
        SystemClock.elapsed() >= self.deadline
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MOST || self.bytes > LARGEST
    }

    fn is_over(&mut self) -> bool {
        self.looked_at += 1;
        self.is_full() || (self.looked_at.is_multiple_of(STRIDE) && self.is_late())
    }

    /// Looks at the rows of a table from an id on; returns where to continue.
    fn look_in(
        &mut self,
        work: &mut Work,
        now: &Snapshot,
        table: &Table,
        from: u64,
        deletions: Option<&Deletions>,
    ) -> Answer<Option<u64>> {
        let gone = deletions.map(|deletions| Gone { deletions, table, upto: now.txid() });
        let mut next = from;
        for row in now.table(table.number)?.range(RowId(from)..) {
            let row = row?;
            let id = row.id();
            if let Some(gone) = &gone
                && let Some(place) = self.look_at_gone(gone, next..id.0)?
            {
                return Ok(Some(place));
            }
            if self.is_over() {
                return Ok(Some(id.0));
            }
            work.cover(self.bytes * COPIES)?;
            let value = |field| row.value(field);
            self.look_at(table, Candidate { id, value, deleted: None });
            next = id.0 + 1;
        }
        gone.map_or(Ok(None), |gone| self.look_at_gone(&gone, next..RowId::MAX.0 + 1))
    }

    /// Looks at the deleted rows with these ids, of which none is in use; returns where to continue.
    fn look_at_gone(&mut self, gone: &Gone<'_>, ids: Range<u64>) -> Answer<Option<u64>> {
        let mut next = ids.start;
        while next < ids.end {
            if self.is_full() {
                return Ok(Some(next));
            }
            let left = RowId(next)..RowId(ids.end);
            let Some((id, deletion)) = gone.deletions.first_in(left, gone.upto)? else { break };
            next = id.0 + 1;
            if let Some(version) = deletion
                && let Some(values) = &version.change.before
            {
                let value = |field: FieldNumber| {
                    values.get(field.0 as usize).map_or(ValueRef::Null, annals::Value::as_ref)
                };
                let deleted =
                    Some(Deleted { txid: version.txid.0, time: version.time.to_string() });
                self.look_at(gone.table, Candidate { id, value, deleted });
            }
            // After a row, so that each answer gets on.
            if self.is_late() {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    fn look_at<'v, V: Fn(FieldNumber) -> ValueRef<'v>>(
        &mut self,
        table: &Table,
        candidate: Candidate<'v, V>,
    ) {
        let Candidate { id, value: value_of, deleted } = candidate;
        let hit = |field, value: String| {
            let mut row = String::new();
            annals_json::push_values(&mut row, table, id, &value_of);
            self.bytes += value.len() + row.len();
            // They are sent as they were written: numbers keep all of their digits.
            if let (Ok(value), Ok(row)) = (RawValue::from_string(value), RawValue::from_string(row))
            {
                let table = table.name.clone();
                self.found.push(Hit { table, id: id.0, field, value, row, deleted });
            }
        };
        if self.text.parse() == Ok(id.0) {
            return hit(None, id.0.to_string());
        }
        let mut json = String::new();
        for field in &table.fields {
            json.clear();
            annals_json::push_value(&mut json, value_of(field.number));
            let is_wanted = |(name, value): &(String, String)| {
                field.name.eq_ignore_ascii_case(name) && is_value(&json, value)
            };
            let has_text = json != "null" && contains(&json, &self.text);
            if has_text || self.wanted.as_ref().is_some_and(is_wanted) {
                return hit(Some(annals_json::key(table, field)), json);
            }
        }
    }
}

/// The rows of a table that were deleted up to a transaction.
struct Gone<'g> {
    deletions: &'g Deletions,
    table: &'g Table,
    upto: Txid,
}

/// True if a value, as JSON, is one that a person writes.
fn is_value(json: &str, wanted: &str) -> bool {
    match serde_json::from_str(json) {
        Ok(serde_json::Value::String(value)) => value.to_lowercase() == wanted,
        Ok(serde_json::Value::Bool(value)) => {
            wanted == if value { "yes" } else { "no" } || json == wanted
        }
        _ => json == wanted,
    }
}

/// True if a value, as JSON, has a text in it.
fn contains(json: &str, text: &str) -> bool {
    match serde_json::from_str(json) {
        Ok(serde_json::Value::String(value)) => value.to_lowercase().contains(text),
        _ => json.contains(text),
    }
}
