//! Updating a copy from its source.
//!
//! ```text
//! 1. open the source's segments from the copy's newest one on, and the copy, if there is one
//! 2. see that the source has the copy's end: the same transaction, with the same chain
//! 3. copy what follows, verified, to each seal; there the copy continues in a new segment as the source did
//! 4. of the newest segment copy what is known to be on permanent storage
//! ```
//!
//! A segment without commits replaces another one like it: an interrupted restart, here or there, is completed with
//! another header each time.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{locate, watch};
use annals::{Error, Options, Result};
use annals_journal::Point;
use annals_storage::{Clock, Directory, SystemClock};

use super::source::{Part, Source};
use super::target::Target;
use super::{Meter, differs};

/// The report of copying a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// True if the copy was created.
    pub is_new: bool,
    /// How many transactions were copied, not counting states that segments begin with.
    pub transactions: u64,
    /// The last transaction of the copy, and its chain; the position is that in its newest segment.
    pub end: Point,
    /// The number of its newest segment.
    pub segment: u64,
    /// How many transactions were committed that aren't known to be on permanent storage yet, and therefore
    /// weren't copied.
    pub soft: u64,
}

/// Prepares updating a copy `to` from a database `from`. Nothing is opened yet.
///
/// # Errors
/// `Io` if a path can't be used.
pub fn push(options: &Options, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Push> {
    let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
    Ok(push_in(options, from.0, &from.1, to.0, &to.1, Arc::new(SystemClock)))
}

/// Does what [`push`] does, with directories and a clock that the caller passes.
#[must_use]
pub fn push_in(
    options: &Options,
    from: Arc<dyn Directory>,
    name: &str,
    to: Arc<dyn Directory>,
    new_name: &str,
    clock: Arc<dyn Clock>,
) -> Push {
    Push {
        source: Source::new(from, name),
        directory: to,
        name: new_name.to_owned(),
        clock,
        target: None,
        meter: Meter::new(watch(options)),
    }
}

/// Updates a copy of a database from it: once, or repeatedly while others write it.
///
/// The copy has the same frames, byte for byte, and so the same txids and chains. It continues in a new segment where
/// the original does. It is a database at every moment, also after a crash, and others may read it meanwhile. Only
/// transactions are copied that are known to be on permanent storage. (A half commit at the very end is, though a
/// power cut may still undo it, as `docs/crash.md` says.)
///
/// ```
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (path, copy) = (folder.path().join("a.annals"), folder.path().join("copy.annals"));
/// let database = annals::Database::open(&path)?;
/// database.write(|tx| tx.comment("one"))?;
/// database.hard_checkpoint()?; // so that all is known to be hard
/// let options = annals::Options::new();
/// let mut push = annals_tools::push(&options, &path, &copy)?;
/// assert_eq!(push.bring_up()?.transactions, 1);
/// database.write(|tx| tx.comment("two"))?;
/// database.hard_checkpoint()?;
/// assert_eq!(push.bring_up()?.transactions, 1);
/// push.close()?;
/// let [there, here] = [&copy, &path].map(|path| annals_tools::inspect(&options, path));
/// assert_eq!(there?.end, here?.end);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Push {
    source: Source,
    directory: Arc<dyn Directory>,
    name: String,
    clock: Arc<dyn Clock>,
    target: Option<Target>,
    meter: Meter,
}

impl Push {
    /// Copies all existing commits; creates the copy if there is none, with all kept history. No other process may
    /// have the copy open for writing. The copy is locked from now on.
    ///
    /// After an error it may be called again: the copy is recovered, and continues after its last
    /// transaction.
    ///
    /// Cost: reads and writes new frames, with a flush for each 16 MiB, and for each call that copies something.
    ///
    /// # Errors
    /// `Diverged` if the copy isn't the beginning of the original, naming the last common transaction. `NotFound` if
    /// there is no original, or if it has forgotten history that the copy needs. `Busy` if another process has the
    /// copy open for writing; `Corrupt`; `Unsupported`; `Cancelled`; `Io`.
    pub fn bring_up(&mut self) -> Result<Copied> {
        let directory = self.source.like(Arc::clone(&self.directory), &self.name)?;
        // After an error the end of the copy is unknown: it is reopened and recovered.
        let target = match self.target.take() {
            Some(target) => {
                target.see_path()?;
                Some(target)
            }
            None => Target::open(&directory, &self.name, &*self.clock)?,
        };
        let (target, copied) = self.bring_up_from(target, &directory)?;
        self.target = Some(target);
        Ok(copied)
    }

