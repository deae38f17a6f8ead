//! Bodies of requests and answers that are larger than memory.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use annals_replica::frames::FileRange;
use annals_storage::Spool;
use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::ahead::Frames;
use crate::answer::{Answer, Refusal};
use crate::blocking;
use crate::buffers::SMALL;
use crate::means::Held;
use crate::receiving::Failure;
use crate::rights::Allowed;
use crate::slow::Slow;

/// The size of the pieces in which files are sent.
const PIECE: usize = 256 << 10;
/// How many pieces may wait for a slow reader.
const PIECES: usize = 1;
/// The most memory that the spool of a push takes.
const SPOOLED: u64 = 8 << 20;

/// Reads a body into a spool. A client that sends slowly holds no thread.
pub(crate) async fn spool(allowed: &Allowed, mut body: Body, mut spool: Spool) -> Answer<Spool> {
    let expected = body.size_hint().exact().unwrap_or(SPOOLED).min(SPOOLED);
    let _held = allowed.shared().means.hold(allowed.right(), expected).await?;
    let mut waiting = Vec::new();
    loop {
        let piece = next(&mut body).await?;
        let is_over = piece.is_none();
        waiting.extend_from_slice(&piece.unwrap_or_default());
        if waiting.len() >= PIECE || (is_over && !waiting.is_empty()) {
            let bytes = std::mem::take(&mut waiting);
            let in_memory = spool.has_room(bytes.len());
            let write = move || {
                let written = spool.append(&bytes);
                written.map_err(|error| annals::Error::io("can't spool the body", error))?;
                Answer::Ok(spool)
            };
            // What writes no file needn't wait for another thread.
            spool = if in_memory { write()? } else { blocking::run(write).await? };
        }
        if is_over {
            return Ok(spool);
        }
    }
}

/// Reads a body into memory, as text; returns it with the memory of `copies` such texts, which it takes to understand it.
pub(crate) async fn text(allowed: &Allowed, mut body: Body, copies: u64) -> Answer<(String, Held)> {
    let (means, right) = (&allowed.shared().means, allowed.right());
    let expected = body.size_hint().exact().unwrap_or(0);
    // Before the body is read: what waits is still on its way.
    let mut held = means.hold(right, expected * copies).await?;
    let mut text = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    while let Some(piece) = next(&mut body).await? {
        text.extend_from_slice(&piece);
        means.cover(right, &mut held, text.capacity() as u64 * copies)?;
    }
    let text = String::from_utf8(text).map_err(|_| Refusal::bad("the body isn't UTF-8"))?;
    Ok((text, held))
}

/// Refuses a body that isn't said to be JSON: pages of other sites can send other types without asking.
pub(crate) fn check_json(headers: &HeaderMap) -> Answer<()> {
    if media_types(headers, header::CONTENT_TYPE).eq(["application/json"]) {
        return Ok(());
    }
    let message = "send the header `Content-Type: application/json`";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message))
}

