//! The beginning of a log is the header of a journal: a new one, which the first node appends, or that of a file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::{Cursor, Error, ErrorKind, Options, Result};
use annals_storage::{Clock as _, Directory as _, MemoryDirectory, Spool, SystemClock};

use super::connection::{SharedLog, beginning_of};
use super::copies::{Found, Whole};
use super::log::Extent;
use super::message::Kind;
use super::place::Place;
use super::writing::{Outcome, Outgoing};
use crate::frames::Source;
use crate::{Connection, Local, Pulled, Sent};

impl SharedLog {
    /// Checks that a nonempty archive is of the journal in the log, if the log still has its first message.
    fn check_archive(&self, archive: &dyn Connection, extent: Extent) -> Result<()> {
        let what = match extent.first {
            _ if extent.last == 0 => {
                "it is empty, and its archive isn't: restore that, and fill the log with `annals log create --from`"
            }
            1 if archive.describe()?.id != beginning_of(&self.first()?.payload())?.0.id => {
                "its archive is of another journal"
            }
            _ => return Ok(()),
        };
        Err(self.error(ErrorKind::Diverged, &format!("{what} ({})", archive.name())))
    }

    /// Begins a replica from the archive, if there is one, else from the log. In an empty log this node appends the
    /// first message.
    pub(super) fn begin(&self, into: &mut Spool) -> Result<Pulled> {
        let extent = self.copies.log.extent()?;
        if let Some(archive) = &self.archive {
            match archive.pull(None, Duration::ZERO, into) {
                Ok(pulled) if into.begin() < into.end() => {
                    let extent = self.copies.proven_extent(1)?;
                    return self.check_archive(&**archive, extent).map(|()| pulled);
                }
                Err(error) if extent.first > 1 => return Err(error),
                // The archive is empty, or it can't be reached and the log still has its first message.
                Ok(_) | Err(_) => into.truncate(into.begin()),
            }
        }
        if extent.first > 1 {
            let what =
                "its first messages were removed: begin from the archive (--log-archive URL)";
            return Err(self.error(ErrorKind::Forgotten, what));
        }
        let first = loop {
            match self.find_beginning()? {
                Beginning::There(first) => break first,
                Beginning::After(fence) => self.append_new(fence)?,
            }
        };
        let appended = into.append(&first.payload());
        appended.map_err(|error| Error::io("can't spool what was pulled", error))?;
        self.state().places.put(first.head.end, Place::after(first.head.sequence));
        Ok(Pulled { next: first.head.end, is_seal: false })
    }

    /// Finds the message that has the header of the journal. Only fences are before it: those of nodes whose own header
    /// was lost on the way.
    fn find_beginning(&self) -> Result<Beginning> {
        let last = self.copies.log.extent()?.last;
        for sequence in 1..=last {
            match self.copies.fetch(sequence)? {
                Found::Whole(it) if it.head.kind == Kind::Beginning => {
                    return Ok(Beginning::There(it));
                }
                Found::Whole(it) if it.head.kind == Kind::Fence => {}
                _ => {
                    let what = "doesn't begin with the beginning of a journal: something else uses this log";
                    return Err(self.error(ErrorKind::NotAJournal, what));
                }
            }
        }
        Ok(Beginning::After(last))
    }

    /// Returns the message that has the header of the journal.
    pub(super) fn first(&self) -> Result<Whole> {
        match self.find_beginning()? {
            Beginning::There(first) => Ok(first),
            Beginning::After(_) => Err(self.error(ErrorKind::NotFound, "is empty")),
        }
    }

    /// Fills an empty log with the history of a file, which others may read meanwhile.
    ///
    /// # Errors
    /// `InUse`: the log isn't empty; `Unsupported`: the file has several segments, or begins with a state; those of
    /// [`push`](crate::push()).
    pub fn begin_with(&self, journal: &Path) -> Result<Sent> {
        let begun = SystemClock.elapsed();
        let beginning = self.patience.until_reached(begun, || self.find_beginning())?;
        let Beginning::After(fence) = beginning else {
            return Err(self.error(ErrorKind::InUse, "isn't empty: a log holds one journal"));
        };
        let reader = Options::new().hard_only(true).open_read_only(journal)?;
        let header = Source::of_reader(reader).after(None, 0)?.header;
        let (_, start) = beginning_of(&header).map_err(|error| {
            let what =
                format!("{}: a log begins with a journal's first transaction", journal.display());
            Error::new(
                ErrorKind::Unsupported,
                format!("{what}: {error}; `annals pack` makes such a file"),
            )
        })?;
        self.append_beginning(fence, start, &header)?;
        if self.patience.until_reached(begun, || self.first())?.head.end != start {
            return Err(self.error(ErrorKind::InUse, "another node has begun a journal there"));
        }
        crate::push(self, journal)
    }

    /// Appends the header of a new journal after a fence, or after 0.
    fn append_new(&self, fence: u64) -> Result<()> {
        let directory = MemoryDirectory::new().again();
        let new = Options::new().open_in(directory, "new", Arc::new(SystemClock))?;
        let batch = Local::new(new).batch(None)?;
        self.append_beginning(fence, batch.next, &batch.header)
    }

    /// Appends the header of a journal, if nothing follows the fence. Another node may have been first: the caller
    /// reads the log to see which journal it has.
    fn append_beginning(&self, mut fence: u64, start: Cursor, header: &[u8]) -> Result<()> {
        let mut pushing = self.pushing();
        self.settle(&mut pushing)?;
        loop {
            let mut outgoing = Outgoing::beginning(fence, start, header);
            match outgoing.send(&self.copies, self.patience)? {
                Outcome::Committed(_) | Outcome::Conflict | Outcome::Ahead(_) => return Ok(()),
                // The message was lost on the way: it is sent again, after the fence.
                Outcome::Fenced(after) => fence = after,
            }
        }
    }
}

/// The result of looking for the message that has the header of the journal.
enum Beginning {
    There(Whole),
    /// The log has no such message, only fences. This is the sequence of the last one; 0 if the log is empty.
    After(u64),
}
