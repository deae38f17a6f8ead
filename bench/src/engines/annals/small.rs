//! The table of a name and a value, without an index.

use crate::engines::{Failure, Level, Names, Table, Writer, value};

annals::schema!("benchmark.schema");

/// An open database.
pub(crate) struct Small(benchmark::Database);

super::table::table!(Small, benchmark::benchmark);

impl Small {
    /// Inserts one row a transaction, with this name, at a level of Annals' own.
    pub(crate) fn commit_each(
        &self,
        rows: u64,
        text: &str,
        level: annals::Level,
    ) -> Result<(), Failure> {
        for value in 0..rows.cast_signed() {
            self.0.write(|tx| {
                tx.set_level(level);
                Ok(tx.insert(benchmark::benchmark::New { name: text, value })?)
            })?;
        }
        Ok(())
    }
}
