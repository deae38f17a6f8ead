//! Transactions that the server writes itself: changes as JSON, or a procedure by its name.
//!
//! Requests run one after the other, and share flushes: so they are the fast way in for many clients. With a key a
//! request runs once, however often it is sent.

use std::ops::RangeInclusive;
use std::sync::Arc;

use annals::storage::{Clock as _, SystemClock};
use annals::{Cursor, Database, ErrorKind, Moment, RowId, Transaction, Txid};
use annals_replica::{Accepted, Local};
use annals_tools::requests::{self, Answered};
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::edits::{self, Edit};
use crate::forgotten::forgotten;
use crate::keys::Key;
use crate::means::Held;
use crate::openapi;
use crate::procedures::Procedures;
use crate::rights::{Allowed, Right};
use crate::rows::table;
use crate::shared::Shared;
use crate::{body, lease, object};

/// How many texts as long as a request take the memory of understanding it and applying its changes, about.
const COPIES: u64 = 3;
/// The characters of the salt that a hash begins with.
const SALT: usize = 16;

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
    /// The rows that must be as they were there: with `base` only.
    #[serde(default, deserialize_with = "object::list")]
    read: Option<Vec<Named>>,
    #[serde(borrow, default, deserialize_with = "object::list")]
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
    (status = 410, description = "the request with this key ran, and its answer was erased", body = openapi::Failure),
    (status = 412, description = "a row of `read` was changed since `base`", body = openapi::Failure),
    (status = 413, description = "more bytes than the server takes", body = openapi::Failure),
    (status = 423, description = "another has a lease", body = openapi::Failure),
    (status = 415, description = "the body isn't said to be JSON", body = openapi::Failure),
    (status = 422, description = "it can't become history, or the procedure failed", body = openapi::Failure),
    (status = 503, description = "the backup can't take transactions", body = openapi::Failure),
    (status = 507, description = "the disk is full", body = openapi::Failure),
))]
async fn transact(allowed: Allowed, headers: HeaderMap, body: Body) -> Answer {
    allowed.check_backup(allowed.shared().limits)?;
    body::check_json(&headers)?;
    let (text, held) = body::text(&allowed, body, COPIES).await?;
    let key = headers.get("Idempotency-Key").map(|key| key.to_str().unwrap_or_default());
    let key = match key {
        Some(key) => Some(allowed.keys.enter(key).await?),
        None => None,
    };
    let (local, procedures) = (Arc::clone(&allowed.local), Arc::clone(&allowed.procedures));
    let (ticket, right) = (lease::ticket(&headers), allowed.right().clone());
    // The key stays taken until this is done, even if the client leaves meanwhile.
    let done = allowed.write(move || {
        let _held = held;
        let work = Work { local: Arc::clone(&local), text, key, procedures, right };
        let request: Request<'_> = read(&work.text)?;
        if request.base.is_some() {
            local.catch_up()?;
        }
        let committed = local.commit(ticket, move |tx| work.run(tx));
        let (done, accepted) = committed.map_err(|failed: Failed| failed.0)?;
        match done {
            Done::Before(answer) => Ok(answer),
            // Nothing that may fail comes after it is history.
            Done::Now(answer) => {
                let Accepted { txid, chain, .. } = accepted;
                Ok(told(Cursor { txid, chain }, &answer, ""))
            }
        }
    });
    Ok(Held::default().answer("application/json", done.await?.into_bytes()))
}

/// Reads a request.
fn read(text: &str) -> Answer<Request<'_>> {
    let request: Request<'_> = object::read(text).map_err(|error| {
        Refusal::bad(format!(
            "{error}; a transaction is {{\"changes\":[..]}} or {{\"procedure\":NAME,\"args\":..}}"
        ))
    })?;
    if request.base.is_none() && request.read.as_ref().is_some_and(|read| !read.is_empty()) {
        let message = "read: rows are compared with those of a state: send its cursor, too, as \"base\":\"TXID:CHAIN\"; the \
             database's URL answers with its txid and chain";
        return Err(Refusal::bad(message));
    }
    Ok(request)
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
    right: Right,
}