/// Returns the types of media that a header names, in small letters and without their parameters.
pub(crate) fn media_types(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = String> {
    let all = headers.get_all(name).into_iter().filter_map(|it| it.to_str().ok());
    let kinds = all.flat_map(|it| it.split(','));
    kinds.filter_map(|kind| kind.split(';').next()).map(|kind| kind.trim().to_ascii_lowercase())
}

/// Returns the next piece of a body; `None` at its end.
async fn next(body: &mut Body) -> Answer<Option<Bytes>> {
    while let Some(frame) = body.frame().await {
        if let Ok(piece) = frame.map_err(|error| lost(&error))?.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Returns the refusal of a body that didn't come whole.
fn lost(error: &axum::Error) -> Refusal {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return (*failure).into();
        }
        cause = error.source();
    }
    Refusal::bad(format!("the body was cut off: {error}"))
}

/// Returns a body of frames: those in memory, or read piece by piece as the reader takes them.
pub(crate) async fn of_frames(frames: Frames, allowed: &Allowed) -> Answer<Body> {
    let Frames { batch, memory } = frames;
    let Some(memory) = memory else {
        return of_ranges(batch.header, batch.ranges, (), allowed).await;
    };
    if batch.header.is_empty() && memory.bytes.len() <= SMALL {
        let means = &allowed.shared().means;
        let held = means.hold(allowed.right(), memory.bytes.len() as u64).await?;
        return Ok(Body::from(held.keep(memory)));
    }
    let bytes = Bytes::from_owner(memory);
    let (pieces, body) = pushed(allowed).await?;
    tokio::spawn(async move {
        pieces.send_all(batch.header.into()).await && pieces.send_all(bytes).await
    });
    Ok(body)
}

/// Returns a body of some bytes and then those of files, read piece by piece as the reader takes them: a slow one holds no
/// thread, and a few pieces in memory. `kept` is dropped after the last.
pub(crate) async fn of_ranges(
    head: Vec<u8>,
    ranges: Vec<FileRange>,
    kept: impl Send + 'static,
    allowed: &Allowed,
) -> Answer<Body> {
    let (pieces, body) = pushed(allowed).await?;
    tokio::spawn(async move {
        let _kept = kept;
        send_ranges(Bytes::from(head), ranges, pieces).await;
    });
    Ok(body)
}

/// Returns a body into which pieces are pushed, and its other end, with the memory for them.
pub(crate) async fn pushed(allowed: &Allowed) -> Answer<(Pushing, Body)> {
    let held = allowed.shared().means.hold_stream(allowed.right()).await?;
    let (mut pushing, body) = pushed_later(allowed);
    pushing.held = held;
    Ok((pushing, body))
}

/// Returns a body into which pieces are pushed now and then, and its other end, without memory.
pub(crate) fn pushed_later(allowed: &Allowed) -> (Pushing, Body) {
    let (pieces, receiver) = mpsc::channel(PIECES);
    let (silence, slow) = (allowed.shared().limits.silence, Arc::clone(allowed.slow()));
    let pushing = Pushing { pieces, silence, slow, held: Held::default() };
    (pushing, Body::from_stream(Pieces(receiver)))
}

async fn send_ranges(head: Bytes, ranges: Vec<FileRange>, pieces: Pushing) {
    if !head.is_empty() && !pieces.send(Ok(head)).await {
        return;
    }
    for FileRange { storage, from, to } in ranges {
        let mut at = from;
        while at < to {
            let wanted = usize::try_from(to - at).unwrap_or(PIECE).min(PIECE);
            let storage = Arc::clone(&storage);
            let read = move || {
                let mut piece = vec![0; wanted];
                let read = storage.read_at(at, &mut piece)?;
                piece.truncate(read);
                Ok::<_, io::Error>(Bytes::from(piece))
            };
            let piece = match tokio::task::spawn_blocking(read).await {
                Ok(Ok(piece)) if piece.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => read,
                Err(error) => Err(io::Error::other(error)),
            };
            let is_over = piece.is_err();
            at += piece.as_ref().map_or(0, |piece| piece.len() as u64);
            if !pieces.send(piece).await || is_over {
                return;
            }
        }
    }
}

/// The end of a body into which pieces are pushed.
pub(crate) struct Pushing {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    silence: Duration,
    slow: Arc<Slow>,
    /// The memory of the pieces.
    pub(crate) held: Held,
}

impl Pushing {
    /// Sends a piece; false if the client has left, or is too slow: it is cut off, and resumes at its cursor.
    pub(crate) async fn send(&self, piece: io::Result<Bytes>) -> bool {
        match timeout(self.silence, self.pieces.send(piece)).await {
            Ok(sent) => sent.is_ok(),
            Err(_) => {
                self.slow.answer();
                false
            }
        }
    }

    /// Sends a text; false as [`send`](Self::send) says.
    pub(crate) async fn send_text(&self, text: String) -> bool {
        self.send_all(text.into()).await
    }

    /// Returns once the client has left.
    pub(crate) async fn closed(&self) {
        self.pieces.closed().await;
    }

    /// Sends bytes, however many, in pieces that a reader can take in time; false as [`send`](Self::send) says.
    pub(crate) async fn send_all(&self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            if !self.send(Ok(piece)).await {
                return false;
            }
        }
        true
    }
}

/// The pieces of a body, as they come.
pub(crate) struct Pieces(pub(crate) mpsc::Receiver<io::Result<Bytes>>);

impl futures_core::Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
