//! The files of a journal: the segment that is written, and those before it, which blobs are read from.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::db::present::image_use::ImageUse;
use crate::db::present::turns::{Claim, Turns};
use crate::journal::segments::{Place, kept_name};
use crate::journal::{Checkpoints, Head, lock};
use crate::storage::{Access, Directory, Origin, Storage};
use crate::{Error, ErrorKind, Result};

/// The current segment, which all parts of a database share.
pub(in crate::db) type Current = ArcSwap<Segment>;

/// The state that changes when the journal continues in another segment.
#[derive(Debug)]
pub(in crate::db) struct Segment {
    pub(in crate::db) checkpoints: Arc<Checkpoints>,
    pub(in crate::db) file: Arc<JournalFile>,
    /// How to get the right to write, in shared mode.
    pub(in crate::db) turns: Option<Turns>,
    /// True if the path is known to refer to it on permanent storage.
    pub(in crate::db) is_named: AtomicBool,
}

impl Segment {
    /// Waits for the right to write the segment. Nothing in exclusive mode.
    pub(in crate::db) fn take_turn(&self) -> Result<()> {
        self.turns.as_ref().map_or(Ok(()), Turns::take)
    }

    /// Waits up to `timeout` for the right to write the segment. Nothing in exclusive mode.
    pub(in crate::db) fn take_turn_within(&self, timeout: Duration) -> Result<()> {
        self.turns.as_ref().map_or(Ok(()), |turns| turns.take_within(timeout))
    }

    /// Waits for it up to `timeout`, or as long as a transaction usually does, and while `is_wanted`.
    pub(in crate::db) fn take_turn_while(
        &self,
        timeout: Option<Duration>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.turns.as_ref().map_or(Ok(()), |turns| {
            turns.take_while(timeout.unwrap_or_else(|| turns.timeout()), is_wanted)
        })
    }

    /// Takes the right to write the segment if it is free and no other waits for it. Always in exclusive mode.
    pub(in crate::db) fn try_to_take_turn(&self) -> Result<bool> {
        self.turns.as_ref().map_or(Ok(true), Turns::try_take)
    }

    /// Acquires the lock for updating the image and restarting the journal: waits up to a timeout, or not at all.
    /// `Some(None)` in exclusive mode; `None` if another process has that lock and this call doesn't wait.
    pub(in crate::db) fn claim_image(
        &self,
        waits: Option<Duration>,
    ) -> Result<Option<Option<Claim>>> {
        match &self.turns {
            None => Ok(Some(None)),
            Some(turns) => Ok(turns.claim_image(waits)?.map(Some)),
        }
    }

    /// True if a thread of this process has the claim.
    pub(in crate::db) fn is_claimed_here(&self) -> bool {
        self.turns.as_ref().is_some_and(Turns::is_claimed_here)
    }

    /// Lets the next process write. Nothing in exclusive mode.
    pub(in crate::db) fn end_turn(&self) {
        if let Some(turns) = &self.turns {
            turns.end();
        }
    }
}

/// The file of a segment, and those before it, which blobs and histories are read from.
#[derive(Debug)]
pub(in crate::db) struct JournalFile {
    pub(in crate::db) storage: Arc<dyn Storage>,
    /// Its name in messages.
    pub(in crate::db) name: String,
    /// The process that opened it.
    origin: Origin,
    /// The number of the segment.
    pub(in crate::db) segment: u64,
    /// The bytes of the journal in earlier segments, as far as this handle knows them.
    before: u64,
    pub(in crate::db) directory: Arc<dyn Directory>,
    /// The journal's name in the directory.
    pub(in crate::db) journal: String,
    /// The head of the segment, read at first use: its header doesn't change.
    head: OnceLock<Head>,
    /// Segments before this one, from which something was read.
    kept: Arc<Mutex<BTreeMap<u64, Arc<dyn Storage>>>>,
    /// Those of them that were removed, and can't be opened again.
    removed: Arc<Mutex<BTreeSet<u64>>>,
    /// What its handle keeps of the images of the journal.
    pub(in crate::db) images: ImageUse,
}

/// At most this many earlier segments stay open, of those that can be opened again.
const MOST_OPEN: usize = 16;

impl JournalFile {
    pub(in crate::db) fn new(
        storage: Arc<dyn Storage>,
        segment: u64,
        directory: Arc<dyn Directory>,
        journal: &str,
    ) -> Self {
        let name = directory.display(journal);
        let (journal, kept) = (journal.to_owned(), Arc::default());
        let (head, removed) = (OnceLock::new(), Arc::default());
        let images = ImageUse::default();
        Self {
            storage,
            name,
            origin: Origin::here(),
            segment,
            before: 0,
            directory,
            journal,
            head,
            kept,
            removed,
            images,
        }
    }

