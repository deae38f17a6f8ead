//! States that are known besides the transactions: that of the image, and those with which segments begin.

use std::io;
use std::sync::Arc;

use annals::internals::beside::{self, Kind};
use annals::internals::{FrameFacts, Replay, Visitor, load_image, snapshot_of};
use annals::journal::Copies;
use annals::{Error, Point, Result, Snapshot, Txid};
use annals_journal::FrameReader;
use annals_journal::format::{FRAMES_AT, Header};
use annals_storage::{Access, Directory, Storage};
use annals_store::image::{self, Identity, Image, Opened, Slot, image_name};
use annals_store::{Pager, View};

/// One file of the history.
#[derive(Debug)]
pub(super) struct Part {
    /// The open file.
    pub(super) storage: Arc<dyn Storage>,
    /// Its name in messages.
    pub(super) shown: String,
    /// The number of the segment, as its header says, or its name.
    pub(super) number: u64,
    /// What its head has.
    pub(super) copies: Copies,
}

impl Part {
    /// Returns its header, from a copy that verifies.
    pub(super) fn header(&self) -> Option<&Header> {
        self.copies.headers.iter().flatten().next()
    }

    /// Returns the error that it can't be read.
    pub(super) fn unreadable(&self, error: io::Error) -> Error {
        Error::io(format!("{}: can't read this segment", self.shown), error)
    }
}

/// Returns the points of the roots of a journal's image, with their segments; none, if it is another journal's.
pub(super) fn image_roots(
    directory: &dyn Directory,
    journal: &str,
    id: &[u8; 16],
) -> Vec<(u64, Point)> {
    let name = image_name(journal);
    if !beside::is_of(directory, &name, Kind::Cache, id).unwrap_or(false) {
        return Vec::new();
    }
    let slots = image::slots(directory, &name).into_iter().flatten();
    let whole = slots.filter_map(|slot| match slot {
        Slot::Whole(root) => Some((root.segment, root.point)),
        _ => None,
    });
    whole.collect()
}

/// Loads the state of the image of a journal. `newest` is its newest file, and `header` the newest known header.
///
/// # Errors
/// `Corrupt`: it can't be used; `Io`.
pub(super) fn state_of_image(
    directory: &Arc<dyn Directory>,
    journal: &str,
    newest: &Part,
    header: &Header,
    memory: u64,
) -> Result<Option<Snapshot>> {
    let (journal_id, segment) = (header.journal_id, header.segment);
    let identity = Identity { journal_id, segment, segment_hash: header.hash() };
    match Image::open(directory, &image_name(journal), &identity, Access::Read)? {
        Opened::Missing => Ok(None),
        Opened::SetAside(aside) => Err(Error::corrupt(aside.reason)),
        Opened::Usable(usable) => {
            let (root, image) = (usable.root, Arc::new(usable.image));
            let keeps = root.memory() <= memory;
            let pager = Arc::new(Pager::new(Arc::clone(&image) as _, memory, keeps));
            let (_, view) =
                load_image(&usable.catalog, &pager).map_err(|error| error.within(image.path()))?;
            Ok(Some(snapshot(Arc::new(view), root.point, directory, journal, newest)))
        }
    }
}

/// Reads the state that a segment begins with.
///
/// # Errors
/// `Corrupt`: it isn't whole; `Io`.
pub(super) fn state_of_segment(
    directory: &Arc<dyn Directory>,
    journal: &str,
    part: &Part,
) -> Result<Snapshot> {
    let not_whole = || Error::corrupt(format!("{}: its state isn't whole", part.shown));
    let header = part.header().ok_or_else(not_whole)?;
    let io = |error| part.unreadable(error);
    let start = Point {
        position: FRAMES_AT,
        txid: Txid(header.first_txid.saturating_sub(1)),
        chain: header.hash(),
    };
    let len = part.storage.len().map_err(io)?;
    let mut reader =
        FrameReader::new(&*part.storage, header.hash(), start, len).confirming(&part.copies.slots);
    let mut replay = Replay::default();
    replay.begin(header);
    while reader.point().txid < Txid(header.first_txid) {
        let frame = reader.next().map_err(io)?.ok_or_else(not_whole)?;
        let facts = FrameFacts { end: u64::MAX, shown: &part.shown, is_repeated: false };
        replay.frame(&frame, &facts)?;
    }
    let (point, store) = (reader.point(), replay.finish());
    Ok(snapshot(Arc::clone(store.published()), point, directory, journal, part))
}

fn snapshot(
    view: Arc<View>,
    point: Point,
    directory: &Arc<dyn Directory>,
    journal: &str,
    part: &Part,
) -> Snapshot {
    let (storage, directory) = (Arc::clone(&part.storage), Arc::clone(directory));
    snapshot_of(view, point, storage, part.number, directory, journal)
}
