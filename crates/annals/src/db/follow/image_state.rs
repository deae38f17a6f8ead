//! The state of the image of an open database.
//!
//! Invariants
//! 1. The holder of `working` runs a backfill, and holds the lock from before the bound is sampled until the root is
//!    published.
//! 2. `newest` is the number of the last root that this handle published or opened from; `pending` has the data with
//!    which a store continues from it, until the published view does.

use crate::db::follow::report::OldestReader;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::db::follow::opening::{OpenRequest, OpenedImage, OpenedRoot};
use crate::db::follow::pins::Pins;
use crate::db::follow::spill::Spill;
use crate::db::follow::witness::identity;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::Published;
use crate::db::present::threads::this_thread;
use crate::image::{Damage, Guarded, Identity, Image, KeyFrames, Root, set_aside};
use crate::journal::lock;
use crate::storage::{Clock, Directory};
use crate::store::{Pager, PagerUse, Saved, Store, View};
use crate::{Error, ErrorKind, Result};

/// The state of the image of an open database.
#[derive(Debug)]
pub(in crate::db) struct ImageState {
    directory: Arc<dyn Directory>,
    /// The name of the image.
    name: String,
    /// Which journal it is, and the segment that was written when the database was opened.
    identity: Identity,
    clock: Arc<dyn Clock>,
    /// How much of the image may be kept in memory, in bytes.
    budget: u64,
    /// True if no other process writes the image meanwhile, so that pages may be written ahead.
    spills: bool,
    /// How many key frames are kept.
    pub(in crate::db) key_frames: KeyFrames,
    /// Key frames of earlier segments aren't kept: that history is forgotten.
    pub(in crate::db) frames_from: AtomicU64,
    pub(in crate::db) working: Mutex<Working>,
    /// The state of `working` for threads that don't wait for a backfill.
    status: Mutex<Status>,
    pending: Mutex<Option<Arc<Saved>>>,
    newest: AtomicU64,
    /// True if commits of others fill the memory and can't be written.
    pub(in crate::db) is_stuck: AtomicBool,
    /// How many bytes of the budget the cache leaves to changes.
    left: AtomicUsize,
    /// The thread that is in a progress callback of its backfill; 0: none.
    watching: AtomicUsize,
    /// The known damage of images.
    damage: Arc<Damage>,
    /// Held while a thread swaps the state because a page of it is lost.
    pub(in crate::db) reopening: Mutex<()>,
    /// While a backfill ends: the views that stores continued from.
    retired: Mutex<Option<Vec<Arc<View>>>>,
}

/// Keeps the views that stores continue from, and releases them at its end. Pages that only they have are freed then,
/// by the holder of this, and not under the writer's lock.
pub(in crate::db) struct Retiring<'i>(&'i ImageState);

impl Drop for Retiring<'_> {
    fn drop(&mut self) {
        let retired = lock(&self.0.retired).take();
        drop(retired); // with no lock held
    }
}

/// Facts of the image that need no wait for a backfill.
#[derive(Clone, Debug, Default)]
struct Status {
    image: Option<(Arc<Image>, Arc<Pager>)>,
    root: Option<Root>,
    reached: u64,
}

impl Status {
    fn of(working: &Working) -> Self {
        Self { image: working.image.clone(), root: working.root, reached: working.reached }
    }
}

/// The state that a backfill works with.
#[derive(Debug, Default)]
pub(in crate::db) struct Working {
    /// The image; `None` before the first backfill.
    pub(in crate::db) image: Option<(Arc<Image>, Arc<Pager>)>,
    /// The root that was published last.
    pub(in crate::db) root: Option<Root>,
    /// The end of its journal, in bytes as [`JournalFile::reach`] counts them.
    pub(in crate::db) reached: u64,
    /// Which roots of the image are read.
    pub(in crate::db) pins: Arc<Pins>,
    /// Pages written ahead of the next backfill.
    pub(in crate::db) spill: Option<Spill>,
}

impl Working {
    /// Begins with the found image; `reach` is its end in the journal.
    fn new(found: &OpenedImage, reach: impl Fn(&Root) -> u64) -> Self {
        let pins = Arc::clone(&found.pins);
        match &found.begun {
            None => Self { pins, ..Self::default() },
            Some(OpenedRoot { image, pager, root, .. }) => {
                let image = Some((Arc::clone(image), Arc::clone(pager)));
                Self { image, root: Some(*root), reached: reach(root), pins, spill: None }
            }
        }
    }

    /// True if the newest root is of the published view.
    pub(in crate::db) fn stands_for(&self, published: &Published) -> bool {
        let stands = (published.file.segment, published.point);
        self.root.is_some_and(|root| (root.segment, root.point) == stands)
    }

