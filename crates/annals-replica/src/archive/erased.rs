//! Another generation of an archive: after an erasure the history has other bytes, and what was erased must go.
//!
//! ```text
//! manifest  ranges: old            ranges: old              ranges: new
//!           ─ erasure seen ─►      building: new, grows ─►  left out at once: old ─► the objects are removed
//! ```
//!
//! Until the last step a restore gets the old history; after it, the new one.

use annals::{Cursor, ErrorKind, Result, Txid};

use super::bucket::Bucket;
use super::image::{self, leave_image};
use super::manifest::{Building, LeftOut, Manifest, Range, damaged, folder};
use super::memory;
use crate::frames::{Source, count_frames};

/// True if the source has the history of some ranges, from which values were erased since.
///
/// The mark of an erasure has the chains of some transactions before it. Of another transaction only its time is compared.
pub(super) fn is_of_before(bucket: &Bucket, source: &Source, ranges: &[Range]) -> Result<bool> {
    let Some(last) = ranges.iter().rev().find(|range| !range.is_seal) else { return Ok(false) };
    match source.erased_since(last.next.0)? {
        // Only the border after it is another.
        None => source.has(last.next.0),
        Some(carrying) if carrying.carried.is_some() => Ok(true),
        Some(_) => {
            let there = time_there(bucket, last)?;
            Ok(time_here(source, last.next.0.txid)? == Some(there))
        }
    }
}

/// Returns the time of the last commit of a range.
fn time_there(bucket: &Bucket, range: &Range) -> Result<i64> {
    let bytes = bucket.get(&range.name)?.filter(|bytes| range.is(bytes));
    let bytes = bytes.ok_or_else(|| damaged(bucket, range))?;
    let before = range.begins.as_ref().map_or(0, |begins| begins.before);
    let frames = usize::try_from(before).ok().and_then(|before| bytes.get(before..));
    Ok(count_frames(&frames.unwrap_or_default())?.time)
}

/// Returns the time of a transaction in the source; `None` if it isn't kept.
fn time_here(source: &Source, txid: Txid) -> Result<Option<i64>> {
    let Some(before) = txid.0.checked_sub(1).map(Txid) else { return Ok(None) };
    let Some(chain) = source.chain(before)? else { return Ok(None) };
    let mut cursor = Cursor { txid: before, chain };
    loop {
        let batch = source.after(Some(cursor), 1)?;
        if batch.is_empty() || batch.next.txid > txid {
            return Ok(None);
        }
        if batch.next.txid == txid && !batch.is_seal {
            let mut frames = memory();
            batch.copy_to(&mut frames)?;
            return Ok(Some(count_frames(&frames)?.time));
        }
        cursor = batch.next;
    }
}

/// Begins another generation, with the ranges of the present one that the source still has.
pub(super) fn begin(mut next: Manifest, source: &Source) -> Result<Manifest> {
    let (by, at_once) = (next.number, true);
    let generation = next.growing_generation() + 1;
    let mut ranges = Vec::new();
    for range in &next.ranges {
        match source.has(range.next.0) {
            Ok(true) => ranges.push(range.clone()),
            Err(error) if error.kind() != ErrorKind::Forgotten => return Err(error),
            _ => break,
        }
    }
    // What the source has forgotten before its first segment can't be told from what was erased there.
    let is_first_kept = match ranges.first() {
        Some(first) => begins_alike(source, first)?,
        None => true,
    };
    if !is_first_kept {
        ranges.clear();
    }
    if let Some(stopped) = next.building.take() {
        let is_old = |range: &&Range| !next.ranges.contains(range);
        let stopped = stopped.ranges.iter().filter(is_old);
        next.left_out.extend(stopped.map(|it| LeftOut { name: it.name.clone(), by, at_once }));
    }
    next.building = Some(Building { generation, ranges });
    Ok(next)
}

fn begins_alike(source: &Source, first: &Range) -> Result<bool> {
    let batch = source.after(None, 1)?;
    Ok(first.start().is_some_and(|start| start.header[..] == batch.header[..]))
}

/// Ends the building of a generation: reads all of it back, and returns the manifest that has it in place of the old one.
pub(super) fn complete(bucket: &Bucket, mut next: Manifest) -> Result<Manifest> {
    let Some(Building { generation, ranges }) = next.building.take() else { return Ok(next) };
    for range in &ranges {
        let bytes = bucket.get(&range.name)?.filter(|bytes| range.is(bytes));
        bytes.ok_or_else(|| damaged(bucket, range))?;
    }
    let (by, at_once) = (next.number, true);
    leave_image(&mut next, true);
    next.left_out.iter_mut().for_each(|left| left.at_once = true);
    let gone = next.ranges.iter().filter(|range| !ranges.contains(range));
    let gone: Vec<_> = gone.map(|it| LeftOut { name: it.name.clone(), by, at_once }).collect();
    next.left_out.extend(gone);
    (next.ranges, next.generation) = (ranges, generation);
    Ok(next)
}

/// Removes what is in the folders of the generations from one on to the one before the present, and in no list: objects of
/// uploads that were cut off, which may have what was erased. Nothing that is uploaded later is there.
pub(super) fn sweep(bucket: &Bucket, manifest: &Manifest, from: u64) -> Result<()> {
    for generation in from.max(1)..manifest.generation {
        for folder in ["frames", "images"].map(|of| folder(of, generation)) {
            for (name, _) in bucket.list(&folder, "")? {
                let name = format!("{folder}/{name}");
                if !manifest.ranges.iter().any(|range| range.name == name) {
                    bucket.remove(&name)?;
                }
            }
        }
    }
    Ok(())
}

/// Removes the objects that were left out, and may go: those from before an erasure, and those that no reader needs.
pub(super) fn clean(bucket: &Bucket, manifest: &Manifest, gone: &[LeftOut]) -> Result<()> {
    let images = gone.iter().filter(|it| it.name.ends_with("-index"));
    let mut kept = Vec::new();
    if images.clone().next().is_some() {
        let left = manifest.left_out.iter().filter(|it| !gone.contains(it)).map(|it| &it.name);
        let names = manifest.image.iter().map(|image| &image.name);
        for name in names.chain(left.filter(|name| name.ends_with("-index"))) {
            kept.extend(image::Index::get(bucket, name)?);
        }
    }
    let kept: Vec<_> = kept.iter().collect();
    images.clone().try_for_each(|it| image::remove(bucket, &it.name, &kept))?;
    let others = gone.iter().filter(|it| !it.name.ends_with("-index"));
    others.clone().try_for_each(|it| bucket.remove(&it.name))
}
