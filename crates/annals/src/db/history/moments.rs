//! Finds the transaction of a moment, in the history index and in the part of the journal after it.

use annals_schema::Schema;

use crate::db::changes::moment::Moment;
use crate::db::history::files::{Files, Seen};
use crate::db::history::find::{Indexed, with_index};
use crate::db::history::schema::schema_of;
use crate::db::present::snapshot::Published;
use crate::db::replay::segments::Since;
use crate::event::{self, Event};
use crate::journal::Committed;
use crate::store::View;
use crate::{Error, ErrorKind, Result};

/// The moment to find, and the last matching transaction so far.
struct Looking<'m> {
    moment: &'m Moment,
    schema: Schema,
    last: Option<u64>,
}

/// Returns the number of the transaction at whose end a moment is, up to the published state; 0 before the first one.
///
/// # Errors
/// `NotFound` if there is none; of a time, if it was forgotten; `Corrupt`, `Unsupported`, `Io`.
pub(in crate::db) fn txid_of(published: &Published, moment: &Moment) -> Result<u64> {
    let now = published.point.txid;
    let what = match moment {
        Moment::Txid(txid) if *txid <= now => return Ok(*txid),
        Moment::Txid(txid) => format!("there is no transaction {txid}: the last is {now}"),
        Moment::Time(_) | Moment::Comment(_) => {
            let files = Files::open(published)?;
            let first = files.first();
            match (last_of(&files, &published.view, moment)?, moment) {
                (Some(txid), _) => return Ok(txid),
                (None, Moment::Comment(text)) => format!("no transaction has the comment {text:?}"),
                (None, _) if first.segment == 0 => return Ok(0),
                (None, _) => format!(
                    "the state at {moment} was forgotten: the history begins with transaction {}",
                    first.point.txid + 1
                ),
            }
        }
    };
    Err(Error::new(ErrorKind::NotFound, format!("{}: {what}", published.file.name)))
}

/// Returns the last transaction of these files that is at a moment or before, if there is one.
fn last_of(files: &Files, now: &View, moment: &Moment) -> Result<Option<u64>> {
    let present = now.schema();
    let (found, _) = with_index(files, |indexed| {
        let schema = schema_of(present, indexed.commands)?;
        let mut looking = Looking { moment, schema, last: None };
        looking.read(files, indexed.tail)?;
        match looking.last {
            Some(last) => Ok(Some(last)),
            None => looking.look_up(files, indexed, present),
        }
    })?;
    if let Some(found) = found {
        return Ok(found);
    }
    let mut looking = Looking { moment, schema: Schema::default(), last: None };
    looking.read(files, files.first())?;
    Ok(looking.last)
}

impl Looking<'_> {
    /// Reads everything from a position on, except repetitions of the state.
    fn read(&mut self, files: &Files, since: Since) -> Result<()> {
        let first = files.first().segment;
        files.read_all(since, &mut |seen| match seen.is_state && seen.segment != first {
            true => Ok(()),
            false => self.see(seen),
        })
    }

    fn see(&mut self, seen: &Seen<'_>) -> Result<()> {
        let frame = seen.frame;
        match self.moment {
            Moment::Time(time) => {
                let committed = Committed::of(frame).filter(|commit| commit.time <= *time);
                self.last = committed.map(|commit| commit.txid).or(self.last);
            }
            Moment::Comment(comment) if frame.header.has_events() => {
                let (payload, at) = (frame.payload, frame.payload_at());
                event::decode(payload, at, &mut self.schema, &mut |_, event| {
                    if *event == Event::Comment(comment) {
                        self.last = Some(frame.header.txid);
                    }
                    Ok(())
                })?;
            }
            Moment::Comment(_) | Moment::Txid(_) => {}
        }
        Ok(())
    }

    /// Finds it in the indexed part.
    fn look_up(
        &self,
        files: &Files,
        indexed: &mut Indexed<'_>,
        present: &Schema,
    ) -> Result<Option<u64>> {
        match self.moment {
            Moment::Txid(txid) => Ok(Some(*txid)),
            Moment::Time(time) => indexed.last_at(files, time.0),
            Moment::Comment(comment) => {
                indexed.last_with(files, comment, |commands| schema_of(present, commands))
            }
        }
    }
}
