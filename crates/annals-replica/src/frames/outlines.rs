//! What frames say of themselves, before anything is known of the place where they belong: nothing else is verified.

use std::io;
use std::ops::Range;

use annals::{Error, Result, Txid};
use annals_journal::Outline;
use annals_journal::format::{FRAME_HEADER_LEN, HEADER_LEN};
use annals_storage::{Spool, Storage as _};

/// Frames one after the other, in memory or in a spool.
pub trait Frames {
    /// Returns their positions.
    fn range(&self) -> Range<u64>;

    /// Reads bytes at a position; returns how many there were.
    ///
    /// # Errors
    /// Those of the file of a spool.
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Frames for Spool {
    fn range(&self) -> Range<u64> {
        self.begin()..self.end()
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_at(at, buffer)
    }
}

impl Frames for &[u8] {
    fn range(&self) -> Range<u64> {
        0..self.len() as u64
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..));
        io::Read::read(&mut rest.unwrap_or_default(), buffer)
    }
}

/// The end of a transaction in some frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The position after its last frame.
    pub position: u64,
    /// The chain after it.
    pub chain: u64,
    /// The time of its commit by a clock, in microseconds since 1970.
    pub clock_time: Option<i64>,
}

/// All transactions of some frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The number of whole transactions.
    pub transactions: u64,
    /// The chain after the last.
    pub chain: u64,
    /// The time of the last commit, in microseconds since 1970.
    pub time: i64,
}

/// The first transactions of some frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// How many bytes they have.
    pub bytes: u64,
    /// The chain after the last of them.
    pub chain: u64,
}

/// Returns the ends of the transactions in some frames from a position on; `None` if these aren't whole transactions.
///
/// # Errors
/// `Io`: they can't be read.
pub fn transaction_ends(frames: &dyn Frames, begin: u64) -> Result<Option<Vec<End>>> {
    let (mut ends, mut is_whole) = (Vec::new(), false);
    let stopped = walk(frames, begin, &mut |outline, position| {
        is_whole = outline.is_commit;
        if is_whole {
            let clock_time = (!outline.explicit_time).then_some(outline.time);
            ends.push(End { position, chain: chain_at(frames, position)?, clock_time });
        }
        Ok(true)
    })?;
    Ok((is_whole && stopped.is_none()).then_some(ends))
}

/// Returns the time of the last transaction of some frames that has one of a clock; `None` if there is none, or if they
/// aren't whole transactions.
#[must_use]
pub fn last_clock_time(frames: &[u8]) -> Option<i64> {
    let ends = transaction_ends(&frames, 0).ok()??;
    ends.iter().rev().find_map(|end| end.clock_time)
}

/// Counts the transactions in frames; fails unless these are whole frames, the last of which commits.
///
/// # Errors
/// `Invalid`: they aren't, with the position; `Io`.
pub fn count_frames(frames: &dyn Frames) -> Result<Contents> {
    let (mut transactions, mut last, mut time) = (0, None, 0);
    let Range { start, end } = frames.range();
    let stopped = walk(frames, start, &mut |outline, end| {
        transactions += u64::from(outline.is_commit);
        time = outline.time;
        last = outline.is_commit.then_some(end);
        Ok(true)
    })?;
    match (stopped, last) {
        (Some((at, what)), _) => Err(unlike(frames, at, what)),
        (None, None) => Err(unlike(frames, end, "no transaction ends")),
        (None, Some(end)) => Ok(Contents { transactions, chain: chain_at(frames, end)?, time }),
    }
}

/// Returns the part of some frames that ends with a transaction; `None` if they haven't got it. `has_header` says that
/// the header of a segment is before them.
///
/// # Errors
/// `Invalid`: they aren't whole frames; `Io`.
pub fn frames_up_to(
    frames: &dyn Frames,
    has_header: bool,
    txid: Txid,
) -> Result<Option<Beginning>> {
    let begin = frames.range().start;
    let low = txid.0 & u64::from(u32::MAX);
    let mut found = None;
    let first = begin + if has_header { HEADER_LEN as u64 } else { 0 };
    let stopped = walk(frames, first, &mut |outline, end| {
        if outline.is_commit && u64::from(outline.txid) == low {
            found = Some(Beginning { bytes: end - begin, chain: chain_at(frames, end)? });
        }
        Ok(found.is_none())
    })?;
    stopped.map_or(Ok(found), |(at, what)| Err(unlike(frames, at, what)))
}

fn unlike(frames: &dyn Frames, at: u64, what: &str) -> Error {
    let at = at - frames.range().start;
    Error::invalid(format!("what was pushed isn't whole frames: {what} at byte {at}"))
}

/// Passes on the outline of each frame, and where it ends, until `see` returns false. Returns where no whole frame
/// begins, if it comes there, and what is there.
fn walk(
    frames: &dyn Frames,
    begin: u64,
    see: &mut dyn FnMut(&Outline, u64) -> Result<bool>,
) -> Result<Option<(u64, &'static str)>> {
    let (mut at, end) = (begin, frames.range().end);
    while at < end {
        let mut header = [0; FRAME_HEADER_LEN];
        if frames.read(at, &mut header).map_err(unreadable)? < header.len() {
            return Ok(Some((at, "a frame is cut off")));
        }
        let Some(outline) = Outline::of(&header) else {
            return Ok(Some((at, "no frame begins")));
        };
        if outline.len > end - at {
            return Ok(Some((at, "a frame is cut off")));
        }
        at += outline.len;
        if !see(&outline, at)? {
            break;
        }
    }
    Ok(None)
}

/// Returns the chain of the frame that ends at a position.
fn chain_at(frames: &dyn Frames, end: u64) -> Result<u64> {
    let mut chain = [0; 8];
    frames.read(end - 8, &mut chain).map_err(unreadable)?;
    Ok(u64::from_le_bytes(chain))
}

fn unreadable(error: io::Error) -> Error {
    Error::io("can't read the spooled frames", error)
}
