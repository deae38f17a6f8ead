//! Replay and scan: the two ways to read a journal from its beginning.

use std::path::Path;
use std::sync::Arc;

use annals_schema::Schema;

use super::acquire::cannot_open;
use super::image::Imager;
use super::options::Options;
use super::progress::Watched;
use crate::event::{self, Event};
use crate::journal::{
    Committed, Frame, FrameReader, Mistake, Point, Recovery, Rule, Survey, Verdict, is_made,
};
use crate::storage::{Access, Directory, Storage};
use crate::store::{Store, View};
use crate::{Error, ErrorKind, Result};

/// Takes what happened in a journal, in order.
pub trait Sink {
    /// Takes an event. `schema` is the one before it.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()>;

    /// Takes the end of a transaction: the events since the last one are committed.
    ///
    /// # Errors
    /// Any error ends the scan.
    fn commit(&mut self, schema: &Schema, committed: &Committed) -> Result<()>;
}

/// Reads the whole history of a journal file into a sink, in memory that doesn't grow with it.
/// Takes no lock and writes nothing. What didn't commit is not shown.
///
/// Cost: reads the file twice, since a transaction is only shown once it is known to commit.
///
/// # Errors
/// `NotFound`, `NotAJournal`, `Unsupported`, `Corrupt`, `Io`; and what the sink returns.
pub fn scan(path: impl AsRef<Path>, sink: &mut impl Sink) -> Result<()> {
    Options::new().scan(path, sink)
}

/// As [`scan`], in any directory.
///
/// # Errors
/// As [`scan`].
pub fn scan_in(directory: &dyn Directory, name: &str, sink: &mut impl Sink) -> Result<()> {
    Options::new().scan_in(directory, name, sink)
}

/// Scans a file that is open for reading.
pub(super) fn scan_storage(storage: &Watched<'_>, shown: &str, sink: &mut impl Sink) -> Result<()> {
    let (survey, ()) = survey_moving(storage, shown, |(), _, _| Ok(()))?;
    storage.read_again();
    let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
    let mut reader = FrameReader::new(storage, survey.head.start(), survey.end.position);
    let mut schema = Schema::default();
    while let Some(frame) = reader.next().map_err(io)? {
        if !frame.header.has_events() {
            continue;
        }
        // What the sink says is no word about the file.
        let mut refused = false;
        event::decode(frame.payload, frame.payload_at(), &mut schema, &mut |schema, event| {
            sink.event(schema, event).inspect_err(|_| refused = true)
        })
        .map_err(|error| if refused { error } else { explain(error, shown, &frame) })?;
        if let Some(committed) = Committed::of(&frame) {
            sink.commit(&schema, &committed)?;
        }
    }
    // The end of what was verified a moment ago, not of what can be read now.
    if reader.position() == survey.end.position {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "{shown}: what verified at position {} a moment ago doesn't any more: the rest was not read; \
         try again, and check the disk",
        reader.position()
    )))
}

/// Says where an event failed, and what to do if it is none.
fn explain(error: Error, shown: &str, frame: &Frame<'_>) -> Error {
    let error = error.within(format!("{shown}: frame at position {}", frame.header.position));
    match error.kind() {
        ErrorKind::Corrupt => error.advising(
            "the frame's checksum is right, so it was written like this: restore the file from a \
             backup",
        ),
        ErrorKind::Unsupported => error.advising("use a newer program"),
        _ => error,
    }
}

/// Opens a file for reading.
pub(super) fn open_to_read(
    directory: &dyn Directory,
    name: &str,
) -> Result<(Arc<dyn Storage>, String)> {
    let shown = directory.display(name);
    let storage = directory
        .open(name, Access::Read)
        .map_err(|error| cannot_open(&shown, Access::Read, error))?;
    Ok((storage, shown))
}

/// How often a file that seems damaged is looked at again.
const LOOKS: usize = 3;

