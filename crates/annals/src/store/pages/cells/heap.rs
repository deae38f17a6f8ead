//! Appended bytes, and whole pages for tree nodes.

use std::sync::Arc;

use super::{own, page_memory};
use crate::store::pages::directory::Directory;
use crate::store::pages::page::{Epoch, PAGE, Page};

/// Pages to which bytes are appended.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Heap {
    pages: Directory<Arc<Page>>,
}

impl Heap {
    /// Adds an empty page, or replaces one by it.
    pub(in crate::store) fn add(&mut self, number: usize, epoch: &Epoch) {
        self.pages.set(number, Some(Page::zeroed(epoch)));
    }

    /// Takes a page away.
    pub(in crate::store) fn remove(&mut self, number: usize) {
        self.pages.set(number, None);
    }

    /// Borrows bytes that were appended.
    #[inline]
    pub(in crate::store) fn slice(&self, number: usize, offset: usize, len: usize) -> &[u8] {
        match self.pages.get(number) {
            // SAFETY: the view leads to these bytes (invariant 1), and bytes that were appended
            // are not written again as long as a view leads to them.
            Some(page) => unsafe { page.slice(offset, len) },
            None => &[],
        }
    }

    /// Writes bytes that no view leads to yet, in this transaction's working view neither.
    #[inline]
    pub(in crate::store) fn append(&mut self, number: usize, offset: usize, bytes: &[u8]) {
        if let Some(page) = self.pages.get(number) {
            // SAFETY: the bytes are fresh (invariant 2), and heap pages are never shared.
            unsafe { page.write(offset, bytes) };
        }
    }

    /// Tells how much memory it takes, in bytes.
    pub(in crate::store) fn memory(&self) -> usize {
        self.pages.memory(page_memory)
    }
}

/// Whole pages, as the nodes of a tree.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Nodes {
    pages: Directory<Arc<Page>>,
}

impl Nodes {
    /// Borrows a node.
    #[inline]
    pub(in crate::store) fn get(&self, number: u32) -> &[u8; PAGE] {
        let page = self.pages.get(number as usize).expect("a tree knows its nodes");
        // SAFETY: node pages are written only when owned, through `get_mut` (invariant 3).
        unsafe { page.whole() }
    }

    /// Borrows a node for writing; copies it first unless it is owned. A missing one is zeros.
    #[inline]
    pub(in crate::store) fn get_mut(&mut self, number: u32, epoch: &Epoch) -> &mut [u8; PAGE] {
        let index = number as usize;
        if !self.pages.get(index).is_some_and(|page| page.is_owned(epoch)) {
            own(&mut self.pages, index, epoch);
        }
        let page = self.pages.get(index).expect("it is owned, so it is there");
        // SAFETY: the page is owned, and reached through this `&mut self`.
        unsafe { page.whole_mut() }
    }

    /// Takes a node away.
    pub(in crate::store) fn remove(&mut self, number: u32) {
        self.pages.set(number as usize, None);
    }

    /// Tells how much memory it takes, in bytes.
    pub(in crate::store) fn memory(&self) -> usize {
        self.pages.memory(page_memory)
    }
}
