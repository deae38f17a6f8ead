//! Salvage: a new journal with all transactions of a damaged one that verify, in all its segments.
//!
//! Up to the damage that is the whole history. After it a transaction is taken as a whole or not at all. All its
//! frames must verify and be proven to be of this history, and none can be missing. It must also fit the state of the
//! transactions before it. Loss of a schema change or a row makes later transactions inapplicable; the report lists
//! those. A state known from the image, or at the beginning of a segment, replaces the lost transactions before it.
//!
//! In reading order: `copy` is the whole procedure; `parts` are the files of the history, and the `proof` decides
//! which frames are of it, in a `walk` over all that verify. `transactions` assembles them from frames, and `apply`
//! checks whether they fit. `known` puts `states` in the place of lost transactions; `report` lists the result of each.

mod apply;
mod copy;
mod known;
mod parts;
mod proof;
mod report;
mod states;
mod transactions;
mod walk;

pub use copy::{salvage, salvage_in};
pub use report::{Fate, Gap, Restored, Run, Salvaged, SalvagedSegment};
