//! Undoing by ordinary changes of a new transaction: one row as it was at a moment, or all rows that an earlier
//! transaction changed.
//!
//! `handles` are the methods of a transaction. `touched` finds the rows that a transaction changed, and their versions
//! since. `steps` are the changes that undo it; `obstacles` refuses them where later changes stand against them,
//! `dropped` and `erased` where the values to restore have no place or are gone.
//! `revert` puts these together: everything is checked before anything is changed.

mod dropped;
mod erased;
mod handles;
mod obstacles;
mod revert;
mod steps;
mod touched;

pub use obstacles::conflict;
pub use steps::Step;
