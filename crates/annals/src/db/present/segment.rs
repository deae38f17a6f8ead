//! The files of a journal: the segment that is written, and those before it, which blobs are read from.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use annals_schema::Txid;
use arc_swap::ArcSwap;

use crate::db::present::turns::{Claim, Turns};
use crate::image::{Damage, ExposedPin};
use crate::journal::segments::{Place, kept_name};
use crate::journal::{Checkpoints, Head, lock};
use crate::storage::{Access, Directory, Origin, Storage};
use crate::store::View;
use crate::store::history::HistoryIndex;
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

    /// Lets the next process write. Nothing in exclusive mode.
    pub(in crate::db) fn end_turn(&self) {
        if let Some(turns) = &self.turns {
            turns.end();
        }
    }
}

/// The file that blobs are read from, with those before it.
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
    /// The history index as far as somebody asked for it, if that is farther than the image's.
    pub(in crate::db) index: Mutex<Option<Noted>>,
    pub(in crate::db) past: LastPast,
    /// The last transaction whose roots of the image are of this journal; `None`: all are.
    pub(in crate::db) roots_until: Option<Txid>,
    pub(in crate::db) exposed: ExposedRoots,
    /// The damage that its handle found in images.
    pub(in crate::db) damage: Arc<Damage>,
}

/// The roots of the image that other machines read. They begin again with a newer one if a pin is released, so nothing
/// waits for them.
#[derive(Debug, Default)]
pub(in crate::db) struct ExposedRoots(Mutex<Vec<Weak<ExposedPin>>>);

impl ExposedRoots {
    /// Adds a pin.
    pub(in crate::db) fn add(&self, pin: &Arc<ExposedPin>) {
        let mut pins = lock(&self.0);
        pins.retain(|pin| pin.strong_count() > 0);
        pins.push(Arc::downgrade(pin));
    }

    /// Releases all pins.
    pub(in crate::db) fn release(&self) {
        for pin in lock(&self.0).drain(..).filter_map(|pin| pin.upgrade()) {
            *lock(&pin) = None;
        }
    }
}

/// The past state that was made last, with its transaction: until the next backfill. A database of one process keeps
/// it; else another process may wait for the root of the image under it.
#[derive(Debug, Default)]
pub(in crate::db) struct LastPast(OnceLock<Mutex<Option<State>>>);

/// A transaction, and how many commands the schema has through which the state after it is read.
type Read = (u64, usize);
type State = (Read, Arc<View>);

impl LastPast {
    /// Begins to keep the last state.
    pub(in crate::db) fn begin(&self) {
        self.0.get_or_init(Mutex::default);
    }

    /// Returns the state after a transaction, if it is the last one.
    pub(in crate::db) fn after(&self, read: Read) -> Option<Arc<View>> {
        let last = lock(self.0.get()?);
        last.as_ref().filter(|(of, _)| *of == read).map(|(_, view)| Arc::clone(view))
    }

    /// Keeps a state in place of the last one, if any is kept.
    pub(in crate::db) fn keep(&self, read: Read, view: &Arc<View>) {
        if let Some(last) = self.0.get() {
            *lock(last) = Some((read, Arc::clone(view)));
        }
    }

    /// Drops the state, and the root under it.
    pub(in crate::db) fn forget(&self) {
        if let Some(last) = self.0.get() {
            *lock(last) = None;
        }
    }
}

/// A history index that goes farther than the image's.
#[derive(Clone, Debug)]
pub(in crate::db) struct Noted {
    pub(in crate::db) index: Arc<HistoryIndex>,
    /// The root of the image whose index it replaces, because that can't be used.
    pub(in crate::db) instead_of: Option<u64>,
}

impl Noted {
    /// True if it replaces the index of a root.
    pub(in crate::db) fn instead_of(&self, root: u64) -> bool {
        self.instead_of.is_some_and(|until| root <= until)
    }
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
        let (index, past) = (Mutex::default(), LastPast::default());
        let exposed = ExposedRoots::default();
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
            index,
            past,
            roots_until: None,
            exposed,
            damage: Arc::default(),
        }
    }

    /// Records damage of images in `damage`, the list of its handle.
    pub(in crate::db) fn noting_in(self, damage: &Arc<Damage>) -> Self {
        Self { damage: Arc::clone(damage), ..self }
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

    /// Uses only roots of the image up to a transaction.
    pub(in crate::db) fn with_roots_until(self, roots_until: Option<Txid>) -> Self {
        Self { roots_until, ..self }
    }

    /// Returns a segment after this one, which ended at a position.
    pub(in crate::db) fn next(&self, storage: Arc<dyn Storage>, segment: u64, end: u64) -> Self {
        let next = Self::new(storage, segment, Arc::clone(&self.directory), &self.journal);
        let next = next.behind(self.reach(end)).noting_in(&self.damage);
        if self.past.0.get().is_some() {
            next.past.begin();
        }
        next
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
        let earlier = earlier.noting_in(&self.damage);
        let (kept, removed) = (Arc::clone(&self.kept), Arc::clone(&self.removed));
        Ok(Arc::new(Self { name, kept, removed, roots_until: self.roots_until, ..earlier }))
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
