//! For few programs: marks that joedb's journals have, and the levels of commits beside durable and soft.

use crate::journal::Level;
use crate::typed::{Transaction, TypedSchema};
use crate::{Result, Timestamp};

/// Like [`Level::Checksummed`], with a slot that records the commit, written after the flush. It costs one small write
/// more. (joedb's `half_commit`.)
pub const HALF: Level = Level::Half;

/// Like [`HALF`], with a second flush: so the commit is known to have been durable as long as one copy of a slot can be
/// read, and later damage to it is an error. (joedb's `full_commit`, redb's 2-phase commit.)
pub const TWO_PHASE: Level = Level::TwoPhase;

/// Marks in the journal, for readers of the history; they change no row.
///
/// ```
/// annals::schema!("tutorial.schema");
/// use annals::advanced::{self, Marks as _};
///
/// # fn main() -> annals::Result<()> {
/// let db = tutorial::Database::in_memory()?;
/// db.write(|tx| {
///     tx.set_level(advanced::TWO_PHASE);
///     tx.mark_valid_data()?;
///     tx.mark_time(annals::Timestamp(1_635_891_025_000_000))?;
///     Ok(())
/// })
/// # }
/// ```
pub trait Marks {
    /// Marks the data as coherent here, as joedb's `valid_data` does.
    ///
    /// # Errors
    /// The journal can't be written.
    fn mark_valid_data(&mut self) -> Result<()>;

    /// Notes a time, in whole seconds, as joedb's `timestamp` does. Each commit also has a time of its own:
    /// [`Transaction::set_time`].
    ///
    /// # Errors
    /// The journal can't be written.
    fn mark_time(&mut self, time: Timestamp) -> Result<()>;
}

impl<S: TypedSchema> Marks for Transaction<'_, S> {
    fn mark_valid_data(&mut self) -> Result<()> {
        self.as_dynamic().valid_data()
    }

    fn mark_time(&mut self, time: Timestamp) -> Result<()> {
        self.as_dynamic().timestamp(time.0.div_euclid(1_000_000))
    }
}
