//! A point of a journal, which caches refer to.

use annals_schema::Txid;

/// A place between two transactions: all before it is one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The journal position, in bytes from the segment's start.
    pub position: u64,
    /// The last transaction before it.
    pub txid: Txid,
    /// The chain of that transaction's commit frame.
    pub chain: u64,
}
