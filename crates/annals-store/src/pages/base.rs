//! A base: the contents of an array at the last backfill, as a tree of entries in an image.
//!
//! It is loaded when it is read, and never changes: [`grow`](mod@crate::pages::grow) makes another that shares the
//! unchanged parts.
//!
//! Invariants
//! 1. All leaves are at the same depth, `height` steps below the root; a node has 64 places.
//! 2. A loaded item is the same as long as the base lives: it may be borrowed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::image::{Array, Kind, NODE_MAX_LEN, Stored, decode_node};
use crate::pages::item::{Held, Item};
use crate::pages::once_array::OnceArray;
use crate::pages::packing::Packing;
use crate::pages::pager::{Pager, Wanted};
use crate::{Error, Result};

/// How many bits of the number each level takes.
pub(super) const BITS: u32 = 6;
/// How many places a node has.
pub(super) const FANOUT: usize = 1 << BITS;

/// Arrays whose trees are higher than this, of 256 GiB, have no shorter way to their pages: it would take
/// memory for each page that there could be.
const FLAT: u8 = 3;

/// Where the root of a base is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseRoot {
    /// How many steps the leaves are below the root.
    pub(crate) height: u8,
    /// The root; `None` if the array was empty.
    pub(crate) stored: Option<Stored>,
}

impl BaseRoot {
    /// Takes the root of an array of an image, whose heights count the items too.
    #[inline]
    pub fn of(array: &Array) -> Self {
        let stored = array.root.filter(|_| array.height > 0);
        Self { height: array.height.saturating_sub(1), stored }
    }

    /// Returns the array of an image that has this root.
    pub(crate) fn array(&self, kind: Kind) -> Array {
        let height = if self.stored.is_some() { self.height + 1 } else { 0 };
        Array { height, kind, root: self.stored }
    }
}

/// The form of the items of an array.
pub(crate) struct Form<T> {
    /// True if something that was loaded is well formed.
    pub(crate) check: fn(&T) -> bool,
    /// How its pages are packed. Arrays that check their items differently differ in this too, so that a cache gives
    /// none what only another one has checked.
    pub(crate) packing: Packing,
}

impl<T> Form<T> {
    /// The form of bytes, and of values: any are well formed.
    pub(crate) const BYTES: Self = Self { check: |_| true, packing: Packing::Bytes };

    /// Returns the form of cells of a width: any are well formed.
    pub(crate) const fn cells(width: usize) -> Self {
        Self { check: |_| true, packing: Packing::Cells(width) }
    }
}

impl<T> Clone for Form<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Form<T> {}

/// The contents of an array at a backfill.
pub(crate) struct Base<T> {
    pub(super) root: Option<Link<T>>,
    pub(super) height: u8,
    pub(super) pager: Arc<Pager>,
    pub(super) form: Form<T>,
    /// True if nothing but speed depends on the items.
    pub(super) is_spare: bool,
    /// The loaded items that stay.
    pub(super) loaded: OnceArray<T>,
}

impl<T> fmt::Debug for Base<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").field("height", &self.height).finish_non_exhaustive()
    }
}

/// A node, or where it is.
pub(super) struct Link<T> {
    pub(super) stored: Stored,
    pub(super) node: OnceLock<Arc<BaseNode<T>>>,
}

/// A node of the tree.
pub(super) struct BaseNode<T> {
    pub(super) kids: Kids<T>,
}

/// The contents of a node's places.
pub(super) enum Kids<T> {
    /// Other nodes.
    Inner(Box<[Option<Link<T>>]>),
    /// Items, and those that were loaded.
    Leaf(Box<[Option<Leaf<T>>]>),
}

/// Where an item is, and the item if it was loaded.
pub(crate) type Leaf<T> = (Stored, OnceLock<T>);

impl<T: Clone> Clone for Link<T> {
    fn clone(&self) -> Self {
        Self { stored: self.stored, node: self.node.clone() }
    }
}

impl<T: Item> Base<T> {
    /// Begins with a root; nothing is loaded.
    pub(crate) fn new(root: BaseRoot, pager: Arc<Pager>, form: Form<T>) -> Self {
        let link = |stored| Link { stored, node: OnceLock::new() };
        Self {
            root: root.stored.map(link),
            height: root.height,
            pager,
            form,
            is_spare: false,
            loaded: OnceArray::default(),
        }
    }

    /// Sets whether nothing but speed depends on the items.
    pub(crate) fn with_spare(self, is_spare: bool) -> Self {
        Self { is_spare, ..self }
    }

    /// Makes the same base, of which nothing is loaded.
    pub(crate) fn unloaded(&self) -> Self {
        Self::new(self.root(), Arc::clone(&self.pager), self.form).with_spare(self.is_spare)
    }

    /// True if loaded items of it stay.
    pub(crate) fn keeps(&self) -> bool {
        self.pager.keeps()
    }

    /// Returns where the root is.
    pub(crate) fn root(&self) -> BaseRoot {
        BaseRoot { height: self.height, stored: self.root.as_ref().map(|link| link.stored) }
    }

    /// Returns an item that was loaded before, and stays.
    #[inline]
    pub(crate) fn known(&self, index: usize) -> Option<&T> {
        self.loaded.get(index)
    }

    /// Returns the entry of an item that wasn't loaded yet; `None` if it was, or doesn't exist.
    ///
    /// # Errors
    /// A node above it can't be loaded.
    pub(crate) fn unseen(&self, index: usize) -> Result<Option<&Stored>> {
        let leaf = if self.known(index).is_some() { None } else { self.leaf(index)? };
        Ok(leaf.filter(|(_, item)| item.get().is_none()).map(|(stored, _)| stored))
    }

    /// Returns where it reads from.
    pub(crate) const fn pager(&self) -> &Arc<Pager> {
        &self.pager
    }

