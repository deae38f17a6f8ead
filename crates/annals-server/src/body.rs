//! Bodies of requests and answers that are larger than memory.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use annals::internals::FileRange;
use annals_storage::Spool;
use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::ahead::Frames;
use crate::answer::{Answer, Refusal};
use crate::blocking;
use crate::buffers::SMALL;
use crate::shared::Shared;

/// The size of the pieces in which files are sent.
const PIECE: usize = 256 << 10;
/// How many pieces may wait for a slow reader.
const PIECES: usize = 1;
/// So many bytes, or the rest, must be received within the time that a client may be silent: else one could send a byte now and
/// then for ever.
pub(crate) const LEAST: usize = 16 << 10;

/// Reads a body into a spool, up to `most` bytes. A client that sends slowly holds no thread.
pub(crate) async fn spool(
    body: Body,
    mut spool: Spool,
    most: u64,
    silence: Duration,
) -> Answer<Spool> {
    let (mut body, mut len) = (Receiving::new(body, silence), 0);
    let mut waiting = Vec::new();
    loop {
        let piece = body.next().await?;
        let is_over = piece.is_none();
        let piece = piece.unwrap_or_default();
        len += piece.len() as u64;
        if len > most {
            return Err(too_large(most));
        }
        waiting.extend_from_slice(&piece);
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

/// Reads a body that fits into memory, as text.
pub(crate) async fn text(body: Body, most: u64, silence: Duration) -> Answer<String> {
    let mut body = Receiving::new(body, silence);
    let mut text = Vec::new();
    while let Some(piece) = body.next().await? {
        if text.len() as u64 + piece.len() as u64 > most {
            return Err(too_large(most));
        }
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).map_err(|_| Refusal::bad("the body isn't UTF-8"))
}

/// A body that is received: [`LEAST`] bytes, or its end, must come within the time of silence.
struct Receiving {
    stream: BodyDataStream,
    silence: Duration,
    deadline: Instant,
    since: usize,
}

impl Receiving {
    fn new(body: Body, silence: Duration) -> Self {
        let deadline = Instant::now() + silence;
        Self { stream: body.into_data_stream(), silence, deadline, since: 0 }
    }

    /// Returns the next piece of a body; `None` at its end.
    async fn next(&mut self) -> Answer<Option<Bytes>> {
        loop {
            let frame = timeout_at(self.deadline, self.stream.frame()).await;
            let frame = frame.map_err(|_| {
                let silence = self.silence;
                let message =
                    format!("less than {LEAST} bytes of the body came within {silence:?}");
                Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
            })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|error| Refusal::bad(format!("the body was cut off: {error}")))?;
            let Ok(piece) = frame.into_data() else { continue };
            self.since += piece.len();
            if self.since >= LEAST {
                self.since = 0;
                self.deadline = Instant::now() + self.silence;
            }
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

/// Returns a body of frames: those in memory, or read piece by piece as the reader takes them.
pub(crate) fn of_frames(Frames { batch, memory }: Frames, shared: &Shared) -> Body {
    let Some(memory) = memory else { return of_ranges(batch.header, batch.ranges, (), shared) };
    let bytes = Bytes::from_owner(memory);
    if batch.header.is_empty() && bytes.len() <= SMALL {
        return Body::from(bytes);
    }
    let (pieces, body) = pushed(shared);
    tokio::spawn(async move {
        pieces.send_all(batch.header.into()).await && pieces.send_all(bytes).await
    });
    body
}

/// Returns a body of some bytes and then those of files, read piece by piece as the reader takes them: a slow one holds no
/// thread, and a few pieces in memory. `kept` is dropped after the last.
pub(crate) fn of_ranges(
    head: Vec<u8>,
    ranges: Vec<FileRange>,
    kept: impl Send + 'static,
    shared: &Shared,
) -> Body {
    let (pieces, body) = pushed(shared);
    tokio::spawn(async move {
        let _kept = kept;
        send_ranges(Bytes::from(head), ranges, pieces).await;
    });
    body
}

/// Returns a body into which pieces are pushed, and its other end.
pub(crate) fn pushed(shared: &Shared) -> (Pushing, Body) {
    let (pieces, receiver) = mpsc::channel(PIECES);
    let (silence, slow) = (shared.limits.silence, Arc::clone(&shared.slow));
    (Pushing { pieces, silence, slow }, Body::from_stream(Pieces(receiver)))
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
    pub(crate) pieces: mpsc::Sender<io::Result<Bytes>>,
    pub(crate) silence: Duration,
    pub(crate) slow: Arc<AtomicU64>,
}

impl Pushing {
    /// Sends a piece; false if the client has left, or is too slow: it is cut off, and resumes at its cursor.
    pub(crate) async fn send(&self, piece: io::Result<Bytes>) -> bool {
        match timeout(self.silence, self.pieces.send(piece)).await {
            Ok(sent) => sent.is_ok(),
            Err(_) => {
                self.slow.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
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
pub(crate) struct Pieces(pub(crate) mpsc::Receiver<std::io::Result<Bytes>>);

impl futures_core::Stream for Pieces {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