    /// Returns true if the directory shows no known damage in the objects that the newest root reaches.
    pub(in crate::db) fn is_sound(&self) -> Result<bool> {
        match (&self.image, &self.root) {
            (Some((image, _)), Some(root)) => {
                Ok(image.is_nothing_bad() || image.is_sound(root, false)?)
            }
            _ => Ok(true),
        }
    }

    /// Drops an image that never got a root, and with it its file: a disk that is full gets the space back. The next
    /// backfill makes another one.
    pub(in crate::db) fn drop_new(&mut self) {
        let is_new = self.image.as_ref().is_some_and(|(image, _)| image.is_replaceable());
        if is_new && self.spill.is_none() {
            self.image = None;
        }
    }

    /// Drops the newest root after an error of damage of which nothing else was noted.
    pub(in crate::db) fn note_damage(&self, error: &Error, is_noted: bool) {
        let is_damage = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::PageLost);
        if let (Some((image, _)), Some(root), true) =
            (&self.image, &self.root, is_damage && !is_noted)
        {
            image.note_bad(&root.catalog, error);
        }
    }

    /// Returns the numbers of all roots with readers.
    ///
    /// # Errors
    /// `Io`.
    pub(in crate::db) fn pinned(&self, image: &Image) -> Result<Vec<u64>> {
        self.pins.all(image).map_err(|error| cannot_look(image, error))
    }
}

/// Truncates the free end of the image's file, unless a reader needs it or spilled pages without a root are in it;
/// returns the file's length.
pub(in crate::db) fn shrink_wholly(working: &Working) -> Result<u64> {
    let Some((image, _)) = &working.image else { return Ok(0) };
    if working.spill.is_none() {
        image.shrink(working.pinned(image)?)?;
    }
    image.len()
}

/// Returns why the readers of an image are unknown.
pub(in crate::db) fn cannot_look(image: &Image, error: io::Error) -> Error {
    Error::io(format!("{}: can't see who reads it", image.path()), error)
}

impl ImageState {
    /// Begins with the result of opening.
    pub(in crate::db) fn new(request: &OpenRequest<'_>, found: &OpenedImage) -> Self {
        // The segment of the root is the first that was read, or there is none before.
        let working = Working::new(found, |root| root.point.position);
        let newest = working.root.map_or(0, |root| root.number);
        Self {
            directory: Arc::clone(request.directory),
            name: found.name.clone(),
            identity: identity(&found.head),
            clock: Arc::clone(&request.clock),
            budget: request.budget,
            spills: request.spills,
            key_frames: request.key_frames,
            frames_from: AtomicU64::new(0),
            status: Mutex::new(Status::of(&working)),
            working: Mutex::new(working),
            pending: Mutex::default(),
            newest: AtomicU64::new(newest),
            is_stuck: AtomicBool::new(false),
            left: AtomicUsize::new(0),
            watching: AtomicUsize::new(0),
            damage: Arc::clone(&found.damage),
            reopening: Mutex::default(),
            retired: Mutex::default(),
        }
    }

    /// Returns the known damage of images.
    pub(in crate::db) const fn damage(&self) -> &Arc<Damage> {
        &self.damage
    }

    /// Returns true if no other process writes the image meanwhile, so that pages may be written ahead.
    pub(in crate::db) const fn spills(&self) -> bool {
        self.spills
    }

