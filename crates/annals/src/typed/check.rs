//! Checks of commits with the types of a schema.

use std::fmt;
use std::marker::PhantomData;

use super::{AnyChange, TypedSchema};
use crate::Result;

/// A transaction that is about to be committed, as a [check](super::Database::check_commits) sees it.
pub struct Proposed<'a, S> {
    proposed: &'a crate::Proposed<'a>,
    schema: PhantomData<fn() -> S>,
}

impl<'a, S: TypedSchema> Proposed<'a, S> {
    pub(super) const fn new(proposed: &'a crate::Proposed<'a>) -> Self {
        Self { proposed, schema: PhantomData }
    }

    /// Returns the rows that differ between the states before and after the transaction, each once, by table and id.
    pub fn changes(&self) -> impl Iterator<Item = Result<S::Change>> + '_ {
        let typed = |change: Result<_>| change.and_then(S::Change::of).transpose();
        self.proposed.changes().filter_map(typed)
    }

    /// Returns the state before the transaction.
    #[must_use]
    pub fn before(&self) -> S::View<'_> {
        S::view(self.proposed.before())
    }

    /// Returns the state after it.
    #[must_use]
    pub fn after(&self) -> S::View<'_> {
        S::view(self.proposed.after())
    }

    /// Returns the same transaction without the types of its schema.
    #[must_use]
    pub const fn as_dynamic(&self) -> &crate::Proposed<'a> {
        self.proposed
    }
}

impl<S> fmt::Debug for Proposed<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.proposed.fmt(f)
    }
}
