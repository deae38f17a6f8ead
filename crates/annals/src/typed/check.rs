//! Checks of commits with the types of a schema.

use std::fmt;

use super::{AnyChange, TypedSchema};
use crate::Result;

/// A transaction that is about to be committed, as a [check](super::Database::check_commits) sees it.
pub struct Proposed<'a, S: TypedSchema> {
    proposed: &'a crate::Proposed<'a>,
    before: S::Viewing<'a>,
    after: S::Viewing<'a>,
}

impl<'a, S: TypedSchema> Proposed<'a, S> {
    pub(super) fn new(proposed: &'a crate::Proposed<'a>) -> Self {
        let (before, after) = (S::viewing(proposed.before()), S::viewing(proposed.after()));
        Self { proposed, before, after }
    }

    /// Returns the rows that differ between the states before and after the transaction, each once, by table and id.
    pub fn changes(&self) -> impl Iterator<Item = Result<S::Change>> + '_ {
        let typed = |change: Result<_>| change.and_then(S::Change::of).transpose();
        self.proposed.changes().filter_map(typed)
    }

    /// Returns the state before the transaction.
    #[must_use]
    pub const fn before(&self) -> &S::Viewing<'a> {
        &self.before
    }

    /// Returns the state after it.
    #[must_use]
    pub const fn after(&self) -> &S::Viewing<'a> {
        &self.after
    }

    /// Returns the same transaction without the types of its schema.
    #[must_use]
    pub const fn as_dynamic(&self) -> &crate::Proposed<'a> {
        self.proposed
    }
}

impl<S: TypedSchema> fmt::Debug for Proposed<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.proposed.fmt(f)
    }
}
