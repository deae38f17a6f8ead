//! Indexes to read errors from.

use std::sync::OnceLock;

use annals_schema::TableNumber;

use crate::index::tree::IndexTree;
use crate::lookup::IndexView;
use crate::view::View;
use crate::{Error, Result};

impl View {
    /// Returns an index to read errors from, in the place of one that isn't there: because of an error, or because an upgrade
    /// makes it later.
    ///
    /// # Errors
    /// `NotFound`: there is no such table.
    #[doc(hidden)]
    #[cold]
    pub fn unreadable_index(
        &self,
        table: TableNumber,
        error: Option<Error>,
    ) -> Result<IndexView<'_>> {
        static LATER: OnceLock<IndexTree> = OnceLock::new();
        const REASON: &str = "an upgrade makes new indexes after its custom functions, and this is one of them: go over \
                              the rows of the table, and keep what you look for in a map";
        let data = match (&self.lazy, error) {
            (Some(lazy), Some(error)) => {
                lazy.unreadable.get_or_init(|| IndexTree::missing(error.to_string()))
            }
            _ => LATER.get_or_init(|| IndexTree::missing(REASON.to_owned())),
        };
        Ok(IndexView { table: self.table(table)?, data })
    }
}
