//! The image in an archive: the newest state as pages, in chunks, so that a lazy reader needn't replay the journal.
//!
//! An image is a list of chunks. A chunk that is the same as in the image before isn't uploaded again.

use std::collections::BTreeSet;
use std::ops::Range as Bytes;

use annals::storage::{Clock as _, SystemClock};
use annals::{Error, Result};
use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, Wanted};
use super::manifest::{ImageEntry, LeftOut, Manifest, folder, hex};
use crate::frames::{ExposedFile, Source};

/// The length of a chunk; the last one may be shorter.
const CHUNK: u64 = 1 << 20;
/// How many chunks are uploaded at the same time.
const AT_A_TIME: usize = 4;
/// A journal that has grown by less needs no image.
const LEAST: u64 = 1 << 20;

/// Which chunks an image has.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) chunks: Vec<Chunk>,
}

/// A part of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// XXH3-64 of them.
    pub(super) hash: String,
}

impl Index {
    /// Reads the list of an image; `None` if it isn't there any more.
    pub(super) fn get(bucket: &Bucket, name: &str) -> Result<Option<Self>> {
        let Some(bytes) = bucket.get(name)? else { return Ok(None) };
        let read = serde_json::from_slice(&bytes);
        let damaged = |_| Error::corrupt(format!("{}: {name} is damaged", bucket.name()));
        read.map(Some).map_err(damaged)
    }

    /// Reads a part of the image; `None` if a chunk isn't there any more.
    pub(super) fn read(&self, bucket: &Bucket, bytes: &Bytes<u64>) -> Result<Option<Vec<u8>>> {
        let (mut wanted, mut begin) = (Vec::new(), 0);
        for chunk in &self.chunks {
            let (from, to) = (bytes.start.max(begin), bytes.end.min(begin + chunk.bytes));
            if from < to {
                wanted.push(Wanted { name: &chunk.name, range: Some(from - begin..to - begin) });
            }
            begin += chunk.bytes;
        }
        let pieces: Option<Vec<_>> = bucket.get_parts(&wanted)?.into_iter().collect();
        Ok(pieces.map(|pieces| pieces.concat()))
    }

    /// Returns what is missing or damaged.
    pub(super) fn check(&self, bucket: &Bucket) -> Result<Vec<String>> {
        let mut damage = Vec::new();
        for chunk in &self.chunks {
            match bucket.get(&chunk.name)? {
                None => damage.push(format!("{} is missing", chunk.name)),
                Some(bytes) if hex(&bytes) == chunk.hash => {}
                Some(_) => damage.push(format!("{} isn't what was uploaded", chunk.name)),
            }
        }
        Ok(damage)
    }
}

/// True if an archive with this manifest should get another image: the journal has grown by half of the present one.
/// So all images together need at most two bytes for each of the journal.
fn is_due(manifest: &Manifest, journal: u64) -> bool {
    let since = manifest.image.as_ref().map_or(0, |image| image.journal);
    let least = manifest.image.as_ref().map_or(0, |image| image.bytes / 2).max(LEAST);
    journal.saturating_sub(since) >= least
}

/// Uploads the image of the source, if the archive should get another one; returns the manifest with it, and how many
/// objects were created.
pub(super) fn upload(
    bucket: &Bucket,
    source: &Source,
    next: Manifest,
) -> Result<Option<(Manifest, u64)>> {
    let journal = next.ranges.iter().map(|range| range.bytes).sum();
    let end = next.end().map_or(0, |end| end.txid.0);
    if next.building.is_some() || !is_due(&next, journal) {
        return Ok(None);
    }
    let Some(file) = source.expose_image()? else { return Ok(None) };
    let is_known = next.image.as_ref().is_some_and(|image| image.tag == file.tag);
    // One that is newer than the archive's end comes with the next upload.
    if is_known || file.txid.0 > end {
        return Ok(None);
    }
    let before = match &next.image {
        Some(image) => Index::get(bucket, &image.name)?.unwrap_or_default(),
        None => Index::default(),
    };
    let folder = folder("images", next.generation);
    // Nobody else, and no other try, uses these names.
    let prefix = format!("{folder}/{:020}-{:016x}", next.number, SystemClock.random());
    let (index, mut objects) = chunks(bucket, &file, &before, &prefix)?;
    if !file.is_kept() {
        // Its space may have been overwritten meanwhile: the chunks are in no list.
        return Ok(None);
    }
    let text = serde_json::to_vec(&index).unwrap_or_default();
    let image = ImageEntry {
        name: format!("{prefix}-index"),
        hash: hex(&text),
        tag: file.tag.clone(),
        txid: file.txid.0,
        bytes: file.len,
        journal,
    };
    bucket.create_same(&image.name, &text.into())?;
    objects += 1;
    let mut next = next;
    leave_image(&mut next, false);
    next.image = Some(image);
    Ok(Some((next, objects)))
}

