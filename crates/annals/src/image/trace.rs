//! Traces of a node of the directory that is damaged: where it was, and what the rest of the file still tells of
//! its entries.
//!
//! What a node leads to is known again once the objects of its array are. Where they lie the file tells, for they
//! are there: what the node's own backfill wrote has that backfill's number, and what was there before stood in an
//! earlier node in the same place, which may not have been written over yet. Whether all was found, and nothing but
//! that, the node's checksum tells.

use super::catalog::Catalog;
use super::file::Image;
use super::format::{FANOUT, NODE_HEAD_LEN, NODE_MAGIC, Root, UNIT};
use super::node::{Entries, decode, encode};
use super::stored::{Source, Stored};
use super::walk::read_catalog;
use crate::Result;

/// How much of the file is read at once.
const WINDOW: usize = 1 << 20;
/// How many bytes of an object are compared before all of it is read.
const BEGINNING: usize = 64;
/// How many nodes are tried at most.
const TRIES: usize = 1 << 14;

/// Where a node is that leads to objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePlace {
    /// Its entry.
    pub(crate) stored: Stored,
    /// The place of its array in the catalog.
    pub(crate) array: usize,
    /// The number of the first object that it may lead to.
    pub(crate) first: usize,
}

/// The objects that a node leads to, with holes.
pub(crate) type Objects<'o> = [Option<&'o [u8]>; FANOUT];

impl Image {
    /// Finds where some nodes are that a root reaches, of those that lead to objects. Reads the directory; what
    /// of it can't be read is passed over.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(crate) fn places_of(&self, root: &Root, nodes: &[Stored]) -> Result<Vec<NodePlace>> {
        let Catalog { arrays, .. } = read_catalog(self, root)?;
        let mut found = Vec::new();
        for (number, array) in arrays.iter().enumerate() {
            let Some(top) = array.root.filter(|_| array.height > 0) else { continue };
            let mut next = vec![(top, array.height, 0_usize)];
            while let Some((stored, height, first)) = next.pop() {
                if height == 1 {
                    if nodes.contains(&stored) {
                        found.push(NodePlace { stored, array: number, first });
                    }
                    continue;
                }
                let mut bytes = vec![0; usize::try_from(stored.len).unwrap_or(0)];
                let read = self.read(&stored, &mut bytes);
                let Ok(entries) = read
                    .and_then(|()| decode(&bytes, height, root.end).map_err(crate::Error::corrupt))
                else {
                    continue;
                };
                let each = (1..height).fold(1_usize, |each, _| each.saturating_mul(FANOUT));
                let below =
                    entries.iter().enumerate().filter_map(|(at, entry)| Some((at, (*entry)?)));
                next.extend(below.map(|(at, entry)| (entry, height - 1, first + at * each)));
            }
        }
        Ok(found)
    }

    /// Makes a node anew that leads to these objects, if the file tells enough. Reads all of the file.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn node_of(&self, node: &Stored, objects: &Objects<'_>) -> Result<Option<Vec<u8>>> {
        let mut search = Search { image: self, node, objects, found: vec![Vec::new(); FANOUT] };
        search.look()?;
        Ok(search.choose())
    }
}

/// A search for the entries of a node.
struct Search<'s> {
    image: &'s Image,
    node: &'s Stored,
    objects: &'s Objects<'s>,
    /// What each entry may have been.
    found: Vec<Vec<Stored>>,
}

impl Search<'_> {
    fn look(&mut self) -> Result<()> {
        let io = |error| self.image.io("can't read it", error);
        let (mut window, mut at) = (vec![0; WINDOW + BEGINNING.max(UNIT_LEN)], 0);
        loop {
            let len = self.image.storage.read_at(at, &mut window).map_err(io)?;
            let Some(bytes) = window.get(..len) else { return Ok(()) };
            for (unit, place) in (0..WINDOW).step_by(UNIT_LEN).zip((at..).step_by(UNIT_LEN)) {
                let Some(rest) = bytes.get(unit..).filter(|rest| !rest.is_empty()) else { break };
                self.look_at(rest, place)?;
            }
            if len <= WINDOW {
                return Ok(());
            }
            at += WINDOW as u64;
        }
    }

    /// Looks at what begins in a unit.
    fn look_at(&mut self, bytes: &[u8], place: u64) -> Result<()> {
        if bytes.starts_with(&NODE_MAGIC) {
            self.look_at_node(bytes);
        }
        let objects = self.objects;
        for (at, object) in objects.iter().enumerate() {
            let Some(object) = object else { continue };
            let beginning = object.get(..BEGINNING).unwrap_or(object);
            if !bytes.starts_with(beginning) || !self.is_there(object, place)? {
                continue;
            }
            let Stored { txid, backfill, .. } = *self.node;
            let Ok(len) = u32::try_from(object.len()) else { continue };
            let sum = Stored::sum_of(place, object);
            self.note(at, Stored { place, sum, txid, len, backfill });
        }
        Ok(())
    }

    /// Looks whether a node, which may be an earlier one in the same place, leads to one of the objects.
    fn look_at_node(&mut self, bytes: &[u8]) {
        let bitmap = bytes.get(8..).and_then(<[u8]>::first_chunk).map(|it| u64::from_le_bytes(*it));
        let count = bitmap.map_or(0, u64::count_ones) as usize;
        let bytes = bytes.get(..NODE_HEAD_LEN + count * Stored::LEN).unwrap_or_default();
        let Ok(entries) = decode(bytes, 1, u64::MAX) else { return };
        let objects = self.objects;
        for (at, (entry, object)) in entries.iter().zip(objects).enumerate() {
            let (Some(entry), Some(object)) = (entry, object) else { continue };
            let is_it = entry.len as usize == object.len()
                && entry.sum == Stored::sum_of(entry.place, object);
            if is_it {
                self.note(at, *entry);
            }
        }
    }

    fn note(&mut self, at: usize, entry: Stored) {
        if let Some(found) = self.found.get_mut(at).filter(|found| !found.contains(&entry)) {
            found.push(entry);
        }
    }

    fn is_there(&self, object: &[u8], place: u64) -> Result<bool> {
        let mut there = vec![0; object.len()];
        let read = self.image.storage.read_at(place, &mut there);
        let read = read.map_err(|error| self.image.io("can't read it", error))?;
        Ok(read == there.len() && there == object)
    }

    /// Tries the nodes that may have been until one has the checksum.
    fn choose(&self) -> Option<Vec<u8>> {
        let choices = |at: usize| self.found.get(at).map_or(0, Vec::len);
        let wanted: Vec<usize> =
            (0..FANOUT).filter(|&at| self.objects.get(at).is_some_and(Option::is_some)).collect();
        let all = wanted.iter().try_fold(1_usize, |all, &at| all.checked_mul(choices(at)));
        let all = all.filter(|&all| all > 0 && !wanted.is_empty())?;
        (0..all.min(TRIES)).find_map(|mut number| {
            let mut entries: Entries = [None; FANOUT];
            for &at in &wanted {
                let found = self.found.get(at)?;
                *entries.get_mut(at)? = found.get(number % found.len()).copied();
                number /= found.len();
            }
            let bytes = encode(1, &entries);
            let is_it = bytes.len() == self.node.len as usize
                && Stored::sum_of(self.node.place, &bytes) == self.node.sum;
            is_it.then_some(bytes)
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a unit is 4096 bytes")]
const UNIT_LEN: usize = UNIT as usize;
