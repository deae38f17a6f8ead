//! Keeping the history index: after a backfill it is extended to the image's end in the journal.
//!
//! ```text
//! 1. see where the index ends, and whether what is after that is worth it
//! 2. read some MiB of the journal from there, collecting zones and entries
//! 3. add them                                       (a flush of the index, and a write of its head)
//! 4. again, until the point of the newest root
//! ```
//!
//! The background thread does it, or the thread that requested a backfill. No lock is held that a transaction, a
//! reader or another backfill waits for. A removal of older segments waits for one such step. A failure is noted, and
//! retried after the next backfill: nothing depends on it.

use crate::db::options::Sizes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::db::engine::core::Core;
use crate::db::history::collect::Collector;
use crate::db::history::files::Files;
use crate::db::history::schema::schema_of;
use crate::db::image::ImageState;
use crate::db::replay::segments::Since;
use crate::history::{Bound, IndexFile, history_name, set_aside};
use crate::journal::lock;
use crate::storage::Access;
use crate::{Error, ErrorKind, Result};

/// How much is read when a database is closed.
const AT_CLOSE: u64 = 1 << 20;

/// So many entries end a step, too: some dozens of MiB of memory.
const MOST_ENTRIES: usize = 1 << 20;

/// Extends the history index to the newest root of the image, in at most `steps` steps. The caller holds the lock
/// of backfills, if other processes may hold it.
pub(in crate::db) fn index_history(core: &Core, steps: usize, mut goes_on: impl FnMut() -> bool) {
    let Some(sizes) = core.history.sizes else { return };
    for _ in 0..steps {
        if !goes_on() {
            return;
        }
        match add_history(core, &sizes) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                *lock(&core.history.problem) = Some(error.to_string());
                return;
            }
        }
    }
}

/// Extends it by a little, so that closing a database doesn't take long: the rest is added when it is open again.
pub(in crate::db) fn index_history_at_close(core: &Core) {
    let Some(sizes) = core.history.sizes else { return };
    let step = sizes.step.min(AT_CLOSE);
    if let Err(error) = add_history(core, &Sizes { step, ..sizes }) {
        *lock(&core.history.problem) = Some(error.to_string());
    }
}

/// Adds the next part of the journal to the index, as much as one step does; returns true if there is more.
fn add_history(core: &Core, sizes: &Sizes) -> Result<bool> {
    // Must be first: a process that removes segments may hold the lock that this takes.
    let root = core.image().and_then(ImageState::reached_point);
    let Some((segment, point)) = root else { return Ok(false) };
    let _alone = core.history.pause();
    let published = core.group.published();
    let mut files = Files::open(&published)?;
    let cut = files.end;
    if !files.end_at(segment, point) {
        return Ok(false);
    }
    let name = history_name(&files.file.journal);
    let directory = Arc::clone(&files.file.directory);
    let opened = IndexFile::open(&*directory, &name, files.journal_id(), Access::Write);
    let opened = opened.and_then(|index| match index {
        Some(index) if is_ahead(index.head().bound, (files.segment(), cut.position)) => {
            Err(Error::corrupt("the journal has taken back what it stands for"))
        }
        index => Ok(index),
    });
    let index = match opened {
        Err(error) => {
            set_history_aside(core, &files, error)?;
            None
        }
        Ok(index) => index,
    };
    let is_there = index.is_some();
    match add_to(core, &files, index, sizes) {
        Err(error) if is_there => {
            set_history_aside(core, &files, error)?;
            add_to(core, &files, None, sizes)
        }
        added => added,
    }
}

/// Takes an index out of the way that can't be used; once, and only if it is the index that is wrong.
fn set_history_aside(core: &Core, files: &Files, error: Error) -> Result<()> {
    let is_wrong = error.kind() == ErrorKind::Corrupt;
    if !is_wrong || core.history.is_anew.swap(true, Ordering::Relaxed) {
        return Err(error);
    }
    *lock(&core.history.problem) = Some(format!("rebuilding the history index: {error}"));
    let name = history_name(&files.file.journal);
    set_aside(&*files.file.directory, &name, "it can't be used")
}

fn add_to(core: &Core, files: &Files, index: Option<IndexFile>, sizes: &Sizes) -> Result<bool> {
    let first = files.first();
    let since = index.as_ref().map(|index| index.head().bound);
    // The history in between may have been forgotten.
    let since = since.filter(|bound| bound.segment >= first.segment);
    let known = since.map(|bound| Since { segment: bound.segment, point: bound.point });
    let from = known.unwrap_or(first);
    let worth = if known.is_some() { sizes.more } else { sizes.first };
    let behind = files.behind(from);
    if behind == 0 || behind < worth || is_at_end(files, from) {
        return Ok(false);
    }
    let published = core.group.published();
    let schema = schema_of(published.view.schema(), since.map_or(0, |bound| bound.commands))?;
    let goes_on = index.as_ref().filter(|_| known.is_some());
    let next_zone = goes_on.map_or(0, |index| index.head().next_zone);
    let mut collector = Collector::new(schema, next_zone, sizes.zone);
    let next = collect(files, from, &mut collector, sizes.step)?;
    let end = next.unwrap_or(Since { segment: files.segment(), point: files.end });
    let bound = Bound { segment: end.segment, point: end.point, commands: collector.commands() };
    let mut index = match index {
        Some(index) if known.is_some() => index,
        gone => {
            // All of it was forgotten.
            let name = history_name(&files.file.journal);
            if gone.is_some() {
                files.file.directory.remove(&name).map_err(|error| {
                    Error::io(format!("{name}: can't remove the history index"), error)
                })?;
            }
            let directory = &files.file.directory;
            IndexFile::create(directory, &name, files.journal_id(), bound, &*core.clock)?
        }
    };
    collector.entries.sort();
    index.add(collector.zones, &collector.entries, bound, first.segment)?;
    Ok(next.is_some())
}

/// Collects from a place on, as much as a step does; returns where it continues.
fn collect(
    files: &Files,
    from: Since,
    collector: &mut Collector,
    step: u64,
) -> Result<Option<Since>> {
    let (mut next, all) = (Some(from), files.behind(from));
    while let Some(since) = next {
        let read = all - files.behind(since);
        let is_enough = read >= step || collector.entries.len() >= MOST_ENTRIES;
        if is_enough && collector.may_end() {
            break;
        }
        let most = step.saturating_sub(read).clamp(1, 1 << 20);
        next = files.read(since, most, &mut |seen| collector.frame(seen))?;
    }
    collector.end_zone();
    Ok(next)
}

fn is_ahead(bound: Bound, end: (u64, u64)) -> bool {
    (bound.segment, bound.point.position) > end
}

fn is_at_end(files: &Files, from: Since) -> bool {
    (from.segment, from.point.position) >= (files.segment(), files.end.position)
}
