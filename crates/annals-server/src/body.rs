//! Bodies of requests and answers that are larger than memory.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use annals::internals::{Batch, FileRange};
use annals_storage::Spool;
use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

use crate::answer::{Answer, Refusal};
use crate::blocking;

/// The size of the pieces in which files are sent.
const PIECE: usize = 256 << 10;
/// How many pieces may wait for a slow reader.
const PIECES: usize = 4;

/// Reads a body into a spool, up to `most` bytes.
pub(crate) async fn spool(body: Body, spool: Spool, most: u64, silence: Duration) -> Answer<Spool> {
    let (pieces, mut received) = mpsc::channel::<Bytes>(PIECES);
    let writing = tokio::task::spawn(blocking::run(move || {
        let mut spool = spool;
        while let Some(piece) = received.blocking_recv() {
            let written = spool.append(&piece);
            written.map_err(|error| annals::Error::io("can't spool the body", error))?;
        }
        Ok(spool)
    }));
    let mut stream: BodyDataStream = body.into_data_stream();
    let mut len = 0;
    while let Some(piece) = next(&mut stream, silence).await? {
        len += piece.len() as u64;
        if len > most {
            return Err(too_large(most));
        }
        if pieces.send(piece).await.is_err() {
            break; // the error of writing it is the answer
        }
    }
    drop(pieces);
    writing.await.unwrap_or_else(|_| Err(Refusal::bad("the body couldn't be spooled")))
}

/// Reads a body that fits into memory, as text.
pub(crate) async fn text(body: Body, most: u64, silence: Duration) -> Answer<String> {
    let mut stream: BodyDataStream = body.into_data_stream();
    let mut text = Vec::new();
    while let Some(piece) = next(&mut stream, silence).await? {
        if text.len() as u64 + piece.len() as u64 > most {
            return Err(too_large(most));
        }
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).map_err(|_| Refusal::bad("the body isn't UTF-8"))
}

/// Returns the next piece of a body; `None` at its end.
async fn next(stream: &mut BodyDataStream, silence: Duration) -> Answer<Option<Bytes>> {
    loop {
        let frame = tokio::time::timeout(silence, stream.frame()).await;
        let frame = frame.map_err(|_| {
            let message = format!("nothing of the body came for {silence:?}");
            Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
        })?;
        let Some(frame) = frame else { return Ok(None) };
        let frame =
            frame.map_err(|error| Refusal::bad(format!("the body was cut off: {error}")))?;
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
}

/// Refuses a body that is larger than the server takes.
pub(crate) fn too_large(most: u64) -> Refusal {
    let message = format!(
        "the body has more than {most} bytes, the most that this server takes (--max-push)"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// Returns a body of the bytes of a batch, read piece by piece as the reader takes them.
pub(crate) fn of_batch(batch: Batch, silence: Duration) -> Body {
    of_ranges(batch.header, batch.ranges, (), silence)
}

/// Returns a body of some bytes and then those of files, read piece by piece as the reader takes them. `kept` is dropped
/// after the last.
pub(crate) fn of_ranges(
    head: Vec<u8>,
    ranges: Vec<FileRange>,
    kept: impl Send + 'static,
    silence: Duration,
) -> Body {
    let (pieces, receiver) = mpsc::channel::<std::io::Result<Bytes>>(PIECES);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let send = |piece| {
            let sent = tokio::time::timeout(silence, pieces.send(piece));
            matches!(runtime.block_on(sent), Ok(Ok(())))
        };
        let _kept = kept;
        let head = Bytes::from(head);
        if !head.is_empty() && !send(Ok(head)) {
            return;
        }
        for range in ranges {
            let mut at = range.from;
            while at < range.to {
                let wanted = usize::try_from(range.to - at).unwrap_or(PIECE).min(PIECE);
                let mut piece = vec![0; wanted];
                let read = match range.storage.read_at(at, &mut piece) {
                    Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
                    read => read,
                };
                let is_over = read.is_err();
                let piece = read.map(|read| {
                    piece.truncate(read);
                    at += read as u64;
                    Bytes::from(piece)
                });
                // A reader that is too slow is cut off, and resumes at its cursor.
                if !send(piece) || is_over {
                    return;
                }
            }
        }
    });
    Body::from_stream(Pieces(receiver))
}

/// The pieces of a body, as they come.
pub(crate) struct Pieces(pub(crate) mpsc::Receiver<std::io::Result<Bytes>>);

impl futures_core::Stream for Pieces {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
