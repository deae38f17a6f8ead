//! The past as JSON: versions of a row, since when its fields have their values, differences, the log, and moments.

use std::ops::RangeInclusive;
use std::sync::Arc;

use annals::{Moment, Snapshot, Txid};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::changes::{Shown, push_changed, push_changed_fields};
use crate::openapi;
use crate::rows::{LARGEST, id, json, table};
use crate::shared::Shared;
use crate::{Role, blocking};

/// How many versions or transactions an answer has, if the request doesn't say.
const USUAL: usize = 100;
/// The most of them.
const MOST: usize = 10_000;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    let of_rows = OpenApiRouter::new().routes(routes!(history)).routes(routes!(blame));
    of_rows.routes(routes!(diff)).routes(routes!(log)).routes(routes!(at))
}

fn limit(asked: Option<usize>) -> Answer<usize> {
    let limit = asked.unwrap_or(USUAL);
    match limit {
        1..=MOST => Ok(limit),
        _ => Err(Refusal::bad(format!("limit: write a number from 1 to {MOST}"))),
    }
}

/// Joins objects to a list, one a line.
fn list(objects: impl Iterator<Item = Answer<String>>) -> Answer<String> {
    let mut text = "[".to_owned();
    for (place, object) in objects.enumerate() {
        text.push_str(if place > 0 { ",\n" } else { "\n" });
        text.push_str(&object?);
    }
    text.push_str("]\n");
    Ok(text)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Limited {
    /// The most versions of the answer, 1 to 10,000; 100 if it isn't said.
    limit: Option<usize>,
}

/// Returns the newest versions of a row, the oldest of them first.
#[utoipa::path(get, path = "/v1/{name}/t/{table}/{id}/history", params(Limited), responses((status = 200, body = Vec<openapi::Version>)))]
async fn history(
    State(shared): State<Arc<Shared>>,
    Path((name, of, number)): Path<(String, String, String)>,
    Query(Limited { limit: asked }): Query<Limited>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let most = limit(asked)?;
    let text = blocking::run(move || {
        let now = local.refresh()?;
        let table = table(now.schema(), &of)?;
        let id = id(&number)?;
        let versions = local.history_of(table.number, id)?.newest(most)?;
        if versions.is_empty() {
            let message =
                format!("table {of:?} has no row {}, and had none in the kept history", id.0);
            return Err(Refusal::not_found(message));
        }
        list(versions.iter().rev().map(|version| {
            let mut text = String::new();
            annals_json::push_version(&mut text, table, version);
            Ok(text)
        }))
    });
    Ok(json(text.await?))
}

/// Returns since when each field of a row has its value.
#[utoipa::path(get, path = "/v1/{name}/t/{table}/{id}/blame", responses((status = 200, body = Vec<openapi::Blame>)))]
async fn blame(
    State(shared): State<Arc<Shared>>,
    Path((name, of, number)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let text = blocking::run(move || {
        let now = local.refresh()?;
        let table = table(now.schema(), &of)?;
        let blamed = local.blame(table.number, id(&number)?)?;
        list(blamed.iter().map(|blame| {
            let mut text = String::new();
            annals_json::push_blame(&mut text, table, blame);
            Ok(text)
        }))
    });
    Ok(json(text.await?))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Between {
    /// A moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`.
    from: String,
    /// A later moment; now, if it isn't said.
    to: Option<String>,
    /// Only rows of this table.
    table: Option<String>,
    /// The most rows of the answer: if more differ, that is an error.
    limit: Option<usize>,
}

fn txid(local: &annals_replica::Local, what: &str, text: &str) -> Answer<Txid> {
    let moment: Moment = text.parse().map_err(|error| Refusal::bad(format!("{what}: {error}")))?;
    Ok(local.txid_of(moment)?)
}

/// Returns the rows that differ between two moments.
#[utoipa::path(get, path = "/v1/{name}/diff", params(Between), responses((status = 200, body = Vec<openapi::Change>)))]
async fn diff(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Between { from, to, table: of, limit }): Query<Between>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let text = blocking::run(move || {
        let now = local.refresh()?;
        let from = txid(&local, "from", &from)?;
        let to = to.map_or(Ok(now.txid()), |to| txid(&local, "to", &to))?;
        let mut rows = now.differences(from, to)?;
        if let Some(of) = of {
            let only = table(now.schema(), &of)?.number;
            rows.retain(|row| row.table == only);
        }
        if limit.is_some_and(|limit| rows.len() > limit) {
            let message = format!("{} rows differ, more than the limit of the request", rows.len());
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many", message));
        }
        list(rows.iter().filter_map(|row| {
            let mut text = String::new();
            annals_json::push_change(&mut text, now.schema().table(row.table)?, row);
            Some(Ok(text))
        }))
    });
    Ok(json(text.await?))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Logged {
    /// The transaction after which the answer begins.
    after: Option<u64>,
    /// The most transactions of the answer, 1 to 10,000; 100 if it isn't said. It ends after about 8 MiB, too.
    limit: Option<usize>,
    /// The most changes of each; `left_out` counts the others.
    rows: Option<usize>,
    /// `changed`: of updated rows only the fields that differ, which is found without the rest of the row.
    fields: Option<Fields>,
}

/// Which fields of updated rows are in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Fields {
    All,
    Changed,
}

/// Returns transactions with the rows that they changed, as lines of JSON.
#[utoipa::path(get, path = "/v1/{name}/log", params(Logged), responses((status = 200, description = "a line for each", body = openapi::Transaction, content_type = "application/x-ndjson")))]
async fn log(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Logged { after, limit: asked, rows, fields }): Query<Logged>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let most = limit(asked)?;
    let text = blocking::run(move || {
        let now = local.refresh()?;
        let mut text = String::new();
        let first = Txid(after.unwrap_or(0)) + 1;
        // Without an end more of the journal would be read than is sent.
        let last = Txid(first.0.saturating_add(most as u64 - 1));
        if fields == Some(Fields::Changed) {
            push_fields(&mut text, &now, first..=last.min(now.txid()), rows)?;
            return Ok(text);
        }
        let shown = Shown { table: None, most: rows.unwrap_or(usize::MAX) };
        for changed in now.changes(first..=last)? {
            push_changed(&mut text, now.schema(), &changed?, shown);
            text.push('\n');
            if text.len() > LARGEST {
                break;
            }
        }
        Ok(text)
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, text.await?).into_response())
}

/// Appends a line for each transaction with the fields that it changed.
fn push_fields(
    text: &mut String,
    now: &Snapshot,
    txids: RangeInclusive<Txid>,
    most: Option<usize>,
) -> Answer<()> {
    for txid in txids.start().0..=txids.end().0 {
        let found = now.changed_fields(Txid(txid), None, most.unwrap_or(usize::MAX))?;
        let Some(changed) = found else { break };
        push_changed_fields(text, now.schema(), &changed);
        text.push('\n');
        if text.len() > LARGEST {
            break;
        }
    }
    Ok(())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`.
    moment: String,
}

/// Returns the transaction of a moment.
#[utoipa::path(get, path = "/v1/{name}/at", params(Asked), responses((status = 200, body = openapi::Found)))]
async fn at(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Asked { moment }): Query<Asked>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let found = blocking::run(move || txid(&local, "moment", &moment)).await?;
    Ok(json(format!("{{\"txid\":{found}}}\n")))
}
