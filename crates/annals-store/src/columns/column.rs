//! A column: the values of one field, by slot.

use std::borrow::Cow;

use annals_event::{from_cell, to_cell, width};
use annals_schema::{Blob, Field, FieldNumber, RowId, Type, Value, ValueRef};

use crate::Result;
use crate::blobs::Blobs;
use crate::columns::fetched::Fetched;
use crate::columns::raw::{ValueKind, kind_of, kind_of_type, variable};
use crate::columns::strings::Strings;
use crate::pages::cells::{Bits, Cells};
use crate::pages::load::Loader;
use crate::pages::page::{Epoch, Write};
use crate::pages::paged::Counted;
use crate::pages::refresh::{Refresh, refresh};
use crate::pages::save::{Blanks, Saved, Saver};

/// A column: cells, and which of them are null.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    field: FieldNumber,
    ty: Type,
    /// The kind of its values.
    kind: ValueKind,
    /// True if it takes null.
    takes_null: bool,
    /// True if it doesn't take all values of that kind.
    is_narrow: bool,
    /// The slots that are null, including erased values; `None` if the field takes no null and no value was erased.
    nulls: Option<Bits>,
    data: Data,
}

refresh!(Column { nulls, data; field, ty, kind, takes_null, is_narrow });

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Bits(Bits),
    One(Cells<1>),
    Two(Cells<2>),
    Four(Cells<4>),
    Eight(Cells<8>),
    Sixteen(Cells<16>),
    Variable(Box<Strings>),
}

/// Does the same with the cells of a column, of whatever kind they are.
macro_rules! with_cells {
    ($data:expr, $cells:ident => $do:expr) => {
        match $data {
            Data::Bits($cells) => $do,
            Data::One($cells) => $do,
            Data::Two($cells) => $do,
            Data::Four($cells) => $do,
            Data::Eight($cells) => $do,
            Data::Sixteen($cells) => $do,
            Data::Variable($cells) => $do,
        }
    };
}

/// Does the same with cells of a fixed number of bytes, and something else with others.
macro_rules! with_fixed_cells {
    ($data:expr, $cells:ident => $do:expr, else $other:expr) => {
        match $data {
            Data::One($cells) => $do,
            Data::Two($cells) => $do,
            Data::Four($cells) => $do,
            Data::Eight($cells) => $do,
            Data::Sixteen($cells) => $do,
            Data::Bits(_) | Data::Variable(_) => $other,
        }
    };
}

/// Makes the data of a type.
macro_rules! data_of {
    ($ty:expr, bits $bits:expr, strings $strings:expr, cells $cells:expr) => {
        match ($ty, width($ty)) {
            (Type::Bool, _) => Data::Bits($bits),
            (_, None) => Data::Variable(Box::new($strings)),
            (_, Some(1)) => Data::One($cells),
            (_, Some(2)) => Data::Two($cells),
            (_, Some(4)) => Data::Four($cells),
            (_, Some(8)) => Data::Eight($cells),
            (_, Some(_)) => Data::Sixteen($cells),
        }
    };
}

mod at_hand;
pub(crate) mod reader;

impl Refresh for Data {
    fn refresh(&mut self, newer: &Self) {
        match (&mut *self, newer) {
            (Self::Bits(old), Self::Bits(newer)) => old.refresh(newer),
            (Self::One(old), Self::One(newer)) => old.refresh(newer),
            (Self::Two(old), Self::Two(newer)) => old.refresh(newer),
            (Self::Four(old), Self::Four(newer)) => old.refresh(newer),
            (Self::Eight(old), Self::Eight(newer)) => old.refresh(newer),
            (Self::Sixteen(old), Self::Sixteen(newer)) => old.refresh(newer),
            (Self::Variable(old), Self::Variable(newer)) => old.refresh(newer),
            _ => *self = newer.clone(),
        }
    }
}

