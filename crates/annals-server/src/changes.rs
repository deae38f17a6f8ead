//! Changes as they are committed: lines of JSON by long poll, or server-sent events.
//!
//! Each transaction is sent once, in order. The number of the last one that a client has handled is its cursor: after
//! any cut it asks again, and nothing is missed. What was forgotten before that is said, with 410.

use std::sync::Arc;
use std::time::Duration;

use annals::{
    Changed, ChangedFields, Cursor, ErrorKind, RowChange, Schema, Subscription, TableNumber,
    Timestamp, Txid, Value,
};
#[cfg(feature = "arrow")]
use annals_arrow::{Options, PastBatches, ipc};
use annals_replica::Local;
use axum::extract::Query;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use tokio::time::{Instant, timeout};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
#[cfg(feature = "arrow")]
use crate::arrow;
use crate::body::{self, Pushing};
use crate::fair::Taken;
use crate::forgotten::forgotten;
use crate::frames::gone;
use crate::means::Kind;
use crate::openapi;
use crate::rights::Allowed;
use crate::rows::{LARGEST, table_or_when_dropped};
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;

/// A comment is sent after so much silence, so that neither side takes the connection for dead.
const COMMENT: Duration = Duration::from_secs(15);
/// A long transaction is sent in pieces of so many bytes, about.
const PIECE: u64 = 128 << 10;
/// A transaction is in memory as rows, and as a text that grows to at most twice its length.
const COPIES: u64 = 3;
/// How many bytes of rows a reader keeps that isn't up to date, about.
pub(crate) const KEPT: usize = 64 << 10;
/// A client that takes a transaction later than this is slow.
const PATIENCE: Duration = Duration::from_millis(20);

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(changes))
}

/// Which changes of a transaction are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Those of this table only, if there is one.
    pub(crate) table: Option<TableNumber>,
    /// The most of them, which have about 8 MiB at most: the others are counted.
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
    let Changed { txid, time, comments, rows, left_out } = changed;
    push_head(text, *txid, *time, comments);
    let (mut count, mut has) = (0, 0);
    for row in rows.iter().filter(|row| shown.table.is_none_or(|only| only == row.table)) {
        let Some(table) = schema.table(row.table) else { continue };
        if count < shown.most && text.len() <= LARGEST {
            has = count + 1;
            text.push_str(if count > 0 { "," } else { "" });
            annals_json::push_change(text, table, row);
        }
        count += 1;
    }
    push_tail(text, (count - has) as u64 + left_out);
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
    push_tail(text, *left_out);
}

fn push_head(text: &mut String, txid: Txid, time: Timestamp, comments: &[String]) {
    text.push_str(&format!("{{\"txid\":{txid},\"time\":\"{time}\",\"comment\":"));
    match comments {
        [] => text.push_str("null"),
        comments => annals_json::push_string(text, &comments.join("\n")),
    }
    text.push_str(",\"changes\":[");
}

fn push_tail(text: &mut String, left_out: u64) {
    match left_out {
        0 => text.push_str("]}"),
        left_out => text.push_str(&format!("],\"left_out\":{left_out}}}")),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The transaction after which the answer begins, or a cursor `TXID:CHAIN`, which also says in which history; without it
    /// only what is new.
    after: Option<String>,
    /// Only changes of this table.
    table: Option<String>,
    /// The most changes of each transaction; `left_out` counts the others.
    rows: Option<usize>,
    /// How many seconds to wait for news, 60 at most.
    wait: Option<f64>,
}

/// Returns the transactions after one, and waits for new ones.
#[utoipa::path(get, path = "/v1/{name}/changes", params(Asked), responses(
    (status = 200, description = "a line for each transaction, at the end `{\"caught_up\":TXID}`; with `Accept: text/event-stream` events without an end; with `Accept: application/vnd.apache.arrow.stream` the changes of the rows of `table`, as record batches", body = openapi::Transaction, content_type = "application/x-ndjson"),
    (status = 410, description = "what follows was forgotten, or written again by an erasure", body = openapi::Gone),
))]
async fn changes(
    allowed: Allowed,
    Query(Asked { after, table: of, rows, wait }): Query<Asked>,
    headers: HeaderMap,
) -> Answer {
    #[cfg(feature = "arrow")]
    if arrow::is_wanted(&headers) {
        let after = after.map(|after| After::of("after", &after)).transpose()?;
        return as_arrow(&allowed, of, after).await;
    }
    let as_events = body::media_types(&headers, header::ACCEPT).any(|it| it == "text/event-stream");
    let last = headers.get("Last-Event-ID").map(|id| id.to_str().unwrap_or_default().to_owned());
    let after = match (last, after) {
        (Some(last), _) => Some(After::of("Last-Event-ID", &last)?),
        (None, after) => after.map(|after| After::of("after", &after)).transpose()?,
    };
    let opened = Arc::clone(&allowed.local);
    let open = move |_: &mut Work| {
        let now = now(&opened)?;
        let only = of.map(|of| table_or_when_dropped(&now, &of)).transpose()?;
        let after = after.map_or_else(|| Ok(now.txid()), |after| after.check(&opened))?;
        let feed = opened.subscribe_from(after + 1).map_err(|error| forgotten(&opened, error))?;
        Ok((feed.keep_at_most(KEPT), only, after))
    };
    let ((feed, only, after), _) = allowed.run(Kind::Long, open).await?;
    let limits = allowed.shared().limits;
    let wait = match as_events {
        true => None,
        false => {
            let wait = Duration::try_from_secs_f64(wait.unwrap_or(0.0)).unwrap_or_default();
            Some(wait.min(limits.wait))
        }
    };
    let (pieces, body) = body::pushed_later(&allowed);
    let local = Arc::clone(&allowed.local);
    let shown = Shown { table: only, most: rows.unwrap_or(usize::MAX) };
    let sending = Sending { allowed, local, shown, pieces, as_events, last: after };
    tokio::spawn(sending.run(feed, wait));
    let kind = if as_events { "text/event-stream" } else { "application/x-ndjson" };
    let cached = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
    Ok((cached, body).into_response())
}

