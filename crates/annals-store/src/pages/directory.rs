//! A page directory: a shallow, copy-on-write radix tree that maps an array's page numbers to its pages.
//!
//! A clone costs one reference count; a change copies the few nodes on its path that a clone still
//! shares. Columns, bitmaps, heaps and B+trees all reach their pages through one of these.
//!
//! Leaves are small (64 pages each), because changing a page also copies its leaf. Inner nodes are wide (256
//! children), so two levels cover 16,384 pages, which are 256 MiB.
//!
//! Invariants
//! 1. All leaves are at the same depth, `height` steps below the root.
//! 2. A node that another holder can reach is never changed: `Arc::make_mut` copies it first.

use std::array::from_fn;
use std::ops::Range;
use std::sync::Arc;

use crate::pages::refresh::{Refresh, refresh};

/// How many bits of the number a leaf takes, and how many each level above.
const LEAF_BITS: u32 = 6;
const INNER_BITS: u32 = 8;
/// How many places a leaf has.
pub(super) const PLACES: usize = 1 << LEAF_BITS;
/// How many nodes there may be below one.
pub(super) const CHILDREN: usize = 1 << INNER_BITS;

/// A persistent array with holes.
#[derive(Clone, Debug)]
pub(crate) struct Directory<T> {
    pub(super) root: Link<T>,
    pub(super) height: u32,
}

refresh!(impl [T: Clone] for Directory<T> { root; height });

/// A node, if there is anything below it.
pub(super) type Link<T> = Option<Node<T>>;

#[derive(Debug)]
pub(super) enum Node<T> {
    Inner(Arc<[Link<T>; CHILDREN]>),
    Leaf(Arc<[Option<T>; PLACES]>),
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Inner(children) => Self::Inner(Arc::clone(children)),
            Self::Leaf(items) => Self::Leaf(Arc::clone(items)),
        }
    }
}

impl<T> Refresh for Node<T> {
    #[inline]
    fn refresh(&mut self, newer: &Self) {
        match (&mut *self, newer) {
            (Self::Inner(old), Self::Inner(newer)) => old.refresh(newer),
            (Self::Leaf(old), Self::Leaf(newer)) => old.refresh(newer),
            _ => *self = newer.clone(),
        }
    }
}

impl<T> Default for Directory<T> {
    fn default() -> Self {
        Self { root: None, height: 0 }
    }
}

impl<T: Clone> Directory<T> {
    /// Makes a directory that has the same value in at least the first `len` places. It shares its
    /// nodes too, so it costs a logarithm.
    pub(crate) fn filled(value: &T, len: usize) -> Self {
        let mut height = 0;
        let mut root = Node::Leaf(Arc::new(from_fn(|_| Some(value.clone()))));
        while !covers(height, len.saturating_sub(1)) {
            root = Node::Inner(Arc::new(from_fn(|_| Some(root.clone()))));
            height += 1;
        }
        Self { root: (len > 0).then_some(root), height }
    }

    /// Returns the item at a place.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match self.root.as_ref()? {
            Node::Leaf(items) => items.get(index)?.as_ref(),
            Node::Inner(children) => match children.get(index >> LEAF_BITS) {
                Some(Some(Node::Leaf(items))) => items[index % PLACES].as_ref(),
                _ => self.get_below(index),
            },
        }
    }

    /// Returns the item at a place of a directory that is higher than most.
    #[inline(never)] // so that reading from most stays short
    fn get_below(&self, index: usize) -> Option<&T> {
        let mut node = self.root.as_ref().filter(|_| covers(self.height, index))?;
        let mut height = self.height;
        loop {
            match node {
                Node::Leaf(items) => return items[index % PLACES].as_ref(),
                Node::Inner(children) => {
                    node = children[place_of(index, height)].as_ref()?;
                    height -= 1;
                }
            }
        }
    }

    /// Sets the item at a place, or removes it.
    pub(crate) fn set(&mut self, index: usize, value: Option<T>) {
        *self.slot(index) = value;
    }

    /// Returns a place, to change its item.
    pub(crate) fn slot(&mut self, index: usize) -> &mut Option<T> {
        while !covers(self.height, index) {
            self.root = self.root.take().map(Node::over);
            self.height += 1;
        }
        let mut height = self.height;
        let mut place = &mut self.root;
        loop {
            match place.get_or_insert_with(|| Node::empty(height == 0)) {
                Node::Leaf(items) => return &mut Arc::make_mut(items)[index % PLACES],
                Node::Inner(children) => {
                    place = &mut Arc::make_mut(children)[place_of(index, height)];
                    height -= 1;
                }
            }
        }
    }

    /// Visits all items, in the order of the places.
    pub(crate) fn each(&self, visit: &mut impl FnMut(usize, &T)) {
        if let Some(root) = &self.root {
            root.each(self.height, 0, visit);
        }
    }

    /// Removes the items in some places. Copies at most the nodes at the two ends of them.
    pub(crate) fn clear(&mut self, places: Range<usize>) {
        let height = self.height;
        if Node::clear(&mut self.root, height, 0, &places) {
            *self = Self::default();
        }
    }

    /// Adds up the memory of the nodes, and of the items by `size`, in bytes. Walks all.
    pub(crate) fn memory(&self, size: impl Fn(&T) -> usize) -> usize {
        self.root.as_ref().map_or(0, |root| root.memory(&size))
    }
}

impl<T> Node<T> {
    /// Makes the node over one that is first below it.
    pub(super) fn over(below: Self) -> Self {
        let mut below = Some(below);
        Self::Inner(Arc::new(from_fn(|_| below.take())))
    }