    fn bring_up_from(
        &mut self,
        target: Option<Target>,
        directory: &Arc<dyn Directory>,
    ) -> Result<(Target, Copied)> {
        let parts = self.source.look(target.as_ref().map(|target| target.header.segment))?;
        let is_new = target.is_none();
        let (mut target, before) = match (target, parts.first()) {
            (Some(mut target), Some(first)) => {
                let before = target.end.txid.0;
                self.check(&mut target, first)?;
                (target, before)
            }
            (_, first) => {
                let first = first.ok_or_else(|| Error::invalid("a journal has a segment"))?;
                let target = Target::create(directory, &self.name, first, &*self.clock)?;
                let before = first.header().first_own_txid() - 1;
                (target, before)
            }
        };
        let mut total = 0;
        for part in &parts {
            total += part.len()?;
        }
        let known = target.end.position;
        self.meter.begin(total.saturating_sub(known));
        let soft = match self.copy_all(&mut target, &parts) {
            Ok(soft) => soft,
            Err(error) if is_new => return Err(self.leave(&target, before, error)),
            Err(error) => return Err(error),
        };
        let (end, segment) = (target.end, target.header.segment);
        Ok((target, Copied { is_new, transactions: end.txid.0 - before, end, segment, soft }))
    }

    /// Copies the commits that the copy lacks; returns how many transactions aren't hard.
    fn copy_all(&mut self, target: &mut Target, parts: &[Part]) -> Result<u64> {
        for (place, part) in parts.iter().enumerate() {
            let Some(next) = parts.get(place + 1) else {
                return self.copy_newest(target, part);
            };
            if let Some(sealing) = target.copy(part, part.len()?, &mut self.meter)? {
                target.go_on(&sealing, next, &*self.clock)?;
            }
        }
        Ok(0)
    }

    /// Returns the remains of a new copy that can't be finished: nothing, if it has no transaction yet.
    fn leave(&self, target: &Target, before: u64, error: Error) -> Error {
        if target.end.txid > annals::Txid(before) {
            let (shown, last) = (&target.place.shown, target.end.txid);
            return error.advising(format_args!(
                "{shown} has the transactions up to {last}: push again to continue from there"
            ));
        }
        match self.directory.remove(&self.name).and_then(|()| self.directory.flush()) {
            Ok(()) => error,
            Err(_) => error.advising(format_args!("{} is empty: remove it", target.place.shown)),
        }
    }

    /// Copies the hard part of the newest segment: first up to the slot's point, then frames after that. Returns how
    /// many transactions aren't hard.
    fn copy_newest(&mut self, target: &mut Target, part: &Part) -> Result<u64> {
        let slot = part.head.newest_slot().map_or(0, |slot| slot.point.position);
        if slot > target.end.position {
            target.copy(part, slot, &mut self.meter)?;
        }
        let (hard, last) = self.source.hard(part, target.end)?;
        if hard > target.end.position {
            target.copy(part, hard, &mut self.meter)?;
        }
        Ok(last.saturating_sub(target.end.txid.0))
    }

    /// Checks that the copy is the beginning of the source; `first` is the oldest segment that was searched for.
    fn check(&self, target: &mut Target, first: &Part) -> Result<()> {
        let header = first.header();
        if header.journal_id != target.header.journal_id {
            return Err(differs::another(&self.source, target));
        }
        if header.segment > target.header.segment {
            let lacks = target.end.txid.0 + 1;
            return Err(self.source.forgotten(&target.place.shown, lacks, header.first_own_txid()));
        }
        if first.head.hash == target.header.hash() && differs::has(first, target.end)? {
            return Ok(());
        }
        let is_in_its_place = header.segment == target.header.segment
            && header.previous_chain == target.header.previous_chain
            && header.first_own_txid() == target.header.first_own_txid();
        if target.is_empty() && is_in_its_place && header.segment > 0 {
            return target.replace(first, &*self.clock);
        }
        let mut copy = Source::new(Arc::clone(&self.directory), &self.name);
        Err(differs::error(&self.source, target, &mut copy))
    }

    /// Closes the copy properly. Without this the next one to open it recovers it, and nothing is lost.
    ///
    /// # Errors
    /// `Io`; `Poisoned` after a failed flush.
    pub fn close(self) -> Result<()> {
        self.target.as_ref().map_or(Ok(()), Target::close)
    }
}
