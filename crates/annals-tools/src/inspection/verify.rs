//! Verifying a journal whose state is in an image: every frame is read, and no event applied again.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{
    Opened, Past, Replay, Watched, is_damaged, locate_continued, open_from_image, recovery, watch,
};
use annals::journal::Recovery;
use annals::{Options, Result, Schema};
use annals_storage::Directory;

use super::examine::{Examination, Examining, Reached, examine_in};
use super::findings::Events;
use super::inspect::says_nothing;

/// Verifies a journal file, as [`examine`](crate::examine) does, and takes its state from the image. The events before
/// the image's newest root are decoded, and not applied again. Where there is no image that can be used, it examines
/// the file. Writes nothing; damage is part of the answer.
///
/// Cost: reads the file once, and the bytes after its end again if there seems to be a problem; opens for reading.
///
/// # Errors
/// As [`examine`](crate::examine).
pub fn verify(options: &Options, path: impl AsRef<Path>) -> Result<Examination> {
    let (directory, name) = locate_continued(path.as_ref())?;
    verify_in(options, &*directory, &name)
}

/// Does what [`verify`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`verify`].
pub fn verify_in(options: &Options, directory: &dyn Directory, name: &str) -> Result<Examination> {
    let opened = match Opened::new(directory, name, Past::whole)? {
        Opened { past: Err(error), .. } if says_nothing(&error) => return Err(error),
        opened => opened,
    };
    // Without a root of an image the state is the result of a replay.
    if opened.witnesses.is_empty() || recovery(options) != Recovery::Checked {
        drop(opened);
        return examine_in(options, directory, name);
    }
    let watch = watch(options);
    let watched = Watched::new(&*opened.storage, watch.as_ref());
    let examining = Examining { directory, name, opened: &opened, options };
    let (survey, found) = examining.survey(&watched, || Events::Decoded(Schema::default()))?;
    let end = survey.end;
    if is_damaged(&survey) || found.problem_before(end.position).is_some() {
        let view = Arc::clone(Replay::default().finish().published());
        let reached = Reached { view, point: end, unapplied: None, is_replayed: false };
        return examining.told(survey, found, reached);
    }
    let image = open_from_image(options, &directory.again(), name, &opened.storage, None);
    let begun = match image {
        Err(error) if says_nothing(&error) => return Err(error),
        image => image.ok().and_then(|image| image.begun),
    };
    match begun.filter(|it| it.is_used && it.is_whole && !is_damaged(&it.survey)) {
        Some(begun) => {
            let (view, point) = (begun.view, begun.survey.end);
            let reached = Reached { view, point, unapplied: None, is_replayed: false };
            examining.told(survey, found, reached)
        }
        None => {
            drop(opened);
            examine_in(options, directory, name)
        }
    }
}
