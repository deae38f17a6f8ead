//! A scan passes the events of a journal on, from its beginning.

use annals_schema::{Schema, Txid};

use crate::event::{self, Event};
use crate::journal::{Committed, Erasure, Frame};
use crate::{Error, ErrorKind, Result};

/// Takes the events of a journal, in order.
pub trait Sink {
    /// Takes the beginning of a transaction: its events follow. Does nothing unless it is written.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn begin(&mut self, txid: Txid) -> Result<()> {
        let _ = txid;
        Ok(())
    }

    /// Takes an event. `schema` is the one before it.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()>;

    /// Takes how many bytes of the journal the last event has. Does nothing unless it is written.
    fn bytes(&mut self, count: usize) {
        let _ = count;
    }

    /// Takes the end of a transaction: the events since the last one are committed.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn commit(&mut self, schema: &Schema, committed: &Committed) -> Result<()>;

    /// Takes the mark of an erasure, which is in the transaction that ends next.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn erasure(&mut self, _schema: &Schema, _erasure: &Erasure) -> Result<()> {
        Ok(())
    }
}

/// Passes on the events of a frame, or the mark of an erasure, and the commit, if the frame is one. `position` is the
/// position of the payload.
///
/// # Errors
/// `Corrupt`: it is no event; those of the sink.
pub fn take_frame(
    frame: &Frame<'_>,
    position: u64,
    schema: &mut Schema,
    shown: &str,
    sink: &mut impl Sink,
) -> Result<()> {
    if let Some(erasure) = Erasure::of(frame) {
        return sink.erasure(schema, &erasure);
    }
    if !frame.header.has_events() {
        return Ok(());
    }
    let left = frame.payload.len();
    let mut passing = Passing { sink, left, is_event: false, refused: false };
    let decoded = event::decode_to(frame.payload, position, schema, &mut passing);
    decoded.map_err(|error| if passing.refused { error } else { explain(error, shown, frame) })?;
    match Committed::of(frame) {
        Some(committed) => sink.commit(schema, &committed),
        None => Ok(()),
    }
}

/// Passes events on, each with its bytes.
struct Passing<'s, S> {
    sink: &'s mut S,
    /// How many bytes of the frame there were after the event before.
    left: usize,
    /// True after an event; false after what only says for which table or row the next one is.
    is_event: bool,
    /// True if the error is one of the sink, which says nothing about the file.
    refused: bool,
}

impl<S: Sink> event::Sink for Passing<'_, S> {
    #[inline]
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.is_event = true;
        self.sink.event(schema, event).inspect_err(|_| self.refused = true)
    }

    #[inline]
    fn end(&mut self, left: usize, _: event::Context) {
        if std::mem::take(&mut self.is_event) {
            self.sink.bytes(self.left.saturating_sub(left));
            self.left = left;
        }
    }
}

/// Adds the position of a failed event to the error, and advice if it is no event.
pub(super) fn explain(error: Error, shown: &str, frame: &Frame<'_>) -> Error {
    let (position, txid) = (frame.header.position, frame.header.txid);
    let error = error.within(format!("{shown}: transaction {txid}, frame at position {position}"));
    match error.kind() {
        ErrorKind::Corrupt => error.advising(
            "the frame's checksum is right, so it was written like this: `annals check` says what to do",
        ),
        ErrorKind::Unsupported => error.advising("use a newer program"),
        _ => error,
    }
}
