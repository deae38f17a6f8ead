//! Looking at an image from outside, without a lock.

use std::time::Duration;

use annals::internals::{Past, Since, identity};
use annals::journal::Survey;
use annals::reports::OldestReader;
use annals::{Error, ErrorKind, Result, Timestamp, Txid};
use annals_storage::{Access, Clock, Directory};
use annals_store::image::{Image, Opened, Root, Usable, image_name};

/// Facts of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageInspection {
    /// Its path.
    pub path: String,
    /// The length of the file in bytes.
    pub len: u64,
    /// The newest root that can be relied on; or why there is none.
    pub newest: std::result::Result<ImageRoot, String>,
    /// The last transactions of the older states that it keeps as key frames, in order.
    pub key_frames: Vec<Txid>,
    /// The readers of older roots, oldest first, whose space isn't reused meanwhile.
    pub readers: Vec<OldestReader>,
}

/// A root of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageRoot {
    /// The root's number, which is the number of the backfill that made it.
    pub number: u64,
    /// The last transaction in it.
    pub txid: Txid,
    /// The segment of the journal in which that transaction is.
    pub segment: u64,
    /// The end of that transaction in the segment, in bytes.
    pub position: u64,
    /// When its backfill began.
    pub time: Timestamp,
    /// How many bytes its backfill wrote.
    pub written: u64,
    /// How many bytes the journal has after it, which an opening replays.
    pub tail: u64,
}

/// The most roots with readers that are listed.
const MOST: usize = 100;

/// Examines the image of a journal; `None` if there is none.
pub(super) fn inspect(
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
