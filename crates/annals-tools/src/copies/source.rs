//! The journal that is copied: its segments, and the part of them that is known to be on permanent storage.

use std::io;
use std::sync::Arc;

use annals::internals::{check_end, image_witnesses};
use annals::{Error, ErrorKind, Result};
use annals_journal::format::Header;
use annals_journal::segments::{Chain, Kept, refuse_replaced};
use annals_journal::{FrameReader, Head, Point, Survey};
use annals_storage::{Access, Directory, Storage};
use annals_store::image::Witness;

use super::place::Place;
use crate::names::like;

/// The number of tries to find the segments while they change.
const TRIES: usize = 100;

/// A journal that is read, in any directory. Others may write it, restart it, and forget some of it.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) place: Place,
    /// The newest segment at the last look. This handle can read the segment to its end even if the file is
    /// removed.
    newest: Option<Arc<dyn Storage>>,
    /// The points that the image beside it proved at the last check.
    witnesses: Vec<Witness>,
}

/// One segment of it. They aren't removed as long as the oldest is open.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) shown: String,
    pub(crate) head: Head,
    /// The header of the segment that follows; `None` if this is the newest.
    pub(crate) successor: Option<Header>,
}

impl Part {
    /// Returns its header.
    pub(crate) const fn header(&self) -> &Header {
        &self.head.header
    }

    /// Reads verified frames from a point on, and no further than `limit`; a copy gets the right chain where a wrong
    /// one is stored.
    pub(crate) fn reader(&self, from: Point, limit: u64) -> FrameReader<'_> {
        FrameReader::new(&*self.storage, self.head.hash, from, limit).confirming(&self.head.slots)
    }

    /// Returns its length in bytes.
    pub(crate) fn len(&self) -> Result<u64> {
        self.storage.len().map_err(|error| self.unreadable(error))
    }

    pub(crate) fn unreadable(&self, error: io::Error) -> Error {
        Error::io(format!("{}: can't read the journal", self.shown), error)
    }

    /// Returns the error that its bytes don't verify.
    pub(crate) fn damaged(&self, at: u64) -> Error {
        Error::corrupt(format!(
            "{}: doesn't verify at position {at}, before the end that it is known to have; nothing from \
             there on was copied: look at it with `annals check`",
            self.shown
        ))
    }
}

impl Source {
    pub(crate) fn new(directory: Arc<dyn Directory>, name: &str) -> Self {
        Self { place: Place::new(directory, name), newest: None, witnesses: Vec::new() }
    }

    /// Returns a handle of the directory of a new file, which gets the permissions of this journal.
    pub(crate) fn like(&self, to: Arc<dyn Directory>, name: &str) -> Result<Arc<dyn Directory>> {
        like(&*self.place.directory, &self.place.name, to, name)
    }

    /// Returns the position up to which the newest segment is known to be on permanent storage, also according to its
    /// writers. Also returns the last transaction in it. All up to `from` is known.
    ///
    /// # Errors
    /// `Corrupt` if it ends before a point that the image proves; `Io`.
    pub(crate) fn hard(&self, part: &Part, from: Point) -> Result<(u64, u64)> {
        let survey = Survey::since_now(&*part.storage, &part.shown, from)?;
        self.check_end(part, &survey)?;
        let told = survey.head.live.filter(|live| !live.suspect).map_or(0, |live| live.hard);
        let hard = survey.hard.max(told).min(survey.end.position).max(from.position);
        Ok((hard, survey.reached().txid.0))
    }

    /// Refuses the newest segment if it ends before a point that the image proves.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn check_end(&self, part: &Part, survey: &Survey) -> Result<()> {
        check_end(&self.witnesses, survey, &*self.place.directory, &self.place.name, &*part.storage)
    }

    /// Returns a new handle of the same journal.
    pub(crate) fn again(&self) -> Self {
        Self::new(Arc::clone(&self.place.directory), &self.place.name)
    }

    /// Opens the newest segment and those before it, the oldest first: from segment `from` on, if that exists, else
    /// all that are needed for the state.
    pub(crate) fn look(&mut self, from: Option<u64>) -> Result<Vec<Part>> {
        let mut tries = 0;
        loop {
            let newest = self.open_newest()?;
            self.witnesses =
                image_witnesses(&*self.place.directory, &self.place.name, &newest.head);
            let (storage, header) = (Arc::clone(&newest.storage), *newest.header());
            let mut parts = self.parts(newest, from);
            if from.is_none() && parts.is_ok() {
                // An existing copy detects by itself that it has more.
                let checked =
                    refuse_replaced(&*self.place.directory, &self.place.name, &*storage, &header);
                parts = checked.and(parts);
            }
            tries += 1;
            let is_whole = parts.as_ref().is_ok_and(|parts| is_whole(parts, from));
            if is_whole || tries == TRIES || storage.is_linked().unwrap_or(true) {
                self.newest = Some(storage);
                return parts;
            }
        }
    }

    fn open_newest(&self) -> Result<Part> {
        let (directory, shown) = (&*self.place.directory, self.place.shown.clone());
        let storage = directory
            .open(&self.place.name, Access::Read)
            .map_err(|error| annals_journal::cannot_open(&shown, Access::Read, error))?;
        let head = Head::read(&*storage, &shown)?;
        Ok(Part { storage, shown, head, successor: None })
    }

    fn parts(&self, newest: Part, from: Option<u64>) -> Result<Vec<Part>> {
        let mut first = *newest.header();
        let (mut parts, mut chain) = (vec![newest], Chain::default());
        while from.is_none_or(|from| first.segment > from) {
            let kept = Kept::before(&*self.place.directory, &self.place.name, &first)?;
            let resting = kept.as_ref().and_then(|kept| chain.add(kept, &*self.place.directory));
            if let (Some(resting), Some(last)) = (resting, parts.last_mut()) {
                last.storage = resting;
            }
            let kept = kept.map(|Kept { storage, shown, head, .. }| (storage, shown, head));
            let Some((storage, shown, head)) = kept.or_else(|| self.removed(&first)) else { break };
            let successor = Some(std::mem::replace(&mut first, head.header));
            parts.push(Part { storage, shown, head, successor });
        }
        // A segment that doesn't begin with the state can't be understood without earlier ones.
        while from.is_none()
            && parts.len() > 1
            && parts.last().is_some_and(|part| !part.header().is_base())
        {
            parts.pop();
        }
        parts.reverse();
        Ok(parts)
    }

    /// Returns the segment before another, if it was the newest at the last look and has no name any more.
    fn removed(&self, successor: &Header) -> Option<(Arc<dyn Storage>, String, Head)> {
        let storage = self.newest.clone()?;
        let head = Head::read(&*storage, &self.place.shown).ok()?;
        let is_before = head.header.journal_id == successor.journal_id
            && head.header.segment.checked_add(1) == Some(successor.segment);
        is_before.then(|| (storage, self.place.shown.clone(), head))
    }

    /// Returns the error that segments are missing which a copy needs.
    pub(crate) fn forgotten(&self, target: &str, lacks: u64, begins: u64) -> Error {
        Error::new(
            ErrorKind::NotFound,
            format!(
                "{}: has forgotten what {target} doesn't have yet: transactions from {lacks} on, and it \
                 begins with {begins}; nothing was changed: push to a new file, which begins there",
                self.place.shown
            ),
        )
    }
}

/// True if all segments were found.
fn is_whole(parts: &[Part], from: Option<u64>) -> bool {
    let Some(first) = parts.first().map(Part::header) else { return false };
    from.map_or(first.is_base(), |from| first.segment <= from)
}
