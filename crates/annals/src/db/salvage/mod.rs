//! Salvage: a new journal with all transactions of a damaged one that verify, in all its segments.
//!
//! Up to the damage that is the whole history. After it a transaction is taken if all its frames verify, if it is
//! proven to be of this history, if none of its frames can be missing, and if it fits the state that the
//! transactions before it gave: wholly or not at all. What was lost with a schema change or a row makes others
//! unfit; they are listed. Where a state is known besides the transactions, from the image or at the beginning of a
//! segment, it takes the place of what was lost up to there.
//!
//! In reading order: `copy` is the whole of it; `parts` are the files of the history, and the `proof` says which
//! frames are of it; `transactions` puts them together from frames, and `apply` tries whether they fit; `known`
//! states make up for what is lost; `report` is what became of them.

mod apply;
mod copy;
mod known;
mod parts;
mod proof;
mod report;
mod transactions;

pub use copy::{salvage, salvage_in};
pub use report::{Fate, Gap, Restored, Run, Salvaged, SalvagedSegment};
