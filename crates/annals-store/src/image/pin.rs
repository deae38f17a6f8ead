//! Prevents reuse of a root's space: by this process, and by others.
//!
//! ```text
//! open:     choose the newest root; pin it; read the roots again: if there is a newer one, start over
//! backfill: pin the new root, before it is published; see which roots are pinned; use what none of them
//!           and neither root on disk reaches
//! ```
//!
//! A process pins a root, then checks that it is still the newest. Then every backfill that may overwrite the root's
//! space sees the pin: that is at the earliest the second one that begins later.
//!
//! A view over a backfill without a root yet pins the root below, and the backfill itself by a number that no root
//! has. A handle that opens the image later finds no root with the objects of such a view. So it allocates space
//! after the file's end alone (see [`super::space`]). The handle of the backfill knows these objects.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::file::Image;
use annals_storage::{Clock, Hold, Lock, Storage, step};

/// The number of tries for a pin that a query by another process blocks; and the pause between.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// The first of the numbers for pins of backfills without a root: no image has so many roots.
const EARLY: u64 = 1 << 61;

/// Held by every view that lies over the base of a root. With the last of them other processes may use the
/// space of the root again.
#[derive(Debug)]
pub struct RootPin {
    /// The number of the root.
    pub number: u64,
    /// The image, and the locks on it; `None` if the system has none.
    locked: Option<(Arc<dyn Storage>, u64)>,
    /// The pin of the root below, if the view lies over a backfill without a root yet.
    _below: Option<Arc<Self>>,
}

impl RootPin {
    /// Makes the pin of a root that only this process can read.
    #[inline]
    pub const fn here(number: u64) -> Self {
        Self { number, locked: None, _below: None }
    }

    /// Returns the number by which a backfill without a root is pinned, if it is one.
    #[inline]
    pub fn early(&self) -> Option<u64> {
        self.locked.as_ref().map(|(_, number)| *number).filter(|number| *number >= EARLY)
    }
}

impl Drop for RootPin {
    fn drop(&mut self) {
        if let Some((storage, number)) = &self.locked {
            // It could fail only if the file weren't open; and then the lock is released too.
            let _ = storage.unlock(Lock::Pin(*number));
        }
    }
}

impl Image {
    /// Pins a root for all processes.
    ///
    /// # Errors
    /// `Unsupported` where the system knows no locks on parts of a file; others of taking a lock.
    #[inline]
    pub fn pin(&self, number: u64, clock: &dyn Clock) -> io::Result<RootPin> {
        for _ in 0..TRIES {
            if self.storage.try_lock(Lock::Pin(number), Hold::Shared)? {
                let locked = Some((Arc::clone(&self.storage), number));
                return Ok(RootPin { number, locked, _below: None });
            }
            clock.pause(PAUSE);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Pins a backfill that has no root yet, for all processes, with the root `below` it, if there is one. No other
    /// process may do that at the same time: its number must be unused.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub fn pin_early(&self, below: Option<Arc<RootPin>>, clock: &dyn Clock) -> io::Result<RootPin> {
        let last = self.pinned(EARLY..u64::MAX, usize::MAX)?.last().copied();
        let locked = match self.pin(last.map_or(EARLY, |last| last + 1), clock) {
            Ok(mut pin) => step!(SpillNotPinned, pin.locked.take(), else None),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => None,
            Err(error) => return Err(error),
        };
        Ok(RootPin {
            number: below.as_ref().map_or(0, |below| below.number),
            locked,
            _below: below,
        })
    }

    /// Returns those of these roots that are pinned, by this handle too, oldest first: at most `most`. None where the
    /// system knows no such pins: then only one process has the image open.
    ///
    /// # Errors
    /// Those of querying locks.
    pub fn pinned(&self, roots: Range<u64>, most: usize) -> io::Result<Vec<u64>> {
        let (mut pinned, mut rest) = (Vec::new(), roots);
        while pinned.len() < most {
            match self.storage.oldest_pin(rest.clone()) {
                Ok(Some(root)) => {
                    pinned.push(root);
                    rest.start = root.saturating_add(1);
                }
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => break,
                Err(error) => return Err(error),
            }
        }
        Ok(pinned)
    }

    /// Returns a process that has a root pinned, if the system reports it.
    #[inline]
    pub fn pinned_by(&self, root: u64) -> Option<u32> {
        self.storage.holder(Lock::Pin(root))
    }
}
