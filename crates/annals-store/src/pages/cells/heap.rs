//! Appended bytes, whole pages for tree nodes, and values too long for a page.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::own;
use crate::pages::base::Form;
use crate::pages::item::Held;
use crate::pages::load::Loader;
use crate::pages::page::{Epoch, PAGE, PageRef};
use crate::pages::paged::{Counted, Paged};
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Content, Saved, Saver, filled_parts};
use crate::{Error, Result};

/// Pages to which bytes are appended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    pub(super) pages: Paged<PageRef>,
}

refresh!(Heap { pages; });

impl Heap {
    /// Adds an empty page, or replaces one by it.
    pub(crate) fn add(&mut self, number: usize, epoch: &Epoch) {
        self.pages.put(number, PageRef::zeroed(epoch));
    }

    /// Takes a page away.
    pub(crate) fn remove(&mut self, number: usize) {
        self.pages.remove(number);
    }

    /// Borrows bytes that were appended, or copies them if only a cache has them.
    ///
    /// # Errors
    /// Their page can't be loaded, or there are no such bytes.
    #[inline]
    pub(crate) fn slice(&self, number: usize, offset: usize, len: usize) -> Result<Cow<'_, [u8]>> {
        match self.pages.get(number)? {
            // Only an image can contain that.
            Some(_) if len > PAGE || offset > PAGE - len => Err(nowhere()),
            // SAFETY: the view refers to these bytes (invariant 1), and appended bytes are not written again as long
            // as a view refers to them.
            Some(Held::Here(page)) => Ok(Cow::Borrowed(unsafe { page.slice(offset, len) })),
            // SAFETY: as before; they are copied at once.
            Some(Held::Kept(page)) => Ok(Cow::Owned(unsafe { page.slice(offset, len) }.to_vec())),
            None => Err(nowhere()),
        }
    }

    /// Borrows bytes whose page needs no lookup.
    #[inline]
    pub(crate) fn slice_at_hand(&self, number: usize, offset: usize, len: usize) -> Option<&[u8]> {
        let page = self.pages.at_hand(number)?;
        if len > PAGE || offset > PAGE - len {
            return None;
        }
        // SAFETY: as for `slice`.
        Some(unsafe { page.slice(offset, len) })
    }

    /// Writes bytes that no view refers to yet, this transaction's working view included.
    ///
    /// # Errors
    /// Their page must be copied, and can't be loaded.
    #[inline]
    pub(crate) fn append(
        &mut self,
        number: usize,
        offset: usize,
        bytes: &[u8],
        epoch: &Epoch,
    ) -> Result<()> {
        let page = match self.pages.here(number) {
            Some(page) => page,
            None => own(&mut self.pages, number, epoch)?,
        };
        // SAFETY: the bytes are fresh (invariant 2), and heap pages are never shared.
        unsafe { page.write(offset, bytes) };
        Ok(())
    }

    /// Hands the pages over to be saved; of page `tail` only the bytes before `used` count.
    pub(crate) fn save(&self, out: &mut Saver, tail: usize, used: usize) {
        out.pages(&self.pages, Form::BYTES, |index, page| {
            let from = if index == tail { used } else { PAGE };
            let blanks = Blanks { from, gap: (0, 0) };
            filled_parts(page, 0, PAGE, &blanks, |part, out| {
                // SAFETY: a published view refers to these bytes, so they aren't written.
                out[part.clone()].copy_from_slice(unsafe { page.slice(part.start, part.len()) });
            })
        });
    }

    /// Loads the output of `save`.
    pub(crate) fn load(input: &mut Loader<'_>) -> Result<Self> {
        Ok(Self { pages: input.array(Form::BYTES)? })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        saved.rebase_pages(&mut self.pages);
    }

    /// True if a part of it is from an image.
    pub(crate) const fn has_base(&self) -> bool {
        self.pages.base().is_some()
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        self.pages.memory(what)
    }
}

#[cold]
pub(super) fn nowhere() -> Error {
    Error::ill_written("a value refers to bytes that aren't there")
}

/// Whole pages, as the nodes of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    pages: Paged<PageRef>,
}

refresh!(Nodes { pages; });

/// A node's page.
#[derive(Clone, Debug)]
pub(crate) struct NodePage<'a>(Held<'a, PageRef>);

