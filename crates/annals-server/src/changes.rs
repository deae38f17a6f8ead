//! Changes as they are committed: lines of JSON by long poll, or server-sent events.
//!
//! Each transaction is sent once, in order. The number of the last one that a client has handled is its cursor: after
//! any cut it asks again, and nothing is missed. What was forgotten before that is said, with 410.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use annals::{
    Changed, ChangedFields, Cursor, ErrorKind, Schema, SubscriptionStream, TableNumber, Timestamp,
    Txid,
};
use annals_replica::Local;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::body::{Pieces, Pushing};
use crate::frames::gone;
use crate::openapi;
use crate::rows::table;
use crate::shared::{Ending, Shared};
use crate::{Role, blocking};

/// A comment is sent after so much silence, so that neither side takes the connection for dead.
const COMMENT: Duration = Duration::from_secs(15);
/// How many transactions may wait for a slow reader.
const WAITING: usize = 16;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(changes))
}

/// Which changes of a transaction are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Those of this table only, if there is one.
    pub(crate) table: Option<TableNumber>,
    /// The most of them: the others are counted.
    pub(crate) most: usize,
}

/// Appends a transaction as an object: `txid`, `time`, `comment`, `changes`, and `left_out` if there are more.
/// Returns how many changes there are.
pub(crate) fn push_changed(
    text: &mut String,
    schema: &Schema,
    changed: &Changed,
    shown: Shown,
) -> usize {
    let Changed { txid, time, comments, rows } = changed;
    push_head(text, *txid, *time, comments);
    let mut count = 0;
    for row in rows.iter().filter(|row| shown.table.is_none_or(|only| only == row.table)) {
        let Some(table) = schema.table(row.table) else { continue };
        if count < shown.most {
            text.push_str(if count > 0 { "," } else { "" });
            annals_json::push_change(text, table, row);
        }
        count += 1;
    }
    match count.saturating_sub(shown.most) {
        0 => text.push_str("]}"),
        left_out => text.push_str(&format!("],\"left_out\":{left_out}}}")),
    }
    count
}

/// Appends what a transaction changed, field by field, in the same way.
pub(crate) fn push_changed_fields(text: &mut String, schema: &Schema, changed: &ChangedFields) {
    let ChangedFields { txid, time, comments, rows, left_out } = changed;
    push_head(text, *txid, *time, comments);
    let known = rows.iter().filter_map(|row| Some((schema.table(row.table)?, row)));
    for (place, (table, row)) in known.enumerate() {
        text.push_str(if place > 0 { "," } else { "" });
        annals_json::push_fields(text, table, row);
    }
    match left_out {
        0 => text.push_str("]}"),
        left_out => text.push_str(&format!("],\"left_out\":{left_out}}}")),
    }
}

fn push_head(text: &mut String, txid: Txid, time: Timestamp, comments: &[String]) {
    text.push_str(&format!("{{\"txid\":{txid},\"time\":\"{time}\",\"comment\":"));
    match comments {
        [] => text.push_str("null"),
        comments => annals_json::push_string(text, &comments.join("\n")),
    }
    text.push_str(",\"changes\":[");
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The transaction after which the answer begins, or a cursor `TXID:CHAIN`, which also says in which history; without it
    /// only what is new.
    after: Option<String>,
    /// Only changes of this table.
    table: Option<String>,
    /// How many seconds to wait for news, 60 at most.
    wait: Option<f64>,
}

