//! Images by their bytes, for fuzzing.

use annals_schema::Txid;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalog::{Catalog, Kind};
use super::format::{self, FANOUT, IMAGE_HEADER_LEN, ROOT_AT, ROOT_COPY_AT, ROOT_LEN};
use super::miniature::{Changes, Next, advance, arrays, content};
use super::open::{Opened, Usable};
use super::stored::Stored;
use super::{Identity, Image, check};
use crate::{Error, Result};
use annals_storage::Point;
use annals_storage::bytes::hash;
use annals_storage::{Access, Clock, Directory, SystemClock};

/// The contents of an image: its arrays, and its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The objects of each array, by number.
    pub arrays: Vec<BTreeMap<u64, Vec<u8>>>,
    /// The metadata.
    pub metadata: Vec<u8>,
}

/// Checks an image; returns the first thing that is wrong with it.
///
/// # Errors
/// `NotFound`, `Io`.
pub fn problem(directory: &Arc<dyn Directory>, name: &str) -> Result<Option<String>> {
    check::check(directory, name, &SystemClock).map(|report| report.problem)
}

/// Opens an image of whatever journal it says, for reading only; `false` if it can't be used.
///
/// # Errors
/// `Io`.
pub fn can_be_used(directory: &Arc<dyn Directory>, name: &str) -> Result<bool> {
    usable(directory, name, Access::Read).map(|usable| usable.is_some())
}

/// Reads all that an image holds, in which a check found nothing wrong.
///
/// # Errors
/// `Corrupt`, `Io`.
pub fn read(directory: &Arc<dyn Directory>, name: &str) -> Result<Held> {
    let usable = usable(directory, name, Access::Read)?.ok_or_else(unusable)?;
    let arrays = content(&usable.image, &usable.catalog)?;
    Ok(Held { arrays, metadata: usable.catalog.metadata })
}

/// Publishes a root that says something else of itself, as of one transaction more.
///
/// # Errors
/// Those of a backfill.
pub fn go_on(directory: &Arc<dyn Directory>, name: &str, metadata: &[u8]) -> Result<()> {
    let usable = usable(directory, name, Access::Write)?.ok_or_else(unusable)?;
    let before = usable.root.point;
    let point = Point {
        position: before.position.saturating_add(1),
        txid: before.txid + 1,
        chain: before.chain,
    };
    let Usable { image, root, catalog } = usable;
    let next = Next { point, metadata, pinned: &[], keeps_frames: false };
    advance(&image, &catalog, Some(&root.catalog), &BTreeMap::new(), &next).map(drop)
}

/// Writes an image by a program: each three bytes say which object changes, and how; some publish.
///
/// # Errors
/// Those of a backfill.
pub fn write(
    directory: &Arc<dyn Directory>,
    name: &str,
    clock: &dyn Clock,
    program: &[u8],
) -> Result<()> {
    let identity = Identity { journal_id: [7; 16], segment: 0, segment_hash: 1 };
    let image = Image::create(directory, name, &identity, clock)?;
    let mut catalog: Catalog = arrays(&[(1, Kind::Pages), (2, Kind::Bytes), (0, Kind::Bytes)]);
    let (mut old, mut txid) = (None, 0);
    let mut changes: BTreeMap<usize, Changes> = BTreeMap::new();
    let steps = program.chunks_exact(3).take(64).map(Some).chain([None]);
    for step in steps {
        if let Some(&[array, number, len]) = step {
            let array = usize::from(array % 3);
            let number = if array == 2 { 0 } else { u64::from(number) % FANOUT as u64 };
            let bytes = (len > 10).then(|| vec![len; usize::from(len) * 50]);
            changes.entry(array).or_default().insert(number, bytes);
        }
        if step.is_none_or(|step| step.iter().any(|&byte| byte % 7 == 0)) {
            txid += 1;
            let point = Point { position: 16384 + txid, txid: Txid(txid), chain: txid };
            let new = Next { point, metadata: b"fuzz", pinned: &[], keeps_frames: false };
            let changes = std::mem::take(&mut changes);
            let (root, next) = advance(&image, &catalog, old.as_ref(), &changes, &new)?;
            (old, catalog) = (Some(root.catalog), next);
        }
    }
    Ok(())
}

/// Corrects the checksums in bytes that claim to be an image, so that other problems are found.
pub fn repair(bytes: &mut [u8]) {
    if let Some(header) = bytes.get_mut(..IMAGE_HEADER_LEN) {
        seal(header);
    }
    let header = bytes.get(IMAGE_HEADER_LEN - 8..IMAGE_HEADER_LEN).map(<[u8]>::to_vec);
    let mut budget = 1000;
    for place in ROOT_AT.iter().flat_map(|block| ROOT_COPY_AT.map(|copy| block + copy)) {
        let Ok(at) = usize::try_from(place) else { continue };
        let Some(root) = bytes.get(at..at + ROOT_LEN).map(<[u8]>::to_vec) else { continue };
        let mut root = root;
        if let (Some(entry), Some(header)) = (root.get_mut(56..88), &header) {
            repair_entry(bytes, entry, 0, &mut budget);
            root.splice(112..120, header.iter().copied());
        }
        seal(&mut root);
        if let Some(to) = bytes.get_mut(at..at + ROOT_LEN) {
            to.copy_from_slice(&root);
        }
    }
}

