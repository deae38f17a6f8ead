//! Mutable access to data whose reference count shows a single owner.
//!
//! `Arc::make_mut` locks out weak references with an atomic exchange, which is a tenth of the cost of
//! inserting a row. The store makes no weak references, so that a plain load does.
#![allow(unsafe_code, reason = "a plain load instead of an atomic exchange, on the hottest path")]

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::pages::refresh::Refresh;

/// Something that never has weak references.
///
/// Its field is private, so that only this module accesses the count.
#[derive(Debug)]
pub(crate) struct NoWeak<T>(Arc<T>);

impl<T: Clone> NoWeak<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Returns another handle of the same value.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Returns the value for changing; copies it first if there is another handle.
    #[inline]
    pub(crate) fn make_mut(&mut self) -> &mut T {
        if Arc::strong_count(&self.0) != 1 {
            self.copy();
        }
        // Pairs with the release by the thread that dropped the last other handle.
        fence(Ordering::Acquire);
        // SAFETY: this is the only handle: the count is 1, weak ones are never made (the field is private and no
        // method makes one), and no thread can clone this one while it is borrowed.
        unsafe { &mut *Arc::as_ptr(&self.0).cast_mut() }
    }

    #[cold]
    fn copy(&mut self) {
        self.0 = Arc::new(T::clone(&self.0));
    }

    /// True if this is the only handle.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl<T: Refresh> NoWeak<T> {
    /// Returns the value for changing, as [`Self::make_mut`] does. The copy, if one is necessary, is an old unused
    /// one, updated.
    #[inline]
    pub(crate) fn make_mut_of(&mut self, old: impl FnOnce() -> Option<Self>) -> &mut T {
        if !self.is_unique()
            && let Some(mut old) = old()
            && old.is_unique()
        {
            old.make_mut().refresh(self);
            *self = old;
        }
        self.make_mut()
    }
}

impl<T: Clone> Refresh for NoWeak<T> {
    #[inline]
    fn refresh(&mut self, newer: &Self) {
        self.0.refresh(&newer.0);
    }
}

impl<T: Clone> Clone for NoWeak<T> {
    fn clone(&self) -> Self {
        self.share()
    }
}

impl<T> std::ops::Deref for NoWeak<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_handle_keeps_what_it_had() {
        let mut ours = NoWeak::new(vec![1]);
        let theirs = ours.share();
        ours.make_mut().push(2);
        assert_eq!((&*ours, &*theirs), (&vec![1, 2], &vec![1]));
        drop(theirs);
        let before = std::ptr::from_ref(&*ours);
        ours.make_mut().push(3);
        assert_eq!(before, std::ptr::from_ref(&*ours));
    }

    #[test]
    fn an_old_copy_is_used_again() {
        let [a, b, c] = [1, 2, 3].map(Arc::new);
        let mut ours = NoWeak::new(vec![Some(Arc::clone(&a)), None]);
        let old = NoWeak::new(vec![None, Some(b)]);
        let (place, theirs) = (std::ptr::from_ref(&*old), ours.share());
        ours.make_mut_of(|| Some(old)).push(Some(Arc::clone(&c)));
        assert_eq!(place, std::ptr::from_ref(&*ours));
        assert_eq!(**ours, [Some(Arc::clone(&a)), None, Some(c)]);
        assert_eq!(**theirs, [Some(a), None]);
        let (theirs, held) = (ours.share(), NoWeak::new(Vec::new()));
        let reader = held.share();
        ours.make_mut_of(|| Some(held)).pop();
        assert_eq!((ours.len(), theirs.len(), reader.len()), (2, 3, 0));
    }

    #[test]
    fn a_reader_in_another_thread_sees_its_own() {
        let mut ours = NoWeak::new(0u64);
        for round in 1..50 {
            let theirs = ours.share();
            let reader = std::thread::spawn(move || *theirs);
            *ours.make_mut() = round;
            assert_eq!(reader.join().unwrap(), round - 1);
            *ours.make_mut() = round;
        }
    }
}
