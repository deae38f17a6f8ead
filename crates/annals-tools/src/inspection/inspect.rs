//! Inspecting a journal file without opening it: its head, its checkpoints, the bytes after its end, and the verdict.

use std::ops::Deref;
use std::path::Path;

use annals::internals::{
    FrameSource, Watched, check_end, image_witnesses, is_damaged, locate_continued, open_to_read,
    watch,
};
use annals::journal::{Copies, Recovery, Survey};
use annals::{Error, ErrorKind, Options, Result};
use annals_journal::{Head, Rule};
use annals_storage::{Directory, Storage, SystemClock};
use annals_store::image::Witness;

use super::history::{self, HistoryInspection};
use super::image::{self, ImageInspection};

/// What a journal file has, and the image beside it. The findings in the file itself are those of the [`Survey`].
#[derive(Clone, Debug)]
pub struct Inspection {
    survey: Survey,
    /// The image beside it; `None` if there is none, or if it wasn't examined.
    pub image: Option<ImageInspection>,
    /// The history index in the image; `None` if there is none, or if it wasn't examined.
    pub history: Option<HistoryInspection>,
    /// The damage, if there is any: something was durable and doesn't verify any more.
    pub damage: Option<String>,
}

impl Deref for Inspection {
    type Target = Survey;

    fn deref(&self) -> &Survey {
        &self.survey
    }
}

impl Inspection {
    /// Describes a journal, without the files beside it.
    pub(super) fn of(survey: Survey, shown: &str) -> Self {
        let damage = is_damaged(&survey).then(|| survey.damage(shown).to_string());
        Self { survey, image: None, history: None, damage }
    }

    /// Checks that the journal has all commits that the files beside it prove durable. If not, notes the damage.
    pub(super) fn against(
        mut self,
        witnesses: &[Witness],
        directory: &dyn Directory,
        name: &str,
        storage: &dyn Storage,
    ) -> Result<Self> {
        if self.damage.is_none()
            && let Err(error) = check_end(witnesses, &self, directory, name, storage)
        {
            if says_nothing(&error) {
                return Err(error);
            }
            self.damage = Some(error.to_string());
        }
        Ok(self)
    }

    /// Examines the image and the history index, too.
    pub(super) fn with_image(mut self, directory: &dyn Directory, name: &str) -> Self {
        self.image = image::inspect(directory, name, &self, &SystemClock);
        self.history = history::inspect(directory, name, &self);
        self
    }
}

/// Reads only the first 16 KiB of a journal file. Takes no lock and writes nothing; damage is part of
/// the answer.
///
/// # Errors
/// `NotFound`, `Io`; `NotAJournal` if there is neither a header nor a slot.
pub fn inspect_head(path: impl AsRef<Path>) -> Result<Copies> {
    let (directory, name) = locate_continued(path.as_ref())?;
    inspect_head_in(&*directory, &name)
}

/// Does what [`inspect_head`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`inspect_head`].
pub fn inspect_head_in(directory: &dyn Directory, name: &str) -> Result<Copies> {
    let (storage, shown) = open_to_read(directory, name)?;
    let io = |error| Error::io(format!("{shown}: can't read it"), error);
    let copies = Copies::read(&*storage).map_err(io)?;
    if copies.is_empty() {
        let message =
            format!("{shown}: neither a header nor a slot of a journal is there; check the path");
        return Err(Error::new(ErrorKind::NotAJournal, message));
    }
    Ok(copies)
}

/// Examines a journal file. Writes nothing. Takes a single lock for a moment, which prevents removal of older
/// segments while they are read; damage is part of the answer.
///
/// Cost: reads the file once, and the bytes after its end again if there seems to be a problem.
///
/// # Errors
/// `NotFound`, `NotAJournal`, `Unsupported`, `Io`; `Cancelled`; `Corrupt` if not even a header is left.
pub fn inspect(options: &Options, path: impl AsRef<Path>) -> Result<Inspection> {
    let (directory, name) = locate_continued(path.as_ref())?;
    inspect_in(options, &*directory, &name)
}

/// Does what [`inspect`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_in(options: &Options, directory: &dyn Directory, name: &str) -> Result<Inspection> {
    let (storage, shown) = open_to_read(directory, name)?;
    let watch = watch(options);
    let watched = Watched::new(&*storage, watch.as_ref());
    // They are read before the journal, so that it has at least their transactions.
    let head = Head::read(&*storage, &shown);
    let witnesses = head.map(|head| image_witnesses(directory, name, &head)).unwrap_or_default();
    // Seeming damage from another process's writing disappears at the next read.
    let rule = Rule::new(Recovery::Checked);
    let source = FrameSource { past: None, storage: &watched, shown: &shown };
    let (survey, ()) = source.survey(rule, is_damaged, || ())?;
    Ok(Inspection::of(survey, &shown)
        .against(&witnesses, directory, name, &*storage)?
        .with_image(directory, name))
}

/// True if an error means only that a file couldn't be read, and nothing about its contents.
pub(super) fn says_nothing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Busy | ErrorKind::Cancelled)
}
