//! Finding a cursor, or a transaction, in a log: by bisection, since the numbers of transactions grow.

use annals::{Cursor, Error, ErrorKind, Result, Txid};
use annals_storage::{Directory as _, MemoryDirectory, Spool};

use super::copies::{Copies, Found, Whole};
use super::log::{Extent, latest};
use super::message::{Head, Kind};
use super::place::Place;
use crate::frames::{End, transaction_ends};

/// Returns the place of a cursor in a log that has these messages.
///
/// # Errors
/// `Diverged`: the log doesn't have it; `Forgotten`: the log begins later; those of reading.
pub(super) fn place_of(copies: &Copies, extent: Extent, cursor: Cursor) -> Result<Place> {
    let mut walk = Walk::to(copies, extent, cursor.txid)?;
    let oldest = walk.oldest()?;
    while let Some(Whole { head, .. }) = walk.next()? {
        if head.end == cursor && (head.kind == Kind::Beginning || is_end(&head)) {
            return Ok(Place::after(head.sequence));
        }
        if head.from == cursor && head.part == 0 {
            return Ok(Place::after(head.sequence - 1));
        }
        let is_within =
            is_end(&head) && head.from.txid < cursor.txid && cursor.txid < head.end.txid;
        if is_within && ends_of(copies, &head)?.1.iter().any(|end| end.chain == cursor.chain) {
            return Ok(Place::inside_next(head.first() - 1));
        }
        if head.from.txid > cursor.txid {
            break;
        }
    }
    let name = copies.log.name();
    let Cursor { txid, .. } = cursor;
    match oldest {
        Some(first) if txid < first => Err(Error::new(
            ErrorKind::Forgotten,
            format!(
                "{name}: begins after transaction {first}: what follows {txid} is in the archive, if there is one"
            ),
        )),
        _ => Err(Error::new(
            ErrorKind::Diverged,
            format!(
                "{name}: doesn't have transaction {txid} of this history: it is another log, or was created again"
            ),
        )),
    }
}

/// Returns the chain after a transaction; `None` if it isn't in the log.
pub(super) fn chain_of(copies: &Copies, txid: Txid) -> Result<Option<u64>> {
    let mut walk = Walk::to(copies, copies.log.extent()?, txid)?;
    while let Some(Whole { head, message }) = walk.next()? {
        if head.kind == Kind::Beginning && head.end.txid == txid {
            return Ok(Some(head.end.chain));
        }
        if is_end(&head) && head.from.txid < txid && txid <= head.end.txid {
            let (_, ends) = ends_of(copies, &head)?;
            let most = latest(message.time);
            let is_ahead = ends.iter().any(|end| end.clock_time.is_some_and(|time| time > most));
            let place = usize::try_from(txid.0 - head.from.txid.0 - 1).unwrap_or(usize::MAX);
            if let Some(end) = ends.get(place).filter(|_| !is_ahead) {
                return Ok(Some(end.chain));
            }
        }
        if head.from.txid > txid {
            break;
        }
    }
    Ok(None)
}

/// True if a message ends transactions.
pub(super) fn is_end(head: &Head) -> bool {
    head.kind == Kind::Frames && head.is_last()
}

/// Returns the frames that end with a message, those of all its parts, and the ends of their transactions.
pub(super) fn ends_of(copies: &Copies, last: &Head) -> Result<(Spool, Vec<End>)> {
    let mut frames = Spool::new(MemoryDirectory::new().again(), "parts".to_owned(), 0);
    for sequence in last.first()..=last.sequence {
        let Found::Whole(part) = copies.fetch(sequence)? else { return Ok((frames, Vec::new())) };
        let appended = frames.append(&part.payload());
        appended.map_err(|error| Error::io("can't spool the parts of a transaction", error))?;
    }
    let ends = transaction_ends(&frames, 0)?.unwrap_or_default();
    Ok((frames, ends))
}

/// Reads the messages from the first one that may end with a transaction or later.
struct Walk<'c> {
    copies: &'c Copies,
    first: u64,
    next: u64,
    last: u64,
}

impl<'c> Walk<'c> {
    fn to(copies: &'c Copies, extent: Extent, txid: Txid) -> Result<Self> {
        let (mut low, mut high) = (extent.first.max(1), extent.last + 1);
        let mut walk = Self { copies, first: low, next: low, last: extent.last };
        while low < high {
            let middle = low + (high - low) / 2;
            match walk.whole_from(middle, high)? {
                Some(whole) if whole.head.end.txid < txid => low = whole.head.sequence + 1,
                _ => high = middle,
            }
        }
        walk.next = low;
        Ok(walk)
    }

    /// Returns the number of the transaction before the first in the log.
    fn oldest(&self) -> Result<Option<Txid>> {
        let first = self.whole_from(self.first, self.last + 1)?;
        Ok(first.map(|whole| whole.head.from.txid))
    }

    /// Returns the first message that verifies of those from `sequence` on and before `end`.
    fn whole_from(&self, sequence: u64, end: u64) -> Result<Option<Whole>> {
        for sequence in sequence..end {
            match self.copies.fetch(sequence) {
                Ok(Found::Whole(whole)) => return Ok(Some(whole)),
                Ok(Found::Void) => {}
                // It is lost: what follows it can be read all the same.
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn next(&mut self) -> Result<Option<Whole>> {
        let whole = self.whole_from(self.next, self.last + 1)?;
        self.next = whole.as_ref().map_or(self.last, |whole| whole.head.sequence) + 1;
        Ok(whole)
    }
}

/// Returns the cursor after the last message, as that message says it: void ones aren't recognised.
pub(super) fn end(copies: &Copies) -> Result<Cursor> {
    let extent = copies.log.extent()?;
    for sequence in (extent.first.max(1)..=extent.last).rev() {
        let Found::Whole(Whole { head, .. }) = copies.fetch(sequence)? else { continue };
        match head.kind {
            Kind::Fence => return Ok(head.from),
            Kind::Beginning => return Ok(head.end),
            Kind::Frames if head.is_last() => return Ok(head.end),
            Kind::Frames => {}
        }
    }
    Err(Error::new(ErrorKind::NotFound, format!("{}: is empty", copies.log.name())))
}
