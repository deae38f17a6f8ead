//! The past as JSON: versions of a row, since when its fields have their values, differences, the log, and moments.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use annals::{Differing, Snapshot, Txid};
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::changes::{After, Shown, push_changed, push_changed_fields};
use crate::forgotten::forgotten;
use crate::means::Kind;
use crate::openapi;
use crate::parts::{self, Parts};
use crate::rights::Allowed;
use crate::rows::{LARGEST, id, moment, no_moment, table};
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;

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
fn list(work: &mut Work, objects: impl Iterator<Item = Answer<String>>) -> Answer<String> {
    let mut text = "[".to_owned();
    for (place, object) in objects.enumerate() {
        text.push_str(if place > 0 { ",\n" } else { "\n" });
        text.push_str(&object?);
        work.cover(text.capacity())?;
    }
    text.push_str("]\n");
    Ok(text)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Limited {
    /// The most versions of the answer, 1 to 10,000; 100 if it isn't said.
    limit: Option<usize>,
    /// Only versions of earlier transactions: the first `txid` of the answer before.
    before: Option<u64>,
}

/// The newest versions of a row, as JSON: so many, and no more than fit into an answer.
struct Newest {
    texts: VecDeque<String>,
    bytes: usize,
    most: usize,
}

impl Newest {
    fn push(&mut self, text: String) {
        self.bytes += text.len();
        self.texts.push_back(text);
        // One at least, however long it is.
        while self.texts.len() > self.most || (self.bytes > LARGEST && self.texts.len() > 1) {
            self.bytes -= self.texts.pop_front().map_or(0, |text| text.len());
        }
    }
}

/// Returns the newest versions of a row, the oldest of them first. They end after about 8 MiB, too: `before` continues.
#[utoipa::path(get, path = "/v1/{name}/t/{table}/{id}/history", params(Limited), responses((status = 200, body = Vec<openapi::Version>)))]
async fn history(
    allowed: Allowed,
    Path((_, of, number)): Path<(String, String, String)>,
    Query(Limited { limit: asked, before }): Query<Limited>,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    let most = limit(asked)?;
    let read = move |work: &mut Work| {
        let now = now(&local)?;
        let table = table(now.schema(), &of)?;
        let id = id(&number)?;
        let mut newest = Newest { texts: VecDeque::new(), bytes: 0, most };
        for version in local.history_of(table.number, id)? {
            let version = version?;
            if before.is_some_and(|before| version.txid.0 >= before) {
                break;
            }
            let mut text = String::new();
            annals_json::push_version(&mut text, table, &version);
            newest.push(text);
            work.cover(newest.bytes)?;
        }
        if newest.texts.is_empty() && before.is_none() {
            let message =
                format!("table {of:?} has no row {}, and had none in the kept history", id.0);
            return Err(Refusal::not_found(message));
        }
        list(work, newest.texts.into_iter().map(Ok))
    };
    allowed.text(Kind::Long, read).await
}

/// Returns for each field of a row since when it has its value.
#[utoipa::path(get, path = "/v1/{name}/t/{table}/{id}/blame", responses((status = 200, body = Vec<openapi::Blame>)))]
async fn blame(allowed: Allowed, Path((_, of, number)): Path<(String, String, String)>) -> Answer {
    let local = Arc::clone(&allowed.local);
    let read = move |work: &mut Work| {
        let now = now(&local)?;
        let table = table(now.schema(), &of)?;
        let blamed = local.blame(table.number, id(&number)?)?;
        list(
            work,
            blamed.iter().map(|blame| {
                let mut text = String::new();
                annals_json::push_blame(&mut text, table, blame);
                Ok(text)
            }),
        )
    };
    allowed.text(Kind::Long, read).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Between {
    /// A moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`.
    from: String,
    /// A later moment; if left out, the present.
    to: Option<String>,
    /// Only rows of this table.
    table: Option<String>,
    /// The most rows of the answer: if more differ, or they take more than 8 MiB, that is an error. Without a limit all
    /// rows are sent, as they are found.
    limit: Option<usize>,
}

/// The size of the parts in which rows are sent.
const PART: usize = 256 << 10;

pub(crate) fn txid(local: &annals_replica::Local, what: &str, text: &str) -> Answer<Txid> {
    let moment = moment(what, text)?;
    local.txid_of(moment.clone()).map_err(|error| no_moment(local, &moment, error))
}

/// Returns the rows that differ between two moments.
#[utoipa::path(get, path = "/v1/{name}/diff", params(Between), responses((status = 200, body = Vec<openapi::Change>)))]
async fn diff(
    allowed: Allowed,
    Query(Between { from, to, table: of, limit }): Query<Between>,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    let begin = move |work: &mut Work| {
        let now = now(&local)?;
        let from = txid(&local, "from", &from)?;
        let to = to.map_or(Ok(now.txid()), |to| txid(&local, "to", &to))?;
        let rows = now.differing(from, to, work.room());
        let mut rows = rows.map_err(|error| forgotten(&local, error))?;
        if let Some(of) = of {
            rows = rows.of(table(now.schema(), &of)?.number);
        }
        let part = limit.map_or(PART, |_| LARGEST);
        let mut list = List { now, rows, room: work.room(), count: 0, is_over: false, part };
        // An error before the first part is one of the answer.
        let first = list.next(work)?.unwrap_or_default();
        if let Some(limit) = limit.filter(|limit| list.count > *limit || !list.is_over) {
            let message = format!(
                "more than {limit} rows differ, or they take more than {} MiB: ask without a limit, or for less",
                LARGEST >> 20
            );
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many", message));
        }
        Ok((first, list))
    };
    let ((first, list), held) = allowed.run(Kind::Rows, begin).await?;
    let body = parts::send(&allowed, first, list, held).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// A list of the rows that differ, as far as it isn't made yet.
struct List {
    now: Snapshot,
    rows: Differing,
    /// How many bytes of rows it keeps, at most.
    room: usize,
    /// How many rows there were.
    count: usize,
    is_over: bool,
    /// So many bytes has a part, at least.
    part: usize,
}

impl Parts for List {
    fn next(&mut self, work: &mut Work) -> Answer<Option<Vec<u8>>> {
        if self.is_over {
            return Ok(None);
        }
        let mut text = if self.count == 0 { "[".to_owned() } else { String::new() };
        while text.len() < self.part {
            let Some(row) = self.rows.next().transpose()? else {
                text.push_str("]\n");
                self.is_over = true;
                break;
            };
            let Some(table) = self.now.schema().table(row.table) else { continue };
            text.push_str(if self.count > 0 { ",\n" } else { "\n" });
            annals_json::push_change(&mut text, table, &row);
            self.count += 1;
            work.cover(self.room + text.capacity())?;
        }
        Ok(Some(text.into_bytes()))
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Logged {
    /// The transaction after which the answer begins: the last one, or an earlier one.
    after: Option<u64>,
    /// The most transactions of the answer, 1 to 10,000; 100 if it isn't said. It ends after about 8 MiB, too.
    limit: Option<usize>,
    /// The most changes of each; `left_out` counts the others. Changes after some 16 MiB are left out, too.
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
    allowed: Allowed,
    Query(Logged { after, limit: asked, rows, fields }): Query<Logged>,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    let most = limit(asked)?;
    let read = move |work: &mut Work| {
        let now = now(&local)?;
        let mut text = String::new();
        let first = After::Txid(Txid(after.unwrap_or(0))).check(&local)? + 1;
        // Without an end more of the journal would be read than is sent.
        let last = Txid(first.0.saturating_add(most as u64 - 1));
        if fields == Some(Fields::Changed) {
            let range = first..=last.min(now.txid());
            // The first one of a range that is kept is found without its events.
            let _first = now.changes(range.clone()).map_err(|error| forgotten(&local, error))?;
            push_fields(work, &mut text, &now, range, rows)?;
            return Ok(text);
        }
        let shown = Shown { table: None, most: rows.unwrap_or(usize::MAX) };
        let changes = now.changes(first..=last).map_err(|error| forgotten(&local, error))?;
        for changed in changes.within(work.room()) {
            push_changed(&mut text, now.schema(), &changed?, shown);
            text.push('\n');
            work.cover(work.room() + text.capacity())?;
            if text.len() > LARGEST {
                break;
            }
        }
        Ok(text)
    };
    allowed.text_of("application/x-ndjson", Kind::Rows, read).await
}

/// Appends a line for each transaction with the fields that it changed.
fn push_fields(
    work: &mut Work,
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
        work.cover(work.room() + text.capacity())?;
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
async fn at(allowed: Allowed, Query(Asked { moment }): Query<Asked>) -> Answer {
    let local = Arc::clone(&allowed.local);
    let find = move |_: &mut Work| {
        let found = txid(&local, "moment", &moment)?;
        Ok(format!("{{\"txid\":{found}}}\n"))
    };
    allowed.text(Kind::Long, find).await
}
