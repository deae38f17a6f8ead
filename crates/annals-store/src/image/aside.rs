//! A suspended draft: a backfill that began before its contents were committed.
//!
//! Its objects are in free space, which no root reaches: after a crash it has no effect. Meanwhile no other draft
//! gets space.

use std::sync::Arc;

use super::file::{HeldRoots, Image};
use super::publish::{Draft, Unpublished};
use super::space::Space;
use annals_storage::sync::lock;

/// A suspended draft. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct PutAside {
    image: Arc<Image>,
    held: HeldRoots,
    number: u64,
}

/// How the space was at some moment of a draft.
#[derive(Clone, Debug)]
pub struct Mark(Box<Space>);

impl Image {
    /// Truncates the file to its length before a failed draft: on a full disk others need that space.
    #[inline]
    pub fn shorten(&self, len: u64) {
        // If it can't be truncated, the rest is free space.
        let _ = self.storage.set_len(len);
    }
}

impl Draft<'_> {
    /// Suspends the draft, with all its space; `image` is its own.
    #[inline]
    pub fn put_aside(mut self, image: &Arc<Image>) -> PutAside {
        debug_assert!(std::ptr::eq(self.image, &raw const **image), "a draft is of its image");
        self.unpublished = Unpublished::Keep;
        self.working.iter_mut().for_each(Space::put_aside);
        PutAside { image: Arc::clone(image), held: self.held.clone(), number: self.number }
    }

    /// Suspends a resumed draft again; returns the state of the file's space from before it was resumed. Only one
    /// view may refer to objects that were written since the last [`PutAside::show`]. The caller must continue that
    /// view from the objects written now.
    #[inline]
    pub fn keep(mut self) -> Option<Mark> {
        self.working.iter_mut().for_each(Space::go_on);
        match std::mem::replace(&mut self.unpublished, Unpublished::Keep) {
            Unpublished::Restore(before) => Some(Mark(before)),
            Unpublished::Abandon | Unpublished::Keep => None,
        }
    }
}

impl PutAside {
    /// Takes the draft up again. Unless that is kept or published, all is as if it hadn't been.
    pub fn take_up(&self) -> Draft<'_> {
        let working = lock(&self.image.working);
        let before = working.clone().map(Box::new);
        Draft {
            image: &self.image,
            working,
            held: self.held.clone(),
            number: self.number,
            frames: Arc::default(),
            unpublished: before.map_or(Unpublished::Keep, Unpublished::Restore),
        }
    }

    /// Keeps the space of the draft's objects from being reused before the draft is over, since other views may now
    /// refer to them.
    #[inline]
    pub fn show(&self) {
        let below = self.held.newest.map_or(0, |newest| newest.root.number);
        let mut working = lock(&self.image.working);
        working.iter_mut().for_each(|space| space.show(self.number, below));
    }

    /// Returns where the last of the draft's objects ends, or of the newest root's, in bytes.
    #[inline]
    pub fn end(&self) -> u64 {
        lock(&self.image.working).as_ref().map_or(0, Space::end)
    }

    /// Returns the present state of the space. Objects that were written so far are kept, since other views may now
    /// refer to them.
    #[inline]
    pub fn mark(&self) -> Option<Mark> {
        self.show();
        lock(&self.image.working).clone().map(|space| Mark(Box::new(space)))
    }

    /// Restores the state of the space: later allocations are free again.
    #[inline]
    pub fn go_back(&self, mark: Mark) {
        *lock(&self.image.working) = Some(*mark.0);
    }
}

impl Drop for PutAside {
    fn drop(&mut self) {
        let mut working = lock(&self.image.working);
        working.iter_mut().filter(|space| space.is_put_aside()).for_each(Space::abandon);
    }
}
