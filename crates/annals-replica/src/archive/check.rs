//! Whether an archive is what it says, and whether its store keeps the promise that archives rely on.

use std::collections::BTreeSet;

use annals::storage::{Clock as _, SystemClock};
use annals::{Cursor, Error, ErrorKind, Result};

use super::bucket::Bucket;
use super::image::{self, Index};
use super::manifest::{ImageEntry, Manifest, folder, hex};
use super::pull::Archive;
use crate::frames::count_frames;

/// How often the same object is created at the same time.
const ROUNDS: u32 = 200;
/// By how many.
const RACERS: u32 = 8;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// How many objects of the journal were compared.
    pub objects: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many manifests verify.
    pub manifests: u64,
    /// The end of what can be restored.
    pub end: Cursor,
    /// What is damaged or missing; empty: nothing.
    pub damage: Vec<String>,
    /// Objects that are in no list: of an upload that was cut off.
    pub orphans: Vec<String>,
}

/// Compares every byte of every object of an archive, manifests included.
///
/// Cost: all of it is read.
///
/// # Errors
/// Those of the bucket; `NotFound`: there is no archive. Damage is part of the answer.
pub fn check(archive: &Archive) -> Result<Checked> {
    let manifest = archive.manifest()?;
    let bucket = archive.bucket();
    let end = manifest.end().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("{}: the archive is empty", bucket.name()))
    })?;
    let (objects, bytes, manifests) = (0, 0, 0);
    let (damage, orphans) = (Vec::new(), Vec::new());
    let mut checked = Checked { objects, bytes, manifests, end, damage, orphans };
    let building = manifest.building.iter().flat_map(|building| &building.ranges);
    let building: Vec<_> = building.filter(|range| !manifest.ranges.contains(range)).collect();
    for range in manifest.ranges.iter().chain(building.iter().copied()) {
        let Some(bytes) = bucket.get(&range.name)? else {
            checked.damage.push(format!("{} is missing", range.name));
            continue;
        };
        checked.objects += 1;
        checked.bytes += bytes.len() as u64;
        if !range.is(&bytes) {
            checked
                .damage
                .push(format!("{} doesn't have the bytes that were uploaded", range.name));
        } else if !range.is_seal && range.begins.is_none() {
            let chain = count_frames(&&*bytes).map(|contents| contents.chain);
            if chain.ok() != Some(range.next.0.chain) {
                checked.damage.push(format!("{} doesn't end with its chain", range.name));
            }
        }
    }
    for (name, _) in bucket.list("manifests", "")? {
        let Some(number) =
            name.parse().ok().filter(|number| Manifest::name(*number).ends_with(&name))
        else {
            checked.orphans.push(format!("manifests/{name}"));
            continue;
        };
        let Some(bytes) = bucket.get(&Manifest::name(number))? else { continue };
        match Manifest::decode(bucket.name(), number, &bytes) {
            Ok(_) => checked.manifests += 1,
            Err(error) => checked.damage.push(error.to_string()),
        }
    }
    if let Some(image) = &manifest.image {
        checked.damage.extend(check_image(bucket, image)?);
    }
    let ranges = manifest.ranges.iter().chain(building).map(|range| range.name.clone());
    let left = manifest.left_out.iter().map(|it| it.name.clone());
    let mut needed: BTreeSet<_> = ranges.chain(left).collect();
    needed.extend(image::names(bucket, &manifest)?);
    for generation in 1..=manifest.growing_generation() {
        for folder in ["frames", "images"].map(|of| folder(of, generation)) {
            let listed = bucket.list(&folder, "")?.into_iter();
            let listed = listed.map(|(name, _)| format!("{folder}/{name}"));
            checked.orphans.extend(listed.filter(|name| !needed.contains(name.as_str())));
        }
    }
    Ok(checked)
}

/// Compares every byte of an image.
fn check_image(bucket: &Bucket, image: &ImageEntry) -> Result<Vec<String>> {
    match bucket.get(&image.name)? {
        None => return Ok(vec![format!("{} is missing", image.name)]),
        Some(bytes) if hex(&bytes) != image.hash => {
            return Ok(vec![format!("{} isn't what was uploaded", image.name)]);
        }
        Some(_) => {}
    }
    Index::get(bucket, &image.name)?.map_or_else(|| Ok(Vec::new()), |index| index.check(bucket))
}

/// What a race showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raced {
    /// How many objects were created by several at once.
    pub rounds: u32,
    /// How often exactly one was told that it did, and the object is that one's.
    pub kept: u32,
}

/// Shows whether a store creates an object for exactly one of those who try at the same time: 200 times, by 8. Archives
/// rely on it to keep two uploaders apart.
///
/// # Errors
/// Those of the bucket.
pub fn race(bucket: &Bucket) -> Result<Raced> {
    let folder = format!("race-{:016x}", SystemClock.random());
    let mut kept = 0;
    for round in 0..ROUNDS {
        let name = format!("{folder}/{round}");
        let (winners, is_of_winner) = bucket.race(&name, RACERS)?;
        kept += u32::from(winners == 1 && is_of_winner);
        bucket.remove(&name)?;
    }
    Ok(Raced { rounds: ROUNDS, kept })
}
