//! A store in miniature, for tests and fuzzing: arrays of bytes by number, a backfill of their changes, and the
//! contents of an image.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

use super::catalog::{Array, Catalog, Kind};
use super::file::Image;
use super::format::{FANOUT, Root};
use super::frames::KeyFrames;
use super::node;
use super::publish::{Draft, NewRoot};
use super::stored::{Source, Stored};
use crate::Result;
use annals_storage::Point;

/// The contents of an array.
pub(super) type Content = BTreeMap<u64, Vec<u8>>;
/// The changes in an array: `None` removes an object.
pub(super) type Changes = BTreeMap<u64, Option<Vec<u8>>>;

/// A backfill in miniature.
struct Backfill<'d, 'i> {
    draft: &'d mut Draft<'i>,
    txid: u64,
    writes: Vec<(u64, Vec<u8>)>,
}

impl Backfill<'_, '_> {
    fn put(&mut self, bytes: Vec<u8>) -> Result<Stored> {
        let stored = self.draft.place(&bytes, self.txid)?;
        self.writes.push((stored.place, bytes));
        Ok(stored)
    }

    /// Replaces the part below an entry; `changes` are by numbers below it.
    fn below(
        &mut self,
        source: &dyn Source,
        height: u8,
        old: Option<Stored>,
        changes: &Changes,
    ) -> Result<Option<Stored>> {
        if height == 0 {
            let new = changes.get(&0).unwrap().clone();
            old.iter().for_each(|old| self.draft.release(old));
            return new.map(|bytes| self.put(bytes)).transpose();
        }
        let mut entries = old.map_or(Ok([None; FANOUT]), |old| read_node(source, &old, height))?;
        let shift = 6 * u32::from(height - 1);
        let mut parts: BTreeMap<usize, Changes> = BTreeMap::new();
        for (&number, change) in changes {
            let part = usize::try_from(number.unbounded_shr(shift)).unwrap();
            let rest = number & !u64::MAX.unbounded_shl(shift);
            parts.entry(part).or_default().insert(rest, change.clone());
        }
        for (part, changes) in parts {
            let entry = entries.get_mut(part).unwrap();
            *entry = self.below(source, height - 1, *entry, &changes)?;
        }
        old.iter().for_each(|old| self.draft.release(old));
        match entries.iter().any(Option::is_some) {
            true => self.put(node::encode(height, &entries)).map(Some),
            false => Ok(None),
        }
    }
}

fn read_node(source: &dyn Source, stored: &Stored, height: u8) -> Result<node::Entries> {
    let mut bytes = vec![0; stored.len as usize];
    source.read(stored, &mut bytes)?;
    node::decode(&bytes, height, u64::MAX).map_err(crate::Error::corrupt)
}

/// What a root says besides its arrays.
pub(super) struct Next<'n> {
    pub(super) point: Point,
    pub(super) metadata: &'n [u8],
    /// The numbers of the roots that are pinned.
    pub(super) pinned: &'n [u64],
    /// True if the roots before become key frames.
    pub(super) keeps_frames: bool,
}

/// Updates an image; returns its new root and catalog. `before` is the newest root's catalog; `changes` has the
/// changes of each array, by its number in `before`, where it must exist.
pub(super) fn advance(
    image: &Image,
    before: &Catalog,
    old: Option<&Stored>,
    changes: &BTreeMap<usize, Changes>,
    new: &Next<'_>,
) -> Result<(Root, Catalog)> {
    let Next { point, metadata, pinned, keeps_frames } = *new;
    let mut draft = image.space(pinned.iter().copied())?;
    let mut backfill = Backfill { draft: &mut draft, txid: point.txid.0, writes: Vec::new() };
    let mut catalog = Catalog { metadata: metadata.to_vec(), ..before.clone() };
    for (array, changes) in changes {
        let array = catalog.arrays.get_mut(*array).unwrap();
        array.root = backfill.below(image, array.height, array.root, changes)?;
    }
    let stored = backfill.put(catalog.encode())?;
    old.into_iter().for_each(|old| backfill.draft.release(old));
    let budget = if keeps_frames { None } else { Some(0) };
    let rule = KeyFrames { budget, spacing: 0 };
    let chosen = backfill.draft.choose_frames(rule, (0, point.position), &|_| true);
    chosen.leave.iter().for_each(|old| backfill.draft.release(old));
    let list = chosen.store.map(|list| backfill.put(list)).transpose()?;
    let (frames, writes) = (list.or(chosen.keep), backfill.writes);
    let parts: Vec<_> = writes.iter().map(|(place, bytes)| (*place, [&**bytes])).collect();
    let objects: Vec<(u64, &[&[u8]])> =
        parts.iter().map(|(place, parts)| (*place, &parts[..])).collect();
    image.write(&objects)?;
    let time = i64::try_from(point.txid.0).unwrap();
    let root = draft.publish(&NewRoot { segment: 0, point, time, catalog: stored, frames })?;
    #[cfg(feature = "testing")]
    if let Ok(Some(wrong)) = image.wrong_figures(&root) {
        panic!("{wrong}");
    }
    Ok((root, catalog))
}

/// Reads all objects of a catalog, verified.
pub(super) fn content(source: &dyn Source, catalog: &Catalog) -> Result<Vec<Content>> {
    let of_array = |array: &Array| {
        let mut content = Content::new();
        if let Some(root) = &array.root {
            collect(source, array.height, root, 0, &mut content)?;
        }
        Ok(content)
    };
    catalog.arrays.iter().map(of_array).collect()
}

fn collect(
    source: &dyn Source,
    height: u8,
    stored: &Stored,
    number: u64,
    content: &mut Content,
) -> Result<()> {
    if height == 0 {
        let mut bytes = vec![0; stored.len as usize];
        source.read(stored, &mut bytes)?;
        content.insert(number, bytes);
        return Ok(());
    }
    for (at, entry) in (0..).zip(read_node(source, stored, height)?) {
        if let Some(entry) = entry {
            collect(source, height - 1, &entry, number << 6 | at, content)?;
        }
    }
    Ok(())
}

/// Makes empty arrays of some heights.
pub(super) fn arrays(heights: &[(u8, Kind)]) -> Catalog {
    let arrays = heights.iter().map(|&(height, kind)| Array { height, kind, root: None }).collect();
    Catalog { arrays, metadata: Vec::new() }
}