    /// True if it is the very node.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inner(own), Self::Inner(other)) => Arc::ptr_eq(own, other),
            (Self::Leaf(own), Self::Leaf(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl<T: Clone> Node<T> {
    fn empty(leaf: bool) -> Self {
        if leaf {
            Self::Leaf(Arc::new(from_fn(|_| None)))
        } else {
            Self::Inner(Arc::new(from_fn(|_| None)))
        }
    }

    fn each(&self, height: u32, base: usize, visit: &mut impl FnMut(usize, &T)) {
        match self {
            Self::Leaf(items) => {
                let there =
                    (base..).zip(&**items).filter_map(|(at, item)| Some((at, item.as_ref()?)));
                there.for_each(|(at, item)| visit(at, item));
            }
            Self::Inner(children) => {
                for (place, child) in children.iter().enumerate() {
                    if let Some(child) = child {
                        child.each(height - 1, base | place << bits_below(height), visit);
                    }
                }
            }
        }
    }

    /// Clears places below a node, the first of which is `base`; returns whether nothing is left.
    fn clear(link: &mut Link<T>, height: u32, base: usize, places: &Range<usize>) -> bool {
        let Some(node) = link else { return true };
        let bits = bits_below(height + 1);
        let last = base | 1_usize.checked_shl(bits).map_or(usize::MAX, |places| places - 1);
        if last < places.start || places.end <= base {
            return false;
        }
        let is_empty = places.start <= base && last < places.end
            || match node {
                Self::Leaf(items) => {
                    let items = Arc::make_mut(items);
                    let inside = (base..).zip(&mut *items).filter(|(at, _)| places.contains(at));
                    inside.for_each(|(_, item)| *item = None);
                    items.iter().all(Option::is_none)
                }
                Self::Inner(children) => {
                    let children = Arc::make_mut(children);
                    for (place, child) in children.iter_mut().enumerate() {
                        Self::clear(child, height - 1, base | place << bits_below(height), places);
                    }
                    children.iter().all(Option::is_none)
                }
            };
        if is_empty {
            *link = None;
        }
        is_empty
    }

    fn memory(&self, size: &impl Fn(&T) -> usize) -> usize {
        const COUNTS: usize = 2 * size_of::<usize>();
        match self {
            Self::Leaf(items) => {
                size_of_val(&**items) + COUNTS + items.iter().flatten().map(size).sum::<usize>()
            }
            Self::Inner(children) => {
                // A directory that is filled has the same node in many places.
                let mut last: Option<&Self> = None;
                let below = children.iter().flatten().map(|child| {
                    let is_new = !last.replace(child).is_some_and(|last| last.is(child));
                    if is_new { child.memory(size) } else { 0 }
                });
                size_of_val(&**children) + COUNTS + below.sum::<usize>()
            }
        }
    }
}

/// Returns how many bits of a number select a place below a node of that height, which isn't 0.
const fn bits_below(height: u32) -> u32 {
    LEAF_BITS + INNER_BITS * (height - 1)
}

/// Returns the place of a number in a node of that height, which isn't 0.
const fn place_of(index: usize, height: u32) -> usize {
    match index.checked_shr(bits_below(height)) {
        Some(rest) => rest % CHILDREN,
        None => 0,
    }
}

/// True if a tree of that height has a place of that number.
#[inline]
const fn covers(height: u32, index: usize) -> bool {
    let bits = bits_below(height + 1);
    bits >= usize::BITS || index >> bits == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_keep_what_they_had() {
        let mut directory = Directory::default();
        let places = [0, 1, 63, 64, 4096, 16_383, 16_384, 1 << 22, 1 << 62, usize::MAX];
        let mut clones = vec![directory.clone()];
        for (value, &place) in places.iter().enumerate() {
            directory.set(place, Some(value));
            clones.push(directory.clone());
        }
        directory.set(64, None);
        assert_eq!(directory.get(64), None);
        for (count, clone) in clones.iter().enumerate() {
            for (value, &place) in places.iter().enumerate() {
                assert_eq!(clone.get(place), (value < count).then_some(&value), "place {place}");
            }
        }
    }

    #[test]
    fn places_are_cleared() {
        let mut directory = Directory::default();
        (0..5000).chain(300_000..300_100).for_each(|place| directory.set(place, Some(place)));
        let mut clear = |places: Range<usize>, there: &dyn Fn(usize) -> bool| {
            let before = directory.clone();
            directory.clear(places.clone());
            for place in (0..5100).chain(299_900..300_200).chain([usize::MAX]) {
                let expected = before.get(place).filter(|_| !places.contains(&place));
                assert_eq!(directory.get(place), expected, "{place} of {places:?}");
                assert_eq!(directory.get(place).is_some(), there(place), "{place} of {places:?}");
            }
        };
        let far = |place: usize| (300_000..300_100).contains(&place);
        clear(7..7, &|place| place < 5000 || far(place));
        clear(64..128, &|place| place < 64 || (128..5000).contains(&place) || far(place));
        clear(100..4100, &|place| place < 64 || (4100..5000).contains(&place) || far(place));
        clear(4999..usize::MAX, &|place| place < 64 || (4100..4999).contains(&place));
        clear(0..4999, &|_| false);
        assert!(directory.root.is_none() && directory.height == 0);
    }

    #[test]
    fn a_filled_directory_shares_and_is_changed_one_place_at_a_time() {
        let mut directory = Directory::filled(&'a', 10_000);
        let before = directory.clone();
        directory.set(5_000, Some('b'));
        for place in 0..10_000 {
            let expected = if place == 5_000 { 'b' } else { 'a' };
            assert_eq!(directory.get(place), Some(&expected));
            assert_eq!(before.get(place), Some(&'a'));
        }
        assert_eq!(Directory::filled(&'a', 0).get(0), None);
    }
}