    /// Returns whether something that was loaded is well formed.
    ///
    /// # Errors
    /// It isn't.
    pub(crate) fn check(&self, stored: &Stored, item: &T) -> Result<()> {
        (self.form.check)(item).then_some(()).ok_or_else(|| ill_formed(stored))
    }

    /// Sets the item at a place, which stays.
    pub(crate) fn remember(&self, index: usize, item: &T) {
        if self.height <= FLAT && covers(self.height, index) {
            let places = FANOUT << (BITS * u32::from(self.height));
            self.loaded.put(index, places, T::clone(item));
        }
    }

    /// True if the item at a place was loaded to stay, or is known to be absent. Loads nothing.
    pub(super) fn has_loaded(&self, index: usize) -> bool {
        if self.known(index).is_some() || !covers(self.height, index) {
            return true;
        }
        let Some(mut link) = self.root.as_ref() else { return true };
        let mut height = self.height;
        loop {
            let Some(node) = link.node.get() else { return false };
            match &node.kids {
                Kids::Inner(links) => {
                    let place = (index >> (BITS * u32::from(height))) % FANOUT;
                    let Some(Some(next)) = links.get(place) else { return true };
                    (link, height) = (next, height - 1);
                }
                Kids::Leaf(items) => {
                    let item = items.get(index % FANOUT).and_then(Option::as_ref);
                    return item.is_none_or(|(_, item)| item.get().is_some());
                }
            }
        }
    }

    /// Returns how much memory the items take that are loaded, in bytes. Walks over them.
    pub(crate) fn memory(&self) -> usize {
        self.root.as_ref().map_or(0, Link::memory)
    }

    /// Returns the item at a place.
    ///
    /// # Errors
    /// It can't be loaded, or differs from the written one.
    pub(crate) fn get(&self, index: usize) -> Result<Option<Held<'_, T>>> {
        let Some((stored, item)) = self.leaf(index)? else { return Ok(None) };
        let item = self.item(stored, item)?;
        if let Held::Here(item) = &item {
            self.remember(index, item);
        }
        Ok(Some(item))
    }

    /// Finds the entry of a place.
    fn leaf(&self, index: usize) -> Result<Option<&Leaf<T>>> {
        if !covers(self.height, index) {
            return Ok(None);
        }
        let Some(mut link) = self.root.as_ref() else { return Ok(None) };
        let mut height = self.height;
        loop {
            match &link.load(height, &self.pager)?.kids {
                Kids::Inner(links) => {
                    let place = (index >> (BITS * u32::from(height))) % FANOUT;
                    let Some(Some(next)) = links.get(place) else { return Ok(None) };
                    (link, height) = (next, height - 1);
                }
                Kids::Leaf(items) => return Ok(items.get(index % FANOUT).and_then(Option::as_ref)),
            }
        }
    }

    /// Returns what the pager needs to know to load an item.
    pub(crate) const fn wanted<'s>(&self, stored: &'s Stored) -> Wanted<'s> {
        Wanted { stored, packing: self.form.packing, is_spare: self.is_spare }
    }

    fn item<'b>(&self, stored: &Stored, item: &'b OnceLock<T>) -> Result<Held<'b, T>> {
        if let Some(item) = item.get() {
            return Ok(Held::Here(item));
        }
        if !self.pager.keeps() {
            let check = |item: &T| self.check(stored, item);
            return self.pager.through_cache(&self.wanted(stored), check).map(Held::Kept);
        }
        let loaded = self.pager.load(&self.wanted(stored))?;
        self.check(stored, &loaded)?;
        Ok(Held::Here(item.get_or_init(|| loaded)))
    }
}

impl<T: Item> Link<T> {
    /// Returns how much memory the items below it take that are loaded, in bytes.
    fn memory(&self) -> usize {
        match self.node.get().map(|node| &node.kids) {
            None => 0,
            Some(Kids::Inner(links)) => links.iter().flatten().map(Self::memory).sum(),
            Some(Kids::Leaf(items)) => {
                let loaded = items.iter().flatten().filter_map(|(_, item)| item.get());
                loaded.map(Item::memory).sum()
            }
        }
    }

    /// Returns the node; loads it if that wasn't done yet.
    pub(super) fn load(&self, height: u8, pager: &Pager) -> Result<&Arc<BaseNode<T>>> {
        if let Some(node) = self.node.get() {
            return Ok(node);
        }
        // Not believed, though its checksum agreed: no more memory is taken than a node needs.
        let len = usize::try_from(self.stored.len).ok().filter(|len| *len <= NODE_MAX_LEN);
        let mut bytes = vec![0; len.ok_or_else(|| ill_formed(&self.stored))?];
        pager.source().read(&self.stored, &mut bytes)?;
        let entries = decode_node(&bytes, height + 1, u64::MAX)
            .map_err(|wrong| ill_formed(&self.stored).advising(wrong))?;
        let kids = if height > 0 {
            let link = |stored| Self { stored, node: OnceLock::new() };
            Kids::Inner(entries.map(|entry| entry.map(link)).into())
        } else {
            let item = |stored| (stored, OnceLock::new());
            Kids::Leaf(entries.map(|entry| entry.map(item)).into())
        };
        Ok(self.node.get_or_init(|| Arc::new(BaseNode { kids })))
    }
}

#[cold]
fn ill_formed(stored: &Stored) -> Error {
    Error::ill_written(format!("{} bytes at {} are no node", stored.len, stored.place))
}

/// True if a tree of that height has a place of that number.
#[inline]
pub(super) const fn covers(height: u8, index: usize) -> bool {
    let bits = BITS * (height as u32 + 1);
    bits >= usize::BITS || index >> bits == 0
}
