//! An image without gaps: all that the newest root reaches is copied to a new file.
//!
//! ```text
//! 1. create NAME.new-ID, as for a new image
//! 2. copy what the root reaches, verified; the nodes of the directory lead to the new places
//! 3. the root, with the next number: first copy, flush, second copy
//! 4. rename NAME.new-ID to NAME, or link it if nothing is there any more; flush the directory
//! ```
//!
//! A crash leaves the old image, and a file that the next creation removes; or either of both, which say the same. A
//! process with the old one open continues to read it: it isn't written any more.

use super::catalog::{Array, Catalog};
use super::file::Image;
use super::format::{NODE_MAX_LEN, Root};
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
    end: u64,
    queue: Vec<(u64, Vec<u8>)>,
    queued: usize,
}

impl Image {
    /// Copies the objects of the newest root to a new image without gaps, which takes this one's name. This handle
    /// continues with the old file: the caller opens the image again, and doesn't write to this one any more. Returns
    /// the length of the new file in bytes. The caller holds the lock of backfills.
    ///
    /// Cost: reads and writes all objects of the root, with one object at a time in memory and 8 MiB of pending
    /// writes. Also a flush of the file and of the directory; meanwhile the space of both files.
    ///
    /// # Errors
    /// `Io`, `Corrupt`: the old image is unchanged. `InUse` if this one has lost its name to another file.
    pub fn compact(&self, clock: &dyn Clock) -> Result<u64> {
        let held = lock(&self.held).clone();
        let Some(newest) = held.newest.map(|newest| newest.root) else { return self.len() };
        self.check_usable()?;
        self.check_newest()?;
        let identity = read_header(&*self.storage, &self.path())?.identity;
        let replaces = self.is_linked()?;
        let to = Self::begin(&self.directory, &self.name, &identity, replaces, clock)?;
        // Roots of both files are never taken for one another.
        lock(&to.held).last_number = held.last_number;
        let catalog = read_catalog(self, &newest)?;
        let draft = to.space([])?;
        let end = newest.end;
        let mut copying = Copying { from: self, to: &to, draft, end, queue: Vec::new(), queued: 0 };
        let arrays =
            catalog.arrays.iter().map(|array| copying.array(array)).collect::<Result<_>>()?;
        copying.finish(&newest, &Catalog { arrays, ..catalog })?;
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
    fn array(&mut self, array: &Array) -> Result<Array> {
        let root = array.root.map(|root| self.below(array.height, &root)).transpose()?;
        Ok(Array { root, ..*array })
    }

    /// Copies an object, or a node and everything below it; returns the new entry.
    fn below(&mut self, height: u8, stored: &Stored) -> Result<Stored> {
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

    /// Returns the stored length that the file has at least.
    fn len_of(&self, stored: &Stored) -> Result<usize> {
        self.from.holds(stored)?;
        usize::try_from(stored.len).map_err(|_| Error::corrupt("it doesn't fit in memory"))
    }

    fn put(&mut self, bytes: Vec<u8>, old: &Stored) -> Result<Stored> {
        let stored = self.draft.place_as(&bytes, old.txid, old.is_packed)?;
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

    /// Publishes the root of the copy, for the same point as `root`.
    fn finish(mut self, root: &Root, catalog: &Catalog) -> Result<()> {
        let catalog = self.put(catalog.encode(), &root.catalog)?;
        self.write()?;
        let Root { segment, point, time, .. } = *root;
        self.draft.publish(&NewRoot { segment, point, time, catalog, frames: None }).map(drop)
    }
}
