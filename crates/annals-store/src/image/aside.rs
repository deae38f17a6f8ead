//! A draft that was put aside: a backfill that has begun before what it is to publish has committed.
//!
//! Its objects lie in free space, where no root leads to them: after a crash nobody knows of them. Nobody
//! else is given space as long as it is there.

use std::sync::Arc;

use super::file::{Held, Image};
use super::publish::{Draft, Otherwise};
use super::space::Space;
use annals_storage::sync::lock;

/// A draft that was put aside. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct PutAside {
    image: Arc<Image>,
    held: Held,
    number: u64,
}

/// How the space was at some moment of a draft.
#[derive(Debug)]
pub struct Mark(Box<Space>);

impl Image {
    /// Makes the file as short as it was before a draft failed: on a full disk others need that space.
    #[inline]
    pub fn shorten(&self, len: u64) {
        // What can't be cut is free space.
        let _ = self.storage.set_len(len);
    }
}

impl Draft<'_> {
    /// Puts the draft aside, with all that it was given; `image` is its own.
    #[inline]
    pub fn put_aside(mut self, image: &Arc<Image>) -> PutAside {
        debug_assert!(std::ptr::eq(self.image, &raw const **image), "a draft is of its image");
        self.otherwise = Otherwise::Keep;
        self.working.iter_mut().for_each(Space::put_aside);
        PutAside { image: Arc::clone(image), held: self.held.clone(), number: self.number }
    }

    /// Puts a draft aside that was taken up again; returns how the space was before. The only view that leads
    /// to what it has written since its last part was seen continues from what was written now.
    #[inline]
    pub fn keep(mut self) -> Option<Mark> {
        self.working.iter_mut().for_each(Space::go_on);
        match std::mem::replace(&mut self.otherwise, Otherwise::Keep) {
            Otherwise::Restore(before) => Some(Mark(before)),
            Otherwise::Abandon | Otherwise::Keep => None,
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
            otherwise: before.map_or(Otherwise::Keep, Otherwise::Restore),
        }
    }

    /// Notes that others may have a view that leads to what was written so far: none of it is used for
    /// anything else before the draft is over.
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

    /// Goes back to how the space was: what was given since is free again.
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
