//! A page that a cursor keeps in hand: what is read next is mostly in the page that was read last, whether the view has
//! that in memory or only a cache.

use crate::Result;
use crate::pages::item::Held;
use crate::pages::page::PageRef;
use crate::pages::paged::Paged;

/// The page of an array that was read last.
#[derive(Debug)]
pub(crate) struct InHand<'a> {
    pages: &'a Paged<PageRef>,
    /// The number of the page; meaningless as long as nothing was read.
    index: usize,
    page: Option<Held<'a, PageRef>>,
    is_known: bool,
}

impl<'a> InHand<'a> {
    /// Begins with no page.
    pub(crate) const fn new(pages: &'a Paged<PageRef>) -> Self {
        Self { pages, index: 0, page: None, is_known: false }
    }

    /// Returns the page at a place; `None` if there is none.
    ///
    /// # Errors
    /// It can't be loaded.
    #[inline]
    pub(crate) fn page(&mut self, index: usize) -> Result<Option<&PageRef>> {
        if self.index != index || !self.is_known {
            self.turn_to(index)?;
        }
        Ok(self.page.as_deref())
    }

    #[inline(never)] // so that reading on in a page stays short
    fn turn_to(&mut self, index: usize) -> Result<()> {
        self.is_known = false;
        self.page = self.pages.get(index)?;
        (self.index, self.is_known) = (index, true);
        Ok(())
    }
}
