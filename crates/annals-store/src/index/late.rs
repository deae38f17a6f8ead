//! Late entries: entries that a replay adds to an index after an image, before its tree has them.
//!
//! If keys are in random order, each of them is in another leaf, which would have to be loaded and copied: ten
//! microseconds for an entry, while an opening should take milliseconds in all. So the entries are kept beside the
//! tree, sorted, until they are needed there. A search between whose keys there are no late entries reads the tree
//! unchanged. For a few, a tree with just these is made; a larger read, or a change of the index, gets the tree with
//! all of them. That is made once, for all views. (InnoDB defers changes of leaves that aren't in memory in the same
//! way, in its change buffer; but on disk, and permanently.)
//!
//! Invariants
//! 1. `Delayed` has the entries of the open transaction, and of earlier committed ones, in the order of the changes.
//!    No view has seen them.
//! 2. `net` has an entry at most once, sorted. Added entries aren't in the tree, removed ones are.
//! 3. A tree that has all of them was changed in the order of the journal: so it has the same pages as if they
//!    had never waited.
//! 4. The trees that are made here have pages that no writer takes for its own.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::btree::Tree;
use crate::index::key;
use crate::index::tree::no_entry;
use crate::pages::page::Epoch;
use crate::{Error, ErrorKind, Result};

/// So many trees with a few entries more are made, each for those who ask for the same keys.
const PARTS: usize = 16;
/// So many entries a tree that is made for a few has more, or less.
const FEW: usize = 16;

/// Inserted or removed entries, in order.
#[derive(Debug, Default)]
pub(crate) struct Delayed {
    bytes: Vec<u8>,
    all: Vec<Change>,
}

/// An inserted or removed entry.
#[derive(Clone, Copy, Debug)]
struct Change {
    begin: usize,
    end: usize,
    added: bool,
}

impl Change {
    fn entry<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.begin..self.end).unwrap_or_default()
    }

    /// Makes the change in a tree.
    fn make(&self, tree: &mut Tree, bytes: &[u8], epoch: &Epoch) -> Result<()> {
        let entry = self.entry(bytes);
        if self.added {
            return tree.insert(entry, &[], epoch);
        }
        if tree.remove(entry, epoch)? { Ok(()) } else { Err(no_entry(key::id_of(entry))) }
    }
}

impl Delayed {
    /// Returns the number of changes.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Records that an entry was inserted, or removed.
    pub(crate) fn push(&mut self, entry: &[u8], added: bool) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(entry);
        self.all.push(Change { begin, end: self.bytes.len(), added });
    }

    /// Applies all changes to a tree, in order.
    pub(crate) fn make(&self, tree: &mut Tree, epoch: &Epoch) -> Result<()> {
        self.all.iter().try_for_each(|change| change.make(tree, &self.bytes, epoch))
    }

    /// Returns the net effect on each entry, in the order of the keys.
    fn net(&self) -> Vec<Change> {
        let Self { bytes, all } = self;
        let mut sorted = all.clone();
        sorted.sort_by(|a, b| a.entry(bytes).cmp(b.entry(bytes))); // stable: one after another
        let same = |a: &Change, b: &Change| a.entry(bytes) == b.entry(bytes);
        let net = sorted.chunk_by(same).filter_map(|changes| {
            let (first, last) = (changes.first()?, changes.last()?);
            // An entry that was inserted and removed, or removed and inserted, is unchanged.
            (first.added == last.added).then_some(*last)
        });
        net.collect()
    }
}

/// The entries that an index has beside its tree.
#[derive(Debug)]
pub(crate) struct Late {
    changes: Delayed,
    /// Their net effect, computed at first use.
    net: OnceLock<Box<[Change]>>,
    /// The tree that has all of them.
    settled: OnceLock<Tree>,
    settling: Mutex<()>,
    /// Trees that have some of them: from which on, up to which.
    parts: [OnceLock<(usize, usize, Tree)>; PARTS],
    /// Why there is no tree, if there can't be one.
    reason: Option<String>,
}

impl Late {
    /// Takes entries.
    pub(crate) fn new(changes: Delayed) -> Self {
        Self {
            net: OnceLock::new(),
            changes,
            settled: OnceLock::new(),
            settling: Mutex::new(()),
            parts: Default::default(),
            reason: None,
        }
    }

    /// Stands for all entries of an index that can't be sorted, for this reason.
    pub(crate) fn unavailable(reason: String) -> Self {
        Self { reason: Some(reason), ..Self::new(Delayed::default()) }
    }

    /// Returns the reason why there can't be a tree.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    fn check_available(&self) -> Result<()> {
        match &self.reason {
            None => Ok(()),
            Some(reason) => Err(Error::new(ErrorKind::Unsupported, reason.clone())),
        }
    }

    fn net(&self) -> &[Change] {
        self.net.get_or_init(|| self.changes.net().into())
    }

    /// Returns the tree with all these entries, if it was made.
    pub(crate) fn made(&self) -> Option<&Tree> {
        self.settled.get()
    }

    /// Returns the tree with all these entries. If it doesn't exist yet, makes it from the tree without them.
    ///
    /// # Errors
    /// A part of it can't be loaded, or doesn't match these entries; the index is unavailable.
    pub(crate) fn settled(&self, tree: &Tree) -> Result<&Tree> {
        self.check_available()?;
        if let Some(settled) = self.made() {
            return Ok(settled);
        }
        let _one = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(settled) = self.made() {
            return Ok(settled);
        }
        let mut made = tree.clone();
        self.changes.make(&mut made, &Epoch::apart())?;
        Ok(self.settled.get_or_init(|| made))
    }

    /// Returns a tree that has at least the entries in a range of keys, which ends at the last key without `high`.
    ///
    /// # Errors
    /// As [`Self::settled`].
    pub(crate) fn between<'t>(
        &'t self,
        tree: &'t Tree,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<&'t Tree> {
        self.check_available()?;
        if let Some(settled) = self.made() {
            return Ok(settled);
        }
        let net = self.net();
        let entries =
            |bound: &[u8]| net.partition_point(|change| change.entry(&self.changes.bytes) < bound);
        let from = entries(low);
        let to = high.map_or(net.len(), entries);
        if from >= to {
            return Ok(tree);
        }
        if to - from <= FEW {
            for part in &self.parts {
                if part.get().is_none() {
                    let made = self.with(tree, from, to)?;
                    let _first = part.set((from, to, made));
                }
                match part.get() {
                    Some((first, end, made)) if *first <= from && to <= *end => return Ok(made),
                    _ => {}
                }
            }
        }
        self.settled(tree)
    }

    /// Makes a tree with part of the net effect.
    fn with(&self, tree: &Tree, from: usize, to: usize) -> Result<Tree> {
        let (mut tree, epoch) = (tree.clone(), Epoch::apart());
        for change in self.net().get(from..to).unwrap_or_default() {
            change.make(&mut tree, &self.changes.bytes, &epoch)?;
        }
        Ok(tree)
    }

    /// Returns how much memory it takes beside the trees, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let Delayed { bytes, all } = &self.changes;
        let net = self.net.get().map_or(0, |net| size_of_val(&**net));
        bytes.len() + size_of_val(&**all) + net + size_of::<Self>()
    }
}
