//! The files that a history is in: the newest segment and the kept ones, each perhaps damaged or missing.

use std::io;
use std::sync::Arc;

use annals::journal::Copies;
use annals::{Error, Point, Result, Snapshot};
use annals_journal::cannot_open;
use annals_journal::format::Header;
use annals_journal::segments::{Chain, erased_name, journal_of, kept_name, later, number_in};
use annals_storage::{Access, Directory, Hold, Lock};

use super::states::{Part, image_roots, state_of_image};

/// All existing files.
#[derive(Debug)]
pub(super) struct Parts {
    /// The name by which the journal is opened.
    pub(super) journal: String,
    /// The oldest first.
    pub(super) all: Vec<Part>,
    /// Files that have the name of a segment, and belong to another journal.
    pub(super) strangers: Vec<String>,
    /// The number of the segment after the last one, if the last one is sealed.
    pub(super) following: Option<u64>,
    /// The file at the path, if it isn't read because a kept segment has all of it and more.
    pub(super) replaced: Option<String>,
    /// The points of the image's roots, with their segments.
    roots: Vec<(u64, Point)>,
}

impl Parts {
    /// Finds the newest segment, and the kept ones before it.
    ///
    /// # Errors
    /// `NotFound`: there is none of them; `Io`.
    pub(super) fn find(directory: &dyn Directory, name: &str) -> Result<Self> {
        let shown = directory.display(name);
        let newest = match directory.open(name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map_err(|error| cannot_open(&shown, Access::Read, error))?),
        };
        let unreadable = |error| Error::io(format!("{shown}: can't read the journal"), error);
        let copies = newest.as_deref().map(Copies::read).transpose().map_err(unreadable)?;
        let header = copies.and_then(|copies| copies.headers.into_iter().flatten().next());
        let journal = header.map_or(name, |header| journal_of(name, header.segment)).to_owned();
        let mut parts = Self {
            journal,
            all: Vec::new(),
            strangers: Vec::new(),
            following: None,
            replaced: None,
            roots: Vec::new(),
        };
        // An older file may have taken the path.
        let later = match (&newest, &header) {
            (Some(newest), Some(header)) => later(directory, name, &**newest, header)?,
            _ => Vec::new(),
        };
        if newest.as_ref().is_none_or(|newest| !newest.has_fixed_len()) {
            parts.find_kept(directory, header.as_ref(), &later)?;
        }
        let next = parts.all.last().map_or(0, |last| last.number + 1);
        if newest.is_none() || !later.is_empty() {
            parts.following = Some(next);
        }
        if let (Some(storage), Some(copies)) = (newest, copies) {
            let number = header.map_or(next, |header| header.segment);
            match later.contains(&number) {
                true => parts.replaced = Some(shown.clone()),
                false => parts.all.push(Part { storage, shown: shown.clone(), number, copies }),
            }
        }
        parts.all.sort_by_key(|part| part.number);
        if parts.all.is_empty() {
            return Err(cannot_open(&shown, Access::Read, io::ErrorKind::NotFound.into()));
        }
        parts.find_roots(directory);
        Ok(parts)
    }

    /// Finds the kept segments before the file at the path, whose header this is, and the later ones.
    fn find_kept(
        &mut self,
        directory: &dyn Directory,
        newest: Option<&Header>,
        later: &[u64],
    ) -> Result<()> {
        let shown = directory.display(&self.journal);
        let io = |error| Error::io(format!("{shown}: its directory can't be read"), error);
        let names = directory.list().map_err(io)?;
        let mut kept: Vec<_> = names
            .iter()
            .filter_map(|found| Some((number_in(found, &self.journal)?, found.clone())))
            .filter(|(number, _)| {
                newest.is_none_or(|newest| *number < newest.segment) || later.contains(number)
            })
            .collect();
        kept.sort();
        let erasure = newest.and_then(Header::last_erasure);
        let mut id = newest.map(|newest| newest.journal_id);
        let mut chain = Chain::default();
        for (number, name) in kept.into_iter().rev() {
            // Until an erasure has finished, the segment that it rewrote has another name.
            let erased = erasure.map(|erasure| erased_name(&name, erasure));
            let name = erased.filter(|erased| names.contains(erased)).unwrap_or(name);
            let shown = directory.display(&name);
            let unreadable = |error| Error::io(format!("{shown}: can't read this segment"), error);
            let storage = directory.open(&name, Access::Read).map_err(unreadable)?;
            // It isn't removed meanwhile; if the system has no such locks, an open file stays readable.
            let _ = storage.try_lock(Lock::History, Hold::Shared);
            let copies = Copies::read(&*storage).map_err(unreadable)?;
            let len = storage.len().map_err(unreadable)?;
            let part = Part { storage, shown: shown.clone(), number, copies };
            let header = part.header().copied();
            let is_own = header.is_none_or(|header| {
                header.segment == number && id.is_none_or(|id| id == header.journal_id)
            });
            if is_own {
                let resting = chain.add_unknown(directory, &name, number, len);
                if let (Some(resting), Some(last)) = (resting, self.all.last_mut()) {
                    last.storage = resting;
                }
                id = id.or(header.map(|header| header.journal_id));
                self.all.push(part);
            } else {
                self.strangers.push(part.shown);
            }
        }
        self.all.reverse();
        Ok(())
    }

    /// Reads the roots of the image, if it is this journal's.
    fn find_roots(&mut self, directory: &dyn Directory) {
        let Some(header) = self.newest_header() else { return };
        self.roots = image_roots(directory, &self.journal, &header.journal_id);
    }

    /// Returns the name of the newest existing segment.
    pub(super) fn newest_name(&self, directory: &dyn Directory, name: &str) -> String {
        match self.all.last().filter(|_| directory.open(name, Access::Read).is_err()) {
            Some(kept) => kept_name(&self.journal, kept.number),
            None => name.to_owned(),
        }
    }

    /// Returns the known header of the newest of the segments.
    fn newest_header(&self) -> Option<&Header> {
        self.all.iter().rev().find_map(Part::header)
    }

    /// Loads the state of the image.
    ///
    /// # Errors
    /// `Corrupt`: it can't be used; `Io`.
    pub(super) fn state_of_image(
        &self,
        directory: &Arc<dyn Directory>,
        memory: u64,
    ) -> Result<Option<Snapshot>> {
        let (Some(newest), Some(header)) = (self.all.last(), self.newest_header()) else {
            return Ok(None);
        };
        state_of_image(directory, &self.journal, newest, header, memory)
    }

    /// Returns the txid of the newest root of the image.
    pub(super) fn imaged(&self) -> Option<u64> {
        self.roots.iter().map(|(_, point)| point.txid.0).max()
    }

    /// Returns the points that are known to have been on permanent storage, in a segment.
    pub(super) fn witnesses(&self, part: &Part) -> Vec<Point> {
        let roots = self.roots.iter().filter(|(segment, _)| *segment == part.number);
        let slots = part.copies.slots.iter().flatten().flatten();
        slots.map(|slot| slot.point).chain(roots.map(|&(_, point)| point)).collect()
    }

    /// Returns the header of the segment after a part, if that exists.
    pub(super) fn after(&self, place: usize) -> Option<&Header> {
        let number = self.all.get(place)?.number;
        let next = self.all.get(place + 1).filter(|next| next.number == number + 1)?;
        next.header()
    }
}
