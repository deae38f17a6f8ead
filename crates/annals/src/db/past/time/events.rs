//! The events of a range of transactions, as they are, read from near its beginning.

use std::sync::Arc;

use crate::Result;
use crate::db::follow::scan::Sink;
use crate::db::past::time::changes::{ChangesBeginning, state_after};
use crate::db::past::time::cursor::{End, JournalCursor};
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::Published;
use crate::store::View;

/// The events of the transactions of a range: see [`Snapshot::events`](crate::Snapshot::events).
#[derive(Debug)]
pub struct Events {
    file: Arc<JournalFile>,
    /// Where the last transaction ends that may be read.
    position: u64,
    last: u64,
    cursor: JournalCursor,
    begin: Arc<View>,
}

impl Events {
    /// Returns the events after transaction `after` up to `last`, or up to the published end.
    pub(in crate::db) fn between(published: &Published, after: u64, last: u64) -> Result<Self> {
        let (file, position) = (Arc::clone(&published.file), published.point.position);
        let ChangesBeginning { base: begin, cursor } = state_after(published, after)?;
        let last = last.min(published.point.txid.0);
        Ok(Self { file, position, last, cursor, begin })
    }

    /// Returns the state in which the range begins, with the schema of that time.
    #[must_use]
    pub const fn begin(&self) -> &Arc<View> {
        &self.begin
    }

    /// Reads the events into a sink, in memory that doesn't grow with them.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported`; `Io`; and errors of the sink.
    pub fn read(mut self, sink: &mut impl Sink) -> Result<()> {
        let end = End { file: &self.file, position: self.position };
        self.cursor.read(&end, self.last, u64::MAX, sink).map(drop)
    }
}
