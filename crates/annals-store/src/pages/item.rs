//! An item of an array of the store: a page, or a value too long for one.

use std::ops::Deref;
use std::sync::Arc;

use crate::image::{Source, Stored};
use crate::pages::packing::Packing;
use crate::pages::page::PageRef;
use crate::{Error, Result};

/// Something that is kept in memory, and that can be loaded from an image.
pub(crate) trait Item: Clone + Send + Sync + 'static {
    /// Loads it from where it is stored.
    fn load(stored: &Stored, packing: Packing, source: &dyn Source) -> Result<Self>;

    /// Returns the item in the place of a removed stored one.
    fn gone() -> Self;

    /// True if it is that.
    fn is_gone(&self) -> bool;

    /// True if it is the identical item, which then can't have changed, or both were removed.
    fn is_same(&self, other: &Self) -> bool;

    /// Converts it to the form in a cache of loaded items.
    fn into_cached(self) -> Cached;

    /// Finds it in a cache.
    fn from_cached(cached: &Cached) -> Option<Self>;

    /// Returns how much memory it takes, in bytes.
    fn memory(&self) -> usize;
}

/// Something that was loaded.
#[derive(Clone, Debug)]
pub(crate) enum Cached {
    /// A page.
    Page(PageRef),
    /// A long value.
    Long(Arc<[u8]>),
}

impl Cached {
    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Page(page) => page.memory(),
            Self::Long(value) => value.memory(),
        }
    }
}

impl Item for PageRef {
    fn load(stored: &Stored, packing: Packing, source: &dyn Source) -> Result<Self> {
        Self::stored(stored, packing, source)
    }

    fn gone() -> Self {
        Self::gone() // the page's own
    }

    fn is_gone(&self) -> bool {
        Self::is_gone(self) // the page's own
    }

    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        self.is(other) // there is one page that is gone
    }

    fn into_cached(self) -> Cached {
        Cached::Page(self)
    }

    fn from_cached(cached: &Cached) -> Option<Self> {
        match cached {
            Cached::Page(page) => Some(Self::clone(page)),
            Cached::Long(_) => None,
        }
    }

    fn memory(&self) -> usize {
        Self::memory(self)
    }
}

impl Item for Arc<[u8]> {
    fn load(stored: &Stored, _packing: Packing, source: &dyn Source) -> Result<Self> {
        let len = usize::try_from(stored.len).map_err(|_| {
            Error::corrupt(format!("a value of {} bytes in the image is too long", stored.len))
        })?;
        let mut bytes: Self = std::iter::repeat_n(0, len).collect();
        if let Some(bytes) = Self::get_mut(&mut bytes) {
            source.read(stored, bytes)?;
        }
        Ok(bytes)
    }

    fn gone() -> Self {
        Self::from([])
    }

    fn is_gone(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other) || (self.is_empty() && other.is_empty())
    }

    fn into_cached(self) -> Cached {
        Cached::Long(self)
    }

    fn from_cached(cached: &Cached) -> Option<Self> {
        match cached {
            Cached::Long(value) => Some(Self::clone(value)),
            Cached::Page(_) => None,
        }
    }

    fn memory(&self) -> usize {
        self.len() + 2 * size_of::<usize>()
    }
}

/// An item: borrowed from the view that has it, or else kept by the reader.
#[derive(Clone, Debug)]
pub(crate) enum Held<'a, T> {
    /// The view has it as long as it lives.
    Here(&'a T),
    /// Only a cache has it, which may drop it.
    Kept(T),
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Here(item) => item,
            Self::Kept(item) => item,
        }
    }
}
