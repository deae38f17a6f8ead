//! Why a cursor isn't in a history: what follows it was forgotten, or values were erased, which changed the chains, or
//! the history is another one.

use std::sync::Arc;

use annals::internals::{JournalPart, files_of, name_of};
use annals::journal::Erasure;
use annals::{Cursor, Error, ErrorKind, Result, Snapshot, Txid};

use super::places::{reader, unreadable};
use super::source::Source;

/// The erasures since a cursor was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrying {
    /// Their marks, in order.
    pub erasures: Vec<Erasure>,
    /// The same place in the present history; `None` if the marks don't say: begin again before the first of them.
    pub carried: Option<Cursor>,
}

impl Source {
    /// Returns the error that a cursor isn't in the kept history.
    pub(super) fn missing(
        &self,
        state: &Snapshot,
        parts: &[JournalPart],
        cursor: Cursor,
    ) -> Result<Error> {
        let name = name_of(state);
        let (Cursor { txid, .. }, end) = (cursor, state.txid());
        // The chain of the last forgotten transaction isn't known either.
        let oldest = oldest(parts);
        if txid < oldest {
            let message = format!(
                "{name}: the history after transaction {txid} was forgotten: the oldest that is kept is {oldest}; begin \
                 again with a new copy"
            );
            return Ok(Error::new(ErrorKind::Forgotten, message));
        }
        if txid > end {
            let message = format!(
                "{name}: ends with transaction {end}, and doesn't have transaction {txid}: the histories differ"
            );
            return Ok(Error::new(ErrorKind::Diverged, message));
        }
        // `parts` may be only those after the cursor.
        if let Some(first) =
            self.carry(&files_of(state, None)?, cursor)?.and_then(|it| it.erasures.first().cloned())
        {
            let by = first.txid;
            let message = format!(
                "{name}: values were erased by transaction {by}, so the history around transaction {txid} was written \
                 again; begin again with a new copy, and remove the old one, which still has the values"
            );
            return Ok(Error::new(ErrorKind::Forgotten, message));
        }
        let message = format!("{name}: has another transaction {txid}: the histories differ");
        Ok(Error::new(ErrorKind::Diverged, message))
    }

    /// Returns the erasures that changed the chain of a cursor. `None` if the cursor is in this history, or wasn't in
    /// it before any erasure either.
    ///
    /// Cost: if anything was ever erased, the first call reads the journal.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn erased_since(&self, cursor: Cursor) -> Result<Option<Carrying>> {
        self.carry(&files_of(&self.pulled()?, None)?, cursor)
    }

    fn carry(&self, parts: &[JournalPart], cursor: Cursor) -> Result<Option<Carrying>> {
        if self.known.find(parts, cursor)?.is_some() {
            return Ok(None);
        }
        let marks = self.marks(parts)?;
        let since = |place: usize| marks.get(place..).unwrap_or_default();
        for place in 0..marks.len() {
            let mut later = since(place).iter();
            let chain = later.try_fold(cursor.chain, |chain, by| by.carry(cursor.txid, chain));
            let carried = chain.map(|chain| Cursor { chain, ..cursor });
            if let Some(carried) = carried.filter(|it| *it != cursor)
                && self.known.find(parts, carried)?.is_some()
            {
                let erasures = since(place).to_vec();
                return Ok(Some(Carrying { erasures, carried: Some(carried) }));
            }
        }
        // Marks have the chains of only some transactions: of the others only the number is compared.
        let wrote = |mark: &Erasure| (mark.first_txid..mark.txid).contains(&cursor.txid);
        let first = marks.iter().position(wrote);
        Ok(first.map(|first| Carrying { erasures: since(first).to_vec(), carried: None }))
    }

    /// Returns the marks of all erasures in the kept history.
    fn marks(&self, parts: &[JournalPart]) -> Result<Arc<Vec<Erasure>>> {
        let Some(newest) = parts.last() else { return Ok(Arc::default()) };
        if newest.head.header.last_erasure().is_none() {
            return Ok(Arc::default());
        }
        self.known.marks(newest.head.hash, || {
            let mut marks = Vec::new();
            for part in parts {
                let mut frames = reader(part, part.head.start());
                while let Some(frame) = frames.next().map_err(|error| unreadable(part, error))? {
                    marks.extend(Erasure::of(&frame));
                }
            }
            Ok(marks)
        })
    }

    /// Returns the oldest transaction after which all is kept.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn oldest(&self) -> Result<Txid> {
        Ok(oldest(&files_of(&self.pulled()?, None)?))
    }
}

fn oldest(parts: &[JournalPart]) -> Txid {
    let first = parts.first().map(|part| &part.head.header).filter(|first| first.segment > 0);
    first.map_or(Txid(0), |first| Txid(first.first_own_txid()))
}
