//! Loading a view: its metadata in an image, read in the order in which it was saved.
//!
//! Pages are not read: each array begins with its saved root.

use std::sync::Arc;

use crate::image::MAX_HEIGHT;
use crate::pages::base::{Base, BaseRoot, Form};
use crate::pages::item::Item;
use crate::pages::paged::Paged;
use crate::pages::pager::Pager;
use crate::{Error, Result};
use annals_event::compact;

/// Reads the output of a [`Saver`](crate::pages::save::Saver).
#[derive(Debug)]
pub(crate) struct Loader<'a> {
    metadata: &'a [u8],
    roots: std::slice::Iter<'a, BaseRoot>,
    pager: &'a Arc<Pager>,
}

impl<'a> Loader<'a> {
    /// Begins with all that was saved.
    pub(crate) fn new(metadata: &'a [u8], roots: &'a [BaseRoot], pager: &'a Arc<Pager>) -> Self {
        Self { metadata, roots: roots.iter(), pager }
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Result<u64> {
        compact::take(&mut self.metadata).map_err(|_| ends())
    }

    /// Reads a number of things in memory, or of slots.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let number = self.number()?;
        // Sums of a few of them must not overflow.
        usize::try_from(number).ok().filter(|&count| count <= usize::MAX >> 8).ok_or_else(|| {
            Error::corrupt(format!(
                "the image's catalog is damaged: the number {number} is too large"
            ))
        })
    }

    /// Reads a number of 32 bits.
    pub(crate) fn word(&mut self) -> Result<u32> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| {
            Error::corrupt(format!(
                "the image's catalog is damaged: the number {number} is too large"
            ))
        })
    }

    /// Reads a flag that is 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool> {
        Ok(self.flag_to(1)? == 1)
    }

    /// Reads a flag that is at most `most`.
    pub(crate) fn flag_to(&mut self, most: u8) -> Result<u8> {
        let (&flag, rest) = self.metadata.split_first().ok_or_else(ends)?;
        self.metadata = rest;
        if flag <= most {
            return Ok(flag);
        }
        Err(Error::corrupt(format!(
            "the image's catalog is damaged: a flag is {flag}, but at most {most} is allowed"
        )))
    }

    /// Reads bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.count()?;
        let (bytes, rest) = self.metadata.split_at_checked(len).ok_or_else(ends)?;
        self.metadata = rest;
        Ok(bytes)
    }

    /// Takes the next array; `form` is that of its items.
    pub(crate) fn array<T: Item>(&mut self, form: Form<T>) -> Result<Paged<T>> {
        self.base(form).map(|base| Paged::on(Arc::new(base)))
    }

    fn base<T: Item>(&mut self, form: Form<T>) -> Result<Base<T>> {
        let root = self.roots.next().ok_or_else(ends)?;
        if root.height >= MAX_HEIGHT {
            return Err(Error::corrupt("the image's catalog has a root that is too high"));
        }
        Ok(Base::new(*root, Arc::clone(self.pager), form))
    }

    /// Takes the next array; nothing but speed depends on its items.
    pub(crate) fn spares<T: Item>(&mut self, form: Form<T>) -> Result<Paged<T>> {
        self.base(form).map(|base| Paged::on(Arc::new(base.with_spare(true))))
    }

    /// Fails unless everything was read.
    pub(crate) fn end(mut self) -> Result<()> {
        if self.metadata.is_empty() && self.roots.next().is_none() {
            return Ok(());
        }
        Err(Error::corrupt("the image's catalog has more than its schema needs"))
    }
}

#[cold]
fn ends() -> Error {
    Error::corrupt("the image's catalog ends too early")
}
