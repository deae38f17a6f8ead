//! Salvage: a new journal with all transactions of a damaged one that verify.
//!
//! Up to the damage that is the whole history. Behind it a transaction is taken if all its frames
//! verify, if none can be missing in front of them, and if it fits the state that the transactions before
//! it gave: wholly or not at all. What was lost with a schema change or a row makes others unfit; they are
//! listed.
//!
//! In reading order: `copy` is the whole of it; `transactions` puts them together from frames, and
//! `apply` tries whether they fit; `report` is what became of them.

mod apply;
mod copy;
mod report;
mod transactions;

pub use report::{Fate, Run, Salvaged};
