//! An index file: opening, creating, adding zones.
//!
//! ```text
//! 1. write the new run, and what becomes of it and others, where neither copy of the head leads to
//! 2. flush                                            (the copy before is on permanent storage by now, too)
//! 3. write the head, over its older copy
//! ```
//!
//! Invariants
//! 1. What a copy of the head leads to is on permanent storage before that copy is written, and nothing is written
//!    over it before the next but one is. So whichever copy a crash leaves, it leads to what it tells.
//! 2. Who adds zones is alone: it holds the right to bring the image forward. Readers take no lock: what was
//!    written over meanwhile doesn't verify, and they look at the head again.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use super::entry::Entry;
use super::extent::{self, Extent};
use super::format::{Bound, HISTORY_AT, Head, PAGE, RUNS_AT};
use super::merge::Merging;
use super::write::{Made, write_run};
use super::zone::Zone;
use crate::image;
use crate::storage::{Access, Clock, Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// How often the head is read, should somebody be writing it.
const TRIES: usize = 4;

/// Gives the name of the history index beside a journal.
pub(crate) fn history_name(journal: &str) -> String {
    format!("{journal}-history")
}

/// Takes an index out of the way that can't be used, as [`image::set_aside`] does.
///
/// # Errors
/// `Io`.
pub(crate) fn set_aside(directory: &dyn Directory, name: &str, reason: &str) -> Result<()> {
    image::set_aside_as(directory, name, reason.to_owned(), super::journal_id_of).map(drop)
}

/// An open index.
#[derive(Debug)]
pub(crate) struct IndexFile {
    storage: Arc<dyn Storage>,
    shown: String,
    head: Head,
    /// Where the head is, and what the other copy tells, if it is one.
    slot: usize,
    other: Option<Head>,
    creation: Option<Creation>,
}

/// What it takes to give a new index its name.
#[derive(Debug)]
struct Creation {
    directory: Arc<dyn Directory>,
    temporary: String,
    name: String,
}

impl IndexFile {
    /// Opens the index of a journal; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` if neither copy of its head verifies, or it is another journal's; `Io`.
    pub(crate) fn open(
        directory: &dyn Directory,
        name: &str,
        journal_id: [u8; 16],
        access: Access,
    ) -> Result<Option<Self>> {
        let shown = directory.display(name);
        let io = |error| Error::io(format!("{shown}: can't read the history index"), error);
        let Some(storage) = image::open_derived(directory, name, "history index", access)? else {
            return Ok(None);
        };
        for _ in 0..TRIES {
            let heads = read_heads(&*storage).map_err(io)?;
            let number = |head: &Option<Head>| head.as_ref().map_or(0, |head| head.number);
            let slot = usize::from(number(&heads[1]) > number(&heads[0]));
            let [first, second] = heads;
            let (newest, other) = if slot == 0 { (first, second) } else { (second, first) };
            let Some(head) = newest else { continue };
            let index = Self { storage, shown, head, slot, other, creation: None };
            return match index.head.journal_id == journal_id {
                true => Ok(Some(index)),
                false => Err(index.corrupt("is another journal's")),
            };
        }
        Err(corrupt(&shown, "has no copy of its head that verifies"))
    }

    /// Creates an index, which gets its name when zones are added.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        name: &str,
        (journal_id, bound): ([u8; 16], Bound),
        clock: &dyn Clock,
    ) -> Result<Self> {
        let shown = directory.display(name);
        let io = |error| Error::io(format!("{shown}: can't create the history index"), error);
        image::remove_leftovers(&**directory, name, &directory.list().map_err(io)?);
        let temporary = format!("{name}.new-{:016x}", clock.random());
        let storage = directory.create(&temporary).map_err(io)?;
        storage.write_at(0, &[0; 2 * PAGE]).map_err(io)?;
        let head = Head { number: 0, journal_id, bound, next_zone: 0, runs: Vec::new() };
        let directory = Arc::clone(directory);
        let creation = Some(Creation { directory, temporary, name: name.to_owned() });
        Ok(Self { storage, shown, head, slot: 1, other: None, creation })
    }

    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Gives what it is called in messages.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Gives the length of the file in bytes.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn len(&self) -> Result<u64> {
        self.storage.len().map_err(|error| self.io("can't be looked at", error))
    }

    /// Adds zones with their entries, which are sorted, and stands for the journal up to `bound` then. What is of
    /// segments before `oldest` is forgotten.
    ///
    /// # Errors
    /// `Corrupt` if what is there doesn't verify; `Io`. The index is as it was.
    pub(crate) fn add(
        &mut self,
        (zones, entries): (Vec<Zone>, &[Entry]),
        bound: Bound,
        oldest: u64,
    ) -> Result<()> {
        let added = self.add_once((zones, entries), bound, oldest);
        if added.is_err() {
            // On a full disk others need that space; what can't be cut is free.
            let _ = self.storage.set_len(self.end());
            if let Some(Creation { directory, temporary, .. }) = &self.creation {
                let _ = directory.remove(temporary);
            }
        }
        added
    }

    fn add_once(
        &mut self,
        (zones, entries): (Vec<Zone>, &[Entry]),
        bound: Bound,
        oldest: u64,
    ) -> Result<()> {
        let mut runs = self.head.runs.clone();
        runs.retain(|run| run.segments.1 >= oldest);
        let next_zone = self.head.next_zone + zones.len() as u64;
        if !zones.is_empty() {
            let estimate = (entries.len() * 8 + zones.len() * 100) as u64;
            let zone = self.head.next_zone;
            let made = self.write(&runs, estimate, |file, room| {
                let entries = entries.iter().map(|entry| Ok(*entry));
                write_run(file, room, (zone, zones.clone()), entries)
            })?;
            runs.push(made);
        }
        while let Some(first) = self.to_merge(&runs, oldest)? {
            let together = runs.split_off(first);
            let estimate = together.iter().map(|run| run.end() - run.place).sum();
            let all: Vec<_> = runs.iter().chain(&together).copied().collect();
            let from = self.first_zone_of(&together, oldest)?;
            let made = self.write(&all, estimate, |file, room| {
                let mut merging = Merging::new(file, &together, from);
                let zones = merging.zones()?;
                let zone = from.max(together.first().map_or(0, |run| run.zone));
                write_run(file, room, (zone, zones), merging)
            })?;
            runs.push(made);
        }
        self.move_last(&mut runs)?;
        self.publish(Head {
            number: self.head.number + 1,
            journal_id: self.head.journal_id,
            bound,
            next_zone,
            runs,
        })
    }

    /// Tells from which run on all become one, if any do; the first one alone, where more than half of it was
    /// forgotten.
    fn to_merge(&self, runs: &[Extent], oldest: u64) -> Result<Option<usize>> {
        if let Some(together) = extent::due(runs) {
            return Ok(Some(runs.len() - together));
        }
        let Some(first) = runs.first().filter(|first| first.segments.0 < oldest) else {
            return Ok(None);
        };
        let left = first.end_zone() - self.first_zone_of(&[*first], oldest)?;
        Ok((left * 2 < first.zones && runs.len() == 1).then_some(0))
    }

    /// Gives the first zone of some runs that isn't forgotten.
    fn first_zone_of(&self, runs: &[Extent], oldest: u64) -> Result<u64> {
        let Some(first) = runs.first() else { return Ok(0) };
        match first.segments.0 < oldest {
            true => super::read::Lookup::new(self).first_of_segment(first, oldest),
            false => Ok(first.zone),
        }
    }

    /// Writes a run where there is room for it: in a gap that should be large enough, or else behind all others.
    fn write(
        &self,
        runs: &[Extent],
        estimate: u64,
        make: impl Fn(&Self, (u64, u64)) -> Result<Made>,
    ) -> Result<Extent> {
        let (gap, end) = self.gap(runs, estimate + estimate / 4 + 4 * PAGE as u64);
        for room in gap.into_iter().chain([(end, u64::MAX)]) {
            if let Made::Whole(made) = make(self, room)? {
                return Ok(made);
            }
        }
        Err(self.corrupt("has no room behind its end"))
    }

    /// Finds a gap of such a length between runs, those that a copy of the head leads to as well; gives where the last of
    /// all ends, too.
    fn gap(&self, runs: &[Extent], wanted: u64) -> (Option<(u64, u64)>, u64) {
        let all = self.taken().chain(runs);
        let mut taken: Vec<_> = all.map(|run| (run.place, run.end())).collect();
        taken.sort_unstable();
        let (mut gap, mut end) = (None, RUNS_AT);
        for (place, behind) in taken {
            if gap.is_none() && place.saturating_sub(end) >= wanted {
                gap = Some((end, place));
            }
            end = end.max(behind);
        }
        (gap, end)
    }

    /// Copies the last run in the file to a gap before it, where much of the file is free: so that it gets shorter once
    /// no copy of the head leads to the end.
    fn move_last(&self, runs: &mut [Extent]) -> Result<()> {
        let live: u64 = runs.iter().map(|run| run.end() - run.place).sum();
        let Some(last) = runs.iter().copied().max_by_key(|run| run.place) else { return Ok(()) };
        let len = last.end() - last.place;
        let is_sparse = last.end() > RUNS_AT + live + live / 2;
        let (gap, _) = self.gap(runs, len);
        let Some((to, _)) = gap.filter(|(to, _)| is_sparse && *to < last.place) else {
            return Ok(());
        };
        let mut bytes = vec![0; 64 * PAGE];
        for done in (0..len).step_by(bytes.len()) {
            let left = usize::try_from(len - done).unwrap_or(usize::MAX).min(bytes.len());
            let part = bytes.get_mut(..left).unwrap_or_default();
            let read = self.storage.read_at(last.place + done, part);
            read.map_err(|error| self.io("can't be read", error))?;
            let written = self.storage.write_at(to + done, part);
            written.map_err(|error| self.io("can't be written", error))?;
        }
        runs.iter_mut().filter(|run| run.place == last.place).for_each(|run| run.place = to);
        Ok(())
    }

    /// Gives the runs that a copy of the head leads to.
    fn taken(&self) -> impl Iterator<Item = &Extent> {
        self.head.runs.iter().chain(self.other.iter().flat_map(|other| &other.runs))
    }

    /// Gives where the last of them ends.
    fn end(&self) -> u64 {
        self.taken().map(Extent::end).max().unwrap_or(RUNS_AT)
    }

    fn publish(&mut self, head: Head) -> Result<()> {
        let io = |error| self.io("can't be written", error);
        self.storage.flush().map_err(io)?;
        let slot = 1 - self.slot;
        let at = HISTORY_AT.get(slot).copied().unwrap_or(0);
        self.storage.write_at(at, &head.encode()).map_err(io)?;
        if let Some(creation) = &self.creation {
            self.storage.flush().map_err(io)?;
            creation.finish(&*self.storage).map_err(io)?;
            self.creation = None;
        }
        self.slot = slot;
        self.other = Some(std::mem::replace(&mut self.head, head));
        // Never for little: freeing blocks makes some disks slow for a while.
        const WORTH: u64 = 1 << 20;
        let (len, end) = (self.len()?, self.end());
        if len.saturating_sub(end) >= WORTH.max(end / 4) {
            self.storage.set_len(end).map_err(|error| self.io("can't be made shorter", error))?;
        }
        Ok(())
    }

    /// Says that an index can't be used.
    #[cold]
    pub(super) fn corrupt(&self, what: impl Display) -> Error {
        corrupt(&self.shown, what)
    }

    #[cold]
    pub(super) fn io(&self, what: &str, error: io::Error) -> Error {
        Error::io(format!("{}: the history index {what}", self.shown), error)
    }
}

impl Creation {
    fn finish(&self, storage: &dyn Storage) -> io::Result<()> {
        let Self { directory, temporary, name } = self;
        directory.link(temporary, name)?;
        storage.renamed(name);
        // Should it stay, it is in nobody's way.
        let _ = directory.remove(temporary);
        directory.flush()
    }
}

fn corrupt(shown: &str, what: impl Display) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{shown}: the history index {what}; it is made anew, or delete it: nothing is lost by that"
        ),
    )
}

fn read_heads(storage: &dyn Storage) -> io::Result<[Option<Head>; 2]> {
    let mut heads = [None, None];
    for (head, at) in heads.iter_mut().zip(HISTORY_AT) {
        let mut bytes = [0; PAGE];
        if storage.read_at(at, &mut bytes)? == PAGE {
            *head = Head::decode(&bytes);
        }
    }
    Ok(heads)
}
