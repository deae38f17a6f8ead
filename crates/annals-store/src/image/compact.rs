//! An image without gaps: all that the newest root reaches is copied to a new file, with the key frames that are to
//! be kept.
//!
//! ```text
//! 1. create NAME.new-ID, as for a new image
//! 2. copy what the key frames reach, the oldest first, then what the root reaches, verified; the nodes of the
//!    directory lead to the new places, and what several of them share is copied once
//! 3. the root, with a number after those of the key frames' copies: first copy, flush, second copy
//! 4. rename NAME.new-ID to NAME, or link it if nothing is there any more; flush the directory
//! ```
//!
//! A crash leaves the old image, and a file that the next creation removes; or either of both, which say the same. A
//! process with the old one open continues to read it: it isn't written any more.

use std::collections::HashMap;

use super::catalog::{Array, Catalog};
use super::figures::Figures;
use super::file::Image;
use super::format::{NODE_MAX_LEN, Root};
use super::frames;
use super::node;
use super::open::read_header;
use super::publish::{Draft, NewRoot};
use super::stored::{Source, Stored};
use super::walk::read_catalog;
use crate::{Error, Result};
use annals_storage::Clock;
use annals_storage::sync::lock;

/// How much is collected before it is written.
const BATCH: usize = 8 << 20;

/// A copy under way.
struct Copying<'c> {
    from: &'c Image,
    to: &'c Image,
    draft: Draft<'c>,
    /// Where the space ends that the root being copied reaches.
    end: u64,
    /// True while it is a key frame.
    is_frame: bool,
    /// The copies of all objects of key frames, by the places of the originals.
    copies: HashMap<u64, Stored>,
    queue: Vec<(u64, Vec<u8>)>,
    queued: usize,
}

impl Image {
    /// Copies the objects of the newest root, and of these key frames of it, to a new image without gaps, which takes
    /// this one's name. This handle continues with the old file: the caller opens the image again, and doesn't write
    /// to this one any more. Returns the length of the new file in bytes. The caller holds the lock of backfills.
    ///
    /// Cost: reads and writes all objects of the roots, with one object at a time in memory and 8 MiB of pending
    /// writes, and some 50 bytes for each object of a key frame. Also a flush of the file and of the directory;
    /// meanwhile the space of both files.
    ///
    /// # Errors
    /// `Io`, `Corrupt`: the old image is unchanged. `InUse` if this one has lost its name to another file.
    pub fn compact(&self, frames: &[Root], clock: &dyn Clock) -> Result<u64> {
        let held = lock(&self.held).clone();
        let Some(newest) = held.newest.map(|newest| newest.root) else { return self.len() };
        self.check_usable()?;
        self.check_newest()?;
        let identity = read_header(&*self.storage, &self.path())?.identity;
        let replaces = self.is_linked()?;
        let to = Self::begin(&self.directory, &self.name, &identity, replaces, clock)?;
        // Roots of both files are never taken for one another.
        lock(&to.held).last_number = held.last_number;
        let mut copying = Copying {
            from: self,
            to: &to,
            draft: to.space([])?,
            end: 0,
            is_frame: true,
            copies: HashMap::new(),
            queue: Vec::new(),
            queued: 0,
        };
        let frames: Vec<_> =
            frames.iter().map(|frame| copying.frame(frame)).collect::<Result<_>>()?;
        copying.finish(&newest, frames)?;
        to.len()
    }

    /// Returns true if its name still refers to it.
    ///
    /// # Errors
    /// `Io`.
    #[inline]
    pub fn is_linked(&self) -> Result<bool> {
        self.storage
            .is_linked()
            .map_err(|error| self.io("can't see whether it is still there", error))
    }
}