impl Work {
    fn run<'db>(&self, mut tx: Transaction<'db>) -> Result<(Done, Transaction<'db>), Failed> {
        let Self { local, text, key, procedures, right } = self;
        let request: Request<'_> = read(text)?;
        if let Some(key) = key
            && let Some(done) = find_done(local, key, text)?
        {
            return Ok((Done::Before(done), tx));
        }
        let before = request
            .base
            .as_deref()
            .map(|base| rows_of_base(local, base, request.read.as_deref().unwrap_or_default()));
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
        // A procedure may take long: who may not write any more at its end has written nothing.
        right.check()?;
        if let Some(comment) = &request.comment {
            tx.comment(comment)?;
        }
        if let Some(key) = key {
            tx.comment(&requests::of_key(key.text()))?;
            tx.comment(&requests::of_answer(&hash(text, &salt()), &answer))?;
        }
        Ok((Done::Now(answer), tx))
    }
}

/// Returns what is told of a transaction that is history; `answer` is an object.
fn told(Cursor { txid, chain }: Cursor, answer: &str, more: &str) -> String {
    let rest = answer.strip_prefix('{').unwrap_or(answer);
    format!("{{\"txid\":{txid},\"chain\":\"{chain:016x}\",\"level\":\"checksummed\",{more}{rest}\n")
}

/// Returns the answer to a request that was sent before, if its transaction is in the kept history.
fn find_done(local: &Local, key: &Key, text: &str) -> Answer<Option<String>> {
    let database = local.database()?;
    let txid = match database.txid_of(Moment::Comment(requests::of_key(key.text()))) {
        Ok(txid) => txid,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (txid, answer) = match answer_in(database, txid..=txid, key)? {
        // Somebody else wrote such a comment, and perhaps after the request.
        None => match answer_in(database, local.source().oldest()?..=txid, key)? {
            None => return Ok(None),
            Some(found) => found,
        },
        Some(found) => found,
    };
    match requests::read_answer(&answer) {
        Some(Answered::Erased) => {
            let message = format!(
                "the request with the key {key} ran: it is transaction {txid}. Values that it wrote were erased since, \
                 and its answer with them, so nothing was done now: take a new key to do it again"
            );
            Err(Refusal::new(StatusCode::GONE, "forgotten", message))
        }
        Some(Answered::With(before, answer)) if before == hash(text, salt_of(before)) => {
            let chain = local.source().chain(txid)?.unwrap_or_default();
            Ok(Some(told(Cursor { txid, chain }, answer, "\"repeated\":true,")))
        }
        _ => {
            let message = format!(
                "the key {key} was given to another request, which is transaction {txid}: take a new key"
            );
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", message))
        }
    }
}

/// Returns the last of some transactions that is a request with this key, and the comment of its answer.
fn answer_in(
    database: &Database,
    range: RangeInclusive<Txid>,
    key: &Key,
) -> Answer<Option<(Txid, String)>> {
    let (mut found, request) = (None, requests::of_key(key.text()));
    for changed in database.changes(range)? {
        let changed = changed?;
        let mut comments = changed.comments.iter().skip_while(|text| **text != request);
        // The answer follows the key.
        if let Some(answer) = comments.nth(1).filter(|text| requests::read_answer(text).is_some()) {
            found = Some((changed.txid, answer.clone()));
        }
    }
    Ok(found)
}

/// Returns a new salt: with it nobody can tell from a hash that two requests were the same.
fn salt() -> String {
    SystemClock.secret().iter().take(SALT / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the salt that a hash begins with. Those of older versions have none.
fn salt_of(hash: &str) -> &str {
    hash.get(..SALT).filter(|salt| salt.len() < hash.len()).unwrap_or_default()
}

/// Returns the hash of a request, after its salt.
fn hash(text: &str, salt: &str) -> String {
    let digest = Sha256::new().chain_update(salt).chain_update(text).finalize();
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{salt}{digest}")
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
    let then = local.at(cursor.txid).map_err(|error| forgotten(local, error))?;
    let row = |named: &Named| {
        let table = table(then.schema(), &named.table)?;
        edits::Before::of(&then, table, RowId(named.id))
    };
    read.iter().map(row).collect()
}
