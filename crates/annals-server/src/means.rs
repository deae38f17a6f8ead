//! What the requests of a server share: memory for answers, bodies and streams, and places for work.

use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use tokio::time::timeout;

use crate::answer::{Answer, Refusal};
use crate::fair::{Fair, Taken};
use crate::rights::Right;
use crate::shared::Limits;

/// Memory is shared in units of so many bytes.
const UNIT: u64 = 1 << 10;
/// What a stream has in memory: a piece that is sent, and one that waits.
const STREAM: u64 = 512 << 10;
/// The most bytes of rows that work keeps beside its answer.
const ROOM: u64 = 32 << 20;
/// How many texts as long as a request take the memory of understanding it and doing what it says, about and at most.
pub(crate) const COPIES: u64 = 4;
/// So much of an answer needs no share of the memory: that of all work together is small.
const FREE: u64 = 16 << 10;

/// What the requests of a server share.
#[derive(Debug)]
pub(crate) struct Means {
    memory: Fair,
    /// Of the memory: what those who only read may have, whose clients may not take their answers. So those who write always
    /// have a part.
    readers: Fair,
    /// Of that of readers: what parts may have.
    parts: Fair,
    quick: Fair,
    long: Fair,
    #[cfg(feature = "sql")]
    sql: Fair,
    streams: Fair,
    small_bodies: Fair,
    large_bodies: Fair,
}

/// How long work takes, and so which place it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It reads a few rows.
    Quick,
    /// It may read much of a database.
    Long,
    /// It is long, and keeps rows beside its answer.
    Rows,
    /// It runs SQLite.
    #[cfg(feature = "sql")]
    Sql,
    /// It reads a transaction for a stream, however large that is.
    Stream,
}

/// Memory of the server's that is held until this is dropped, as such and as that of readers and of parts. The default holds
/// none.
#[derive(Debug, Default)]
pub(crate) struct Held {
    memory: Taken,
    of_readers: Taken,
    of_parts: Taken,
}

/// Bytes, and the memory that they are in.
struct Kept<B> {
    bytes: B,
    _held: Held,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Kept<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl Default for Means {
    fn default() -> Self {
        Self::new(Limits::default(), false)
    }
}

impl Means {
    /// Divides what the limits say. `is_open`: those without a token are all, and not one of many.
    pub(crate) fn new(limits: Limits, is_open: bool) -> Self {
        let units = u32::try_from(limits.memory / UNIT).unwrap_or(u32::MAX);
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let cores = u32::try_from(cores).unwrap_or(u32::MAX);
        let fair = |count: u32| Fair::new(count, if is_open { count } else { count / 2 });
        Self {
            // SQLite has the other half.
            memory: fair(units / 2),
            readers: fair(units / 8 * 3),
            parts: fair(units / 4),
            quick: fair(cores.saturating_mul(4).clamp(8, 64)),
            long: fair(cores.clamp(4, 16)),
            #[cfg(feature = "sql")]
            sql: fair(cores.clamp(4, 8)),
            streams: fair(cores.clamp(4, 8)),
            small_bodies: fair(1024),
            large_bodies: fair(128),
        }
    }

    /// Waits for a place for work.
    pub(crate) async fn place(&self, right: &Right, kind: Kind) -> Answer<Taken> {
        let places = match kind {
            Kind::Quick => &self.quick,
            Kind::Long | Kind::Rows => &self.long,
            #[cfg(feature = "sql")]
            Kind::Sql => &self.sql,
            Kind::Stream => &self.streams,
        };
        let place = timeout(right.shared().limits.silence, places.acquire(right.who(), 1)).await;
        place.ok().flatten().ok_or_else(|| {
            busy("too many requests of this kind are being answered: try again in a moment")
        })
    }

    /// Takes a place for a request with a body: of those that wait a part is in memory that nobody else counts.
    pub(crate) fn place_of_body(&self, right: &Right, body: &Body) -> Answer<Taken> {
        if body.is_end_stream() {
            return Ok(Taken::default());
        }
        let is_small = body.size_hint().upper().is_some_and(|most| most <= FREE);
        let places = if is_small { &self.small_bodies } else { &self.large_bodies };
        places.try_acquire(right.who(), 1).ok_or_else(|| {
            busy("too many requests with a body wait to be answered: try again in a moment")
        })
    }

    /// Waits for memory.
    pub(crate) async fn hold(&self, right: &Right, bytes: u64) -> Answer<Held> {
        if bytes <= FREE {
            return Ok(Held::default());
        }
        let units = units(bytes);
        if units > self.memory_of(right).most() {
            return Err(self.too_large(right, bytes));
        }
        let hold = async {
            // Readers wait for each other before they wait for all, so they are never before a writer there.
            let of_readers = match right.is_to_read() {
                true => self.readers.acquire(right.who(), units).await?,
                false => Taken::default(),
            };
            let memory = self.memory.acquire(right.who(), units).await?;
            Some(Held { memory, of_readers, of_parts: Taken::default() })
        };
        let held = timeout(right.shared().limits.silence, hold).await;
        held.ok().flatten().ok_or_else(|| self.full(right))
    }

