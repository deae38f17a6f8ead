//! The transactions of a continuation again, by values, after those that its base got meanwhile.
//!
//! ```text
//! base ── cursor ── theirs ── theirs ── ours again ── ours again ──►   each of them held, and then proposed
//!           └────── ours ──── ours
//! ```
//!
//! `replay` reads our transactions as changes of rows, and makes each of them again. `steps` are those changes, with the ids
//! and values that they have there: `renumbering` has the rows that got another id. `clashes` are the reasons
//! that a change can't be made; `origins` finds the transactions that were made again already, by their comments.
//!
//! Invariants
//! 1. A change is made only where it finds what ours had found: a field that is set has the value from before, a deleted row
//!    all its values.
//! 2. Nothing is proposed if anything clashes; all clashes are found.

mod clashes;
mod origins;
mod renumbering;
mod replay;
mod steps;

use std::sync::Arc;

use annals::internals::{Proposal, hold};
use annals::{Result, RowId, Snapshot, Transaction, Txid};

use replay::Replay;

/// A row that has another id since a rebase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renumbered {
    /// The name of its table.
    pub table: String,
    /// The id that it was inserted with.
    pub from: RowId,
    /// Its id now.
    pub to: RowId,
}

/// Transactions that were made again.
#[derive(Debug)]
pub struct Rebased<'db> {
    /// Their frames; `None` if all had been made again before.
    pub proposal: Option<Proposal<'db>>,
    /// The rows that have other ids.
    pub renumbered: Vec<Renumbered>,
    /// How many transactions the proposal has.
    pub transactions: u64,
}

/// Makes the transactions of `ours` after `common` again, in `tx`, whose database has the same history up to there. Each is
/// a transaction of its own, with its comments; its time is the clock's, unless the program had set it. A further comment,
/// `rebased TXID:CHAIN`, says which it was: so a transaction is never made again twice.
///
/// Cost: reads our transactions after `common`, and theirs.
///
/// # Errors
/// `Conflict`, with all clashes; those of reading and writing. Nothing remains.
pub fn rebase<'db>(
    mut tx: Transaction<'db>,
    ours: &Snapshot,
    common: Txid,
) -> Result<Rebased<'db>> {
    hold(&mut tx)?;
    let theirs = tx.base();
    let events = ours.events(common, ours.txid())?;
    let mut replay = Replay::new(&mut tx, &theirs, ours, Arc::clone(events.begin()));
    replay.made = origins::made_again(&theirs, common)?;
    events.read(&mut replay)?;
    let Replay { clashes, ids, transactions, .. } = replay;
    if !clashes.is_empty() {
        return Err(clashes::explain(clashes, &theirs, common)?);
    }
    let renumbered = ids.renumbered(tx.view().schema());
    let proposal = match transactions {
        0 => None,
        _ => Some(tx.propose_taken()?),
    };
    Ok(Rebased { proposal, renumbered, transactions })
}

/// Returns the last transaction that was made again here, of those after `common`, in the numbers of `ours`.
///
/// # Errors
/// Those of reading the transactions after `common`.
pub fn last_made_again(here: &Snapshot, ours: &Snapshot, common: Txid) -> Result<bool> {
    let made = origins::made_again(here, common)?;
    let last = ours.point();
    Ok(made.contains_key(&(last.txid, last.chain)))
}
