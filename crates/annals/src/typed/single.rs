//! A table that always has exactly one row.

use std::fmt;
use std::marker::PhantomData;

use super::{Record, RowToEdit};
use crate::{Result, RowId, View};

/// Returns the only row of a table of one row. Generated code calls it.
///
/// # Errors
/// It can't be loaded.
#[doc(hidden)]
pub fn only_row<R: Record>(view: &View) -> Result<R::Row<'_>> {
    view.table(R::TABLE)?.single().and_then(R::row)
}

/// The only row of a table, to be changed: `tx.edit(config::ROW)?.set_theme("dark")?`.
pub struct OnlyRow<R>(PhantomData<fn() -> R>);

impl<R: Record> OnlyRow<R> {
    /// Names the row. Generated code has a constant for it.
    #[doc(hidden)]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<R: Record> RowToEdit for OnlyRow<R> {
    type Kind = R;

    fn find(self, view: &View) -> Result<RowId> {
        Ok(view.table(R::TABLE)?.single()?.id())
    }
}

impl<R> Clone for OnlyRow<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for OnlyRow<R> {}

impl<R: Record> fmt::Debug for OnlyRow<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::ROW", R::NAME)
    }
}
