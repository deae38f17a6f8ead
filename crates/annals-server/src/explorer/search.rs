//! Finding rows by what is in them: a scan, which ends after a while and says where to continue.

use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Row, RowId, Snapshot, Table};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::rows::{state, table};
use crate::shared::Shared;
use crate::{Role, blocking};

/// The most rows that an answer has.
const MOST: usize = 100;
/// How long an answer takes at most: the rest is for the next one.
const LONGEST: Duration = Duration::from_millis(500);
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
}

/// Rows that were found.
#[derive(Serialize, ToSchema)]
struct Searched {
    found: Vec<Hit>,
    /// Where to continue; null if all was searched.
    next: Option<Place>,
}

/// A row that was found.
#[derive(Serialize, ToSchema)]
struct Hit {
    table: String,
    id: u64,
    /// The field whose value has the text; null if it is the id.
    field: Option<String>,
    value: serde_json::Value,
    /// All of its values.
    row: serde_json::Value,
}

/// A place in a table.
#[derive(Serialize, ToSchema)]
struct Place {
    table: String,
    id: u64,
}

/// Returns rows that have a text in a value, or that have an id: up to 100, of what half a second is enough for.
#[utoipa::path(get, path = "/v1/{name}/search", params(Asked), responses((status = 200, body = Searched)))]
async fn search(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let found = blocking::run(move || find(&state(&local, asked.at.as_deref())?, &asked));
    Ok(Json(found.await?).into_response())
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
}

fn find(now: &Snapshot, asked: &Asked) -> Answer<Searched> {
    if asked.text.is_empty() {
        return Err(Refusal::bad("text: write what to look for"));
    }
    let schema = now.schema();
    let first = asked.table.as_ref().map(|name| table(schema, name)).transpose()?;
    let tables = schema.tables().iter();
    let tables = tables.skip_while(|table| first.is_some_and(|first| first.number != table.number));
    let deadline = SystemClock.elapsed() + LONGEST;
    let text = asked.text.to_lowercase();
    let wanted = asked
        .text
        .split_once('=')
        .map(|(field, value)| (field.trim().to_owned(), value.trim().to_lowercase()));
    let mut search = Search { text, wanted, deadline, looked_at: 0, found: Vec::new() };
    for (place, table) in tables.enumerate() {
        let from = asked.from.filter(|_| place == 0 && first.is_some()).unwrap_or(0);
        if place > 0 && asked.only == Some(true) {
            break;
        }
        for row in now.table(table.number)?.range(RowId(from)..) {
            let row = row?;
            if search.is_over() {
                let next = Some(Place { table: table.name.clone(), id: row.id().0 });
                return Ok(Searched { found: search.found, next });
            }
            search.look_at(table, &row);
        }
    }
    Ok(Searched { found: search.found, next: None })
}

impl Search {
    fn is_over(&mut self) -> bool {
        self.looked_at += 1;
        self.found.len() >= MOST
            || (self.looked_at.is_multiple_of(STRIDE) && SystemClock.elapsed() >= self.deadline)
    }

    fn look_at(&mut self, table: &Table, row: &Row<'_>) {
        let id = row.id().0;
        let hit = |field, value| {
            let mut json = String::new();
            annals_json::push_row(&mut json, table, row);
            let row = serde_json::from_str(&json).unwrap_or_default();
            Hit { table: table.name.clone(), id, field, value, row }
        };
        if self.text.parse() == Ok(id) {
            return self.found.push(hit(None, id.into()));
        }
        let mut json = String::new();
        for field in &table.fields {
            json.clear();
            annals_json::push_value(&mut json, row.value(field.number));
            let is_wanted = |(name, value): &(String, String)| {
                field.name.eq_ignore_ascii_case(name) && is_value(&json, value)
            };
            let has_text = json != "null" && contains(&json, &self.text);
            if has_text || self.wanted.as_ref().is_some_and(is_wanted) {
                let value = serde_json::from_str(&json).unwrap_or_default();
                self.found.push(hit(Some(annals_json::key(table, field)), value));
                return;
            }
        }
    }
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
