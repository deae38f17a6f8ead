//! Saving a view: the parts that aren't in the image yet, and the metadata.
//!
//! Every part of a view writes its metadata, in a fixed order, and passes its arrays on; [`mod@crate::pages::load`]
//! reads both in the same order. Nothing is written to the image during this: that follows, array by array.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use annals_storage::step;

use crate::Result;
use crate::image::{self, Kind, RootPin, Stored};
use crate::pages::base::{Base, BaseRoot, Form};
use crate::pages::grow::PlaceChange;
use crate::pages::item::Item;
use crate::pages::keep::{Keep, Piece};
use crate::pages::page::{Frozen, PAGE, PageRef, used};
use crate::pages::paged::Paged;
use crate::pages::pager::Pager;
use crate::pages::rebase::{Exceptions, Rebase};
use crate::pages::reserve::ArrayId;
use annals_event::compact;

/// Slots of an array that no view refers to: the writer may fill them at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blanks {
    /// All from here on.
    pub(crate) from: usize,
    /// And those from the first to before the second.
    pub(crate) gap: (usize, usize),
}

impl Blanks {
    /// No slot is blank: the array is only changed by copying its pages.
    pub(crate) const NONE: Self = Self { from: usize::MAX, gap: (0, 0) };

    /// Returns the parts of a page of `each` slots that are not blank, as slots of the page.
    pub(super) fn filled(&self, index: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
        let (first, end) = (index * each, index * each + each);
        let clip = move |slot: usize| slot.clamp(first, end) - first;
        let (low, high) = (clip(self.gap.0.min(self.from)), clip(self.gap.1.min(self.from)));
        let filled = match low < high {
            true => [0..low, high..clip(self.from)],
            false => [0..clip(self.from), 0..0],
        };
        let parts = step!(BlanksIgnored, filled, else [0..each, 0..0]);
        parts.into_iter().filter(|part| !part.is_empty())
    }
}

/// The parts of an item to store.
pub(super) enum Content<T> {
    /// All of it, as it is in memory.
    Whole(T),
    /// A copy of a part: the item may still be written.
    Part(Vec<u8>),
    /// Nothing: no view refers to any of it.
    Blank,
}

/// An array whose changes are to be stored.
struct Array<T> {
    array: Paged<T>,
    form: Form<T>,
    changes: Vec<(usize, Content<T>)>,
    /// Which places are blank.
    blanks: Vec<Range<usize>>,
    /// True if nothing but speed depends on the items.
    is_spare: bool,
}

/// The arrays of a view, each of one kind of item.
enum AnyArray {
    Pages(Array<PageRef>),
    Longs(Array<Arc<[u8]>>),
}

impl AnyArray {
    /// Returns how many items are to be stored.
    fn items(&self) -> u64 {
        match self {
            Self::Pages(array) => array.items(),
            Self::Longs(array) => array.items(),
        }
    }

    /// Returns where the root is from which it continues.
    fn from(&self) -> Option<Stored> {
        match self {
            Self::Pages(array) => array.array.base()?.root().stored,
            Self::Longs(array) => array.array.base()?.root().stored,
        }
    }
}

/// Collects the parts of a view to store.
#[derive(Default)]
pub(crate) struct Saver {
    metadata: Vec<u8>,
    arrays: Vec<AnyArray>,
}

impl std::fmt::Debug for Saver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saver").field("arrays", &self.arrays.len()).finish_non_exhaustive()
    }
}

/// The stored parts of a view.
pub struct Saved {
    /// The roots of all arrays, in their order.
    pub roots: Vec<BaseRoot>,
    kinds: Vec<Kind>,
    /// The places of the roots from which they continue.
    from: HashSet<u64>,
    /// Keeps the space of the root of this, once that is published.
    pub pin: Option<Arc<RootPin>>,
    /// The metadata of the view.
    pub metadata: Vec<u8>,
    pages: HashMap<ArrayId, Rebase<PageRef>>,
    longs: HashMap<ArrayId, Rebase<Arc<[u8]>>>,
}

impl std::fmt::Debug for Saved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saved").field("arrays", &self.roots.len()).finish_non_exhaustive()
    }
}

impl Saver {
    /// Writes a number.
    pub(crate) fn number(&mut self, number: u64) {
        compact::put(&mut self.metadata, number);
    }