    /// Uses images in this way.
    pub(in crate::db) fn using(self, images: ImageUse) -> Self {
        Self { images, ..self }
    }

    /// Sets the head of the segment, which was read already.
    pub(in crate::db) fn knowing(self, head: Head) -> Self {
        Self { head: OnceLock::from(head), ..self }
    }

    /// Returns an error in a child process that was forked after the file was opened.
    pub(in crate::db) fn check_origin(&self) -> Result<()> {
        let forked = |error| Error::new(ErrorKind::Poisoned, format!("{}: {error}", self.name));
        self.origin.check().map_err(forked)
    }

    /// Returns the head of the segment, as it was when it was first read.
    pub(in crate::db) fn head(&self) -> Result<&Head> {
        if let Some(head) = self.head.get() {
            return Ok(head);
        }
        let head = Head::read(&*self.storage, &self.name)?;
        Ok(self.head.get_or_init(|| head))
    }

    /// Returns the hash of the segment's header, with which its frames are verified.
    pub(in crate::db) fn segment_hash(&self) -> Result<u64> {
        self.head().map(|head| head.hash)
    }

    /// Sets the number of bytes of the journal in earlier segments.
    pub(in crate::db) fn behind(self, before: u64) -> Self {
        Self { before, ..self }
    }

    /// Returns a segment after this one, which ended at a position.
    pub(in crate::db) fn next(&self, storage: Arc<dyn Storage>, segment: u64, end: u64) -> Self {
        let next = Self::new(storage, segment, Arc::clone(&self.directory), &self.journal);
        next.behind(self.reach(end)).using(self.images.of_next())
    }

    /// Returns a segment up to this one, as that in which a history ends. What this holds, that can read, too.
    ///
    /// # Errors
    /// `Io`: it can't be opened.
    pub(in crate::db) fn ending_in(self: &Arc<Self>, segment: u64) -> Result<Arc<Self>> {
        if segment == self.segment {
            return Ok(Arc::clone(self));
        }
        let name = self.name_of(segment);
        let storage = self.kept(segment);
        let storage =
            storage.map_err(|error| Error::io(format!("{name}: can't open it"), error))?;
        let earlier = Self::new(storage, segment, Arc::clone(&self.directory), &self.journal);
        let earlier = earlier.using(self.images.of_earlier());
        let (kept, removed) = (Arc::clone(&self.kept), Arc::clone(&self.removed));
        Ok(Arc::new(Self { name, kept, removed, ..earlier }))
    }

    /// Returns how long the journal is up to a position in this segment, in bytes, including earlier segments that
    /// this handle knows. The difference of two such values is the journal's length after an image.
    pub(in crate::db) const fn reach(&self, position: u64) -> u64 {
        self.before.saturating_add(position)
    }

    /// Does what [`Self::reach`] does, for a position in a segment; 0 if it isn't the current segment.
    pub(in crate::db) const fn reach_of(&self, segment: u64, position: u64) -> u64 {
        if segment == self.segment { self.reach(position) } else { 0 }
    }

    /// Returns a segment's name in messages.
    pub(in crate::db) fn name_of(&self, segment: u64) -> String {
        match segment == self.segment {
            true => self.name.clone(),
            false => self.directory.display(&kept_name(&self.journal, segment)),
        }
    }

    /// Reads from any segment.
    pub(in crate::db) fn read_at(&self, place: Place, buffer: &mut [u8]) -> io::Result<usize> {
        match place.segment() == self.segment {
            true => self.storage.read_at(place.position(), buffer),
            false => self.kept(place.segment())?.read_at(place.position(), buffer),
        }
    }

    /// Opens segments before they are removed, so that the holder of this can still read them.
    pub(in crate::db) fn hold(&self, segments: impl Iterator<Item = u64>) {
        for segment in segments.filter(|&segment| segment < self.segment) {
            lock(&self.removed).insert(segment);
            // A segment that can't be opened now can't be read later; that error is reported then.
            let _ = self.kept(segment);
        }
    }

    fn kept(&self, segment: u64) -> io::Result<Arc<dyn Storage>> {
        let mut kept = lock(&self.kept);
        if let Some(storage) = kept.get(&segment) {
            return Ok(Arc::clone(storage));
        }
        let storage = self.directory.open(&kept_name(&self.journal, segment), Access::Read)?;
        let removed = lock(&self.removed);
        let mut others = kept.keys().filter(|number| !removed.contains(number));
        if let (Some(&first), true) = (others.next(), others.count() >= MOST_OPEN) {
            kept.remove(&first);
        }
        kept.insert(segment, Arc::clone(&storage));
        Ok(storage)
    }
}
