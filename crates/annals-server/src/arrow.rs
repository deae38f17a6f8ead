//! Tables and changes as streams of Arrow, which a client asks for by its `Accept`.

use std::io;
use std::sync::Arc;

use annals::{Snapshot, Txid};
use annals_arrow::{Options, PastBatches, TableBatches, ipc};
use annals_replica::Local;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::answer::{Answer, Refusal};
use crate::blocking;
use crate::body::{self, Pushing};
use crate::changes::{After, forgotten};
use crate::rows::{self, Asked};
use crate::shared::Shared;

/// The most rows whose ids are kept for an answer; a whole table needs no ids.
const MOST: usize = 1_000_000;

/// True if a client accepts a stream of Arrow.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let mut kinds = accept.unwrap_or_default().split(',');
    kinds.any(|kind| kind.split(';').next().unwrap_or_default().trim() == ipc::MEDIA_TYPE)
}

/// Sends the rows of a table.
pub(crate) async fn table(shared: &Shared, local: Arc<Local>, of: String, asked: Asked) -> Answer {
    let done = blocking::run(move || {
        let now = rows::state(&local, asked.at.as_deref())?;
        Ok((now.txid(), ipc::Pieces::new(batches(&now, &of, &asked)?)?))
    });
    let (txid, pieces) = done.await?;
    Ok(send(shared, txid, pieces))
}

fn batches(now: &Snapshot, of: &str, asked: &Asked) -> Answer<TableBatches> {
    let table = rows::table(now.schema(), of)?;
    let limit = asked.limit.unwrap_or(MOST);
    if limit == 0 || limit > MOST {
        return Err(Refusal::bad(format!("limit: write a number from 1 to {MOST}")));
    }
    let some =
        [&asked.index, &asked.from, &asked.key, &asked.after].into_iter().any(Option::is_some);
    if !some && asked.rank.is_none() && asked.limit.is_none() {
        let all = 0..u64::MAX;
        return Ok(TableBatches::range(now, table.number, all, Options::for_transport())?);
    }
    let (ids, is_more) = rows::ids(now, table, asked, limit)?;
    if is_more && asked.limit.is_none() {
        return Err(Refusal::bad(format!(
            "there are more than {MOST} such rows: say limit=N, and continue with after=ID, the last one's id"
        )));
    }
    Ok(TableBatches::rows(now, table.number, ids, Options::for_transport())?)
}

/// Sends the changes of a table after a transaction.
pub(crate) async fn changes(
    shared: &Shared,
    local: Arc<Local>,
    of: Option<String>,
    after: Option<After>,
) -> Answer {
    let (Some(of), Some(after)) = (of, after) else {
        let message = "table, after: record batches are the changes of one table after a transaction; after=0 means all";
        return Err(Refusal::bad(message));
    };
    let done = blocking::run(move || {
        let now = local.refresh()?;
        let table = rows::table(now.schema(), &of)?.number;
        let first = after.check(&local)? + 1;
        // Nothing is new.
        let range = (first, now.txid().max(first));
        let changes = now.changes(range.0..=range.1).map_err(|error| forgotten(&local, error))?;
        let batches = PastBatches::changes(&now, table, changes, Options::for_transport())?;
        Ok((now.txid(), ipc::Pieces::new(batches)?))
    });
    let (txid, pieces) = done.await?;
    Ok(send(shared, txid, pieces))
}

/// Sends a stream as the reader takes it: a slow one holds no thread, and the memory of one batch.
fn send(shared: &Shared, txid: Txid, pieces: ipc::Pieces) -> Response {
    let (pushing, body) = body::pushed(shared);
    tokio::spawn(push(pieces, pushing));
    let txid = txid.to_string();
    let headers = [(header::CONTENT_TYPE.as_str(), ipc::MEDIA_TYPE), ("annals-txid", &txid)];
    (headers, body).into_response()
}

async fn push(mut pieces: ipc::Pieces, pushing: Pushing) {
    loop {
        let step = tokio::task::spawn_blocking(move || {
            let piece = pieces.next();
            (pieces, piece)
        });
        let piece = match step.await {
            Ok((_, None)) => return,
            Ok((rest, Some(piece))) => {
                pieces = rest;
                piece.map_err(io::Error::other)
            }
            Err(error) => {
                pushing.send(Err(io::Error::other(error))).await;
                return;
            }
        };
        let is_sent = match piece {
            Ok(piece) => pushing.send_all(Bytes::from(piece)).await,
            Err(error) => {
                pushing.send(Err(error)).await;
                false
            }
        };
        if !is_sent {
            return;
        }
    }
}
