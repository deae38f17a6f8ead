//! Finds the transaction of a moment.

use annals_schema::Txid;
use std::sync::Arc;

use crate::db::past::history::about::COMMENTS;
use crate::db::past::history::ask::ask;
use crate::db::past::history::cut::comment_key;
use crate::db::past::history::places::Places;
use crate::db::past::moment::Moment;
use crate::db::present::snapshot::Published;
use crate::event::Event;
use crate::store::history::Key;
use crate::{Error, ErrorKind, Result};

/// Returns the number of the transaction at whose end a moment is, up to the published state; 0 before the first one.
///
/// # Errors
/// `NotFound` if there is none; of a time, if it was forgotten; `Corrupt`, `Unsupported`, `Io`.
pub(in crate::db) fn txid_of(published: &Arc<Published>, moment: &Moment) -> Result<u64> {
    let Txid(now) = published.point.txid;
    let what = match moment {
        Moment::Txid(txid) if txid.0 <= now => return Ok(txid.0),
        Moment::Txid(txid) => format!("there is no transaction {txid}: the last is {now}"),
        Moment::Time(time) => {
            let (found, places) = ask(published, |places| places.last_at(time.0))?;
            let first = places.files.first();
            match found {
                Some(txid) => return Ok(txid),
                None if first.segment == 0 => return Ok(0),
                None => format!(
                    "the state at {moment} was forgotten: the history begins with the state after transaction {}",
                    first.point.txid + 1
                ),
            }
        }
        Moment::Comment(text) => match ask(published, |places| places.last_with(text))?.0 {
            Some(txid) => return Ok(txid),
            None => format!("no transaction has the comment {text:?}"),
        },
    };
    Err(Error::new(ErrorKind::NotFound, format!("{}: {what}", published.file.name)))
}

impl Places {
    /// Returns the last transaction whose time isn't later; the state with which the history begins is one, too.
    fn last_at(&mut self, time: i64) -> Result<Option<u64>> {
        let (mut to, mut found) = (self.end(), None);
        self.marks_back(&mut |unit, least| {
            found = (least <= time).then_some((unit, to));
            to = unit;
            found.is_none()
        })?;
        // Before the first mark of the kept history there may be transactions after one that was forgotten.
        let (from, to) = found.unwrap_or((self.start(), to));
        let mut last = self.beginning().filter(|state| state.time.0 <= time).map(|it| it.txid);
        self.commits(from, to, &mut |commit| {
            if commit.time.0 <= time {
                last = Some(commit.txid);
            }
            true
        })?;
        Ok(last)
    }

    /// Returns the last transaction that has a comment.
    fn last_with(&mut self, comment: &str) -> Result<Option<u64>> {
        let mut places = self.of_key(Key { table: COMMENTS, row: comment_key(comment) })?;
        while let Some(place) = places.pop() {
            let mut is_there = false;
            let whose = self.read(place, None, &mut |_, event| {
                is_there |= *event == Event::Comment(comment);
                Ok(())
            })?;
            if is_there {
                return Ok(Some(whose.txid));
            }
        }
        Ok(None)
    }
}
