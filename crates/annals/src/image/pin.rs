//! What keeps the space of a root from being used again: by this process, and by others.
//!
//! ```text
//! open:     choose the newest root; pin it; read the roots again: if there is a newer one, start over
//! backfill: pin the new root, before it is published; see which roots are pinned; use what none of them
//!           and neither root on disk reaches
//! ```
//!
//! Who finds its root to be the newest after it pinned it is seen by every backfill that may write over
//! what the root reaches: that is the second one that begins later, at the earliest.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::file::Image;
use crate::storage::{Clock, Hold, Lock, Storage};

/// How often a pin is tried that somebody is in the way of, who just asks who pins what; and the pause
/// between.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// Held by every view that lies over the base of a root. With the last of them other processes may use the
/// space of the root again.
#[derive(Debug)]
pub(crate) struct RootPin {
    /// The number of the root.
    pub(crate) number: u64,
    /// The image, on which the root is locked; none where the system can't.
    locked: Option<Arc<dyn Storage>>,
}

impl RootPin {
    /// Makes the pin of a root that only this process can read.
    pub(crate) const fn here(number: u64) -> Self {
        Self { number, locked: None }
    }
}

impl Drop for RootPin {
    fn drop(&mut self) {
        if let Some(storage) = &self.locked {
            // It could only fail if the file weren't open; and then the lock is gone too.
            let _ = storage.unlock(Lock::Pin(self.number));
        }
    }
}

impl Image {
    /// Pins a root for all processes.
    ///
    /// # Errors
    /// `Unsupported` where the system knows no locks on parts of a file; others of taking a lock.
    pub(crate) fn pin(&self, number: u64, clock: &dyn Clock) -> io::Result<RootPin> {
        for _ in 0..TRIES {
            if self.storage.try_lock(Lock::Pin(number), Hold::Shared)? {
                return Ok(RootPin { number, locked: Some(Arc::clone(&self.storage)) });
            }
            clock.pause(PAUSE);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Gives all of these roots that anybody has pinned, this handle too, oldest first: at most `most`.
    /// None where the system knows no such pins: then only one process has the image open.
    ///
    /// # Errors
    /// Those of looking at locks.
    pub(crate) fn pinned(&self, roots: Range<u64>, most: usize) -> io::Result<Vec<u64>> {
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

    /// Gives a process that has a root pinned, where the system tells.
    pub(crate) fn pinned_by(&self, root: u64) -> Option<u32> {
        self.storage.holder(Lock::Pin(root))
    }
}