/// Where a client continues.
#[derive(Clone, Copy)]
pub(crate) enum After {
    Txid(Txid),
    Cursor(Cursor),
}

impl After {
    /// Reads what a parameter or header says.
    fn of(name: &str, text: &str) -> Answer<Self> {
        if let Ok(txid) = text.parse() {
            return Ok(Self::Txid(Txid(txid)));
        }
        let cursor = text.parse().map(Self::Cursor);
        cursor.map_err(|error| Refusal::bad(format!("{name}: write TXID or TXID:CHAIN: {error}")))
    }

    /// Checks that it is in this history, as far as it says so; returns the transaction.
    pub(crate) fn check(self, local: &Local) -> Answer<Txid> {
        match self {
            Self::Txid(txid) => {
                let last = local.read().txid();
                if txid > last {
                    // Whoever has seen it has another history, and would wait here for what never comes.
                    let message = format!(
                        "after: there is no transaction {txid} yet: the last one is {last}"
                    );
                    return Err(Refusal::bad(message));
                }
                Ok(txid)
            }
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

/// A client that receives changes.
struct Sending {
    allowed: Allowed,
    local: Arc<Local>,
    shown: Shown,
    pieces: Pushing,
    as_events: bool,
    /// The last transaction that was read.
    last: Txid,
}

/// What was sent of a transaction.
#[derive(PartialEq, Eq)]
enum Sent {
    Yes,
    /// It changes nothing of the table.
    Nothing,
    /// The client has left, or is too slow: it resumes after the last transaction that it has.
    Failed,
}

impl Sending {
    /// Sends until the client leaves; or, with `wait`, until all is sent and so much time has passed.
    async fn run(mut self, mut feed: Subscription, wait: Option<Duration>) {
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
                if !self.pieces.send_text(text).await {
                    return;
                }
            }
            if is_caught_up && sent && deadline.is_some() {
                break;
            }
            let Ok((rest, changed, place)) = self.read(feed).await else { return };
            feed = rest;
            match changed {
                Ok(Some(changed)) => match self.send_or_shrink(changed, place, &mut feed).await {
                    Sent::Yes => sent = true,
                    Sent::Nothing => {}
                    Sent::Failed => return,
                },
                // The database was closed.
                Ok(None) if feed.is_over() => return,
                Ok(None) => {
                    drop(place);
                    if !self.wait(&mut feed, deadline.filter(|_| is_caught_up)).await {
                        break;
                    }
                }
                Err(error) => return self.fail(error).await,
            }
        }
        if deadline.is_some() {
            let (id, last) = (self.id(), self.last);
            let text = format!("{{\"caught_up\":{last},\"cursor\":\"{id}\"}}\n");
            self.pieces.send_text(text).await;
        }
    }

    /// Waits for a place among the streams that may read at the same time, and reads the next transaction, if there is
    /// one. Dropping the returned place releases it.
    async fn read(
        &self,
        mut feed: Subscription,
    ) -> Answer<(Subscription, annals::Result<Option<Changed>>, Taken)> {
        let place = self.allowed.shared().means.place(self.allowed.right(), Kind::Stream).await?;
        let read = move || {
            let changed = feed.try_next();
            Ok((feed, changed, place))
        };
        self.allowed.shared().long.run(read).await
    }

    /// Waits for news; false if the client has left, or the server or the time of a poll ends.
    async fn wait(&self, feed: &mut Subscription, deadline: Option<Instant>) -> bool {
        let comment = Instant::now() + COMMENT;
        let until = deadline.map_or(comment, |deadline| deadline.min(comment));
        tokio::select! {
            () = feed.news() => true,
            () = self.allowed.shared().ending.begun() => false,
            () = self.pieces.closed() => false,
            () = tokio::time::sleep_until(until) => match deadline {
                Some(deadline) => deadline > Instant::now(),
                None if self.as_events => self.pieces.send_text(": nothing new\n\n".to_owned()).await,
                None => true,
            },
        }
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
        let text = match self.as_events {
            true => format!("event: forgotten\ndata: {text}}}\n\n"),
            false => text + "}\n",
        };
        self.pieces.send_text(text).await;
    }

    /// Sends a transaction. If the client doesn't take it, or others have the memory for it, what the feed has read ahead isn't kept
    /// meanwhile: nothing holds the memory of that.
    async fn send_or_shrink(
        &mut self,
        changed: Changed,
        place: Taken,
        feed: &mut Subscription,
    ) -> Sent {
        let mut sending = std::pin::pin!(self.send(changed, place));
        match timeout(PATIENCE, &mut sending).await {
            Ok(sent) => sent,
            Err(_) => {
                feed.shrink_to(KEPT);
                sending.await
            }
        }
    }

    /// Sends a transaction piece by piece, in memory that is held meanwhile. The place is for those that have a transaction
    /// in memory, and don't hold it yet.
    async fn send(&mut self, changed: Changed, place: Taken) -> Sent {
        self.last = changed.txid;
        let now = self.local.read();
        let schema = now.schema();
        let Shown { table: only, most } = self.shown;
        let is_shown = |row: &RowChange| only.is_none_or(|only| only == row.table);
        if only.is_some() && !changed.rows.iter().any(is_shown) {
            return Sent::Nothing;
        }
        let (means, right) = (&self.allowed.shared().means, self.allowed.right());
        let wanted = PIECE + COPIES * changed.rows.iter().map(bytes_of).sum::<u64>();
        let Ok(mut held) = means.hold_part(right, wanted).await else { return Sent::Failed };
        // A text is in memory until the reader has taken it, however long that is after this.
        let mut kept = |text: &mut String| {
            let text = std::mem::take(text);
            held.split(text.capacity() as u64).keep(text)
        };
        drop(place);
        let mut text = match self.as_events {
            true => format!("id: {}\ndata: ", self.id()),
            false => String::new(),
        };
        push_head(&mut text, changed.txid, changed.time, &changed.comments);
        let mut count = 0;
        for row in changed.rows.iter().filter(|row| is_shown(row)) {
            let Some(table) = schema.table(row.table) else { continue };
            count += 1;
            if count > most {
                continue;
            }
            text.push_str(if count > 1 { "," } else { "" });
            annals_json::push_change(&mut text, table, row);
            let is_piece = text.len() as u64 >= PIECE / 2;
            if is_piece && !self.pieces.send_all(kept(&mut text)).await {
                return Sent::Failed;
            }
        }
        push_tail(&mut text, count.saturating_sub(most) as u64);
        text.push_str(if self.as_events { "\n\n" } else { "\n" });
        let last = kept(&mut text);
        // The reader may take long, and only the rest of the text is needed for it.
        drop((held, changed));
        match self.pieces.send_all(last).await {
            true => Sent::Yes,
            false => Sent::Failed,
        }
    }
}

/// Returns how many bytes a change has in memory, about.
fn bytes_of(change: &RowChange) -> u64 {
    let values = change.before.iter().chain(&change.after).flatten();
    let heap = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    let bytes = |value: &Value| size_of::<Value>() + heap(value);
    (size_of::<RowChange>() + values.map(bytes).sum::<usize>()) as u64
}

#[cfg(feature = "arrow")]
/// Sends the changes of a table after a transaction.
async fn as_arrow(allowed: &Allowed, of: Option<String>, after: Option<After>) -> Answer {
    let local = Arc::clone(&allowed.local);
    let (Some(of), Some(after)) = (of, after) else {
        let message = "table, after: record batches are the changes of one table after a transaction; after=0 means all";
        return Err(Refusal::bad(message));
    };
    let begin = move |_: &mut Work| {
        let now = now(&local)?;
        let table = table_or_when_dropped(&now, &of)?;
        let first = after.check(&local)? + 1;
        // Nothing may be new.
        let range = (first, now.txid().max(first));
        let changes = now.changes(range.0..=range.1).map_err(|error| forgotten(&local, error))?;
        let changes = changes.keep_at_most(KEPT);
        let batches = PastBatches::changes(&now, table, changes, Options::for_transport())?;
        Ok((now.txid(), ipc::Pieces::new(batches)?))
    };
    arrow::send(allowed, allowed.run(Kind::Long, begin).await?).await
}
