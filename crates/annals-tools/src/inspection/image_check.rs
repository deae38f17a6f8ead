//! Verifying the image of a journal without opening, for people: its checksums, its journal, and its contents.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{
    advance_to, difference, is_damaged, locate, open_from_image, open_to_read, warn_of_image, watch,
};
use annals::{Error, ErrorKind, Options, Result, Snapshot, Txid};
use annals_storage::{Directory, Storage, SystemClock};
use annals_store::image::{self, Report, Slot};

/// The findings in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageCheck {
    /// The path of the image.
    pub path: String,
    /// The number of the root that opening takes, which is that of the backfill that made it; 0 if there is
    /// none.
    pub root: u64,
    /// The last transaction that the image has.
    pub txid: Txid,
    /// The end of that transaction in the journal, in bytes.
    pub position: u64,
    /// How many objects verified: pages, long values, nodes of the directory, and catalogs.
    pub objects: u64,
    /// How many bytes those have.
    pub bytes: u64,
    /// How many bytes of the file are used, in whole units of 4 KiB.
    pub used: u64,
    /// How many bytes of the file are free.
    pub free: u64,
    /// The length of the file in bytes.
    pub len: u64,
    /// In which of the two root slots a copy doesn't verify. That is no damage after a backfill that was
    /// interrupted, and the next one writes such a slot first.
    pub torn: [bool; 2],
    /// The first thing that is wrong, with its place.
    pub problem: Option<String>,
}

/// The result of comparing the state of an image with a replay of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageComparison {
    /// The last transaction of both states.
    pub txid: Txid,
    /// The last transaction in the image itself.
    pub image_txid: Txid,
    /// The first thing in which they differ.
    pub difference: Option<String>,
}

/// The number of times that a seemingly wrong image is read again, if another process has updated it meanwhile.
const LOOKS: usize = 5;

/// Verifies all of the image beside a journal, and that it belongs to that journal; `None` if there is none. Takes no
/// lock except on the roots that it reads, so that their space isn't overwritten, and writes nothing; problems are
/// part of the answer. Nothing is lost by that: the image has no data that the journal lacks.
///
/// Cost: reads all of the image once, and the journal after the image's point.
///
/// # Errors
/// `Io`, also if there is an image that can't be opened; and those of the journal's head: `NotFound`,
/// `NotAJournal`, `Unsupported`, `Corrupt`.
pub fn check_image(options: &Options, path: impl AsRef<Path>) -> Result<Option<ImageCheck>> {
    let (directory, name) = locate(path.as_ref())?;
    check_image_in(options, &directory, &name)
}

/// Does what [`check_image`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`check_image`].
pub fn check_image_in(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
) -> Result<Option<ImageCheck>> {
    let image = image::image_name(name);
    let mut looks = 0;
    loop {
        let (storage, _) = open_to_read(&**directory, name)?;
        if storage.has_fixed_len() {
            return Ok(None);
        }
        let report = match image::check(directory, &image, &SystemClock) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            report => report?,
        };
        looks += 1;
        let mut check = told(directory.display(&image), &report);
        if report.problem.is_none() {
            check.problem = open_from_image(options, directory, name, &storage, None)?.reason;
        }
        // The space of an older root is overwritten in time, and a newer root may be of the next segment.
        let is_as_before = || {
            storage.is_linked().unwrap_or(true)
                && image::slots(&**directory, &image) == report.slots
        };
        if check.problem.is_none() || looks == LOOKS || is_as_before() {
            if let Some(problem) = &check.problem {
                warn_of_image(problem);
            }
            return Ok(Some(check));
        }
    }
}

/// Compares the state of an image with one from a replay of the journal, as [`examine`](crate::examine) returns it: the
/// schema, all rows with their values, next ids, the order of indexes, positions of blobs. `None` if there is no
/// image. Takes no lock and writes nothing. Newer commits of others are first replayed after that state, so that both
/// end with the same transaction.
///
/// Cost: reads all of the image once, and the journal after it; memory for all of that.
///
/// # Errors
/// `Corrupt` if the image can't be used, or the journal is damaged; `Busy` if commits were taken back
/// meanwhile, in a recovery; else as [`check_image`]; `Cancelled`.
pub fn compare_image(
    options: &Options,
    path: impl AsRef<Path>,
    replayed: &Snapshot,
) -> Result<Option<ImageComparison>> {
    let (directory, name) = locate(path.as_ref())?;
    compare_image_in(options, &directory, &name, replayed)
}

/// Does what [`compare_image`] does, in a directory that the caller passes.
///
/// # Errors
/// As [`compare_image`].
pub fn compare_image_in(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
    replayed: &Snapshot,
) -> Result<Option<ImageComparison>> {
    let mut looks = 0;
    loop {
        let (storage, _) = open_to_read(&**directory, name)?;
        let compared = compare(options, directory, name, &storage, replayed);
        looks += 1;
        let is_same = matches!(&compared, Ok(Some(same)) if same.difference.is_none());
        // The image may be of the next segment by now.
        if is_same || looks == LOOKS || storage.is_linked().unwrap_or(true) {
            return compared;
        }
    }
}

fn compare(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
    storage: &Arc<dyn Storage>,
    replayed: &Snapshot,
) -> Result<Option<ImageComparison>> {
    let watch = watch(options);
    let found = open_from_image(options, directory, name, storage, watch.as_ref())?;
    let unusable = |reason| Err(Error::corrupt(reason));
    let Some(begun) = found.begun else { return found.reason.map_or(Ok(None), unusable) };
    let shown = directory.display(name);
    if is_damaged(&begun.survey) {
        return Err(begun.survey.damage(&shown));
    }
    if !begun.is_used {
        return unusable(found.reason.unwrap_or_default());
    }
    let end = begun.survey.end;
    if replayed.txid() > end.txid {
        let txid = replayed.txid();
        let message = format!(
            "{shown}: transaction {txid} was taken back, in a recovery, while it was checked: check it again"
        );
        return Err(Error::new(ErrorKind::Busy, message));
    }
    let replayed = advance_to(replayed, storage, end)?;
    let difference = difference(&begun.view, &replayed)?;
    Ok(Some(ImageComparison { txid: end.txid, image_txid: begun.root, difference }))
}

fn told(path: String, report: &Report) -> ImageCheck {
    let point = report.root.map(|root| root.point);
    let is_torn = |slot| matches!(slot, Slot::First(_) | Slot::Torn);
    ImageCheck {
        path,
        root: report.root.map_or(0, |root| root.number),
        txid: point.map_or(Txid(0), |point| point.txid),
        position: point.map_or(0, |point| point.position),
        objects: report.objects,
        bytes: report.bytes,
        used: report.used,
        free: report.free,
        len: report.len,
        torn: report.slots.map_or([false; 2], |slots| slots.map(is_torn)),
        problem: report.problem.clone(),
    }
}
