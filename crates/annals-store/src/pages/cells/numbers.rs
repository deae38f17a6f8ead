//! Freed numbers, to be allocated again.

use super::Cells;
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Saved, Saver};
use crate::{Error, Result};

/// Numbers from 0 on: the freed ones, as a stack, and all that were never allocated.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeNumbers {
    free: Cells<4>,
    count: usize,
    end: u32,
}

refresh!(FreeNumbers { free; count, end });

impl FreeNumbers {
    /// Begins with numbers from `end` on.
    pub(crate) fn from(end: u32) -> Self {
        Self { end, ..Self::default() }
    }

    /// Returns the first number that was never given out.
    pub(crate) const fn end(&self) -> u32 {
        self.end
    }

    /// Takes a number.
    ///
    /// # Errors
    /// The stack can't be loaded, or has numbers that were never given out; there are no more.
    pub(crate) fn take(&mut self) -> Result<u32> {
        let Some(last) = self.count.checked_sub(1) else {
            let number = self.end;
            self.end = number.checked_add(1).ok_or_else(no_number)?;
            return Ok(number);
        };
        let number = u32::from_le_bytes(self.free.get(last)?);
        if number >= self.end {
            return Err(no_number());
        }
        self.count = last;
        Ok(number)
    }

    /// Frees a number.
    ///
    /// # Errors
    /// The stack can't be loaded.
    pub(crate) fn give(&mut self, number: u32, epoch: &Epoch) -> Result<()> {
        self.free.set(self.count, number.to_le_bytes(), epoch.seen())?;
        self.count += 1;
        Ok(())
    }

    /// Hands the numbers over to be saved.
    pub(crate) fn save(&self, out: &mut Saver) {
        out.number(u64::from(self.end));
        out.count(self.count);
        self.free.save(out, &Blanks::NONE);
    }

    /// Loads the output of `save`.
    pub(crate) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let (end, count) = (input.word()?, input.count()?);
        Ok(Self { end, count, free: Cells::load(input)? })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        self.free.rebase(saved);
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        self.free.memory(what)
    }
}

#[cold]
fn no_number() -> Error {
    Error::ill_written("free numbers were never given out")
}