    /// Writes a number of things in memory.
    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Writes whether something is so.
    pub(crate) fn flag(&mut self, is_so: bool) {
        self.metadata.push(u8::from(is_so));
    }

    /// Writes a flag with more than two values.
    pub(crate) fn flag_of(&mut self, flag: u8) {
        self.metadata.push(flag);
    }

    /// Writes bytes, and their number.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.metadata.extend_from_slice(bytes);
    }

    /// Passes an array of pages on; `content` returns the part of one to store.
    pub(super) fn pages(
        &mut self,
        pages: &Paged<PageRef>,
        form: Form<PageRef>,
        content: impl Fn(usize, &PageRef) -> Content<PageRef>,
    ) {
        self.arrays.push(AnyArray::Pages(collect(pages, form, content)));
    }

    /// Hands over an array of long values.
    pub(crate) fn longs(&mut self, longs: &Paged<Arc<[u8]>>) {
        let whole = |_, value: &Arc<[u8]>| Content::Whole(Arc::clone(value));
        self.arrays.push(AnyArray::Longs(collect(longs, Form::BYTES, whole)));
    }

    /// Hands over an array of long values on which nothing but speed depends.
    pub(crate) fn spares(&mut self, longs: &Paged<Arc<[u8]>>) {
        self.longs(longs);
        if let Some(AnyArray::Longs(array)) = self.arrays.last_mut() {
            array.is_spare = true;
        }
    }

    /// Stores everything that was handed over.
    ///
    /// # Errors
    /// Those of `keep`; a node of the directory can't be loaded.
    pub(crate) fn store(self, pager: &Arc<Pager>, keep: &mut dyn Keep) -> Result<Saved> {
        let mut saved = Saved {
            roots: Vec::with_capacity(self.arrays.len()),
            kinds: Vec::with_capacity(self.arrays.len()),
            from: self.arrays.iter().filter_map(AnyArray::from).map(|root| root.place).collect(),
            pin: None,
            metadata: self.metadata,
            pages: HashMap::new(),
            longs: HashMap::new(),
        };
        keep.expect(self.arrays.iter().map(AnyArray::items).sum());
        for array in self.arrays {
            match array {
                AnyArray::Pages(array) => {
                    let packing = array.form.packing;
                    let whole = |page| Piece::Page(Frozen::new(page, packing));
                    let (id, rebase) = array.store(pager, keep, whole)?;
                    saved.roots.push(rebase.base.root());
                    saved.kinds.push(Kind::Pages);
                    saved.pages.insert(id, rebase);
                }
                AnyArray::Longs(array) => {
                    let (id, rebase) = array.store(pager, keep, Piece::Long)?;
                    saved.roots.push(rebase.base.root());
                    saved.kinds.push(Kind::Bytes);
                    saved.longs.insert(id, rebase);
                }
            }
        }
        Ok(saved)
    }
}

impl Saved {
    /// Returns the number of the root that has all this, once that is published.
    #[inline]
    pub fn root(&self) -> u64 {
        self.pin.as_ref().map_or(0, |pin| pin.number)
    }

    /// Returns all arrays, in their order, as the catalog of an image has them.
    #[inline]
    pub fn arrays(&self) -> Vec<image::Array> {
        self.roots.iter().zip(&self.kinds).map(|(root, &kind)| root.array(kind)).collect()
    }

    /// True if one of the arrays continues from an array of the root before.
    #[inline]
    pub fn goes_on_from(&self, array: &image::Array) -> bool {
        array.root.is_none_or(|root| self.from.contains(&root.place))
    }

    /// Drops the items in memory: they are read through the cache from now on.
    #[inline]
    pub fn unload(&mut self) {
        self.pages.values_mut().for_each(Rebase::unload);
        self.longs.values_mut().for_each(Rebase::unload);
    }

    /// Lets an array of pages continue from its new base, if it existed.
    pub(super) fn rebase_pages(&self, pages: &mut Paged<PageRef>) {
        if let Some(rebase) = self.pages.get(&pages.id()) {
            pages.rebase(rebase);
        }
    }

    /// Lets an array of long values continue from its new base, if it existed.
    pub(crate) fn rebase_longs(&self, longs: &mut Paged<Arc<[u8]>>) {
        if let Some(rebase) = self.longs.get(&longs.id()) {
            longs.rebase(rebase);
        }
    }
}

