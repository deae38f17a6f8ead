//! Writing batch after batch while the next one is made ready.
//!
//! Checksums and free space for one batch take a processor, writing another one takes the disk and, for
//! copies into the page cache, another processor. So a batch is written by a thread of its own, one at a
//! time, and whoever makes the next one ready waits when that is full and this isn't written yet.
//!
//! Invariants
//! 1. [`Pipeline::finish`] gives success only if each batch was written wholly. The first error is what it
//!    or the next [`Pipeline::put`] gives, and nothing is begun after it.
//! 2. No thread outlives the scope, and none is made for a backfill of a single batch.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::Result;
use crate::image::Image;
use crate::store::Piece;

/// Pieces, and their places in the image.
pub(super) type Batch = Vec<(u64, Piece)>;

/// Writes batches to an image.
pub(super) struct Pipeline<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    pub(super) image: &'env Image,
    under_way: Option<ScopedJoinHandle<'scope, Result<u64>>>,
}

impl<'scope, 'env> Pipeline<'scope, 'env> {
    /// Begins with nothing under way.
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, image: &'env Image) -> Self {
        Self { scope, image, under_way: None }
    }

    /// Begins to write a batch, once the one before has been written; gives how many runs that
    /// were.
    ///
    /// # Errors
    /// What [`Image::write`] gave for the batch before, or for this one if there is no thread for it.
    pub(super) fn put(&mut self, batch: Batch) -> Result<u64> {
        let mut runs = self.finish()?;
        let image = self.image;
        let batch = Arc::new(batch);
        let pieces = Arc::clone(&batch);
        let thread = Builder::new().name("annals-image-write".to_owned());
        match thread.spawn_scoped(self.scope, move || write(image, &pieces)) {
            Ok(thread) => self.under_way = Some(thread),
            // Where there can be no more threads it is written all the same.
            Err(_) => runs += write(image, &batch)?,
        }
        Ok(runs)
    }

    /// Waits for what is under way; gives how many runs were written since that was last told.
    ///
    /// # Errors
    /// What [`Image::write`] gave.
    pub(super) fn finish(&mut self) -> Result<u64> {
        let Some(thread) = self.under_way.take() else { return Ok(0) };
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Pipeline<'_, '_> {
    /// Writes a batch here and now.
    ///
    /// # Errors
    /// As [`Image::write`].
    pub(super) fn write(&self, batch: &[(u64, Piece)]) -> Result<u64> {
        write(self.image, batch)
    }
}

/// Writes pieces to their places; gives how many runs they were.
pub(super) fn write(image: &Image, batch: &[(u64, Piece)]) -> Result<u64> {
    let parts: Vec<_> = batch.iter().map(|(place, piece)| (*place, [piece.as_ref()])).collect();
    let objects: Vec<_> = parts.iter().map(|(place, parts)| (*place, &parts[..])).collect();
    Ok(image.write(&objects)?.runs)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::ErrorKind;
    use crate::image::Identity;
    use crate::storage::simulated::SimulatedClock;
    use crate::storage::{Directory, MemoryDirectory};

    const UNIT: u64 = 4096;
    const FIRST: u64 = 3 * UNIT;

    fn image() -> Image {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let identity = Identity { journal_id: [7; 16], segment: 0, segment_hash: 1 };
        Image::create(&directory, "image", &identity, &SimulatedClock::new(1)).unwrap()
    }

    fn batch(place: u64) -> Batch {
        (0..3).map(|at| (place + 2 * at * UNIT, Piece::Node(vec![1; 4096]))).collect()
    }

    #[test]
    fn all_batches_are_written_once_it_has_finished() {
        let image = image();
        let runs = thread::scope(|scope| {
            let mut pipeline = Pipeline::new(scope, &image);
            let put: u64 =
                (0..20).map(|at| pipeline.put(batch(FIRST + at * 6 * UNIT)).unwrap()).sum();
            assert_eq!(put, 19 * 3, "each batch is told with the next one");
            put + pipeline.finish().unwrap() + pipeline.finish().unwrap()
        });
        assert_eq!(runs, 20 * 3);
        assert_eq!(image.len().unwrap(), FIRST + (20 * 6 - 1) * UNIT);
    }

    #[test]
    fn an_error_of_a_batch_is_told_and_ends_it() {
        let image = image();
        let nowhere = u64::MAX - 20 * UNIT + 1;
        thread::scope(|scope| {
            let mut pipeline = Pipeline::new(scope, &image);
            assert_eq!(pipeline.put(batch(nowhere)).unwrap(), 0);
            let len = image.len().unwrap();
            assert_eq!(pipeline.put(batch(FIRST)).unwrap_err().kind(), ErrorKind::Io);
            assert_eq!((pipeline.finish().unwrap(), image.len().unwrap()), (0, len));
            pipeline.put(batch(nowhere)).unwrap();
            assert_eq!(pipeline.finish().unwrap_err().kind(), ErrorKind::Io);
        });
    }
}