impl Column {
    /// Makes the column of a field, in which the first `len` slots have the field's default.
    pub(crate) fn new(field: &Field, len: usize) -> Self {
        let default = field.existing_value();
        let zero = Field { nullable: false, ..field.clone() }.zero_value();
        let is_null = matches!(default, Value::Null);
        let shown = if is_null { zero } else { default };
        let shown = shown.as_ref();
        let data = data_of!(field.ty,
            bits if let ValueRef::Bool(true) = shown { Bits::ones(len) } else { Bits::default() },
            strings Strings::filled(variable(shown).unwrap_or_default(), len),
            cells filled(shown, len)
        );
        let nulls = if is_null { Bits::ones(len) } else { Bits::default() };
        Self {
            field: field.number,
            ty: field.ty,
            kind: kind_of_type(field.ty),
            takes_null: field.nullable,
            is_narrow: field.ty.is_narrow(),
            nulls: field.nullable.then_some(nulls),
            data,
        }
    }

    /// Returns the field of the values.
    #[inline]
    pub(crate) const fn field(&self) -> FieldNumber {
        self.field
    }

    /// Returns the type.
    pub(crate) const fn ty(&self) -> Type {
        self.ty
    }

    /// Changes the variants of an `enum`.
    pub(crate) const fn set_variants(&mut self, ty: Type) {
        self.ty = ty;
    }

    /// True if a value may be null: so the field says, or values of it were erased.
    #[inline]
    pub(crate) const fn is_nullable(&self) -> bool {
        self.nulls.is_some()
    }

    /// True if null may be written.
    #[inline]
    pub(crate) const fn takes_null(&self) -> bool {
        self.takes_null
    }

    /// True if there is room for null only since a value was erased.
    pub(crate) const fn has_erased(&self) -> bool {
        self.nulls.is_some() && !self.takes_null
    }

    /// Makes room for null: nothing is null yet.
    pub(crate) fn make_room_for_null(&mut self) {
        self.nulls.get_or_insert_default();
    }

    /// Makes the value of a slot null; reading it as a plain value returns zero.
    pub(crate) fn erase(&mut self, slot: usize, write: Write<'_>) -> Result<()> {
        self.replace(slot, self.ty.zero(), write)?;
        match &mut self.nulls {
            Some(nulls) => nulls.set(slot, true, write),
            None => Ok(()),
        }
    }

    /// True if the value is valid for this column: as `Field::accepts`, but inlined and without a branch for each
    /// type.
    #[inline]
    pub(crate) fn accepts(&self, value: &ValueRef<'_>) -> bool {
        let kind = kind_of(value);
        let fits = kind == self.kind || (kind == ValueKind::Null && self.takes_null);
        fits && (!self.is_narrow || self.ty.accepts(self.takes_null, *value))
    }

    /// Returns true if the value of a slot is null.
    #[inline]
    pub(crate) fn is_null(&self, slot: usize) -> Result<bool> {
        match &self.nulls {
            Some(nulls) => nulls.get(slot),
            None => Ok(false),
        }
    }