    pub(in crate::db) const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Asks a program whether a backfill continues. It can't begin another meanwhile, nor do anything else that waits
    /// for this one.
    pub(in crate::db) fn watched<T>(&self, watch: impl FnOnce() -> T) -> T {
        struct Watching<'i>(&'i AtomicUsize);
        impl Drop for Watching<'_> {
            fn drop(&mut self) {
                self.0.store(0, Ordering::Relaxed);
            }
        }
        let before = self.watching.swap(this_thread(), Ordering::Relaxed);
        debug_assert_eq!(before, 0, "backfills run one after the other: `working` is held");
        let _watching = Watching(&self.watching);
        watch()
    }

    /// Refuses to wait for a backfill of the same thread.
    pub(in crate::db) fn refuse_nesting(&self) -> Result<()> {
        if self.watching.load(Ordering::Relaxed) != this_thread() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}: this thread is bringing the image forward, and is just being told how far: what watches a \
             backfill can only let it go on or end it",
            self.directory.display(&self.name)
        )))
    }

    /// Returns the number of the newest root.
    pub(in crate::db) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Lets a store continue from the newest root, unless it does already. The caller holds the writer. A load and a
    /// comparison, unless a backfill has ended since.
    #[inline]
    pub(in crate::db) fn install(&self, store: &mut Store) {
        if store.unsettled().root() != self.newest() {
            self.install_pending(store);
        }
    }

    #[cold]
    fn install_pending(&self, store: &mut Store) {
        let pending = lock(&self.pending).clone();
        if let Some(saved) = pending {
            if let Some(retired) = &mut *lock(&self.retired) {
                retired.push(Arc::clone(store.published()));
            }
            store.rebase(&saved);
        }
    }

    /// Begins to keep the views that stores continue from.
    pub(in crate::db) fn retire(&self) -> Retiring<'_> {
        *lock(&self.retired) = Some(Vec::new());
        Retiring(self)
    }

    /// Records that a view was published.
    #[inline]
    pub(in crate::db) fn note_published(&self, view: &View) {
        let newest = self.newest();
        if newest > 0 && view.root() == newest {
            self.forget_installed(newest);
        }
    }

    /// Drops the data for continuing from a root, since the store lies over it now. A backfill may have ended in
    /// between: its data is still needed, else no store could ever continue from there.
    fn forget_installed(&self, root: u64) {
        let mut pending = lock(&self.pending);
        if pending.as_ref().is_some_and(|saved| saved.root() <= root) {
            *pending = None;
        }
    }

    fn forget_pending(&self) {
        *lock(&self.pending) = None;
    }

    /// Records the published root: stores continue from it.
    pub(in crate::db) fn note_saved(&self, saved: Saved, number: u64) {
        let mut pending = lock(&self.pending);
        *pending = Some(Arc::new(saved));
        self.newest.store(number, Ordering::Release);
        self.is_stuck.store(false, Ordering::Relaxed);
    }

    /// Continues with another image, or another root, that was found meanwhile. The caller is the writer, whose store
    /// lies over that root now.
    pub(in crate::db) fn restart_from_root(
        &self,
        working: &mut Working,
        found: &OpenedImage,
        file: &JournalFile,
    ) {
        *working = Working::new(found, |root| file.reach_of(root.segment, root.point.position));
        self.forget_pending();
        let newest = working.root.map_or(0, |root| root.number);
        self.newest.store(newest, Ordering::Release);
        self.note_status(working);
    }

    /// Sets the status of the image, for threads that don't wait for a backfill.
    pub(in crate::db) fn note_status(&self, working: &Working) {
        *lock(&self.status) = Status::of(working);
    }

    fn status(&self) -> Status {
        lock(&self.status).clone()
    }

    /// Takes the image out of the way. The caller holds the lock of backfills.
    pub(in crate::db) fn set_aside(&self, reason: &str) -> Result<()> {
        set_aside(&*self.directory, &self.name, reason.to_owned()).map(drop)
    }

    /// Returns the directory that the image is in.
    pub(in crate::db) fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    /// Returns the newest root of the image now, whichever process published it.
    pub(in crate::db) fn peek(&self) -> Option<Root> {
        // A new image that was made meanwhile may be for a later segment.
        let identity = Identity { segment: u64::MAX, ..self.identity };
        Image::peek(&*self.directory, &self.name, &identity)
    }

    /// Makes the image's file smaller if a fifth of it, and at least 1 MiB, is neither of the newest root nor of key
    /// frames: replaces it by a copy without gaps, or, where that would take long or somebody reads an older root,
    /// truncates its free end. Only if a backfill of this handle has found the space. Never while commits continue:
    /// freeing blocks makes some disks slow for a while.
    ///
    /// Cost: a copy reads and writes at most 64 MiB, or, if somebody `has_time`, as much as backfills have written since
    /// opening. Meanwhile both files are there; where the disk has no room for that, the end of the old one is truncated.
    pub(in crate::db) fn shrink(&self, working: &Working, has_time: bool) -> Result<()> {
        const WORTH: u64 = 1 << 20;
        const COPIED_AT_MOST: u64 = 64 << 20;
        let (Some((image, _)), Some(root), None) = (&working.image, working.root, &working.spill)
        else {
            return Ok(());
        };
        let Some((kept, frames)) = image.kept() else { return Ok(()) };
        let len = image.len()?;
        if len.saturating_sub(kept) < WORTH.max(len / 5) {
            return Ok(());
        }
        // A reader would keep the space of the old file.
        let is_read = working.pinned(image)?.iter().any(|number| *number != root.number);
        let written = if has_time { image.written() } else { 0 };
        if kept <= COPIED_AT_MOST.max(written) && !is_read {
            match image.compact(&frames, &*self.clock) {
                Err(error) if error.kind() == ErrorKind::Io => {}
                compacted => return compacted.map(drop),
            }
        }
        shrink_wholly(working).map(drop)
    }

    /// Returns the image, or creates it. An existing one that couldn't be read when the database was opened is
    /// renamed as damaged: with the lock of backfills held, no other process is creating it.
    pub(in crate::db) fn image(&self, working: &mut Working) -> Result<(Arc<Image>, Arc<Pager>)> {
        if let Some((image, pager)) = &working.image {
            return Ok((Arc::clone(image), Arc::clone(pager)));
        }
        let create = || {
            let image = Image::create(&self.directory, &self.name, &self.identity, &*self.clock)?;
            Ok::<_, Error>(image.noting_in(&self.damage))
        };
        let image = match create() {
            Err(error) if error.kind() == ErrorKind::InUse => {
                self.set_aside("it couldn't be read when the database was opened")?;
                create()?
            }
            created => created?,
        };
        let image = Arc::new(image);
        let source = Arc::new(Guarded(Arc::clone(&image)));
        let pager = Arc::new(Pager::new(source, self.budget, true));
        working.image = Some((Arc::clone(&image), Arc::clone(&pager)));
        Ok((image, pager))
    }

    /// Returns the image's end in the journal, in bytes of that; 0 before the first backfill.
    pub(in crate::db) fn end_in_journal(&self) -> u64 {
        lock(&self.status).reached
    }

    /// Returns how many bytes of changes may be in memory alone before a transaction spills them.
    #[inline]
    pub(in crate::db) fn spill_limit(&self) -> usize {
        if self.spills {
            usize::try_from(self.budget / 4).unwrap_or(usize::MAX)
        } else {
            usize::MAX
        }
    }

    /// Returns a small part of the budget, in bytes.
    pub(in crate::db) fn batch(&self) -> usize {
        usize::try_from(self.budget / 64).unwrap_or(usize::MAX)
    }

    /// Lets the cache of pages leave room for so many bytes of changes in memory alone, and some more; returns how many
    /// there may be before this is to be called again.
    #[inline]
    pub(in crate::db) fn make_way(&self, changes: usize) -> usize {
        let step = self.batch();
        let left = self.left.load(Ordering::Relaxed);
        match left.checked_sub(changes) {
            Some(more) if more <= step.saturating_mul(2) => left,
            _ => self.leave(changes.saturating_add(step)),
        }
    }

    #[cold]
    fn leave(&self, bytes: usize) -> usize {
        self.left.store(bytes, Ordering::Relaxed);
        if let Some((_, pager)) = &lock(&self.status).image {
            // The pages that a backfill is writing are copied meanwhile to be changed again.
            pager.make_way(bytes.saturating_mul(2));
        }
        bytes
    }

    /// Returns how many bytes of changes in memory alone are worth a backfill.
    pub(in crate::db) fn unsaved_due(&self) -> usize {
        usize::try_from(self.budget / 8).unwrap_or(usize::MAX)
    }

    /// Decides whether pages loaded from the image stay in memory, once it has a view's changes too.
    pub(in crate::db) fn choose_what_stays(
        &self,
        pager: &Pager,
        root: Option<Root>,
        spill: Option<&Spill>,
        view: &View,
    ) {
        let end = root.map_or(0, |root| root.end).max(spill.map_or(0, |spill| spill.draft.end()));
        pager.set_keeps(end.saturating_add(view.unsaved() as u64) <= self.budget);
    }

    /// Returns the segment that the newest root's point is in, if there is one.
    pub(in crate::db) fn segment(&self) -> Option<u64> {
        self.status().root.map(|root| root.segment)
    }

    /// Returns how many bytes the newest root reaches, in whole units, if there is one.
    pub(in crate::db) fn reached(&self) -> Result<Option<u64>> {
        let Status { image: Some((image, _)), root: Some(root), .. } = self.status() else {
            return Ok(None);
        };
        image.reached(&root).map(Some)
    }

    /// Returns the newest root, the length of the image in bytes, and the use of its pages.
    pub(in crate::db) fn figures(&self) -> (Option<Root>, u64, PagerUse) {
        let Status { image, root, .. } = self.status();
        let Some((image, pager)) = image else { return (root, 0, PagerUse::default()) };
        (root, image.len().unwrap_or(0), pager.usage())
    }

    /// Returns how much of the image may be kept in memory, in bytes.
    pub(in crate::db) const fn budget(&self) -> u64 {
        self.budget
    }

    /// Returns the reader of the oldest root other than the newest.
    pub(in crate::db) fn oldest_reader(&self, working: &Working) -> Option<OldestReader> {
        let (image, _) = working.image.as_ref()?;
        working.pins.oldest_reader(image, self.clock.elapsed())
    }
}
