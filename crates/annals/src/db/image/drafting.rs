//! What a view stores, on its way into a draft of the image.

use std::time::Duration;

use crate::Result;
use crate::image::{Draft, Image, Stored};
use crate::storage::Clock;
use crate::store::{Keep, Piece};

/// How much is collected before it is written.
const BATCH: usize = 64 << 20;

/// Takes what a view stores: gives it space, and writes it in large batches.
pub(super) struct Drafting<'d, 'i> {
    draft: &'d mut Draft<'i>,
    image: &'d Image,
    /// The last transaction of the backfill, as far as is known.
    txid: u64,
    queue: Vec<(u64, Piece)>,
    queued: usize,
    written: Counts,
    clock: &'d dyn Clock,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Parts of pages, which were copied.
    pub(super) pages: u64,
    /// Whole pages and long values.
    pub(super) from_memory: u64,
    pub(super) nodes: u64,
    pub(super) bytes: u64,
    pub(super) runs: u64,
    pub(super) took: Duration,
}

impl Counts {
    /// Gives the sum of both.
    pub(super) fn and(self, other: Self) -> Self {
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
    /// Begins; `txid` is the last transaction of the backfill, as far as is known.
    pub(super) fn new(
        draft: &'d mut Draft<'i>,
        image: &'d Image,
        txid: u64,
        clock: &'d dyn Clock,
    ) -> Self {
        let (queue, written) = (Vec::new(), Counts::default());
        Self { draft, image, txid, queue, queued: 0, written, clock }
    }

    /// Writes what is left, and tells what was written.
    pub(super) fn end(mut self) -> Result<Counts> {
        self.write()?;
        Ok(self.written)
    }

    /// Writes what is in the queue.
    fn write(&mut self) -> Result<()> {
        let begun = self.clock.elapsed();
        let parts: Vec<_> =
            self.queue.iter().map(|(place, piece)| (*place, [piece.as_ref()])).collect();
        let objects: Vec<_> = parts.iter().map(|(place, parts)| (*place, &parts[..])).collect();
        let written = self.image.write(&objects)?;
        self.written.runs += written.runs;
        self.queue.clear();
        self.queued = 0;
        self.written.took += self.clock.elapsed().saturating_sub(begun);
        Ok(())
    }
}

impl Keep for Drafting<'_, '_> {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        let bytes = piece.as_ref();
        let stored = self.draft.place(bytes, self.txid)?;
        self.written.bytes += bytes.len() as u64;
        self.queued += bytes.len();
        match &piece {
            Piece::Page(_) | Piece::Long(_) => self.written.from_memory += 1,
            Piece::Part(_) => self.written.pages += 1,
            Piece::Node(_) => self.written.nodes += 1,
        }
        self.queue.push((stored.place, piece));
        if self.queued >= BATCH {
            self.write()?;
        }
        Ok(stored)
    }

    fn leave(&mut self, stored: Stored) {
        self.draft.release(&stored);
    }
}
