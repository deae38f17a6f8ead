//! What a database holds, by what an opening reads of it: the heads of its files, the image, and the journal after that.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{
    Opened, Past, first_end, is_damaged, locate_continued, open_from_image, recovery, snapshot_of,
    watch,
};
use annals::journal::{Erasure, Recovery};
use annals::{Committed, Error, Options, Point, Result, View};
use annals_journal::{Head, Singles};
use annals_storage::{Directory, Storage};

use super::examine::{Examination, examine_in, segments};
use super::inspect::{Inspection, says_nothing};

/// Describes a database as [`examine`](crate::examine) does, without reading the journal before the image's newest
/// root: it doesn't verify that, nor count its events. Where there is no image that can be used, or anything is
/// wrong, it examines the whole journal. Writes nothing; damage is part of the answer.
///
/// Cost: that of opening for reading. If values were ever erased, reads the heads of all frames, too.
///
/// # Errors
/// As [`examine`](crate::examine).
pub fn overview(options: &Options, path: impl AsRef<Path>) -> Result<Examination> {
    let (directory, name) = locate_continued(path.as_ref())?;
    overview_in(options, &*directory, &name)
}

/// Does what [`overview`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`overview`].
pub fn overview_in(
    options: &Options,
    directory: &dyn Directory,
    name: &str,
) -> Result<Examination> {
    match by_image(options, directory, name) {
        Ok(Some(examination)) => Ok(examination),
        Err(error) if says_nothing(&error) => Err(error),
        // What is wrong, the whole journal shows.
        Ok(None) | Err(_) => examine_in(options, directory, name),
    }
}

/// Describes a sound database by its image; `None` if that can't be used.
fn by_image(
    options: &Options,
    directory: &dyn Directory,
    name: &str,
) -> Result<Option<Examination>> {
    if recovery(options) != Recovery::Checked {
        return Ok(None);
    }
    let Opened { storage, shown, past, witnesses } = Opened::new(directory, name, Past::whole)?;
    let past = past?;
    let watch = watch(options);
    let found = open_from_image(options, &directory.again(), name, &storage, watch.as_ref())?.begun;
    let Some(begun) = found.filter(|it| it.is_used && it.is_whole && !is_damaged(&it.survey))
    else {
        return Ok(None);
    };
    let (mut survey, view) = (begun.survey, begun.view);
    let first = first(&past, &survey.head, (&*storage, survey.end), &view)?;
    if survey.last.is_none() {
        survey.last = last(&survey.head, &*storage, survey.end)?;
    }
    let erasures = erasures(&past, &survey.head, (&*storage, survey.end))?;
    let segments = segments(&past, &survey, &shown);
    let (end, segment) = (survey.end, survey.head.header.segment);
    Ok(Some(Examination {
        inspection: Inspection::of(survey, &shown)
            .against(&witnesses, directory, name, &*storage)?
            .with_image(directory, name),
        snapshot: snapshot_of(view, end, Arc::clone(&storage), segment, directory.again(), name),
        is_replayed: false,
        events: None,
        first,
        segments,
        problem: None,
        unapplied: None,
        erasures,
        wrong_mark: None,
    }))
}

/// The file of the newest segment, and the end of its last commit.
type Newest<'s> = (&'s dyn Storage, Point);

/// Returns the first transaction of the kept history, if the history index leads there.
fn first(past: &Past, head: &Head, newest: Newest<'_>, view: &View) -> Result<Option<Committed>> {
    let index = view.history_index();
    let (head, storage, end) = match past.segments().first() {
        Some(kept) => (&kept.head, &*kept.storage, Point { position: kept.len, ..newest.1 }),
        None => (head, newest.0, newest.1),
    };
    if index.is_missing() {
        return Ok(None);
    }
    let (singles, mut buffer) = (Singles::new(storage, head.hash, end), Vec::new());
    let frame = match first_end(index, head.header.segment)? {
        Some(end) => singles.ending(end, &mut buffer),
        None => singles.read(head.start().position, &mut buffer),
    };
    Ok(frame.map_err(unreadable)?.and_then(|frame| frame.committed()))
}

/// Returns the last transaction of a segment, if it has one.
fn last(head: &Head, storage: &dyn Storage, end: Point) -> Result<Option<Committed>> {
    if end.position == head.start().position {
        return Ok(None);
    }
    let (singles, mut buffer) = (Singles::new(storage, head.hash, end), Vec::new());
    let frame = singles.ending(end.position, &mut buffer).map_err(unreadable)?;
    let last = frame.and_then(|frame| frame.committed()).filter(|last| last.point() == end);
    last.map(Some).ok_or_else(|| Error::corrupt("the journal doesn't end with a commit"))
}

/// Returns the marks of erasures in the kept history, the oldest first.
fn erasures(past: &Past, head: &Head, newest: Newest<'_>) -> Result<Vec<Erasure>> {
    let mut marks = Vec::new();
    if head.header.last_erasure().is_none() {
        return Ok(marks);
    }
    let (storage, end) = newest;
    let kept = past.segments().iter().map(|kept| {
        let end = Point { position: kept.len, ..end };
        (&kept.head, Singles::new(&*kept.storage, kept.head.hash, end))
    });
    for (head, singles) in kept.chain([(head, Singles::new(storage, head.hash, end))]) {
        let (mut places, mut buffer) = (Vec::new(), Vec::new());
        let mut see = |header: &annals_journal::FrameHeader| {
            places.extend(header.is_erasure().then_some(header.position));
            true
        };
        singles.walk(head.start().position, &mut buffer, &mut see).map_err(unreadable)?;
        for place in places {
            let frame = singles.read(place, &mut buffer).map_err(unreadable)?;
            marks.extend(frame.and_then(|frame| frame.erasure()));
        }
    }
    Ok(marks)
}

fn unreadable(error: std::io::Error) -> Error {
    Error::io("can't read the journal", error)
}