impl Deref for NodePage<'_> {
    type Target = [u8; PAGE];

    #[inline]
    fn deref(&self) -> &[u8; PAGE] {
        // SAFETY: node pages are written only when owned, through `get_mut` (invariant 3), which needs a `&mut` of
        // the structure that this borrows.
        unsafe { self.0.whole() }
    }
}

impl<'a> NodePage<'a> {
    /// Takes a page that was just loaded from an image: such a page is never written.
    pub(crate) const fn loaded(page: &'a PageRef) -> Self {
        Self(Held::Here(page))
    }
}

impl Nodes {
    /// Returns true if there is no node of that number.
    ///
    /// # Errors
    /// The needed page can't be loaded.
    pub(crate) fn is_missing(&self, number: u32) -> Result<bool> {
        Ok(self.pages.get(number as usize)?.is_none_or(|page| page.is_gone()))
    }

    /// Borrows a node.
    ///
    /// # Errors
    /// It can't be loaded, or there is none of that number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Result<NodePage<'_>> {
        match self.pages.get(number as usize)? {
            Some(page) => Ok(NodePage(page)),
            None => Err(no_node(number)),
        }
    }

    /// Borrows a node that needs no lookup.
    #[inline]
    pub(crate) fn at_hand(&self, number: u32) -> Option<&[u8; PAGE]> {
        // SAFETY: as for a `NodePage`, which borrows the same.
        self.pages.at_hand(number as usize).map(|page| unsafe { page.whole() })
    }

    /// Borrows a node for writing; copies it first unless it is owned. A missing one is zeros.
    ///
    /// # Errors
    /// It can't be loaded.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32, epoch: &Epoch) -> Result<&mut [u8; PAGE]> {
        let index = number as usize;
        if !self.pages.here(index).is_some_and(|page| page.is_owned(epoch)) {
            own(&mut self.pages, index, epoch)?;
        }
        let page = self.pages.here(index).expect("it is owned, so it is there");
        // SAFETY: the page is owned, and reached through this `&mut self`.
        Ok(unsafe { page.whole_mut() })
    }

    /// Takes a node away.
    pub(crate) fn remove(&mut self, number: u32) {
        self.pages.remove(number as usize);
    }

    /// Passes the nodes on to be saved; `form` is that of a node.
    pub(crate) fn save(&self, out: &mut Saver, form: Form<PageRef>) {
        out.pages(&self.pages, form, |_, page| Content::Whole(page.clone()));
    }

    /// Loads the output of `save`.
    pub(crate) fn load(input: &mut Loader<'_>, form: Form<PageRef>) -> Result<Self> {
        Ok(Self { pages: input.array(form)? })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        saved.rebase_pages(&mut self.pages);
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        self.pages.memory(what)
    }
}

#[cold]
fn no_node(number: u32) -> Error {
    Error::ill_written(format!("a tree has no node {number}"))
}

/// Values too long for a page, by number. None is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Longs {
    values: Paged<Arc<[u8]>>,
}

refresh!(Longs { values; });

impl Longs {
    /// Returns a value.
    ///
    /// # Errors
    /// It can't be loaded, or there is none of that number.
    pub(crate) fn get(&self, number: u32) -> Result<Held<'_, Arc<[u8]>>> {
        let value = self.values.get(number as usize)?;
        value.filter(|value| !value.is_empty()).ok_or_else(nowhere)
    }

    /// Puts a value at a number.
    pub(crate) fn put(&mut self, number: u32, value: &[u8], epoch: &Epoch) {
        epoch.note_made(value.len());
        self.begin_with(number, value);
    }

    /// Puts a value at a number, before any transaction.
    pub(crate) fn begin_with(&mut self, number: u32, value: &[u8]) {
        debug_assert!(!value.is_empty(), "an empty value stands for one that is gone");
        self.values.put(number as usize, Arc::from(value));
    }

    /// Takes a value away.
    pub(crate) fn remove(&mut self, number: u32) {
        self.values.remove(number as usize);
    }

    /// Hands the values over to be saved.
    pub(crate) fn save(&self, out: &mut Saver) {
        out.longs(&self.values);
    }

    /// Loads the output of `save`.
    pub(crate) fn load(input: &mut Loader<'_>) -> Result<Self> {
        Ok(Self { values: input.array(Form::BYTES)? })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        saved.rebase_longs(&mut self.values);
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        self.values.memory(what)
    }
}