    /// Returns the memory that bounds what one who asks can have.
    fn memory_of(&self, right: &Right) -> &Fair {
        if right.is_to_read() { &self.readers } else { &self.memory }
    }

    /// Waits for the memory of a part of an answer, or half of what one who asks can have for parts: it may have several open.
    /// Parts wait for each other, so those that nobody reads leave memory for all else.
    pub(crate) async fn hold_part(&self, right: &Right, bytes: u64) -> Answer<Held> {
        let units = units(bytes).min(self.parts.most() / 2);
        let part = self.parts.acquire(right.who(), units);
        let part = timeout(right.shared().limits.silence, part).await;
        let of_parts = part.ok().flatten().ok_or_else(|| self.full(right))?;
        let held = self.hold(right, u64::from(units) * UNIT).await?;
        Ok(Held { of_parts, ..held })
    }

    /// Waits for the memory that work of a kind has from the beginning.
    pub(crate) async fn hold_for(&self, right: &Right, kind: Kind) -> Answer<Held> {
        // Some of the answer, too: so those that have the rest of the memory can begin to send.
        let room = self.room() as u64;
        self.hold(right, if kind == Kind::Rows { room + room / 8 } else { 0 }).await
    }

    /// Returns the most bytes of a request that is read whole: one who asks has the memory for what it takes.
    pub(crate) fn longest_text(&self, right: &Right) -> u64 {
        u64::from(self.memory_of(right).most()) * UNIT / COPIES
    }

    /// Returns how many bytes of rows work may keep beside its answer: of what one who asks can have a part, so that there is
    /// memory for the answer, and for other work.
    pub(crate) fn room(&self) -> usize {
        (u64::from(self.readers.most()) * UNIT / 4).min(ROOM) as usize
    }

    /// Waits for the memory of a stream.
    pub(crate) async fn hold_stream(&self, right: &Right) -> Answer<Held> {
        self.hold(right, STREAM).await
    }

    /// Makes sure that memory is held for so many bytes in all.
    pub(crate) fn cover(&self, right: &Right, held: &mut Held, bytes: u64) -> Answer<()> {
        let (wanted, has) = (units(bytes), held.memory.count());
        let more = (wanted as usize).saturating_sub(has);
        if bytes <= FREE || more == 0 {
            return Ok(());
        }
        let most = self.memory_of(right).most();
        if wanted > most {
            return Err(self.too_large(right, bytes));
        }
        // Some more at once, since it grows.
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let rounded = more.next_multiple_of(64).min(most.saturating_sub(wanted - more)).max(more);
        let take =
            |from: &Fair| from.try_acquire(right.who(), rounded).ok_or_else(|| self.full(right));
        let of_readers = right.is_to_read().then(|| take(&self.readers)).transpose()?;
        held.memory.merge(take(&self.memory)?);
        held.of_readers.merge(of_readers.unwrap_or_default());
        Ok(())
    }

    fn full(&self, right: &Right) -> Refusal {
        let most = u64::from(self.memory_of(right).most()) * UNIT;
        busy(format!(
            "other answers take all memory that this server has for them (--memory; one token has up to {most} bytes for this): \
             try again in a moment, or ask for less"
        ))
    }

    fn too_large(&self, right: &Right, bytes: u64) -> Refusal {
        let most = u64::from(self.memory_of(right).most()) * UNIT;
        let message = format!(
            "this needs {bytes} bytes of memory, and this server has {most} for one token (--memory): ask for less at a time"
        );
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "memory_limit", message)
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Returns the refusal of a request that may succeed a moment later.
pub(crate) fn busy(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
}

impl Held {
    /// Returns the bytes, with which the memory is held until the last of them was sent.
    pub(crate) fn keep(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Kept { bytes, _held: self })
    }

    /// Splits off the memory for that many bytes, or all of it if it is less.
    pub(crate) fn split(&mut self, bytes: u64) -> Self {
        let units = units(bytes) as usize;
        Self {
            memory: self.memory.split(units),
            of_readers: self.of_readers.split(units),
            of_parts: self.of_parts.split(units),
        }
    }

    /// Releases the memory that isn't needed for that many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let units = units(bytes) as usize;
        self.memory.shrink_to(units);
        self.of_readers.shrink_to(units);
        self.of_parts.shrink_to(units);
    }

    /// Returns an answer of some bytes, whose memory is held until they were sent.
    pub(crate) fn answer(self, kind: &'static str, bytes: Vec<u8>) -> Response {
        let mut response = self.keep(bytes).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }
}
