//! Making the base of the next backfill from the last backfill's base and the changes since.

use std::sync::{Arc, OnceLock};

use crate::Result;
use crate::image::{Stored, encode_node};
use crate::pages::base::{BITS, Base, BaseNode, FANOUT, Kids, Leaf, Link, covers};
use crate::pages::item::Item;
use crate::pages::keep::{Keep, Piece};
use crate::pages::once_array::OnceArray;

/// The new contents of a place.
pub(crate) struct PlaceChange<T> {
    pub(crate) index: usize,
    /// Its entry, with the item if that may be borrowed from memory; `None` if it was removed.
    pub(crate) new: Option<Leaf<T>>,
}

impl<T: Item> Base<T> {
    /// Makes a base with some changes, which are in the order of their places.
    ///
    /// Cost: reads and writes the nodes above them.
    ///
    /// # Errors
    /// A node can't be loaded, or `keep` fails.
    pub(crate) fn grow(&self, changes: Vec<PlaceChange<T>>, keep: &mut dyn Keep) -> Result<Self> {
        let filled = changes.iter().filter(|change| change.new.is_some());
        let Some(last) = filled.map(|change| change.index).max() else {
            return self.shrink(changes, keep);
        };
        let mut height = self.height;
        let mut root = self.root.clone();
        while !covers(height, last) {
            height += 1;
            if let Some(mut below) = root.take() {
                if below.stored.len == 0 {
                    below = link(below.load(height - 1, &self.pager)?, height - 1, keep)?;
                }
                let mut links: Vec<_> = empty().collect();
                links[0] = Some(below);
                let node = Arc::new(BaseNode { kids: Kids::Inner(links.into()) });
                // It will change, so it isn't stored.
                root = Some(Link { stored: Stored::default(), node: OnceLock::from(node) });
            }
        }
        let root = self.change(root.as_ref(), height, changes, keep)?;
        Ok(self.with(root, height))
    }

    fn shrink(&self, mut changes: Vec<PlaceChange<T>>, keep: &mut dyn Keep) -> Result<Self> {
        changes.retain(|change| covers(self.height, change.index));
        let root = self.change(self.root.as_ref(), self.height, changes, keep)?;
        Ok(self.with(root, self.height))
    }

    fn with(&self, root: Option<Link<T>>, height: u8) -> Self {
        let height = if root.is_some() { height } else { 0 };
        let (pager, loaded) = (Arc::clone(&self.pager), OnceArray::default());
        Self { root, height, pager, form: self.form, is_spare: self.is_spare, loaded }
    }

    /// Changes the part below a link; `None` if nothing is left there.
    fn change(
        &self,
        old: Option<&Link<T>>,
        height: u8,
        changes: Vec<PlaceChange<T>>,
        keep: &mut dyn Keep,
    ) -> Result<Option<Link<T>>> {
        if changes.is_empty() {
            return Ok(old.cloned());
        }
        let before = old.map(|link| link.load(height, &self.pager)).transpose()?;
        let kids = match before.map(|node| &node.kids) {
            Some(Kids::Leaf(items)) => Self::change_items(Some(items), changes, keep),
            Some(Kids::Inner(links)) => self.change_links(Some(links), height, changes, keep)?,
            None if height == 0 => Self::change_items(None, changes, keep),
            None => self.change_links(None, height, changes, keep)?,
        };
        if let Some(old) = old.filter(|link| link.stored.len > 0) {
            keep.leave(old.stored);
        }
        let is_empty = match &kids {
            Kids::Inner(links) => links.iter().all(Option::is_none),
            Kids::Leaf(items) => items.iter().all(Option::is_none),
        };
        if is_empty { Ok(None) } else { link(&Arc::new(BaseNode { kids }), height, keep).map(Some) }
    }

    fn change_items(
        old: Option<&[Option<Leaf<T>>]>,
        changes: Vec<PlaceChange<T>>,
        keep: &mut dyn Keep,
    ) -> Kids<T> {
        let mut items: Vec<_> = old.map_or_else(|| empty().collect(), <[_]>::to_vec);
        for PlaceChange { index, new } in changes {
            if let Some((old, _)) = std::mem::replace(&mut items[index % FANOUT], new) {
                keep.leave(old);
            }
        }
        Kids::Leaf(items.into())
    }

    fn change_links(
        &self,
        old: Option<&[Option<Link<T>>]>,
        height: u8,
        changes: Vec<PlaceChange<T>>,
        keep: &mut dyn Keep,
    ) -> Result<Kids<T>> {
        let mut links: Vec<_> = old.map_or_else(|| empty().collect(), <[_]>::to_vec);
        let place_of = |index: usize| (index >> (BITS * u32::from(height))) % FANOUT;
        let mut rest = changes.into_iter().peekable();
        while let Some(first) = rest.peek() {
            let place = place_of(first.index);
            let mut below = Vec::new();
            while let Some(change) = rest.next_if(|change| place_of(change.index) == place) {
                below.push(change);
            }
            links[place] = self.change(links[place].as_ref(), height - 1, below, keep)?;
        }
        Ok(Kids::Inner(links.into()))
    }
}

fn empty<T>() -> impl Iterator<Item = Option<T>> {
    std::iter::repeat_with(|| None).take(FANOUT)
}

/// Stores a node.
fn link<T>(node: &Arc<BaseNode<T>>, height: u8, keep: &mut dyn Keep) -> Result<Link<T>> {
    let mut entries = [None; FANOUT];
    let stored = |place: usize| match &node.kids {
        Kids::Inner(links) => links.get(place)?.as_ref().map(|link| link.stored),
        Kids::Leaf(items) => items.get(place)?.as_ref().map(|(stored, _)| *stored),
    };
    entries.iter_mut().enumerate().for_each(|(place, entry)| *entry = stored(place));
    let stored = keep.store(Piece::Node(encode_node(height + 1, &entries)))?;
    Ok(Link { stored, node: OnceLock::from(Arc::clone(node)) })
}
