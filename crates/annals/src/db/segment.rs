//! The files of a journal: the segment that is written, and those before it, which blobs are read from.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::turns::Turns;
use crate::Result;
use crate::journal::segments::{Place, kept_name};
use crate::journal::{Checkpoints, lock};
use crate::storage::{Access, Directory, Storage};

/// The segment that is written now, which all parts of a database look at.
pub(super) type Current = ArcSwap<Segment>;

/// What changes when the journal goes on in another segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) checkpoints: Arc<Checkpoints>,
    pub(super) file: Arc<JournalFile>,
    /// How to get the right to write, in shared mode.
    pub(super) turns: Option<Turns>,
    /// Whether it is known that the path leads to it on permanent storage.
    pub(super) is_named: AtomicBool,
}

impl Segment {
    /// Waits for the right to write the segment. Nothing in exclusive mode.
    pub(super) fn take_turn(&self) -> Result<()> {
        self.turns.as_ref().map_or(Ok(()), Turns::take)
    }

    /// Waits so long for the right to write the segment. Nothing in exclusive mode.
    pub(super) fn take_turn_within(&self, timeout: Duration) -> Result<()> {
        self.turns.as_ref().map_or(Ok(()), |turns| turns.take_within(timeout))
    }

    /// Lets the next process write. Nothing in exclusive mode.
    pub(super) fn end_turn(&self) {
        if let Some(turns) = &self.turns {
            turns.end();
        }
    }
}

/// The file that blobs are read from, with those before it.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) storage: Arc<dyn Storage>,
    /// What it is called in messages.
    pub(super) name: String,
    /// The number of the segment.
    pub(super) segment: u64,
    pub(super) directory: Arc<dyn Directory>,
    /// The journal's name in the directory.
    pub(super) journal: String,
    /// Segments before this one, from which something was read.
    kept: Mutex<BTreeMap<u64, Arc<dyn Storage>>>,
}

impl JournalFile {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        segment: u64,
        directory: Arc<dyn Directory>,
        journal: &str,
    ) -> Self {
        let name = directory.display(journal);
        let (journal, kept) = (journal.to_owned(), Mutex::default());
        Self { storage, name, segment, directory, journal, kept }
    }

    /// Gives the segment behind this one.
    pub(super) fn next(&self, storage: Arc<dyn Storage>, segment: u64) -> Self {
        Self::new(storage, segment, Arc::clone(&self.directory), &self.journal)
    }

    /// Gives what a segment is called in messages.
    pub(super) fn name_of(&self, segment: u64) -> String {
        match segment == self.segment {
            true => self.name.clone(),
            false => self.directory.display(&kept_name(&self.journal, segment)),
        }
    }

    /// Reads from any segment.
    pub(super) fn read_at(&self, place: Place, buffer: &mut [u8]) -> io::Result<usize> {
        match place.segment() == self.segment {
            true => self.storage.read_at(place.position(), buffer),
            false => self.kept(place.segment())?.read_at(place.position(), buffer),
        }
    }

    /// Opens segments that are about to be removed, so that whoever has this goes on reading them.
    pub(super) fn hold(&self, segments: impl Iterator<Item = u64>) {
        for segment in segments.filter(|&segment| segment < self.segment) {
            // What can't be opened now, can't be read later; that is told then.
            let _ = self.kept(segment);
        }
    }

    fn kept(&self, segment: u64) -> io::Result<Arc<dyn Storage>> {
        let mut kept = lock(&self.kept);
        if let Some(storage) = kept.get(&segment) {
            return Ok(Arc::clone(storage));
        }
        let storage = self.directory.open(&kept_name(&self.journal, segment), Access::Read)?;
        kept.insert(segment, Arc::clone(&storage));
        Ok(storage)
    }
}
