//! Writing segments again, and the mark after the newest.

use std::collections::BTreeSet;
use std::sync::Arc;

use annals_schema::{FieldNumber, Schema};

use crate::db::erase::editor::Editor;
use crate::db::erase::search::Target;
use crate::db::progress::Watched;
use crate::event::{self, Encoder, Event};
use crate::journal::format::{
    FEATURE_ERASED, FLAG_FIRST, Header, KIND_COMMIT, KIND_ERASURE, SECTOR,
};
use crate::journal::segments::with_next;
use crate::journal::{Carried, Erasure, FrameHeader, FrameReader, Head, Level, Point, Rewriting};
use crate::storage::{Clock, Storage};
use crate::{Error, Result};

/// An existing segment.
pub(super) struct Old {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) shown: String,
    pub(super) head: Head,
    /// Where its last commit ends, or its seal, if it has one.
    pub(super) end: u64,
}

/// The state of the history that is being written.
pub(super) struct Writing<'t> {
    pub(super) target: &'t Target,
    pub(super) clock: &'t dyn Clock,
    /// The random number of the erasure.
    pub(super) id: u64,
    /// Transactions whose chains are recorded before and after.
    pub(super) wanted: BTreeSet<u64>,
    /// Fields whose values stay in the state that the next segment repeats.
    pub(super) unwritten: BTreeSet<FieldNumber>,
    /// The schema at the beginning of the next segment.
    pub(super) schema: Schema,
    /// The chain at the end of the previous segment, if that was rewritten.
    pub(super) previous: Option<u64>,
    pub(super) chains: Vec<Carried>,
}

/// The contents of the mark.
pub(super) struct Mark {
    pub(super) erasure: Erasure,
    pub(super) comment: String,
    pub(super) time: i64,
}

/// Makes the mark, once all chains before it are known.
pub(super) type MakeMark<'m> = &'m dyn Fn(&[Carried]) -> Mark;

impl Writing<'_> {
    /// Writes a segment again; the newest one gets the mark that `mark` makes of the chains. Returns its header and
    /// its length.
    pub(super) fn segment(
        &mut self,
        old: &Old,
        new: &dyn Storage,
        watched: &Watched<'_>,
        mark: Option<MakeMark<'_>>,
    ) -> Result<Header> {
        let previous_chain = self.previous.unwrap_or(old.head.header.previous_chain);
        let header = Header { previous_chain, ..self.rewritten(&old.head.header) };
        if header.begins_with_state() {
            self.schema = Schema::default();
        }
        let read = |error| Error::io(format!("{}: can't read the journal", old.shown), error);
        let written = |error| {
            Error::io(format!("{}: can't be written anew; nothing was changed", old.shown), error)
        };
        let mut rewriting = Rewriting::begin(new, &header, self.clock);
        let mut reader = FrameReader::new(watched, old.head.hash, old.head.start(), old.end)
            .confirming(&old.head.slots);
        let (mut editor, mut pads, mut first) = (Editor::new(self.target), false, 0);
        let repeated = header.begins_with_state().then_some(header.first_txid);
        editor.unwritten = std::mem::take(&mut self.unwritten);
        while let Some(frame) = reader.next().map_err(read)? {
            editor.txid = frame.header.txid;
            if Some(frame.header.txid) != repeated {
                editor.unwritten.clear();
            }
            let edited = match frame.header.has_events() {
                true => event::edit(frame.payload, &mut self.schema, &mut editor)?,
                false => None,
            };
            first |= frame.header.flags & FLAG_FIRST;
            if frame.header.has_more() {
                continue; // its event comes with the last part
            }
            let edited = match frame.header.is_seal() {
                true => with_next(frame.payload, |next| self.rewritten(&next)),
                false => edited,
            };
            let payload = edited.as_deref().unwrap_or(frame.payload);
            let as_before = FrameHeader { flags: frame.header.flags | first, ..frame.header };
            let after = rewriting.frame(&as_before, payload).map_err(written)?;
            let txid = frame.header.txid;
            first = 0;
            if frame.header.is_commit() {
                pads |= frame.end.is_multiple_of(SECTOR);
                if self.wanted.contains(&txid) {
                    self.chains.push(Carried { txid, before: frame.chain, after });
                }
            }
            self.previous = Some(after);
        }
        if reader.position() != old.end {
            return Err(Error::corrupt(format!(
                "{}: what verified at position {} a moment ago doesn't any more; nothing was changed: try \
                 again, and check the disk",
                old.shown,
                reader.position()
            )));
        }
        if let Some(mark) = mark {
            put_mark(&mut rewriting, &mark(&self.chains), pads).map_err(written)?;
        }
        rewriting.finish().map_err(written)?;
        Ok(header)
    }

    /// Returns the header of a rewritten segment.
    fn rewritten(&self, header: &Header) -> Header {
        let incompatible = header.incompatible | FEATURE_ERASED;
        Header { incompatible, erasure: self.id, ..*header }
    }
}

/// Adds the transaction that marks the erasure: its frame for programs, and a comment for people. `pads`
/// says that its commit ends where a sector does.
fn put_mark(rewriting: &mut Rewriting<'_>, mark: &Mark, pads: bool) -> std::io::Result<()> {
    let Point { txid, .. } = rewriting.end();
    let header = |kind, level, flags| FrameHeader {
        kind,
        level,
        flags,
        length: 0,
        txid: txid + 1,
        position: 0,
        durable: None,
        nonce: 0,
        time: 0,
    };
    rewriting.frame(&header(KIND_ERASURE, 0, FLAG_FIRST), &mark.erasure.encode())?;
    let mut payload = Vec::new();
    let comment = Event::Comment(&mark.comment);
    Encoder::default().encode(&Schema::default(), &comment, &mut payload);
    if pads {
        rewriting.pad(&mut payload);
    }
    let commit = header(KIND_COMMIT, Level::Checksummed.code(), 0);
    rewriting.frame(&commit.with_time(mark.time, false).0, &payload).map(drop)
}
