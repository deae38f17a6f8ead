//! Transactions that the server writes itself: changes as JSON, or a procedure by its name.
//!
//! Requests run one after the other, and share flushes: so they are the fast way in for many clients. With a key a
//! request runs once, however often it is sent.

use std::sync::Arc;

use annals::{Cursor, ErrorKind, Moment, RowId, Transaction, Txid};
use annals_replica::Local;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::edits::{self, Edit};
use crate::keys::Key;
use crate::openapi;
use crate::procedures::Procedures;
use crate::rows::{json, table};
use crate::shared::Shared;
use crate::{Role, body, lease};

/// The most bytes of a request: all of it is in memory.
const MOST: u64 = 16 << 20;
/// The words before a key, and before the answer to it, in comments of a transaction.
const KEY: &str = "request ";
const ANSWER: &str = "answer ";

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(transact))
}

/// A transaction: either `changes`, or a procedure and its argument.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Request<'r> {
    comment: Option<String>,
    /// The cursor of the state that the client has read.
    base: Option<String>,
    /// The rows that must be as they were there.
    #[serde(default)]
    read: Vec<Named>,
    #[serde(borrow)]
    changes: Option<Vec<Edit<'r>>>,
    procedure: Option<String>,
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    args: Option<&'r RawValue>,
}

/// A row.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    table: String,
    id: u64,
}

/// Writes a transaction.
#[utoipa::path(post, path = "/v1/{name}/transactions", params(
    ("Idempotency-Key" = Option<String>, Header, description = "with the same key a request runs once, however often it is sent"),
), request_body = Request, responses(
    (status = 200, description = "it is history, on permanent storage", body = openapi::Committed),
    (status = 409, description = "`base` isn't in this history", body = openapi::Failure),
    (status = 412, description = "a row of `read` was changed since `base`", body = openapi::Failure),
    (status = 413, description = "more bytes than the server takes", body = openapi::Failure),
    (status = 423, description = "another has a lease", body = openapi::Failure),
    (status = 415, description = "the body isn't said to be JSON", body = openapi::Failure),
    (status = 422, description = "it can't become history, or the procedure failed", body = openapi::Failure),
    (status = 503, description = "the backup can't take transactions", body = openapi::Failure),
    (status = 507, description = "the disk is full", body = openapi::Failure),
))]
async fn transact(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let served = shared.permit(&headers, &name, Role::Write)?;
    served.check_backup(shared.limits)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // Pages of other sites can send other types without asking.
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        let message = "send the header `Content-Type: application/json`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
    }
    let most = MOST.min(shared.limits.push);
    let text = body::text(body, most, shared.limits.silence).await?;
    let key = headers.get("Idempotency-Key").map(|key| key.to_str().unwrap_or_default());
    let key = match key {
        Some(key) => Some(served.keys.enter(key).await?),
        None => None,
    };
    let (local, procedures) = (Arc::clone(&served.local), Arc::clone(&served.procedures));
    let ticket = lease::ticket(&headers);
    // The key stays taken until this is done, even if the client leaves meanwhile.
    let done = served.write(shared.limits, move || {
        let work = Work { local: Arc::clone(&local), text, key, procedures };
        let request: Request<'_> = read(&work.text)?;
        if request.base.is_some() {
            local.catch_up()?;
        }
        let committed = local.commit(ticket, move |tx| work.run(tx));
        let (done, accepted) = committed.map_err(|failed: Failed| failed.0)?;
        match done {
            Done::Before(answer) => Ok(answer),
            Done::Now(answer) => told(&local, accepted.txid, &answer, ""),
        }
    });
    Ok(json(done.await?))
}

/// Reads a request.
fn read(text: &str) -> Answer<Request<'_>> {
    serde_json::from_str(text).map_err(|error| {
        Refusal::bad(format!(
            "{error}; a transaction is {{\"changes\":[..]}} or {{\"procedure\":NAME,\"args\":..}}"
        ))
    })
}

/// Why a transaction failed: a refusal, or an error of the commit.
pub(crate) struct Failed(pub(crate) Refusal);

