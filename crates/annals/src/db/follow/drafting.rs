//! Writing a view into a draft of the image.

use std::ops::ControlFlow;
use std::time::Duration;

use annals_storage::step;

use crate::db::follow::report::{BackfillProgress, Watching};
use crate::image::{
    Array, Draft, Frames, Image, KeyFrames, Root, Stored, WalkStep, Written, walk_array,
};
use crate::storage::Clock;
use crate::store::{Keep, Piece, Saved};
use crate::{Error, ErrorKind, Result};

/// How much is collected before it is written.
const BATCH: usize = 64 << 20;

/// How many bytes are collected between two calls of the progress callback.
const STEP: usize = 4 << 20;

/// Takes the objects of a view: allocates space for them, and writes them in large batches.
pub(in crate::db) struct Drafting<'d, 'i> {
    draft: &'d mut Draft<'i>,
    image: &'d Image,
    /// The last transaction of the backfill, as far as is known.
    txid: u64,
    queue: Vec<(u64, Piece)>,
    queued: usize,
    written: Counts,
    clock: &'d dyn Clock,
    /// The expected number of pages, and the progress callback.
    pages: u64,
    watch: Watching<'d>,
}

/// The written objects.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::db) struct Counts {
    /// Parts of pages, which were copied.
    pub(in crate::db) pages: u64,
    /// Whole pages and long values.
    pub(in crate::db) from_memory: u64,
    pub(in crate::db) nodes: u64,
    pub(in crate::db) bytes: u64,
    pub(in crate::db) runs: u64,
    pub(in crate::db) took: Duration,
}

impl Counts {
    /// Returns the sum of both.
    pub(in crate::db) fn and(self, other: Self) -> Self {
        Self {
            pages: self.pages + other.pages,
            from_memory: self.from_memory + other.from_memory,
            nodes: self.nodes + other.nodes,
            bytes: self.bytes + other.bytes,
            runs: self.runs + other.runs,
            took: self.took + other.took,
        }
    }
}

impl<'d, 'i> Drafting<'d, 'i> {
    /// Begins; `txid` is the last transaction of the backfill, as far as known, and `watch` is called with the
    /// progress after each write.
    pub(in crate::db) fn new(
        draft: &'d mut Draft<'i>,
        image: &'d Image,
        txid: u64,
        clock: &'d dyn Clock,
        watch: Watching<'d>,
    ) -> Self {
        let (queue, written) = (Vec::new(), Counts::default());
        Self { draft, image, txid, queue, queued: 0, written, clock, pages: 0, watch }
    }

    /// Returns the counts of written objects, and frees the space of unwritten ones.
    pub(in crate::db) fn end(self) -> (Counts, Vec<(u64, Piece)>) {
        (self.written, self.queue)
    }

    /// Writes the objects in the queue.
    pub(in crate::db) fn write(&mut self) -> Result<()> {
        let begun = self.clock.elapsed();
        match write_all(self.image, &self.queue) {
            Ok(written) => self.written.runs += written.runs,
            Err(error) => step!(ImageErrorDropped, return Err(error)),
        }
        self.queue.clear();
        self.queued = 0;
        self.written.took += self.clock.elapsed().saturating_sub(begun);
        self.tell()
    }

    /// Marks as unreachable the objects of arrays saved `before` that a view doesn't have any more: of dropped
    /// tables, fields and indexes. Their unreadable parts stay allocated until the database is reopened: then no root
    /// reaches them.
    pub(in crate::db) fn leave_dropped(&mut self, before: &[Array], saved: &Saved) {
        let image = self.image;
        let end = self.draft.end();
        for array in before.iter().filter(|array| !saved.goes_on_from(array)) {
            let _ = walk_array(image, array, end, |_, stored| {
                self.leave(*stored);
                Ok(WalkStep::Enter)
            });
        }
    }

    /// Decides which key frames the new root lists, and stores the list if it changed: see [`Draft::choose_frames`].
    pub(in crate::db) fn frames(
        &mut self,
        rule: KeyFrames,
        next: (u64, u64),
        are_read: &dyn Fn(&Root) -> bool,
    ) -> Result<Option<Stored>> {
        let Frames { keep, store, leave } = self.draft.choose_frames(rule, next, are_read);
        leave.into_iter().for_each(|old| self.leave(old));
        match store {
            Some(list) => self.store(Piece::Node(list)).map(Some),
            None => Ok(keep),
        }
    }

    /// Returns how many pages have been written. If the program stops it, nothing was changed: the written pages are
    /// in free space, which no root reaches.
    pub(in crate::db) fn tell(&mut self) -> Result<()> {
        let done = self.written.pages + self.written.from_memory;
        let progress = BackfillProgress { done, total: self.pages, bytes: self.written.bytes };
        match (self.watch)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(
                ErrorKind::Cancelled,
                format!("{}: the program stopped the backfill; nothing is lost", self.image.path()),
            )),
        }
    }
}

impl Keep for Drafting<'_, '_> {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        match &piece {
            Piece::Page(_) | Piece::Long(_) => self.written.from_memory += 1,
            Piece::Part(..) | Piece::Packed(..) => self.written.pages += 1,
            Piece::Node(_) => self.written.nodes += 1,
        }
        let piece = piece.packed();
        let bytes = piece.as_ref();
        let stored = self.draft.place_as(bytes, self.txid, piece.stored_as())?;
        self.written.bytes += bytes.len() as u64;
        let before = self.queued / STEP;
        self.queued += bytes.len();
        let is_step = self.queued / STEP > before;
        self.queue.push((stored.place, piece));
        if self.queued >= BATCH {
            self.write()?;
        } else if is_step {
            self.tell()?;
        }
        Ok(stored)
    }

    fn expect(&mut self, items: u64) {
        self.pages = items;
    }

    fn leave(&mut self, stored: Stored) {
        self.draft.release(&stored);
    }
}

/// Writes pieces to their places.
pub(in crate::db) fn write_all(image: &Image, queue: &[(u64, Piece)]) -> Result<Written> {
    let parts: Vec<_> = queue.iter().map(|(place, piece)| (*place, [piece.as_ref()])).collect();
    let objects: Vec<_> = parts.iter().map(|(place, parts)| (*place, &parts[..])).collect();
    image.write(&objects)
}
