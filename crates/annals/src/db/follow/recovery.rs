//! The recovery of a journal at opening: asking before it, and keeping a copy.

use annals_storage::step;

use crate::db::follow::beside;
use crate::db::follow::options::Options;
use crate::db::follow::unapplied::Unapplied;
use crate::journal::format::Secret;
use crate::journal::{self, Recovery, Settled, Survey, Verdict, segments};
use crate::storage::{Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// The checks and copies around a recovery.
pub(in crate::db) struct Repair<'a> {
    pub(in crate::db) directory: &'a dyn Directory,
    pub(in crate::db) name: &'a str,
    pub(in crate::db) survey: &'a Survey,
    pub(in crate::db) recovery: Recovery,
    /// True if other processes have the file open too.
    pub(in crate::db) others: bool,
}

impl Repair<'_> {
    /// Makes the journal fit to be written, or refuses; asks and copies it before, if it isn't new.
    pub(in crate::db) fn settle(
        &self,
        options: &Options,
        storage: &dyn Storage,
        is_new: bool,
        secret: Secret,
    ) -> Result<Settled> {
        let copy = if is_new { None } else { self.ask(options, storage)? };
        let Self { directory, name, survey, recovery, others } = *self;
        let settle = if others { journal::settle_shared } else { journal::settle };
        let mut settled = settle(storage, directory, name, survey, recovery, secret)?;
        settled.recovered.copied_to = copy;
        Ok(if is_new { settled.just_created() } else { settled })
    }

    /// Leaves the journal as it is, since it holds a commit that doesn't apply; or refuses.
    pub(in crate::db) fn leave(&self, unapplied: &Unapplied) -> Result<Settled> {
        let shown = self.directory.display(self.name);
        journal::refuse(&shown, self.survey, self.recovery)?;
        let mut settled = journal::join(self.survey);
        settled.recovered.findings.push(unapplied.explain(&shown));
        Ok(settled)
    }

    /// Makes the name durable, and removes others that a power cut left. This is last: if that flush fails, it must
    /// not hide one that a new name needs. The next opening removes the rest; an erasure knows it, too.
    pub(in crate::db) fn keep_names(&self, storage: &dyn Storage, is_imaged: bool) -> Result<()> {
        let Self { directory, name, survey, others, .. } = *self;
        if !survey.has_fixed_len {
            keep_name(directory, name, survey, others, is_imaged)?;
        }
        if !others {
            let _ = beside::remove_second_names(directory, name, storage);
        }
        Ok(())
    }

    /// Calls the program's `ask` before a file is recovered, and copies the file if requested; returns the copy's
    /// name.
    fn ask(&self, options: &Options, storage: &dyn Storage) -> Result<Option<String>> {
        let Self { directory, name, survey, recovery, .. } = *self;
        let shown = directory.display(name);
        if let Some(before) = &options.before {
            journal::refuse(&shown, survey, recovery)?;
            if before.ask(survey).is_break() {
                let message =
                    format!("{shown}: the program decided not to open it; nothing was changed");
                return Err(Error::new(ErrorKind::Cancelled, message));
            }
        }
        if !options.copy_first || survey.verdict() != Verdict::Tail {
            return Ok(None);
        }
        journal::refuse(&shown, survey, recovery)?;
        journal::copy_whole(storage, directory, name, survey).map(Some)
    }
}

/// Makes the name of a segment without commits durable: the process that named it may have ended before it was. The
/// creator of an image of the segment knew that it was.
fn keep_name(
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    others: bool,
    is_imaged: bool,
) -> Result<()> {
    let header = &survey.head.header;
    let is_empty = survey.end == survey.head.start() && !others;
    let flushed = match header.segment {
        0 if is_empty => journal::keep_name(directory, name),
        1.. if survey.is_empty() && !is_imaged => {
            step!(RestartNotFlushed, segments::keep_path(directory, name, header), else Ok(()))
        }
        _ => Ok(()),
    };
    flushed.map_err(|error| {
        let shown = directory.display(name);
        Error::io(format!("{shown}: was empty, and its name can't be made durable"), error)
    })
}
