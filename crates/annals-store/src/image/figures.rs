//! The figures that a root says of itself, computed again from what it reaches.
//!
//! A backfill counts them while it allocates and releases space ([`Space`](super::space::Space)): walking everything
//! each time would cost too much. The walk here is the definition. The check of an image, copies of key frames, and
//! each backfill of a test use it.

use super::format::{LONGEST_PAGE, OBJECTS_AT, Root, UNIT};
use super::stored::{Source, Stored};
use super::units::Extent;
use super::walk::{WalkStep, walk};
use crate::Result;

/// What a root says of all that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    /// Where the last object ends, in bytes, up to a whole unit.
    pub(super) end: u64,
    /// How many bytes of them the root's own backfill wrote.
    pub(super) bytes: u64,
    /// How many of them it wrote.
    pub(super) objects: u64,
    /// How many bytes compression spares.
    pub(super) spared: u64,
}

impl Figures {
    /// Those of a root that reaches nothing.
    pub(super) const NONE: Self = Self { end: OBJECTS_AT, bytes: 0, objects: 0, spared: 0 };

    /// Returns the figures that a root says of itself.
    #[cfg(feature = "testing")]
    pub(super) const fn told_by(root: &Root) -> Self {
        let Root { end, bytes, objects, spared, .. } = *root;
        Self { end, bytes, objects, spared }
    }

    /// Finds the figures of a root by visiting all that it reaches. Reads the nodes of its directory.
    ///
    /// # Errors
    /// Those of [`walk`].
    pub(super) fn of(source: &dyn Source, root: &Root) -> Result<Self> {
        let mut figures = Self::NONE;
        walk(source, root, |_, stored| {
            figures.add(root, stored);
            Ok(WalkStep::Enter)
        })?;
        Ok(figures)
    }

    /// Adds an object that a root reaches.
    pub(super) fn add(&mut self, root: &Root, stored: &Stored) {
        let Extent { start, count } = Extent::of(stored);
        self.end = self.end.max((start + count) * UNIT);
        if root.wrote(stored) {
            self.bytes += u64::from(stored.len);
            self.objects += 1;
        }
        if stored.is_packed() {
            self.spared += spared_by(stored.len);
        }
    }
}

/// Returns how many bytes less than a page a compressed one of `len` bytes takes.
pub(super) const fn spared_by(len: u32) -> u64 {
    (LONGEST_PAGE as u64).saturating_sub(len as u64)
}
