//! The mark of an erasure: the erased values, and how old chains map to present ones.

use annals_schema::{FieldNumber, RowId, TableNumber, Txid};

use super::frame::FrameHeader;
use super::reader::Frame;
use annals_event::compact;

/// The record of an erasure in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// The transaction that marks it: the first one after the rewritten segments.
    pub txid: Txid,
    /// The table.
    pub table: TableNumber,
    /// The row.
    pub row: RowId,
    /// The field; all of them, if it is none.
    pub field: Option<FieldNumber>,
    /// The first transaction of the rewritten segments: from it on all chains differ.
    pub first_txid: Txid,
    /// Chains before and after, in the order of their transactions: at the end of each rewritten segment, and at
    /// points in earlier marks.
    pub chains: Vec<Carried>,
}

/// The chain at the end of a transaction, before an erasure and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The transaction.
    pub txid: Txid,
    /// Its chain in the history before.
    pub before: u64,
    /// Its chain in the history that was written.
    pub after: u64,
}

impl Erasure {
    /// Returns a transaction's chain after the erasure, given the one before; `None` if unknown: a reader at that
    /// point starts again at [`first_txid`](Self::first_txid). Several erasures are carried over one by one.
    #[must_use]
    pub fn carry(&self, txid: Txid, chain: u64) -> Option<u64> {
        // The state that a segment begins with has the number of the last transaction before it.
        let found = self.chains.iter().find(|known| known.txid == txid && known.before == chain);
        found.map(|known| known.after).or_else(|| (txid < self.first_txid).then_some(chain))
    }

    /// Returns the payload of its frame.
    #[doc(hidden)]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let field = self.field.map_or(0, |field| u64::from(field.0) + 1);
        let count = self.chains.len() as u64;
        for number in [u64::from(self.table.0), self.row.0, field, self.first_txid.0, count] {
            compact::put(&mut out, number);
        }
        for known in &self.chains {
            compact::put(&mut out, known.txid.0);
            out.extend_from_slice(&known.before.to_le_bytes());
            out.extend_from_slice(&known.after.to_le_bytes());
        }
        out
    }

    /// Reads it from its frame; `None` if the frame is another, or says nothing that can be.
    #[doc(hidden)]
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        Self::decode(&frame.header, frame.payload)
    }

    /// Does what [`of`](Self::of) does, for a frame with a header and a payload.
    pub(super) fn decode(header: &FrameHeader, mut payload: &[u8]) -> Option<Self> {
        if !header.is_erasure() {
            return None;
        }
        let mut number = || compact::take(&mut payload).ok();
        let table = TableNumber(u32::try_from(number()?).ok()?);
        let row = RowId(number()?);
        let field = match number()?.checked_sub(1) {
            Some(field) => Some(FieldNumber(u32::try_from(field).ok()?)),
            None => None,
        };
        let (first_txid, count) = (number()?, number()?);
        let mut chains = Vec::new();
        for _ in 0..count {
            let txid = compact::take(&mut payload).ok()?;
            let (before, rest) = payload.split_first_chunk()?;
            let (after, rest) = rest.split_first_chunk()?;
            payload = rest;
            let (before, after) = (u64::from_le_bytes(*before), u64::from_le_bytes(*after));
            chains.push(Carried { txid: Txid(txid), before, after });
        }
        let txid = header.txid;
        let is_all = payload.is_empty() && row <= RowId::MAX;
        is_all.then_some(Self {
            txid: Txid(txid),
            table,
            row,
            field,
            first_txid: Txid(first_txid),
            chains,
        })
    }
}