/// Returns the transactions after one, and waits for new ones.
#[utoipa::path(get, path = "/v1/{name}/changes", params(Asked), responses(
    (status = 200, description = "a line for each transaction, at the end `{\"caught_up\":TXID}`; with `Accept: text/event-stream` events without an end; with `Accept: application/vnd.apache.arrow.stream` the changes of the rows of `table`, as record batches", body = openapi::Transaction, content_type = "application/x-ndjson"),
    (status = 410, description = "what follows was forgotten, or written again by an erasure", body = openapi::Gone),
))]
async fn changes(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Asked { after, table: of, wait }): Query<Asked>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    #[cfg(feature = "arrow")]
    if crate::arrow::is_wanted(&headers) {
        let after = after.map(|after| After::of(&after)).transpose()?;
        return crate::arrow::changes(&shared, local, of, after).await;
    }
    let is = |name, value: &str| {
        headers.get(name).and_then(|it| it.to_str().ok()).is_some_and(|it| it.contains(value))
    };
    let as_events = is(header::ACCEPT, "text/event-stream");
    let last = headers.get("Last-Event-ID").and_then(|id| id.to_str().ok());
    // What isn't an id of ours came from another source of events.
    let last = last.and_then(|id| After::of(id).ok());
    let after = match last {
        Some(last) => Some(last),
        None => after.map(|after| After::of(&after)).transpose()?,
    };
    let opened = Arc::clone(&local);
    let (feed, only, after) = blocking::run(move || {
        let now = opened.refresh()?;
        let only = of.map(|of| Ok::<_, Refusal>(table(now.schema(), &of)?.number)).transpose()?;
        let after = after.map_or_else(|| Ok(now.txid()), |after| after.check(&opened))?;
        let feed = opened.subscribe_from(after + 1).map_err(|error| forgotten(&opened, error))?;
        Ok((feed.into_stream(), only, after))
    })
    .await?;
    let wait = match as_events {
        true => None,
        false => {
            let wait = Duration::try_from_secs_f64(wait.unwrap_or(0.0)).unwrap_or_default();
            Some(wait.min(shared.limits.wait))
        }
    };
    let (pieces, receiver) = mpsc::channel(WAITING);
    let (silence, slow) = (shared.limits.silence, Arc::clone(&shared.slow));
    let (pieces, ending) = (Pushing { pieces, silence, slow }, shared.ending.clone());
    let sending = Sending { local, feed, only, pieces, ending, as_events, last: after };
    tokio::spawn(sending.run(wait));
    let kind = if as_events { "text/event-stream" } else { "application/x-ndjson" };
    let response: Response = Body::from_stream(Pieces(receiver)).into_response();
    let cached = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
    Ok((cached, response).into_response())
}

/// Where a client continues.
#[derive(Clone, Copy)]
pub(crate) enum After {
    Txid(Txid),
    Cursor(Cursor),
}

impl After {
    fn of(text: &str) -> Answer<Self> {
        if let Ok(txid) = text.parse() {
            return Ok(Self::Txid(Txid(txid)));
        }
        let cursor = text.parse().map(Self::Cursor);
        cursor.map_err(|error| Refusal::bad(format!("after: write TXID or TXID:CHAIN: {error}")))
    }

    /// Checks that it is in this history, if it says so; returns the transaction.
    pub(crate) fn check(self, local: &Local) -> Answer<Txid> {
        match self {
            Self::Txid(txid) => Ok(txid),
            Self::Cursor(cursor) => match local.source().has(cursor)? {
                true => Ok(cursor.txid),
                false => match local.batch(Some(cursor)) {
                    Err(error) => Err(gone(local, Some(cursor), error)),
                    // It was committed meanwhile.
                    Ok(_) => Ok(cursor.txid),
                },
            },
        }
    }
}

/// Returns the answer that transactions can't be sent.
pub(crate) fn forgotten(local: &Local, error: annals::Error) -> Refusal {
    if error.kind() != ErrorKind::NotFound {
        return error.into();
    }
    let oldest = local.source().oldest().unwrap_or_default().0;
    let refusal = Refusal::new(StatusCode::GONE, "forgotten", error.to_string());
    refusal.with(serde_json::json!({ "oldest": oldest, "erasures": [], "carried": null }))
}

/// A client that receives changes.
struct Sending {
    local: Arc<Local>,
    feed: SubscriptionStream,
    only: Option<TableNumber>,
    pieces: Pushing,
    ending: Ending,
    as_events: bool,
    /// The last transaction that was read.
    last: Txid,
}

/// What happened next.
enum Next {
    Changed(Changed),
    Silence,
    Failed(annals::Error),
    /// The database was closed.
    Over,
    /// The server ends.
    Ending,
}

