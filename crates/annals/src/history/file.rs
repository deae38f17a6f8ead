//! An index file: opening, creating, publishing; zones are added in `update`.
//!
//! ```text
//! 1. write the new run, and what becomes of it and others, where neither copy of the head leads to
//! 2. flush                                            (the copy before is on permanent storage by now, too)
//! 3. write the head, over its older copy
//! ```
//!
//! Invariants
//! 1. Everything that a copy of the head refers to is on permanent storage before that copy is written. It isn't
//!    overwritten before the next but one copy is. So whichever copy a crash leaves, its references are valid.
//! 2. Only one process adds zones: it holds the lock of backfills. Readers take no lock: overwritten pages don't
//!    verify, and readers read the head again.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use super::extent::Extent;
use super::format::{Bound, HISTORY_AT, Head, PAGE, RUNS_AT};
use crate::image;
use crate::storage::{Access, Clock, Directory, Storage};
use crate::{Error, ErrorKind, Result};
use annals_storage::slots::{self, Record, Slots};

/// Where the two copies of the head are: each is a slot.
const HEADS: Slots<1> = Slots { at: HISTORY_AT, copies_at: [0] };

impl Record for Head {
    fn number(&self) -> u64 {
        self.number
    }
}

/// Returns the name of the history index beside a journal.
pub(crate) fn history_name(journal: &str) -> String {
    format!("{journal}-history")
}

/// Takes an index out of the way that can't be used, as [`image::set_aside`] does.
///
/// # Errors
/// `Io`.
pub(crate) fn set_aside(directory: &dyn Directory, name: &str, reason: &str) -> Result<()> {
    image::set_aside_as(directory, name, reason.to_owned(), super::journal_id_of).map(drop)
}

/// An open index.
#[derive(Debug)]
pub(crate) struct IndexFile {
    pub(super) storage: Arc<dyn Storage>,
    shown: String,
    pub(super) head: Head,
    /// The position of the head, and the contents of the other copy, if that differs.
    slot: usize,
    other: Option<Head>,
    pub(super) creation: Option<Creation>,
}

/// The state needed to give a new index its name.
#[derive(Debug)]
pub(super) struct Creation {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) temporary: String,
    name: String,
}

impl IndexFile {
    /// Opens the index of a journal; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` if neither copy of its head verifies, or it is another journal's; `Io`.
    pub(crate) fn open(
        directory: &dyn Directory,
        name: &str,
        journal_id: [u8; 16],
        access: Access,
    ) -> Result<Option<Self>> {
        let shown = directory.display(name);
        let io = |error| Error::io(format!("{shown}: can't read the history index"), error);
        let Some(storage) = image::open_derived(directory, name, "history index", access)? else {
            return Ok(None);
        };
        let heads = HEADS.read(&*storage, Head::decode).map_err(io)?.copies;
        let slot = 1 - slots::older(&heads);
        let [[first], [second]] = heads;
        let (newest, other) = if slot == 0 { (first, second) } else { (second, first) };
        let Some(head) = newest else {
            return Err(corrupt(&shown, "has no copy of its head that verifies"));
        };
        let index = Self { storage, shown, head, slot, other, creation: None };
        match index.head.journal_id == journal_id {
            true => Ok(Some(index)),
            false => Err(index.corrupt("is another journal's")),
        }
    }

    /// Creates an index, which gets its name when zones are added.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        name: &str,
        journal_id: [u8; 16],
        bound: Bound,
        clock: &dyn Clock,
    ) -> Result<Self> {
        let shown = directory.display(name);
        let io = |error| Error::io(format!("{shown}: can't create the history index"), error);
        image::remove_leftovers(&**directory, name, &directory.list().map_err(io)?);
        let temporary = format!("{name}.new-{:016x}", clock.random());
        let storage = directory.create(&temporary).map_err(io)?;
        storage.write_at(0, &[0; 2 * PAGE]).map_err(io)?;
        let head = Head { number: 0, journal_id, bound, next_zone: 0, runs: Vec::new() };
        let directory = Arc::clone(directory);
        let creation = Some(Creation { directory, temporary, name: name.to_owned() });
        Ok(Self { storage, shown, head, slot: 1, other: None, creation })
    }

    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Returns its name in messages.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn len(&self) -> Result<u64> {
        self.storage.len().map_err(|error| self.io("can't be looked at", error))
    }

    /// Returns the runs that a copy of the head refers to.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Extent> {
        self.head.runs.iter().chain(self.other.iter().flat_map(|other| &other.runs))
    }

    /// Returns where the last of them ends.
    pub(super) fn end(&self) -> u64 {
        self.taken().map(Extent::end).max().unwrap_or(RUNS_AT)
    }

    /// Writes the head, and returns a new index its name.
    pub(super) fn publish(&mut self, head: Head) -> Result<()> {
        let io = |error| self.io("can't be written", error);
        self.storage.flush().map_err(io)?;
        let slot = 1 - self.slot;
        HEADS.write_at_once(&*self.storage, slot, &head.encode()).map_err(io)?;
        if let Some(creation) = &self.creation {
            self.storage.flush().map_err(io)?;
            creation.finish(&*self.storage).map_err(io)?;
            self.creation = None;
        }
        self.slot = slot;
        self.other = Some(std::mem::replace(&mut self.head, head));
        // Never for little: freeing blocks makes some disks slow for a while.
        const WORTH: u64 = 1 << 20;
        let (len, end) = (self.len()?, self.end());
        if len.saturating_sub(end) >= WORTH.max(end / 4) {
            self.storage.set_len(end).map_err(|error| self.io("can't be made shorter", error))?;
        }
        Ok(())
    }

    /// Returns the error that an index can't be used.
    #[cold]
    pub(super) fn corrupt(&self, what: impl Display) -> Error {
        corrupt(&self.shown, what)
    }

    #[cold]
    pub(super) fn io(&self, what: &str, error: io::Error) -> Error {
        Error::io(format!("{}: the history index {what}", self.shown), error)
    }
}

impl Creation {
    fn finish(&self, storage: &dyn Storage) -> io::Result<()> {
        let Self { directory, temporary, name } = self;
        directory.link(temporary, name)?;
        storage.renamed(name);
        // If it remains, it is harmless.
        let _ = directory.remove(temporary);
        directory.flush()
    }
}

fn corrupt(shown: &str, what: impl Display) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{shown}: the history index {what}; the journal still has all data, and a backfill can rebuild the index"
        ),
    )
}
