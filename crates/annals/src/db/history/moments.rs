//! Which transaction a moment means: by what the history index tells, and what isn't in it yet.

use annals_schema::Schema;

use super::files::{Files, Seen};
use super::find::{Indexed, with_index};
use super::versions::schema_of;
use crate::Result;
use crate::db::database::Database;
use crate::db::past::Since;
use crate::db::snapshot::Published;
use crate::db::time::{Moment, Txid};
use crate::event::{self, Event};
use crate::journal::Committed;

/// How much of the journal is read at once.
const STEP: u64 = 1 << 20;

impl Database {
    /// Tells which transaction a moment means: the one of a number, the last one, in the order of their numbers, whose
    /// time isn't later, or the last one with a comment. `None` if there is none in the history that is left.
    ///
    /// Cost: with the history index a part of the journal of about 64 KiB, and what isn't in the index yet; without it
    /// reads the whole journal.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Poisoned` in a forked child.
    pub fn transaction_at(&self, moment: &Moment) -> Result<Option<Txid>> {
        self.check_origin()?;
        Ok(txid_of(&self.read().published, moment)?.map(Txid))
    }
}

/// What is looked for, and the last transaction that was found.
struct Looking<'m> {
    moment: &'m Moment,
    schema: Schema,
    last: Option<u64>,
}

/// Tells which transaction a moment means, up to what is published.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(in crate::db) fn txid_of(published: &Published, moment: &Moment) -> Result<Option<u64>> {
    let files = Files::open(published)?;
    let present = published.view.schema();
    let (found, _) = with_index(&files, |indexed| {
        let schema = schema_of(present, indexed.commands)?;
        let mut looking = Looking { moment, schema, last: None };
        looking.read(&files, indexed.tail)?;
        match looking.last {
            Some(last) => Ok(Some(last)),
            None => looking.look_up(&files, indexed, present),
        }
    })?;
    if let Some(found) = found {
        return Ok(found);
    }
    let mut looking = Looking { moment, schema: Schema::default(), last: None };
    looking.read(&files, files.first())?;
    Ok(looking.last)
}

impl Looking<'_> {
    /// Reads all from a place on.
    fn read(&mut self, files: &Files, since: Since) -> Result<()> {
        let first = files.first().segment;
        let mut next = Some(since);
        while let Some(since) = next {
            next = files.read(
                since,
                STEP,
                &mut |seen| match seen.is_state && seen.segment != first {
                    true => Ok(()),
                    false => self.see(seen),
                },
            )?;
        }
        Ok(())
    }

    fn see(&mut self, seen: &Seen<'_>) -> Result<()> {
        let frame = seen.frame;
        if let Moment::Comment(comment) = self.moment {
            if !frame.header.has_events() {
                return Ok(());
            }
            let (payload, at) = (frame.payload, frame.payload_at());
            return event::decode(payload, at, &mut self.schema, &mut |_, event| {
                if *event == Event::Comment(comment) {
                    self.last = Some(frame.header.txid);
                }
                Ok(())
            });
        }
        let is_it = |commit: &Committed| match self.moment {
            Moment::Txid(txid) => commit.txid == *txid,
            Moment::Time(time) => commit.time <= *time,
            Moment::Comment(_) => false,
        };
        self.last = Committed::of(frame).filter(is_it).map(|commit| commit.txid).or(self.last);
        Ok(())
    }

    /// Finds it in what is indexed.
    fn look_up(
        &self,
        files: &Files,
        indexed: &mut Indexed<'_>,
        present: &Schema,
    ) -> Result<Option<u64>> {
        match self.moment {
            Moment::Txid(txid) => Ok(indexed.has(files, *txid)?.then_some(*txid)),
            Moment::Time(time) => indexed.last_at(files, time.0),
            Moment::Comment(comment) => {
                indexed.last_with(files, comment, |commands| schema_of(present, commands))
            }
        }
    }
}