/// Surveys a file, and lets a new `V` see each verified frame, and C as it is with that. What looks
/// wrong only counts if it is still there, the same, at the next look: another process may have been
/// writing, or the disk may have read wrongly once.
pub(super) fn survey<V: Default>(
    storage: &Watched<'_>,
    shown: &str,
    recovery: Recovery,
    looks_wrong: impl Fn(&Survey) -> bool,
    visit: impl FnMut(&mut V, &Frame<'_>, u64) -> Result<()>,
) -> Result<(Survey, V)> {
    survey_from(storage, shown, (recovery, None), looks_wrong, V::default, visit)
}

/// As [`survey`], from the end of a commit that counts, if one is given, with what `begin` makes.
pub(super) fn survey_from<V>(
    storage: &Watched<'_>,
    shown: &str,
    (recovery, from): (Recovery, Option<Point>),
    looks_wrong: impl Fn(&Survey) -> bool,
    begin: impl Fn() -> V,
    mut visit: impl FnMut(&mut V, &Frame<'_>, u64) -> Result<()>,
) -> Result<(Survey, V)> {
    let mut rule = Rule::new(recovery);
    let mut looks = 0;
    loop {
        let mut visitor = begin();
        let seen = |frame: &Frame<'_>, end| visit(&mut visitor, frame, end);
        let explain = |error| storage.explain(error, shown);
        let survey = Survey::make(storage, shown, (rule, from), seen).map_err(explain)?;
        if let Some(next) = survey.next_rule() {
            // The visitor may have gone past the end. Told this from the start, it won't.
            storage.read_again();
            rule = next;
            continue;
        }
        looks += 1;
        if !looks_wrong(&survey) || looks > LOOKS {
            return Ok((survey, visitor));
        }
        storage.read_again();
        if survey.is_still_so(storage, shown).map_err(explain)? {
            return Ok((survey, visitor));
        }
        rule = Rule::new(recovery);
    }
}

/// Surveys a file that another process may be writing.
pub(super) fn survey_moving<V: Default>(
    storage: &Watched<'_>,
    shown: &str,
    visit: impl FnMut(&mut V, &Frame<'_>, u64) -> Result<()>,
) -> Result<(Survey, V)> {
    let (survey, visitor) = self::survey(storage, shown, Recovery::Checked, is_damaged, visit)?;
    if is_damaged(&survey) {
        return Err(survey.damage(shown));
    }
    Ok((survey, visitor))
}

/// Tells whether something is missing that was durable.
pub(super) fn is_damaged(survey: &Survey) -> bool {
    survey.verdict() == Verdict::Damaged
}

/// Tells whether something would have to be cut, or called damaged, for what may be one wrong read.
pub(super) fn looks_wrong(survey: &Survey) -> bool {
    let may_hold = match is_made(Mistake::DoubtCutAtOnce) {
        true => survey.tail.is_some(),
        false => survey.may_hold_a_commit(),
    };
    may_hold || is_damaged(survey)
}

/// Builds the store from verified frames.
///
/// A transaction of one frame that counts as soon as it is seen needs no undoing. Before any other the
/// store is committed, so that it can be rolled back to there: `open` says that this is so.
#[derive(Debug, Default)]
pub(super) struct Replay {
    store: Store,
    schema: Schema,
    open: bool,
    /// Where to write what is larger than memory; none if it has to be in memory.
    imager: Option<Arc<Imager>>,
}

impl Replay {
    /// Goes on from a store whose changes are all published.
    pub(super) fn resume(store: Store) -> Self {
        let schema = Schema::clone(store.view().schema());
        Self { store, schema, open: false, imager: None }
    }

    /// Lets what is larger than memory be written to the image.
    pub(super) fn spilling(self, imager: &Arc<Imager>) -> Self {
        imager.forget_spilled();
        Self { imager: Some(Arc::clone(imager)), ..self }
    }

    /// Gives the store back as it was, where applying a frame failed.
    pub(super) fn give_up(mut self) -> Store {
        self.store.rollback();
        self.store
    }

    /// Applies the events of one frame; gives how many those are. `end` is where the commits end that
    /// count by now.
    pub(super) fn frame(&mut self, frame: &Frame<'_>, end: u64, shown: &str) -> Result<u64> {
        if end >= frame.header.position && self.open {
            self.open = false;
            self.imager.iter().for_each(|imager| imager.commit_spilled(frame.header.txid));
        }
        let counts = end >= frame.end;
        if !counts && !self.open {
            self.store.commit();
            self.open = true;
        }
        let Self { store, schema, open, imager } = self;
        let mut events = 0;
        if !frame.header.has_events() {
            return Ok(events);
        }
        event::decode(frame.payload, frame.payload_at(), schema, &mut |_, event| {
            events += 1;
            store.apply(event)?;
            match imager {
                Some(imager) => imager.make_room(store, (frame.header.txid, *open)),
                None => Ok(()),
            }
        })
        .map_err(|error| explain(error, shown, frame))?;
        if frame.header.is_commit() {
            store.end_blob();
        }
        Ok(events)
    }

    /// Gives the store as of the last commit that counts.
    pub(super) fn finish(mut self) -> (Store, Arc<View>) {
        if self.open && !is_made(Mistake::UncommittedApplied) {
            self.store.rollback();
            self.imager.iter().for_each(|imager| imager.roll_back_spilled());
        }
        let view = self.store.commit();
        (self.store, view)
    }
}