    /// Returns the value of a slot.
    ///
    /// # Errors
    /// It can't be loaded, or the image's bytes there are no value.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Result<Fetched<'_>> {
        if self.is_null(slot)? {
            return Ok(Fetched::Here(ValueRef::Null));
        }
        Ok(Fetched::Here(match &self.data {
            Data::Bits(bits) => ValueRef::Bool(bits.get(slot)?),
            Data::Variable(strings) => match self.kind {
                ValueKind::String => return Ok(Fetched::text(strings.get_str(slot)?)),
                _ => return Ok(Fetched::bytes(strings.get(slot)?)),
            },
            data => with_fixed_cells!(
                data, cells => from_cell(self.ty, &cells.get(slot)?), else ValueRef::Null
            ),
        }))
    }

    /// Writes a value that the column accepts to a slot that has none.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        slot: usize,
        value: ValueRef<'_>,
        write: Write<'_>,
    ) -> Result<()> {
        if let Some(nulls) = &mut self.nulls {
            nulls.set(slot, matches!(value, ValueRef::Null), write)?;
        }
        // The processor soon predicts the kind of the column, but not the kind of each next value. So each kind of
        // column decodes its values separately.
        match &mut self.data {
            Data::Bits(bits) => match value {
                ValueRef::Bool(bit) => bits.set(slot, bit, write),
                _ => Ok(()),
            },
            // A string's cell must refer to nothing under a null; the contents of other cells are ignored.
            Data::Variable(strings) => {
                strings.insert(slot, variable(value).unwrap_or_default(), write)
            }
            data => with_fixed_cells!(data, cells => match to_cell(value) {
                Some(cell) => cells.set(slot, cell, write),
                None => Ok(()),
            }, else Ok(())),
        }
    }

    /// Writes another value that the column accepts to a slot that has one.
    pub(crate) fn replace(
        &mut self,
        slot: usize,
        value: ValueRef<'_>,
        write: Write<'_>,
    ) -> Result<()> {
        self.clear(slot, write.epoch)?;
        self.insert(slot, value, write)
    }

    /// Frees the memory of a slot's value outside its cell.
    #[inline]
    pub(crate) fn clear(&mut self, slot: usize, epoch: &Epoch) -> Result<()> {
        match &mut self.data {
            Data::Variable(strings) => strings.clear(slot, epoch),
            _ => Ok(()),
        }
    }

    /// Returns the value of a row before anything is set: null where it may be, else zero or empty.
    pub(crate) fn zero_value(&self) -> ValueRef<'static> {
        if self.takes_null { ValueRef::Null } else { self.ty.zero() }
    }

    /// Writes zero values to a run of slots that have none.
    pub(crate) fn zero_run(&mut self, slot: usize, len: usize, write: Write<'_>) -> Result<()> {
        if let Some(nulls) = &mut self.nulls {
            nulls.set_run(slot, len, self.takes_null, write)?;
        }
        // The contents of cells under a null are ignored, but for those of strings.
        if self.takes_null && !matches!(self.data, Data::Variable(_)) {
            return Ok(());
        }
        match &mut self.data {
            // The zeros of some types have a length.
            Data::Variable(strings) if !self.takes_null && self.is_narrow => {
                let zero = variable(self.ty.zero()).unwrap_or_default();
                (slot..slot + len).try_for_each(|slot| strings.insert(slot, zero, write))
            }
            data => with_cells!(data, cells => cells.zero(slot, len, write)),
        }
    }

    /// Writes a run of values, none of them null, given as cells of the column's width (a bool is a
    /// byte), which the column accepts.
    pub(crate) fn write_run(&mut self, slot: usize, cells: &[u8], write: Write<'_>) -> Result<()> {
        let len = width(self.ty).map_or(0, |width| cells.len() / width);
        if let Some(nulls) = &mut self.nulls {
            nulls.set_run(slot, len, false, write)?;
        }
        match &mut self.data {
            Data::Bits(bits) => {
                let bools = cells.iter().map(|&byte| byte != 0);
                (slot..).zip(bools).try_for_each(|(slot, bit)| bits.set(slot, bit, write))
            }
            data => with_fixed_cells!(data, column => column.write(slot, cells, write), else {
                debug_assert!(false, "the values were checked");
                Ok(())
            }),
        }
    }

    /// Writes a run of values that the column accepts; to slots that have none, if they are `new`.
    pub(crate) fn write_values(
        &mut self,
        slot: usize,
        values: &[ValueRef<'_>],
        new: bool,
        write: Write<'_>,
    ) -> Result<()> {
        if let Some(nulls) = &mut self.nulls {
            for (slot, value) in (slot..).zip(values) {
                nulls.set(slot, matches!(value, ValueRef::Null), write)?;
            }
        }
        let strings = match &mut self.data {
            Data::Bits(bits) => {
                let mut bools = (slot..).zip(values).filter_map(|(slot, &value)| match value {
                    ValueRef::Bool(bit) => Some((slot, bit)),
                    _ => None,
                });
                return bools.try_for_each(|(slot, bit)| bits.set(slot, bit, write));
            }
            Data::Variable(strings) => strings,
            data => {
                return with_fixed_cells!(
                    data, cells => cells.write_of(slot, values, to_cell, write), else Ok(())
                );
            }
        };
        if !new {
            (slot..slot + values.len()).try_for_each(|slot| strings.clear(slot, write.epoch))?;
        }
        let bytes = values.iter().map(|value| match value {
            ValueRef::String(text) => text.as_bytes(),
            ValueRef::Bytes(bytes) => bytes,
            _ => &[],
        });
        strings.write(slot, bytes, write)
    }

    /// Borrows a run of cells: `len` of them, or fewer where a page ends; empty if the column's values
    /// aren't cells of a fixed number of bytes. Copies them if only a cache has their page.
    ///
    /// # Errors
    /// They can't be loaded.
    pub(crate) fn run(&self, slot: usize, len: usize) -> Result<Cow<'_, [u8]>> {
        with_fixed_cells!(&self.data, cells => cells.run(slot, len), else Ok(Cow::Borrowed(&[])))
    }

    /// Returns true if a run has a null.
    pub(crate) fn has_null(&self, slot: usize, len: usize) -> Result<bool> {
        match &self.nulls {
            Some(nulls) => Ok(nulls.first(slot, slot + len)?.is_some()),
            None => Ok(false),
        }
    }

    /// Finds the first null of a run.
    pub(crate) fn next_null(&self, slots: std::ops::Range<usize>) -> Result<Option<usize>> {
        match &self.nulls {
            Some(nulls) => nulls.first(slots.start, slots.end),
            None => Ok(None),
        }
    }

    /// Finds the first of some cells that can't be a value of the column.
    pub(crate) fn first_bad_cell(&self, cells: &[u8], blobs: &Blobs) -> Option<usize> {
        let eight = || cells.as_chunks().0.iter().map(|cell| u64::from_le_bytes(*cell));
        match self.ty {
            Type::Bool => cells.iter().position(|&byte| byte > 1),
            Type::Blob => eight().position(|number| !blobs.has(Blob(number))),
            Type::Enum(variants) => {
                let mut numbers = cells.as_chunks().0.iter().map(|cell| u16::from_le_bytes(*cell));
                numbers.position(|number| !variants.has(number))
            }
            Type::Reference(..) => eight().position(|number| number > RowId::MAX.0),
            _ => None,
        }
    }

    /// Moves a value to a slot without a value. The slot that it came from has no value afterwards.
    pub(crate) fn move_cell(&mut self, from: usize, to: usize, write: Write<'_>) -> Result<()> {
        if let Some(nulls) = &mut self.nulls {
            let null = nulls.get(from)?;
            nulls.set(to, null, write)?;
        }
        match &mut self.data {
            Data::Bits(bits) => bits.set(to, bits.get(from)?, write),
            Data::Variable(strings) => strings.move_cell(from, to, write),
            data => {
                with_fixed_cells!(data, cells => cells.set(to, cells.get(from)?, write), else Ok(()))
            }
        }
    }

    /// Passes the column on to be saved.
    pub(crate) fn save(&self, out: &mut Saver, blanks: &Blanks) {
        if let Some(nulls) = &self.nulls {
            nulls.save(out, blanks);
        }
        with_cells!(&self.data, cells => cells.save(out, blanks));
    }

    /// Loads the output of `save` for the column of a field, of which values may have been erased.
    pub(crate) fn load(input: &mut Loader<'_>, field: &Field, has_erased: bool) -> Result<Self> {
        let has_room = field.nullable || has_erased;
        let nulls = if has_room { Some(Bits::load(input)?) } else { None };
        let data = data_of!(field.ty,
            bits Bits::load(input)?, strings Strings::load(input)?, cells Cells::load(input)?
        );
        let kind = kind_of_type(field.ty);
        let (takes_null, is_narrow) = (field.nullable, field.ty.is_narrow());
        Ok(Self { field: field.number, ty: field.ty, kind, takes_null, is_narrow, nulls, data })
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        if let Some(nulls) = &mut self.nulls {
            nulls.rebase(saved);
        }
        with_cells!(&mut self.data, cells => cells.rebase(saved));
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        let data = with_cells!(&self.data, cells => cells.memory(what));
        data + self.nulls.as_ref().map_or(0, |nulls| nulls.memory(what)) + size_of::<Self>()
    }
}

fn filled<const W: usize>(value: ValueRef<'_>, len: usize) -> Cells<W> {
    match to_cell(value) {
        Some(cell) if cell != [0; W] => Cells::filled(cell, len),
        _ => Cells::default(),
    }
}

#[cfg(test)]
mod tests;
