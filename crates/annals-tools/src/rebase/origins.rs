//! Which transactions were made again already: each has a comment that names its original.

use std::collections::HashMap;

use annals::event::Event;
use annals::{Committed, Cursor, Result, Schema, Sink, Snapshot, Txid};

/// The beginning of the comment.
const REBASED: &str = "rebased ";

/// The numbers of transactions that were made again, by the number and the chain of each original.
pub(super) type Made = HashMap<(Txid, u64), Txid>;

/// Returns the comment that names an original.
pub(super) fn comment(original: Cursor) -> String {
    format!("{REBASED}{original}")
}

/// Finds the transactions after `common` that are others, made again.
pub(super) fn made_again(here: &Snapshot, common: Txid) -> Result<Made> {
    let mut origins = Origins::default();
    if common < here.txid() {
        here.read_events(common, here.txid(), &mut origins)?;
    }
    Ok(origins.made)
}

#[derive(Default)]
struct Origins {
    made: Made,
    /// That of the transaction that is read.
    original: Option<Cursor>,
}

impl Sink for Origins {
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> Result<()> {
        if let Event::Comment(text) = event {
            let original = text.strip_prefix(REBASED).and_then(|cursor| cursor.parse().ok());
            self.original = original.or(self.original.take());
        }
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        if let Some(Cursor { txid, chain }) = self.original.take() {
            self.made.insert((txid, chain), committed.txid);
        }
        Ok(())
    }
}