impl From<annals::Error> for Failed {
    fn from(error: annals::Error) -> Self {
        Self(match error.kind() {
            ErrorKind::Conflict => lease::locked(error),
            _ => Refusal::from(error),
        })
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

/// What a transaction did.
enum Done {
    /// The answer of the request when it ran before.
    Before(String),
    /// Its answer.
    Now(String),
}

/// A transaction to be run, several times if others come first.
struct Work {
    local: Arc<Local>,
    text: String,
    key: Option<Key>,
    procedures: Arc<Procedures>,
}

impl Work {
    fn run<'db>(&self, mut tx: Transaction<'db>) -> Result<(Done, Transaction<'db>), Failed> {
        let Self { local, text, key, procedures } = self;
        let request: Request<'_> = read(text)?;
        let digest = key.as_ref().map(|_| short_digest(text));
        if let Some((key, digest)) = key.as_ref().zip(digest.as_deref())
            && let Some(done) = find_done(local, key, digest)?
        {
            return Ok((Done::Before(done), tx));
        }
        let before = request.base.as_deref().map(|base| rows_of_base(local, base, &request.read));
        edits::check_unchanged(&tx, &before.transpose()?.unwrap_or_default())?;
        let answer = match (&request.changes, &request.procedure) {
            (Some(changes), None) if request.args.is_none() => {
                let ids = edits::apply(&mut tx, changes)?;
                let ids: Vec<_> = ids.iter().map(|id| id.0.to_string()).collect();
                format!("{{\"ids\":[{}]}}", ids.join(","))
            }
            (None, Some(name)) => {
                let args = request.args.map_or("null", RawValue::get);
                let (after, result) = procedures.find(name)?.call(tx, args)?;
                tx = after;
                format!("{{\"answer\":{result}}}")
            }
            _ => {
                let message = "a transaction has either `changes`, or `procedure` and its `args`";
                return Err(Refusal::bad(message).into());
            }
        };
        if let Some(comment) = &request.comment {
            tx.comment(comment)?;
        }
        if let Some((key, digest)) = key.as_ref().zip(digest) {
            tx.comment(&format!("{KEY}{key}"))?;
            tx.comment(&format!("{ANSWER}{digest} {answer}"))?;
        }
        Ok((Done::Now(answer), tx))
    }
}

/// Returns what is told of a transaction that is history; `answer` is an object.
fn told(local: &Local, txid: Txid, answer: &str, more: &str) -> Answer<String> {
    let chain = local.source().chain(txid)?.unwrap_or_default();
    let rest = answer.strip_prefix('{').unwrap_or(answer);
    Ok(format!(
        "{{\"txid\":{txid},\"chain\":\"{chain:016x}\",\"level\":\"checksummed\",{more}{rest}\n"
    ))
}

/// Returns the answer to a request that was sent before, if its transaction is in the kept history.
fn find_done(local: &Local, key: &Key, digest: &str) -> Answer<Option<String>> {
    let database = local.database()?;
    let txid = match database.txid_of(Moment::Comment(format!("{KEY}{key}"))) {
        Ok(txid) => txid,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let changed = database.changes(txid..=txid)?.next().transpose()?;
    let comments = changed.map(|changed| changed.comments).unwrap_or_default();
    let answer = comments.iter().find_map(|text| text.strip_prefix(ANSWER)?.split_once(' '));
    match answer {
        Some((before, answer)) if before == digest => {
            told(local, txid, answer, "\"repeated\":true,").map(Some)
        }
        _ => {
            let message = format!(
                "the key {key} was given to another request, which is transaction {txid}: take a new key"
            );
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", message))
        }
    }
}

fn short_digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns rows as they were at a cursor.
fn rows_of_base(local: &Local, base: &str, read: &[Named]) -> Answer<Vec<edits::Before>> {
    let cursor: Cursor = base.parse().map_err(|error| Refusal::bad(format!("base: {error}")))?;
    if !local.source().has(cursor)? {
        let message =
            format!("base: transaction {} is another one here, or isn't here", cursor.txid);
        return Err(Refusal::new(StatusCode::CONFLICT, "diverged", message));
    }
    if read.is_empty() {
        return Ok(Vec::new());
    }
    let then = local.at(cursor.txid)?;
    let row = |named: &Named| {
        let table = table(then.schema(), &named.table)?;
        edits::Before::of(&then, table, RowId(named.id))
    };
    read.iter().map(row).collect()
}