impl Copying<'_> {
    /// Copies a key frame; returns the root of the copy.
    fn frame(&mut self, root: &Root) -> Result<Root> {
        let catalog = self.root(root)?;
        self.write()?;
        let (number, end) = (self.draft.number, self.draft.end());
        let copy = Root { number, catalog, end, frames: None, ..*root };
        let Figures { end, bytes, objects, spared } = Figures::of(self.to, &copy)?;
        self.draft.next_root();
        Ok(Root { end, bytes, objects, spared, ..copy })
    }

    /// Copies all that a root reaches, except its list of key frames; returns the entry of the new catalog.
    fn root(&mut self, root: &Root) -> Result<Stored> {
        self.end = root.end;
        let catalog = read_catalog(self.from, root)?;
        let arrays = catalog.arrays.iter().map(|array| self.array(array)).collect::<Result<_>>()?;
        self.put(Catalog { arrays, ..catalog }.encode(), &root.catalog)
    }

    fn array(&mut self, array: &Array) -> Result<Array> {
        let root = array.root.map(|root| self.below(array.height, &root)).transpose()?;
        Ok(Array { root, ..*array })
    }

    /// Copies an object, or a node and everything below it, unless a key frame shares it; returns the new entry.
    fn below(&mut self, height: u8, stored: &Stored) -> Result<Stored> {
        if let Some(copy) = self.copies.get(&stored.place) {
            return Ok(*copy);
        }
        let copy = self.copy(height, stored)?;
        if self.is_frame {
            self.copies.insert(stored.place, copy);
        }
        Ok(copy)
    }

    fn copy(&mut self, height: u8, stored: &Stored) -> Result<Stored> {
        if height == 0 {
            let mut bytes = vec![0; self.len_of(stored)?];
            self.from.read(stored, &mut bytes)?;
            return self.put(bytes, stored);
        }
        let mut entries = self.node(height, stored)?;
        for entry in entries.iter_mut().flatten() {
            *entry = self.below(height - 1, entry)?;
        }
        self.put(node::encode(height, &entries), stored)
    }

    fn node(&self, height: u8, stored: &Stored) -> Result<Box<node::Entries>> {
        let wrong = |reason| {
            let path = self.from.path();
            Error::corrupt(format!("{path}: damaged: a node at {}: {reason}", stored.place))
        };
        let len = usize::try_from(stored.len).ok().filter(|len| *len <= NODE_MAX_LEN);
        let mut bytes = vec![0; len.ok_or_else(|| wrong("it is longer than any node"))?];
        self.from.read(stored, &mut bytes)?;
        node::decode(&bytes, height, self.end).map(Box::new).map_err(wrong)
    }

    /// Returns the length of an object, after a check that the file reaches its end: a wrong length must not allocate
    /// more.
    fn len_of(&self, stored: &Stored) -> Result<usize> {
        self.from.holds(stored)?;
        usize::try_from(stored.len).map_err(|_| Error::corrupt("it doesn't fit in memory"))
    }

    fn put(&mut self, bytes: Vec<u8>, old: &Stored) -> Result<Stored> {
        let stored = self.draft.place_as(&bytes, old.txid, old.packed)?;
        self.queued += bytes.len();
        self.queue.push((stored.place, bytes));
        if self.queued >= BATCH {
            self.write()?;
        }
        Ok(stored)
    }

    fn write(&mut self) -> Result<()> {
        let parts: Vec<_> = self.queue.iter().map(|(place, bytes)| (*place, [&**bytes])).collect();
        let objects: Vec<(u64, &[&[u8]])> =
            parts.iter().map(|(place, parts)| (*place, &parts[..])).collect();
        self.to.write(&objects)?;
        self.queue.clear();
        self.queued = 0;
        Ok(())
    }

    /// Copies the newest root, and publishes it for the same point, with the copies of its key frames.
    fn finish(mut self, root: &Root, frames: Vec<Root>) -> Result<()> {
        self.is_frame = false;
        let catalog = self.root(root)?;
        let list = match frames.is_empty() {
            true => None,
            false => Some(self.put(frames::encode(&frames, self.to.header), &root.catalog)?),
        };
        self.write()?;
        self.draft.frames = frames.into();
        self.draft.set_spared(root.spared);
        let Root { segment, point, time, .. } = *root;
        let new = NewRoot { segment, point, time, catalog, frames: list };
        let _published = self.draft.publish(&new)?;
        #[cfg(feature = "testing")]
        if let Ok(Some(wrong)) = self.to.wrong_figures(&_published) {
            panic!("{wrong}");
        }
        Ok(())
    }
}