/// Takes the image out of a manifest.
pub(super) fn leave_image(next: &mut Manifest, at_once: bool) {
    let by = next.number;
    next.left_out.extend(next.image.take().map(|it| LeftOut { name: it.name, by, at_once }));
}

fn chunks(
    bucket: &Bucket,
    file: &ExposedFile,
    before: &Index,
    prefix: &str,
) -> Result<(Index, u64)> {
    let (mut index, mut objects, mut ready) = (Index::default(), 0, Vec::new());
    for (number, from) in (0..file.len).step_by(1 << 20).enumerate() {
        let bytes = read(file, from, (from + CHUNK).min(file.len))?;
        let hash = hex(&bytes);
        let len = bytes.len() as u64;
        let known = before.chunks.get(number).filter(|it| it.hash == hash && it.bytes == len);
        if let Some(known) = known {
            index.chunks.push(known.clone());
            continue;
        }
        let name = format!("{prefix}-{number:06}");
        index.chunks.push(Chunk { name: name.clone(), bytes: len, hash });
        objects += 1;
        ready.push((name, bytes.into()));
        if ready.len() == AT_A_TIME {
            bucket.create_own(&ready)?;
            ready.clear();
        }
    }
    bucket.create_own(&ready)?;
    Ok((index, objects))
}

fn read(file: &ExposedFile, from: u64, to: u64) -> Result<Vec<u8>> {
    let io = |error| Error::io("can't read the image", error);
    let (mut bytes, rest) = file.range(from, to);
    let Some(rest) = rest else { return Ok(bytes) };
    let mut at = rest.from;
    bytes.resize(usize::try_from(to - from).unwrap_or(usize::MAX), 0);
    while at < rest.to {
        let place = usize::try_from(at - from).unwrap_or(usize::MAX);
        let read = rest.storage.read_at(at, bytes.get_mut(place..).unwrap_or_default());
        match read.map_err(io)? {
            0 => return Err(io(std::io::ErrorKind::UnexpectedEof.into())),
            count => at += count as u64,
        }
    }
    Ok(bytes)
}

/// Removes an image, except the chunks that one of the `kept` images has too.
pub(super) fn remove(bucket: &Bucket, name: &str, kept: &[&Index]) -> Result<()> {
    let Some(index) = Index::get(bucket, name)? else { return Ok(()) };
    let is_kept = |chunk: &Chunk| {
        kept.iter().any(|index| index.chunks.iter().any(|kept| kept.name == chunk.name))
    };
    for chunk in index.chunks.iter().filter(|chunk| !is_kept(chunk)) {
        bucket.remove(&chunk.name)?;
    }
    bucket.remove(name)
}

/// Returns the names of all objects of the images in a manifest: of the current one, and of those it left out.
pub(super) fn names(bucket: &Bucket, manifest: &Manifest) -> Result<BTreeSet<String>> {
    let left = manifest.left_out.iter().map(|it| &it.name).filter(|name| name.ends_with("-index"));
    let mut names = BTreeSet::new();
    for name in manifest.image.iter().map(|image| &image.name).chain(left) {
        let index = Index::get(bucket, name)?.unwrap_or_default();
        names.extend(index.chunks.into_iter().map(|chunk| chunk.name));
        names.insert(name.clone());
    }
    Ok(names)
}

/// Removes the chunks of interrupted uploads: objects of no image in the manifest, whose number isn't after the
/// manifest's. Chunks with a later number may be those of another uploader that has taken over meanwhile.
pub(super) fn sweep(bucket: &Bucket, manifest: &Manifest) -> Result<()> {
    let folder = folder("images", manifest.generation);
    let listed = bucket.list(&folder, "")?;
    if listed.is_empty() {
        return Ok(());
    }
    let needed = names(bucket, manifest)?;
    for (name, _) in listed {
        let number = name.split('-').next().and_then(|number| number.parse::<u64>().ok());
        let name = format!("{folder}/{name}");
        if number.is_some_and(|number| number <= manifest.number) && !needed.contains(&name) {
            bucket.remove(&name)?;
        }
    }
    Ok(())
}
