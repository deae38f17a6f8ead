//! Removing messages from a log, once an archive has what they hold.

use std::collections::VecDeque;
use std::time::Duration;

use annals::{Cursor, Error, Result, Txid};
use annals_storage::{Directory as _, MemoryDirectory, Spool};

use super::copies::{Copies, Found, Whole};
use super::finding::{ends_of, is_end};
use super::log::Message;
use super::message::Kind;
use crate::Connection;
use crate::connection::BATCH;

/// What became of a log that was trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// How many messages were removed.
    pub removed: u64,
    /// The sequence of the first message that is there now.
    pub first: u64,
    /// The last transaction that was compared, and is in the archive.
    pub txid: Txid,
}

/// Removes the messages before the last `keep`, as far as an archive has the same bytes.
pub(super) fn trim(copies: &Copies, archive: &dyn Connection, keep: u64) -> Result<Trimmed> {
    let extent = copies.log.extent()?;
    let last = extent.last.saturating_sub(keep);
    let mut messages = Messages { copies, read: VecDeque::new() };
    let mut archived = Archived { archive, at: None, bytes: Vec::new(), is_over: false };
    let (mut cursor, mut cut, mut txid) = (None, extent.first, Txid(0));
    for sequence in extent.first.max(1)..=last {
        let Found::Whole(whole) = messages.get(sequence)? else { continue };
        let head = whole.head;
        let is_first = cursor.is_none() && head.kind == Kind::Beginning;
        let continues = is_end(&head) && cursor.is_none_or(|cursor| cursor == head.from);
        if !(is_first || continues) {
            continue;
        }
        if cursor.is_none() && !is_first {
            archived.at = Some(head.from);
        }
        let bytes = messages.payload(&whole)?;
        if archived.begins_with(&bytes)? {
            archived.bytes.drain(..bytes.len());
            // It stays, since nodes find their place by it.
            (cursor, cut, txid) = (Some(head.end), head.first(), head.end.txid);
        } else if archived.is_over {
            break;
        }
    }
    if cut > extent.first {
        copies.log.remove(cut)?;
    }
    Ok(Trimmed { removed: cut - extent.first, first: cut, txid })
}

/// The messages of a log, in order.
struct Messages<'m> {
    copies: &'m Copies,
    read: VecDeque<Message>,
}

impl Messages<'_> {
    fn get(&mut self, sequence: u64) -> Result<Found> {
        if self.read.is_empty() {
            let most = usize::try_from(BATCH).unwrap_or(usize::MAX);
            self.read = self.copies.log.read(sequence, most)?.into();
        }
        match self.read.front() {
            Some(message) if message.sequence == sequence => {
                let found = self.copies.check(message);
                self.read.pop_front();
                found
            }
            _ => self.copies.repair(sequence),
        }
    }

    /// Returns what a message carries, with the parts before it.
    fn payload(&self, whole: &Whole) -> Result<Vec<u8>> {
        if whole.head.parts == 1 {
            return Ok(whole.payload().to_vec());
        }
        bytes_of(&ends_of(self.copies, &whole.head)?.0)
    }
}

/// What an archive has, from a cursor on.
struct Archived<'a> {
    archive: &'a dyn Connection,
    at: Option<Cursor>,
    /// The bytes before `at` that weren't compared yet.
    bytes: Vec<u8>,
    is_over: bool,
}

impl Archived<'_> {
    /// True if it continues with these bytes.
    fn begins_with(&mut self, wanted: &[u8]) -> Result<bool> {
        while self.bytes.len() < wanted.len() && !self.is_over {
            let mut spool = memory();
            let pulled = self.archive.pull(self.at, Duration::ZERO, &mut spool)?;
            self.is_over = spool.begin() == spool.end() || pulled.is_seal;
            if !self.is_over {
                self.bytes.extend(bytes_of(&spool)?);
                self.at = Some(pulled.next);
            }
        }
        Ok(self.bytes.starts_with(wanted))
    }
}

fn memory() -> Spool {
    Spool::new(MemoryDirectory::new().again(), "compared".to_owned(), 0)
}

fn bytes_of(spool: &Spool) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = spool.pieces(|_, piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    read.map_err(|error| Error::io("can't read the spooled frames", error))?;
    Ok(bytes)
}
