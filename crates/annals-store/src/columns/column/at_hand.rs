//! Reading values that need no lookup: they are in memory as a change, or were loaded before and stay.
//!
//! Reading a value by [`Column::get`] checks at each step whether something must be loaded, and can fail. Most reads
//! find everything in its place. These return `None` in such cases; the caller then takes the slow path.

use std::ops::Range;

use annals_schema::{Decimal, Type};

use super::{Column, Data};
use crate::Result;
use crate::columns::raw::ValueKind;
use crate::pages::cells::Cells;
use crate::pages::page::ask_for;

/// The bytes of a cell of one width.
pub(crate) trait CellBytes: Sized {
    /// Returns the cell of a slot, if the data has this width.
    fn at_hand(data: &Data, slot: usize) -> Option<Self>;
}

macro_rules! cell_bytes {
    ($($data:ident: $width:literal;)*) => {$(
        impl CellBytes for [u8; $width] {
            #[inline]
            fn at_hand(data: &Data, slot: usize) -> Option<Self> {
                match data {
                    Data::$data(cells) => cells.at_hand(slot),
                    _ => None,
                }
            }
        }
    )*};
}

cell_bytes! {
    One: 1;
    Two: 2;
    Four: 4;
    Eight: 8;
    Sixteen: 16;
}

fn bytes_at_hand<const W: usize>(cells: &Cells<W>, slot: usize) -> Option<&[u8]> {
    cells.slice_at_hand(slot, 0, W)
}

impl Column {
    /// Returns the cell of a value that isn't null, if it is of this kind.
    #[inline]
    pub(crate) fn cell<C: CellBytes>(&self, slot: usize, kind: ValueKind) -> Option<C> {
        if self.kind == kind { C::at_hand(&self.data, slot) } else { None }
    }

    /// Returns the decimal of a slot that isn't null, if it is one.
    #[inline]
    pub(crate) fn decimal<const SCALE: u8>(&self, slot: usize) -> Option<Decimal<SCALE>> {
        let units = self.cell(slot, ValueKind::Decimal).map(i128::from_le_bytes)?;
        (self.ty == Type::Decimal(SCALE)).then(|| Decimal::from_units(units))
    }

    /// Returns a bool that isn't null, if it is one.
    #[inline]
    pub(crate) fn bit(&self, slot: usize) -> Option<bool> {
        match &self.data {
            Data::Bits(bits) => bits.at_hand(slot),
            _ => None,
        }
    }

    /// Returns the bytes of a value of variable size that isn't null, if it is of this kind.
    #[inline]
    pub(crate) fn variable(&self, slot: usize, kind: ValueKind) -> Option<&[u8]> {
        match &self.data {
            Data::Variable(strings) if self.kind == kind => strings.at_hand(slot),
            _ => None,
        }
    }

    /// Returns a string that isn't null, if it is one. The row was loaded: invalid UTF-8 is reported then.
    #[inline]
    pub(crate) fn text(&self, slot: usize, kind: ValueKind) -> Option<&str> {
        match &self.data {
            Data::Variable(strings) if self.kind == kind => strings.text_at_hand(slot),
            _ => None,
        }
    }

    /// Prefetches the cell of a slot that is about to be read, if it needs no lookup.
    #[inline]
    pub(crate) fn ask_for_cell(&self, slot: usize) {
        let cell = match &self.data {
            Data::Variable(strings) => strings.cell_at_hand(slot),
            // Many bits are in one line.
            data => with_fixed_cells!(data, cells => bytes_at_hand(cells, slot), else None),
        };
        ask_for(cell.unwrap_or_default());
    }

    /// Prefetches the bytes that the cell of a slot refers to.
    #[inline]
    pub(crate) fn ask_for_text(&self, slot: usize) {
        if let Data::Variable(strings) = &self.data {
            ask_for(strings.at_hand(slot).unwrap_or_default());
        }
    }

    /// Returns whether the value of a slot is null.
    #[inline]
    pub(crate) fn null_at_hand(&self, slot: usize) -> Option<bool> {
        self.nulls.as_ref().map_or(Some(false), |nulls| nulls.at_hand(slot))
    }

    /// True if a string or bytes of a slot can be read like this, and without an error. Values of fixed size can, if
    /// their cells stay.
    #[inline]
    pub(crate) fn text_is_at_hand(&self, slot: usize) -> bool {
        match &self.data {
            Data::Variable(strings) => {
                self.null_at_hand(slot) == Some(true)
                    || strings.is_at_hand(slot, self.kind == ValueKind::String)
            }
            _ => true,
        }
    }

    /// True if all strings or bytes of some slots in one page are in their cells, and reading them can't fail, for
    /// all views over the same bases. Values of fixed size can.
    pub(crate) fn texts_are_short_below(&self, slots: Range<usize>) -> bool {
        match &self.data {
            Data::Variable(strings) => {
                strings.are_short_below(slots, self.kind == ValueKind::String)
            }
            _ => true,
        }
    }

    /// Begins to fetch the page of cells of fixed size that are read next, if it is in memory.
    #[inline]
    pub(crate) fn fetch(&self, slot: usize) {
        with_fixed_cells!(&self.data, cells => cells.fetch(slot), else ());
    }

    /// Returns true if the cells of a slot can be read again without loading anything, the bytes of a long
    /// value aside. Loads them, if that wasn't done yet.
    ///
    /// # Errors
    /// Their page can't be loaded.
    pub(crate) fn cells_stay(&self, slot: usize) -> Result<bool> {
        let nulls_stay = self.nulls.as_ref().map_or(Ok(true), |nulls| nulls.stays(slot))?;
        Ok(nulls_stay && with_cells!(&self.data, cells => cells.stays(slot)?))
    }

    /// True if the cells of a slot, which stay, do so for all views over the same bases, whatever those
    /// have changed.
    pub(crate) fn cells_stay_below(&self, slot: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.stays_below(slot))
            && with_cells!(&self.data, cells => cells.stays_below(slot))
    }

    /// Returns true if a value of variable size, whose cell stays, can be read again without loading anything,
    /// and without an error; all others can. Loads it, if that wasn't done yet.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn text_stays(&self, slot: usize) -> Result<bool> {
        match &self.data {
            Data::Variable(_) if self.is_null(slot)? => Ok(true),
            Data::Variable(strings) => strings.value_stays(slot, self.kind == ValueKind::String),
            _ => Ok(true),
        }
    }
}
