//! Tables and indexes by their numbers, which are never used again.

use crate::pages::refresh::Refresh;
use crate::pages::unique::NoWeak;

/// Items at the index of their number; a dropped item leaves its place empty.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T>(Vec<Option<NoWeak<T>>>);

impl<T: Clone> Refresh for Numbered<T> {
    fn refresh(&mut self, newer: &Self) {
        self.0.refresh(&newer.0);
    }
}

impl<T: Clone> Numbered<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns another handle of the same items. Costs one reference count for each.
    pub(crate) fn share(&self) -> Self {
        Self(self.0.iter().map(|item| item.as_ref().map(NoWeak::share)).collect())
    }

    /// Assigns the next number to an item.
    pub(crate) fn push(&mut self, item: T) {
        self.0.push(Some(NoWeak::new(item)));
    }

    /// Skips the next number, whose item was dropped.
    pub(crate) fn skip(&mut self) {
        self.0.push(None);
    }

    /// Removes the last number, and its item if there is one.
    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// Drops the item of a number.
    pub(crate) fn remove(&mut self, number: usize) {
        if let Some(item) = self.0.get_mut(number) {
            *item = None;
        }
    }

    /// Returns the next number.
    pub(crate) fn next(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&NoWeak<T>> {
        self.0.get(number)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut NoWeak<T>> {
        self.0.get_mut(number)?.as_mut()
    }

    /// Returns the item of a number, and leaves its place empty.
    #[inline]
    pub(crate) fn take(&mut self, number: usize) -> Option<NoWeak<T>> {
        self.0.get_mut(number)?.take()
    }

    /// Returns the items that weren't dropped, in order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &NoWeak<T>> {
        self.0.iter().flatten()
    }
}