fn seal(bytes: &mut [u8]) {
    if let Some((body, sum)) = bytes.split_last_chunk_mut::<8>() {
        *sum = hash(body).to_le_bytes();
    }
}

/// Repairs the checksums below an entry, deepest first, then the entry's own.
fn repair_entry(bytes: &mut [u8], entry: &mut [u8], depth: usize, budget: &mut usize) {
    let decoded = entry.first_chunk().and_then(Stored::decode);
    let Some(stored) = decoded.filter(|_| *budget > 0 && depth < 14) else { return };
    *budget -= 1;
    let range = usize::try_from(stored.place).ok().and_then(|at| {
        let end = at.checked_add(usize::try_from(stored.len).ok()?)?;
        Some(at..end)
    });
    let Some(range) = range.filter(|range| range.end <= bytes.len()) else { return };
    let Some(mut object) = bytes.get(range.clone()).map(<[u8]>::to_vec) else { return };
    // Whatever may be entries is: of a node, or of a catalog's arrays.
    let (from, every, within) = match object.get(..4) {
        Some(b"NODE") => (16, 32, 0),
        Some(b"CATL") => (16, 40, 8),
        _ => (object.len(), 1, 0),
    };
    for part in object.get_mut(from..).into_iter().flat_map(|rest| rest.chunks_exact_mut(every)) {
        if let Some(entry) = part.get_mut(within..) {
            repair_entry(bytes, entry, depth + 1, budget);
        }
    }
    if let Some(to) = bytes.get_mut(range) {
        to.copy_from_slice(&object);
    }
    if let Some(sum) = entry.get_mut(8..16) {
        sum.copy_from_slice(&Stored::sum_of(stored.place, &object).to_le_bytes());
    }
}

fn usable(directory: &Arc<dyn Directory>, name: &str, access: Access) -> Result<Option<Usable>> {
    let Some(identity) = check::check(directory, name, &SystemClock)?.identity else {
        return Ok(None);
    };
    match Image::open(directory, name, &identity, access)? {
        Opened::Usable(usable) => Ok(Some(*usable)),
        Opened::SetAside(_) | Opened::Missing => Ok(None),
    }
}

fn unusable() -> Error {
    Error::corrupt("the image can't be used")
}

/// Returns the constants of the layout of images.
#[must_use]
pub fn constants() -> BTreeMap<String, Vec<u64>> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|&byte| u64::from(byte)).collect::<Vec<_>>();
    let constants = [
        ("IMAGE_VERSION", vec![u64::from(format::IMAGE_VERSION)]),
        ("IMAGE_MAGIC", bytes(&format::IMAGE_MAGIC)),
        ("ROOT_MAGIC", bytes(&format::ROOT_MAGIC)),
        ("NODE_MAGIC", bytes(&format::NODE_MAGIC)),
        ("CATALOG_MAGIC", bytes(&format::CATALOG_MAGIC)),
        ("FRAMES_MAGIC", bytes(&format::FRAMES_MAGIC)),
        ("UNIT", vec![format::UNIT]),
        ("IMAGE_HEADER_LEN", vec![format::IMAGE_HEADER_LEN as u64]),
        ("ROOT_AT", format::ROOT_AT.to_vec()),
        ("ROOT_COPY_AT", format::ROOT_COPY_AT.to_vec()),
        ("ROOT_LEN", vec![format::ROOT_LEN as u64]),
        ("OBJECTS_AT", vec![format::OBJECTS_AT]),
        ("FANOUT", vec![format::FANOUT as u64]),
        ("NODE_HEAD_LEN", vec![format::NODE_HEAD_LEN as u64]),
        ("NODE_MAX_LEN", vec![format::NODE_MAX_LEN as u64]),
        ("MAX_HEIGHT", vec![u64::from(format::MAX_HEIGHT)]),
        ("CATALOG_HEAD_LEN", vec![format::CATALOG_HEAD_LEN as u64]),
        ("ARRAY_LEN", vec![format::ARRAY_LEN as u64]),
        ("FRAMES_HEAD_LEN", vec![format::FRAMES_HEAD_LEN as u64]),
        ("MAX_FRAMES", vec![format::MAX_FRAMES as u64]),
        ("LONGEST_PAGE", vec![u64::from(format::LONGEST_PAGE)]),
        ("ARRAY_PAGES", vec![u64::from(format::ARRAY_PAGES)]),
        ("ARRAY_BYTES", vec![u64::from(format::ARRAY_BYTES)]),
    ];
    constants.map(|(name, value)| (name.to_owned(), value)).into()
}
