//! Writing segments again, and the mark after the newest.

use std::collections::BTreeSet;
use std::sync::Arc;

use annals::event::Event;
use annals::journal::{Carried, Erasure};
use annals::{Level, Result, Schema};
use annals_event::Encoder;
use annals_journal::FrameHeader;
use annals_journal::format::{
    FEATURE_ERASED, FLAG_FIRST, Header, KIND_COMMIT, KIND_ERASURE, SECTOR,
};
use annals_journal::segments::with_next;
use annals_storage::{Clock, Storage};

use super::edit::Editor;
use super::generation::{Generation, OldSegment};
use super::payload;
use super::report::Erase;
use super::rewrite::Rewriting;
use super::{Plan, Target};

/// What is known of the history that is being written.
pub(super) struct Writing<'w> {
    journal: &'w Generation,
    clock: &'w dyn Clock,
    /// The random number of the erasure.
    pub(super) id: u64,
    /// Transactions whose chains are told before and after.
    wanted: BTreeSet<u64>,
    chains: Vec<Carried>,
    /// The schema at the beginning of the next frame.
    schema: Schema,
    editor: Editor<'w>,
    /// The chain of the last frame that was written.
    previous: Option<u64>,
    /// True if a commit of the segment ends where a sector does.
    pads: bool,
}

impl<'w> Writing<'w> {
    pub(super) fn new(plan: &'w Plan, journal: &'w Generation, clock: &'w dyn Clock) -> Self {
        let ends = journal.facts();
        let ends = ends.iter().map(|facts| facts.last_txid.0);
        Self {
            journal,
            clock,
            id: clock.random(),
            wanted: ends.chain(plan.marked.iter().copied()).collect(),
            chains: Vec::new(),
            schema: Schema::clone(&plan.schema),
            editor: Editor::new(&plan.target),
            previous: None,
            pads: false,
        }
    }

    /// Writes the new segments into files that `create` makes, by the places of the old ones.
    pub(super) fn all(
        &mut self,
        plan: &Plan,
        what: &Erase,
        create: &mut dyn FnMut(usize) -> Result<Arc<dyn Storage>>,
    ) -> Result<()> {
        let segments = self.journal.segments();
        for (place, old) in segments.iter().enumerate().skip(plan.first) {
            let new = create(place)?;
            let mut rewriting = self.segment(place, old, &*new)?;
            if place + 1 == segments.len() {
                self.mark(plan, what, &mut rewriting).map_err(|error| old.not_rewritten(error))?;
            }
            rewriting.finish().map_err(|error| old.not_rewritten(error))?;
        }
        Ok(())
    }

    /// Writes the frames of a segment again.
    fn segment<'s>(
        &mut self,
        place: usize,
        old: &OldSegment,
        new: &'s dyn Storage,
    ) -> Result<Rewriting<'s>>
    where
        'w: 's,
    {
        let header = self.rewritten(old.header());
        let previous_chain = self.previous.unwrap_or(header.previous_chain);
        let header = Header { previous_chain, ..header };
        if header.begins_with_state() {
            self.schema = Schema::default();
        }
        let repeated = header.begins_with_state() && place > 0;
        let (mut rewriting, mut first) = (Rewriting::begin(new, &header, self.clock), 0);
        self.pads = false;
        self.journal.read(place, &mut |frame| {
            let txid = frame.header.txid;
            self.editor.begin(txid);
            self.editor.repeats = repeated && txid == header.first_txid;
            first |= frame.header.flags & FLAG_FIRST;
            let edited = match frame.header.has_events() {
                true => payload::edit(frame.payload, &mut self.schema, &mut self.editor)?,
                false if frame.header.is_seal() => {
                    with_next(frame.payload, |next| self.rewritten(&next))
                }
                false => None,
            };
            if frame.header.has_more() {
                return Ok(()); // its event comes with the last part
            }
            let payload = edited.as_deref().unwrap_or(frame.payload);
            let as_before = FrameHeader { flags: frame.header.flags | first, ..frame.header };
            let after =
                rewriting.frame(&as_before, payload).map_err(|error| old.not_rewritten(error))?;
            first = 0;
            if frame.header.is_commit() {
                self.pads |= frame.end.is_multiple_of(SECTOR);
                if self.wanted.contains(&txid) {
                    self.chains.push(Carried {
                        txid: annals::Txid(txid),
                        before: frame.chain,
                        after,
                    });
                }
            }
            self.previous = Some(after);
            Ok(())
        })?;
        Ok(rewriting)
    }

    /// Returns the header of a segment that is written again.
    fn rewritten(&self, header: &Header) -> Header {
        let incompatible = header.incompatible | FEATURE_ERASED;
        Header { incompatible, erasure: self.id, ..*header }
    }

    /// Adds the transaction that marks the erasure: its frame for programs, and a comment for people.
    fn mark(
        &mut self,
        plan: &Plan,
        what: &Erase,
        rewriting: &mut Rewriting<'_>,
    ) -> std::io::Result<()> {
        let Target { table, row, fields, .. } = &plan.target;
        let field = fields.first().copied().filter(|_| what.field.is_some());
        let txid = plan.erased.mark;
        let erasure = Erasure {
            txid: annals::Txid(txid),
            table: *table,
            row: *row,
            field,
            first_txid: annals::Txid(plan.erased.rewritten.0),
            chains: std::mem::take(&mut self.chains),
        };
        let name = what.field.as_ref().map_or_else(String::new, |name| format!(", field {name}"));
        let comment = format!("erased: table {}, row {}{name}", what.table, row.0);
        let header = |kind, level, flags| FrameHeader {
            kind,
            level,
            flags,
            length: 0,
            txid,
            position: 0,
            durable: None,
            nonce: 0,
            time: 0,
        };
        rewriting.frame(&header(KIND_ERASURE, 0, FLAG_FIRST), &erasure.encode())?;
        let mut payload = Vec::new();
        let comment = Event::Comment(&comment);
        Encoder::default().encode(&Schema::default(), &comment, &mut payload);
        if self.pads {
            rewriting.pad(&mut payload);
        }
        let time = self.clock.now().max(self.journal.last_clock_time());
        let commit = header(KIND_COMMIT, Level::Checksummed.code(), 0).with_time(time, false).0;
        rewriting.frame(&commit, &payload).map(drop)
    }
}
