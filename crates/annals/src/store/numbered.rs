//! Tables and indexes by their numbers, which are never used again.

use super::unique::NoWeak;

/// What has numbers, at the place of its number; a dropped one leaves its place empty.
#[derive(Debug)]
pub(super) struct Numbered<T>(Vec<Option<NoWeak<T>>>);

impl<T: Clone> Numbered<T> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Makes another handle of the same things: one reference count each.
    pub(super) fn share(&self) -> Self {
        Self(self.0.iter().map(|item| item.as_ref().map(NoWeak::share)).collect())
    }

    /// Gives the next number to something.
    pub(super) fn push(&mut self, item: T) {
        self.0.push(Some(NoWeak::new(item)));
    }

    /// Takes the last number back.
    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    /// Drops what has a number.
    pub(super) fn remove(&mut self, number: usize) {
        if let Some(item) = self.0.get_mut(number) {
            *item = None;
        }
    }

    /// Tells the next number.
    pub(super) fn next(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&NoWeak<T>> {
        self.0.get(number)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut NoWeak<T>> {
        self.0.get_mut(number)?.as_mut()
    }

    /// Gives all that weren't dropped, in order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &NoWeak<T>> {
        self.0.iter().flatten()
    }
}
