//! The past as JSON: versions of a row, since when its fields have their values, differences, the log, and moments.

use std::sync::Arc;

use annals::{Moment, Txid};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::changes::push_changed;
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
        let now = local.database().read();
        let table = table(now.schema(), &of)?;
        let id = id(&number)?;
        let versions = local.database().history_of(table.number, id)?.newest(most)?;
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
        let now = local.database().read();
        let table = table(now.schema(), &of)?;
        let blamed = local.database().blame(table.number, id(&number)?)?;
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
}

fn txid(local: &annals_replica::Local, what: &str, text: &str) -> Answer<Txid> {
    let moment: Moment = text.parse().map_err(|error| Refusal::bad(format!("{what}: {error}")))?;
    Ok(local.database().txid_of(moment)?)
}

/// Returns the rows that differ between two moments.
#[utoipa::path(get, path = "/v1/{name}/diff", params(Between), responses((status = 200, body = Vec<openapi::Change>)))]
async fn diff(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Between { from, to }): Query<Between>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let text = blocking::run(move || {
        let now = local.database().read();
        let from = txid(&local, "from", &from)?;
        let to = to.map_or(Ok(now.txid()), |to| txid(&local, "to", &to))?;
        let rows = now.differences(from, to)?;
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
}

/// Returns transactions with the rows that they changed, as lines of JSON.
#[utoipa::path(get, path = "/v1/{name}/log", params(Logged), responses((status = 200, description = "a line for each", body = openapi::Transaction, content_type = "application/x-ndjson")))]
async fn log(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Logged { after, limit: asked }): Query<Logged>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let most = limit(asked)?;
    let text = blocking::run(move || {
        let now = local.database().read();
        let mut text = String::new();
        for changed in now.changes(Txid(after.unwrap_or(0)) + 1..)?.take(most) {
            push_changed(&mut text, now.schema(), &changed?, None);
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
