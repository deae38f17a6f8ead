//! Looking at an image from outside, without a lock.

use crate::db::follow::inspection::{ImageInspection, ImageRoot, OldestReader};
use crate::db::follow::witness::identity;
use std::time::Duration;

use annals_schema::Timestamp;

use crate::db::follow::segments::{Past, Since};
use crate::image::{Image, Opened, Root, Usable, image_name};
use crate::journal::Survey;
use crate::storage::{Access, Clock, Directory};
use crate::{Error, ErrorKind, Result};

/// The most roots with readers that are listed.
const MOST: usize = 100;

/// Examines the image of a journal; `None` if there is none.
pub(in crate::db) fn inspect(
    directory: &dyn Directory,
    journal: &str,
    survey: &Survey,
    clock: &dyn Clock,
) -> Option<ImageInspection> {
    if survey.has_fixed_len {
        return None;
    }
    let identity = identity(&survey.head);
    let name = image_name(journal);
    let (path, directory) = (directory.display(&name), directory.again());
    let (mut len, mut readers, mut key_frames) = (0, Vec::new(), Vec::new());
    let newest = match Image::open(&directory, &name, &identity, Access::Read) {
        Ok(Opened::Missing) => return None,
        Ok(Opened::Usable(usable)) => {
            let frames = usable.image.frames_of(&usable.root);
            key_frames = frames.iter().map(|frame| frame.point.txid).collect();
            let mut look = || {
                len = usable.image.len()?;
                readers = readers_of(&usable, clock.now());
                let since = Since { segment: usable.root.segment, point: usable.root.point };
                let past = Past::since(&*directory, journal, &survey.head.header, since)?;
                root_of(&usable.root, past, survey)
            };
            look()
        }
        Ok(Opened::SetAside(aside)) => Err(Error::corrupt(aside.reason)),
        Err(error) => Err(error),
    };
    if len == 0 {
        len = directory.open(&name, Access::Read).and_then(|file| file.len()).unwrap_or(0);
    }
    let newest = newest.map_err(|error| error.to_string());
    Some(ImageInspection { path, len, newest, key_frames, readers })
}

/// Returns who reads older roots.
fn readers_of(usable: &Usable, now: i64) -> Vec<OldestReader> {
    let Usable { image, root, .. } = usable;
    let pinned = image.pinned(0..root.number, MOST).unwrap_or_default();
    let reader = |older| {
        let age = image.replaced_before(older).map(|then| {
            Duration::from_micros(u64::try_from(now.saturating_sub(then)).unwrap_or(0))
        });
        OldestReader { pid: image.pinned_by(older), root: older, age }
    };
    pinned.into_iter().map(reader).collect()
}

/// Describes a root, given the history after it.
fn root_of(root: &Root, past: Option<Past>, survey: &Survey) -> Result<ImageRoot> {
    let past = past.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "what it stands for was forgotten: the next opening makes another",
        )
    })?;
    Ok(ImageRoot {
        number: root.number,
        txid: root.point.txid,
        segment: root.segment,
        position: root.point.position,
        time: Timestamp(root.time),
        written: root.bytes,
        tail: (past.bytes() + survey.end.position).saturating_sub(root.point.position),
    })
}
