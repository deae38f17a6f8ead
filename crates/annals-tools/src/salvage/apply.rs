//! Checking whether a transaction fits the state of the earlier ones.

use annals::event::Event;
use annals::{Blob, Error, ErrorKind, Result, Schema, Transaction, Type, ValueRef};
use annals_journal::Frame;

/// The least number of bytes of the first piece of a blob in a journal.
pub(super) const PIECE_MIN: u64 = 12;

/// Applies events of a damaged journal in a transaction of a new one.
pub(super) struct Apply<'a, 'db> {
    pub(super) transaction: &'a mut Transaction<'db>,
    /// True if something before was lost: then nothing is taken for granted that the writer checked.
    pub(super) is_torn: bool,
    /// Runs of numbers of blobs whose bytes were lost, first and last.
    pub(super) lost_blobs: &'a mut Vec<(u64, u64)>,
    /// How many blobs there can have been before.
    pub(super) most_blobs: u64,
}

/// True if an error is about the old journal, and not about writing the new one.
pub(super) fn is_of_old(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::UnknownOutcome)
}

impl Apply<'_, '_> {
    /// Applies the events of a frame; returns why one of them doesn't fit, if so.
    ///
    /// # Errors
    /// `Io` if the new journal can't be written.
    pub(super) fn frame(
        &mut self,
        schema: &mut Schema,
        frame: &Frame<'_>,
    ) -> Result<Option<Error>> {
        if let Some(unknown) = frame.header.unknown() {
            let message = format!("it has {unknown}, which only a newer version understands");
            return Ok(Some(Error::invalid(message)));
        }
        if !frame.header.has_events() {
            return Ok(None);
        }
        let apply = &mut |schema: &Schema, event: &Event<'_>| self.event(schema, event);
        match annals_event::decode(frame.payload, frame.payload_at(), schema, apply) {
            Err(error) if !is_of_old(&error) => Err(error),
            applied => Ok(applied.err()),
        }
    }

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        if let Event::Blob { blob, offset, bytes, .. } = *event {
            return self.piece(blob, offset, bytes);
        }
        if self.is_torn {
            self.check_blobs(schema, event)?;
        }
        let is_torn = self.is_torn;
        self.transaction.take_event(event, |store| match is_torn {
            true if store.erases(event) => store.restore(event, true),
            true => store.apply_checked(event),
            false => store.apply(event),
        })
    }

    /// Refuses values that refer to a blob whose bytes were lost.
    fn check_blobs(&self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let is_lost = |value: ValueRef<'_>| match value {
            ValueRef::Blob(blob) => {
                self.lost_blobs.iter().any(|&(first, last)| (first..=last).contains(&blob.0))
            }
            _ => false,
        };
        let leads_nowhere = match *event {
            Event::Insert { values, .. } => values.iter().any(|&value| is_lost(value)),
            Event::Update { value, .. } => is_lost(value),
            Event::UpdateVector { table, field, values, .. } => {
                let table = schema.table(table);
                let ty = table.and_then(|table| table.field(field)).map(|field| field.ty);
                ty == Some(Type::Blob) && values.iter(Type::Blob).any(is_lost)
            }
            _ => false,
        };
        match leads_nowhere {
            false => Ok(()),
            true => Err(Error::invalid("it has a field that leads to a blob that was lost")),
        }
    }

    /// Adds a piece of a blob. Blobs keep their numbers: lost ones become empty ones without references.
    fn piece(&mut self, blob: Blob, offset: u64, bytes: &[u8]) -> Result<()> {
        let next = Blob(self.transaction.view().last_blob().0 + 1);
        if self.is_torn && offset == 0 && (next.0..self.most_blobs).contains(&blob.0) {
            for lost in next.0..blob.0 {
                self.transaction.write_piece(Blob(lost), 0, &[])?;
            }
            if next < blob {
                self.lost_blobs.push((next.0, blob.0 - 1));
            }
        }
        self.transaction.write_piece(blob, offset, bytes)
    }
}