impl Sending {
    /// Sends until the client leaves; or, with `wait`, until all is sent and so much time has passed.
    async fn run(mut self, wait: Option<Duration>) {
        let deadline = wait.map(|wait| Instant::now() + wait);
        let (mut sent, mut was_told) = (false, false);
        // What is committed meanwhile is for the next poll: so a poll ends however much is written.
        let end = self.local.read().txid();
        loop {
            let is_caught_up = end <= self.last;
            if is_caught_up && self.as_events && !was_told {
                was_told = true;
                let (id, last) = (self.id(), self.last);
                let text = format!("event: caught-up\nid: {id}\ndata: {{\"txid\":{last}}}\n\n");
                if !self.send(text).await {
                    return;
                }
            }
            if is_caught_up && sent && deadline.is_some() {
                break;
            }
            let next = match deadline {
                Some(deadline) if is_caught_up => match timeout_at(deadline, self.next()).await {
                    Ok(Next::Ending) | Err(_) => break,
                    Ok(next) => next,
                },
                _ => self.next_within(COMMENT).await,
            };
            let goes_on = match next {
                Next::Changed(changed) => {
                    self.last = changed.txid;
                    let line = self.line(&changed);
                    sent |= line.is_some();
                    match line {
                        Some(line) => self.send(line).await,
                        None => true,
                    }
                }
                Next::Silence if self.as_events => self.send(": nothing new\n\n".to_owned()).await,
                Next::Silence => true,
                Next::Failed(error) => return self.fail(error).await,
                Next::Over | Next::Ending => return,
            };
            if !goes_on {
                return;
            }
        }
        let (id, last) = (self.id(), self.last);
        self.send(format!("{{\"caught_up\":{last},\"cursor\":\"{id}\"}}\n")).await;
    }

    /// Returns the place after the last transaction that was read: its cursor, if it is the last of all; else its number
    /// alone, since the chain is not at hand.
    fn id(&self) -> String {
        let end = Cursor::from(self.local.read().point());
        if end.txid == self.last { end.to_string() } else { self.last.to_string() }
    }

    /// Says why it ends, if that is that what follows was forgotten; else cuts the answer off.
    async fn fail(&self, error: annals::Error) {
        if error.kind() != ErrorKind::NotFound {
            self.pieces.send(Err(std::io::Error::other(error))).await;
            return;
        }
        let mut text = "{\"error\":\"forgotten\",\"message\":".to_owned();
        annals_json::push_string(&mut text, &error.to_string());
        self.send(match self.as_events {
            true => format!("event: forgotten\ndata: {text}}}\n\n"),
            false => text + "}\n",
        })
        .await;
    }

    /// Returns the text of a transaction; `None` if it changes nothing of the table.
    fn line(&self, changed: &Changed) -> Option<String> {
        let now = self.local.read();
        let mut text = String::new();
        let shown = Shown { table: self.only, most: usize::MAX };
        let count = push_changed(&mut text, now.schema(), changed, shown);
        if count == 0 && self.only.is_some() {
            return None;
        }
        Some(match self.as_events {
            true => format!("id: {}\ndata: {text}\n\n", self.id()),
            false => text + "\n",
        })
    }

    async fn next(&mut self) -> Next {
        let feed = &mut self.feed;
        let changed = poll_fn(|context| Pin::new(&mut *feed).poll_next(context));
        let next = tokio::select! {
            next = changed => next,
            () = self.ending.begun() => return Next::Ending,
        };
        match next {
            Some(Ok(changed)) => Next::Changed(changed),
            Some(Err(error)) => Next::Failed(error),
            None => Next::Over,
        }
    }

    async fn next_within(&mut self, most: Duration) -> Next {
        timeout(most, self.next()).await.unwrap_or(Next::Silence)
    }

    /// Sends a text; false if the client has left, or is too slow: it resumes after the last transaction that it has.
    async fn send(&self, text: String) -> bool {
        self.pieces.send(Ok(text.into())).await
    }
}
