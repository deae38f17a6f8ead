//! Opening with care: telling how far it has come, asking before a recovery, keeping a copy.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::beside;
use super::image::check_end;
use super::inspect::{self, Examination, Inspection};
use super::options::{Options, locate};
use super::past::{Opened, Past};
use super::progress::{Progress, Watch, Watched};
use super::scan::{self, Sink};
use super::unapplied::Unapplied;
use crate::journal::format::Secret;
use crate::journal::{self, Recovery, Settled, Survey, Verdict, segments};
use crate::mistakes::{Mistake, is_made};
use crate::storage::{Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// What a program is asked.
type Ask = dyn Fn(&Inspection) -> ControlFlow<()> + Send + Sync;

/// Whom to ask.
#[derive(Clone)]
pub(super) struct Before(Arc<Ask>);

impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Before")
    }
}

impl Options {
    /// Lets `watch` be told how much of a file has been read: when reading begins and about every MiB.
    /// If it answers [`ControlFlow::Break`], what was to be done is an error of kind `Cancelled`, and
    /// nothing was changed.
    #[must_use]
    pub fn on_progress(
        mut self,
        watch: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.watch = Some(Watch(Arc::new(watch)));
        self
    }

    /// Lets `ask` see what is in an existing file, after that was read and judged and before anything
    /// is changed, with the end to which [`recovery`](Self::recovery) will bring it. Meanwhile the file
    /// is locked. If it answers [`ControlFlow::Break`], opening for writing is an error of kind
    /// `Cancelled`, and nothing was changed.
    #[must_use]
    pub fn before_recovery(
        mut self,
        ask: impl Fn(&Inspection) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.before = Some(Before(Arc::new(ask)));
        self
    }

    /// Sets whether the whole file is copied beside itself before anything is cut off it, as
    /// `NAME.before-recovery-TXID-CHAIN`. Without space for that, opening is an error.
    #[must_use]
    pub const fn copy_first(mut self, copy: bool) -> Self {
        self.copy_first = copy;
        self
    }

    /// Sets whether [`salvage`](Self::salvage) also takes transactions after damage that nothing proves to be of this
    /// history: anybody can have stored bytes in a value that look like frames.
    #[must_use]
    pub const fn unproven(mut self, unproven: bool) -> Self {
        self.unproven = unproven;
        self
    }

    /// Reads the whole history of a file, as [`scan`](crate::scan) does.
    ///
    /// # Errors
    /// As [`scan`](crate::scan); `Cancelled`.
    pub fn scan(&self, path: impl AsRef<Path>, sink: &mut impl Sink) -> Result<()> {
        let (directory, name) = locate(path.as_ref())?;
        self.scan_in(&*directory, &name, sink)
    }

    /// As [`Self::scan`], in any directory.
    ///
    /// # Errors
    /// As [`Self::scan`].
    pub fn scan_in(
        &self,
        directory: &dyn Directory,
        name: &str,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let Opened { storage, shown, past, witnesses } = Opened::new(directory, name, Past::whole)?;
        let (past, watch) = (past?, self.watch.as_ref());
        let watched = Watched::new(&*storage, watch);
        let is_whole = |survey: &Survey| check_end(&witnesses, survey, directory, name, &*storage);
        scan::scan_storage(&watched, (&shown, &past), is_whole, sink)
            .map_err(|error| watched.explain(error, &shown))
    }

    /// Looks at a file and builds its state, as [`examine`](crate::examine) does, with the end to which
    /// [`recovery`](Self::recovery) would bring it.
    ///
    /// # Errors
    /// As [`examine`](crate::examine); `Cancelled`.
    pub fn examine(&self, path: impl AsRef<Path>) -> Result<Examination> {
        let (directory, name) = locate(path.as_ref())?;
        self.examine_in(&*directory, &name)
    }

    /// As [`Self::examine`], in any directory.
    ///
    /// # Errors
    /// As [`Self::examine`].
    pub fn examine_in(&self, directory: &dyn Directory, name: &str) -> Result<Examination> {
        let opened = match Opened::new(directory, name, Past::whole)? {
            Opened { past: Err(error), .. } if inspect::says_nothing(&error) => return Err(error),
            opened => opened,
        };
        inspect::examine_storage((directory, name), &opened, self)
    }
}

/// What there is to be careful with.
pub(super) struct Careful<'a> {
    pub(super) directory: &'a dyn Directory,
    pub(super) name: &'a str,
    pub(super) survey: &'a Survey,
    pub(super) recovery: Recovery,
    /// Whether other processes have the file open too.
    pub(super) others: bool,
}

impl Careful<'_> {
    /// Makes the journal fit to be written, or refuses; asks and copies it before, if it isn't new.
    pub(super) fn settle(
        &self,
        options: &Options,
        storage: &dyn Storage,
        is_new: bool,
        secret: Secret,
    ) -> Result<Settled> {
        let copy = if is_new { None } else { self.ask(options, storage)? };
        let Self { directory, name, survey, recovery, others } = *self;
        let settle = if others { journal::settle_among_others } else { journal::settle };
        let mut settled = settle(storage, directory, name, survey, recovery, secret)?;
        settled.recovered.copied_to = copy;
        Ok(if is_new { settled.just_created() } else { settled })
    }

    /// Leaves the journal as it is, since it holds a commit that doesn't apply; or refuses.
    pub(super) fn leave(&self, unapplied: &Unapplied) -> Result<Settled> {
        let shown = self.directory.display(self.name);
        journal::refuse(&shown, self.survey, self.recovery)?;
        let mut settled = journal::join(self.survey);
        settled.recovered.findings.push(unapplied.explain(&shown));
        Ok(settled)
    }

    /// Makes the name durable, and removes others that a power cut left. That comes last: a flush that fails
    /// then must not hide one that a new name needs. What stays is removed by the next opening; an erasure
    /// knows it, too.
    pub(super) fn keep_names(&self, storage: &dyn Storage, is_imaged: bool) -> Result<()> {
        let Self { directory, name, survey, others, .. } = *self;
        if !survey.has_fixed_len {
            keep_name(directory, name, survey, (others, is_imaged))?;
        }
        if !others {
            let _ = beside::remove_second_names(directory, name, storage);
        }
        Ok(())
    }

    /// Asks whoever is to be asked before a file is recovered, and copies it if that is wanted; gives
    /// what the copy is called.
    fn ask(&self, options: &Options, storage: &dyn Storage) -> Result<Option<String>> {
        let Self { directory, name, survey, recovery, .. } = *self;
        let shown = directory.display(name);
        if let Some(before) = &options.before {
            journal::refuse(&shown, survey, recovery)?;
            let inspection = inspect::inspection(survey, &shown);
            if (before.0)(&inspection).is_break() {
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

/// Makes the name of a segment durable in which nothing was committed yet: whoever gave it that may have
/// ended before it was. An image that stands for the segment was made by somebody who knew that it was.
fn keep_name(
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    (others, is_imaged): (bool, bool),
) -> Result<()> {
    let header = &survey.head.header;
    let is_empty = survey.end == survey.head.start() && !others;
    let flushed = match header.segment {
        0 if is_empty => journal::keep_name(directory, name),
        1.. if survey.is_empty() && !is_imaged && !is_made(Mistake::RestartNotFlushed) => {
            segments::keep_path(directory, name, header)
        }
        _ => Ok(()),
    };
    flushed.map_err(|error| {
        let shown = directory.display(name);
        Error::io(format!("{shown}: was empty, and its name can't be made durable"), error)
    })
}