fn collect<T: Item>(
    array: &Paged<T>,
    form: Form<T>,
    content: impl Fn(usize, &T) -> Content<T>,
) -> Array<T> {
    let (mut changes, mut blanks) = (Vec::new(), Vec::<Range<usize>>::new());
    array.overlay().each(&mut |index, item: &T| match content(index, item) {
        _ if item.is_gone() => changes.push((index, Content::Whole(item.clone()))),
        Content::Blank => match blanks.last_mut().filter(|last| last.end == index) {
            Some(last) => last.end += 1,
            None => blanks.push(index..index + 1),
        },
        content => changes.push((index, content)),
    });
    Array { array: array.clone(), form, changes, blanks, is_spare: false }
}

impl<T: Item> Array<T> {
    /// Returns how many items are to be stored: for removed ones only the entry is removed.
    fn items(&self) -> u64 {
        let is_stored = |content: &Content<T>| match content {
            Content::Whole(item) => !item.is_gone(),
            Content::Part(_) => true,
            Content::Blank => false,
        };
        self.changes.iter().filter(|(_, content)| is_stored(content)).count() as u64
    }

    fn store(
        self,
        pager: &Arc<Pager>,
        keep: &mut dyn Keep,
        whole: impl Fn(T) -> Piece,
    ) -> Result<(ArrayId, Rebase<T>)> {
        let mut but = Exceptions { blanks: self.blanks, ..Exceptions::default() };
        let mut changes: Vec<PlaceChange<T>> = Vec::with_capacity(self.changes.len());
        for (index, content) in self.changes {
            match content {
                Content::Whole(item) if item.is_gone() => {
                    changes.push(PlaceChange { index, new: None });
                }
                Content::Whole(item) => {
                    let stored = keep.store(whole(item.clone()))?;
                    let item = if pager.keeps() { OnceLock::from(item) } else { OnceLock::new() };
                    changes.push(PlaceChange { index, new: Some((stored, item)) });
                }
                Content::Part(bytes) => {
                    but.parts.push(index);
                    let stored = keep.store(Piece::Part(bytes, self.form.packing))?;
                    changes.push(PlaceChange { index, new: Some((stored, OnceLock::new())) });
                }
                Content::Blank => {}
            }
        }
        let empty = || {
            let root = BaseRoot { height: 0, stored: None };
            let base = Base::new(root, Arc::clone(pager), self.form);
            Arc::new(base.with_spare(self.is_spare))
        };
        let base = self.array.base().cloned().unwrap_or_else(empty);
        let mut base = if changes.is_empty() { base } else { Arc::new(base.grow(changes, keep)?) };
        if !pager.keeps() {
            base = Arc::new(base.unloaded());
        }
        Ok((self.array.id(), Rebase::new(&self.array, base, but)))
    }
}

/// Returns a page's filled parts: all of it, a copy, or nothing.
pub(super) fn filled_parts(
    page: &PageRef,
    index: usize,
    each: usize,
    blanks: &Blanks,
    copy: impl Fn(Range<usize>, &mut [u8]),
) -> Content<PageRef> {
    let mut bytes = Vec::new();
    for part in blanks.filled(index, each) {
        if part == (0..each) {
            return Content::Whole(page.clone());
        }
        bytes.resize(PAGE, 0);
        copy(part, &mut bytes);
    }
    if bytes.is_empty() {
        return Content::Blank;
    }
    bytes.truncate(used(&bytes));
    Content::Part(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_slots_are_left_out() {
        let blanks = Blanks { from: 25, gap: (12, 14) };
        let filled = |blanks: &Blanks, index| {
            blanks.filled(index, 10).map(|part| (part.start, part.end)).collect::<Vec<_>>()
        };
        assert_eq!(filled(&blanks, 0), [(0, 10)]);
        assert_eq!(filled(&blanks, 1), [(0, 2), (4, 10)]);
        assert_eq!(filled(&blanks, 2), [(0, 5)]);
        assert_eq!(filled(&blanks, 3), []);
        assert_eq!(filled(&Blanks::NONE, 7), [(0, 10)]);
        assert_eq!(filled(&Blanks { from: 5, gap: (8, 9) }, 0), [(0, 5)]);
    }
}
