//! Replaying frames that were added to the file of a store's journal.

use std::sync::Arc;

use crate::db::present::segment::JournalFile;
use crate::db::replay::scan::Replay;
use crate::db::replay::unapplied::{Before, Counted, Unapplied, replay_before};
use crate::journal::{FrameReader, Head, Point};
use crate::store::{Store, View};
use crate::{Error, Result};

/// The loaded commits.
pub(in crate::db) struct Caught {
    pub(in crate::db) view: Arc<View>,
    pub(in crate::db) point: Point,
    /// The commit after that, which doesn't apply.
    pub(in crate::db) unapplied: Option<Unapplied>,
}

/// Replays the frames from one commit to the end of another, or to the last commit before one that doesn't apply. If it
/// fails, the store is unchanged.
pub(in crate::db) fn replay_between(
    file: &JournalFile,
    store: Store,
    from: Point,
    to: u64,
) -> (Store, Result<Caught>) {
    let segment = match file.segment_hash() {
        Ok(segment) => segment,
        Err(error) => return (store, Err(error)),
    };
    let mut store = store;
    let caught = replay_before(|until| {
        let mut replay = Replay::resume(std::mem::take(&mut store), file.segment).until(until);
        let reader = FrameReader::new(&*file.storage, segment, from, to);
        let end = replay_frames(&mut replay, reader, to, &file.name);
        match end.and_then(|end| Ok((stopped(file, &replay, from, end)?, end))) {
            Ok((stopped, end)) => {
                let (finished, view) = replay.finish();
                store = finished;
                let point = stopped.as_ref().map_or(end, |stopped| stopped.point);
                let unapplied = stopped.map(|stopped| stopped.unapplied);
                Ok(Caught { view, point, unapplied })
            }
            Err(error) => {
                store = replay.give_up();
                Err(error)
            }
        }
    });
    (store, caught)
}

/// Returns the state before a commit that doesn't apply, if the replay met one.
fn stopped(file: &JournalFile, replay: &Replay, from: Point, end: Point) -> Result<Option<Before>> {
    if replay.stop().is_none() {
        return Ok(None);
    }
    let head = Head::read(&*file.storage, &file.name)?;
    let hard = head.hard_point().position;
    replay.before(&Counted { head: &head, from: Some(from), shown: &file.name, end, hard })
}

fn replay_frames(
    replay: &mut Replay,
    mut reader: FrameReader<'_>,
    to: u64,
    shown: &str,
) -> Result<Point> {
    let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
    while let Some(frame) = reader.next().map_err(io)? {
        replay.frame(&frame, to, shown)?;
    }
    if reader.position() == to {
        return Ok(reader.point());
    }
    Err(Error::corrupt(format!(
        "{shown}: what verified at position {} a moment ago doesn't any more: try again, and check the \
         disk",
        reader.position()
    )))
}
