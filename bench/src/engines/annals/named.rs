//! The table of a name and a value, with an index on the name.

use annals::{BackfillMode, Backfilled};

use crate::engines::{Failure, Level, Names, Table, Writer, in_order, value};

annals::schema!("indexed.schema");

/// An open database.
pub(crate) struct Named(indexed::Database);

super::table::table!(Named, indexed::item, by_name, with_name);

impl Named {
    /// Updates the image.
    pub(crate) fn backfill(&self, mode: BackfillMode) -> Result<Backfilled, Failure> {
        Ok(self.0.backfill(mode)?)
    }
}
