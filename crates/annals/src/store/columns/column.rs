//! A column: the values of one field, by slot.

use annals_schema::{Blob, Field, FieldNumber, RowId, Type, Value, ValueRef};

use crate::event::width;
use crate::store::blobs::Blobs;
use crate::store::columns::strings::Strings;
use crate::store::pages::cells::{Bits, Cells};
use crate::store::pages::page::Epoch;

/// A column: cells, and which of them are null.
#[derive(Clone, Debug)]
pub(in crate::store) struct Column {
    field: FieldNumber,
    ty: Type,
    /// The code of the values that it holds.
    code: u8,
    nulls: Option<Bits>,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Bits(Bits),
    One(Cells<1>),
    Two(Cells<2>),
    Four(Cells<4>),
    Eight(Cells<8>),
    Variable(Box<Strings>),
}

/// A value as its column keeps it.
enum Raw<'a> {
    Bit(bool),
    One([u8; 1]),
    Two([u8; 2]),
    Four([u8; 4]),
    Eight([u8; 8]),
    Variable(&'a [u8]),
}

/// The code of null.
const NULL: u8 = 0;

/// Gives each kind of value a number, in the order of its kinds: so it costs a load.
#[inline]
const fn code_of(value: &ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Null => NULL,
        ValueRef::Bool(_) => 1,
        ValueRef::Int8(_) => 2,
        ValueRef::Int16(_) => 3,
        ValueRef::Int32(_) => 4,
        ValueRef::Int64(_) => 5,
        ValueRef::UInt8(_) => 6,
        ValueRef::UInt16(_) => 7,
        ValueRef::UInt32(_) => 8,
        ValueRef::UInt64(_) => 9,
        ValueRef::Float32(_) => 10,
        ValueRef::Float64(_) => 11,
        ValueRef::String(_) => 12,
        ValueRef::Bytes(_) => 13,
        ValueRef::Timestamp(_) => 14,
        ValueRef::Blob(_) => 15,
        ValueRef::Reference(_) => 16,
    }
}

/// Gives zero, false or nothing, as a value of a type.
const fn zero_of(ty: Type) -> ValueRef<'static> {
    match ty {
        Type::Bool => ValueRef::Bool(false),
        Type::Int8 => ValueRef::Int8(0),
        Type::Int16 => ValueRef::Int16(0),
        Type::Int32 => ValueRef::Int32(0),
        Type::Int64 => ValueRef::Int64(0),
        Type::UInt8 => ValueRef::UInt8(0),
        Type::UInt16 => ValueRef::UInt16(0),
        Type::UInt32 => ValueRef::UInt32(0),
        Type::UInt64 => ValueRef::UInt64(0),
        Type::Float32 => ValueRef::Float32(0.0),
        Type::Float64 => ValueRef::Float64(0.0),
        Type::String => ValueRef::String(""),
        Type::Bytes => ValueRef::Bytes(&[]),
        Type::Timestamp => ValueRef::Timestamp(0),
        Type::Blob => ValueRef::Blob(Blob(0)),
        Type::Reference(..) => ValueRef::Reference(RowId(0)),
    }
}

/// Gives the code of a type's values.
const fn code_of_type(ty: Type) -> u8 {
    code_of(&zero_of(ty))
}

impl<'a> Raw<'a> {
    #[inline]
    fn of(value: ValueRef<'a>) -> Option<Self> {
        Some(match value {
            ValueRef::Null => return None,
            ValueRef::Bool(v) => Self::Bit(v),
            ValueRef::Int8(v) => Self::One(v.to_le_bytes()),
            ValueRef::UInt8(v) => Self::One(v.to_le_bytes()),
            ValueRef::Int16(v) => Self::Two(v.to_le_bytes()),
            ValueRef::UInt16(v) => Self::Two(v.to_le_bytes()),
            ValueRef::Int32(v) => Self::Four(v.to_le_bytes()),
            ValueRef::UInt32(v) => Self::Four(v.to_le_bytes()),
            ValueRef::Float32(v) => Self::Four(v.to_le_bytes()),
            ValueRef::Int64(v) | ValueRef::Timestamp(v) => Self::Eight(v.to_le_bytes()),
            ValueRef::UInt64(v) => Self::Eight(v.to_le_bytes()),
            ValueRef::Float64(v) => Self::Eight(v.to_le_bytes()),
            ValueRef::Blob(v) => Self::Eight(v.0.to_le_bytes()),
            ValueRef::Reference(v) => Self::Eight(v.0.to_le_bytes()),
            ValueRef::String(v) => Self::Variable(v.as_bytes()),
            ValueRef::Bytes(v) => Self::Variable(v),
        })
    }
}

impl Column {
    /// Makes the column of a field, in which the first `len` slots have the field's default.
    pub(in crate::store) fn new(field: &Field, len: usize) -> Self {
        let default = field.default_value();
        let zero = Field { nullable: false, ..field.clone() }.zero_value();
        let is_null = matches!(default, Value::Null);
        let shown = if is_null { zero } else { default };
        let data = match Raw::of(shown.as_ref()).unwrap_or(Raw::Eight([0; 8])) {
            Raw::Bit(true) => Data::Bits(Bits::ones(len)),
            Raw::Bit(false) => Data::Bits(Bits::default()),
            Raw::One(cell) => Data::One(filled(cell, len)),
            Raw::Two(cell) => Data::Two(filled(cell, len)),
            Raw::Four(cell) => Data::Four(filled(cell, len)),
            Raw::Eight(cell) => Data::Eight(filled(cell, len)),
            Raw::Variable(bytes) => Data::Variable(Box::new(Strings::filled(bytes, len))),
        };
        let nulls = if is_null { Bits::ones(len) } else { Bits::default() };
        Self {
            field: field.number,
            ty: field.ty,
            code: code_of_type(field.ty),
            nulls: field.nullable.then_some(nulls),
            data,
        }
    }

    /// Tells whose values they are.
    #[inline]
    pub(in crate::store) const fn field(&self) -> FieldNumber {
        self.field
    }

    /// Tells the type.
    pub(in crate::store) const fn ty(&self) -> Type {
        self.ty
    }

    /// Tells whether a value may be null.
    #[inline]
    pub(in crate::store) const fn is_nullable(&self) -> bool {
        self.nulls.is_some()
    }

    /// Tells whether the value may stand in this column: as `Field::accepts`, but inlined and
    /// without a branch for each type.
    #[inline]
    pub(in crate::store) fn accepts(&self, value: &ValueRef<'_>) -> bool {
        let code = code_of(value);
        let fits = code == self.code || (code == NULL && self.nulls.is_some());
        // No row has a larger id, and the journal has no bytes for one.
        fits && !matches!(value, ValueRef::Reference(id) if *id > RowId::MAX)
            && !matches!(value, ValueRef::Blob(blob) if *blob > Blob::MAX)
    }

    /// Tells whether the value of a slot is null.
    #[inline]
    pub(in crate::store) fn is_null(&self, slot: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.get(slot))
    }

    /// Gives the value of a slot.
    #[inline]
    pub(in crate::store) fn get(&self, slot: usize) -> ValueRef<'_> {
        if self.is_null(slot) {
            return ValueRef::Null;
        }
        match &self.data {
            Data::Bits(bits) => ValueRef::Bool(bits.get(slot)),
            Data::One(cells) => match self.ty {
                Type::Int8 => ValueRef::Int8(i8::from_le_bytes(cells.get(slot))),
                _ => ValueRef::UInt8(u8::from_le_bytes(cells.get(slot))),
            },
            Data::Two(cells) => match self.ty {
                Type::Int16 => ValueRef::Int16(i16::from_le_bytes(cells.get(slot))),
                _ => ValueRef::UInt16(u16::from_le_bytes(cells.get(slot))),
            },
            Data::Four(cells) => match self.ty {
                Type::Int32 => ValueRef::Int32(i32::from_le_bytes(cells.get(slot))),
                Type::UInt32 => ValueRef::UInt32(u32::from_le_bytes(cells.get(slot))),
                _ => ValueRef::Float32(f32::from_le_bytes(cells.get(slot))),
            },
            Data::Eight(cells) => self.eight(cells.get(slot)),
            Data::Variable(strings) => match self.ty {
                Type::String => ValueRef::String(strings.get_str(slot)),
                _ => ValueRef::Bytes(strings.get(slot)),
            },
        }
    }

    #[inline]
    fn eight(&self, cell: [u8; 8]) -> ValueRef<'static> {
        match self.ty {
            Type::Int64 => ValueRef::Int64(i64::from_le_bytes(cell)),
            Type::UInt64 => ValueRef::UInt64(u64::from_le_bytes(cell)),
            Type::Float64 => ValueRef::Float64(f64::from_le_bytes(cell)),
            Type::Timestamp => ValueRef::Timestamp(i64::from_le_bytes(cell)),
            Type::Blob => ValueRef::Blob(Blob(u64::from_le_bytes(cell))),
            _ => ValueRef::Reference(RowId(u64::from_le_bytes(cell))),
        }
    }

    /// Writes a value that the column accepts to a slot that has none.
    #[inline]
    pub(in crate::store) fn insert(
        &mut self,
        slot: usize,
        value: ValueRef<'_>,
        fresh: bool,
        epoch: &Epoch,
    ) {
        if let Some(nulls) = &mut self.nulls {
            nulls.set(slot, matches!(value, ValueRef::Null), fresh, epoch);
        }
        match (&mut self.data, Raw::of(value)) {
            (Data::Bits(bits), Some(Raw::Bit(bit))) => bits.set(slot, bit, fresh, epoch),
            (Data::One(cells), Some(Raw::One(cell))) => cells.set(slot, cell, fresh, epoch),
            (Data::Two(cells), Some(Raw::Two(cell))) => cells.set(slot, cell, fresh, epoch),
            (Data::Four(cells), Some(Raw::Four(cell))) => cells.set(slot, cell, fresh, epoch),
            (Data::Eight(cells), Some(Raw::Eight(cell))) => cells.set(slot, cell, fresh, epoch),
            (Data::Variable(strings), Some(Raw::Variable(bytes))) => {
                strings.insert(slot, bytes, fresh, epoch);
            }
            // A string's cell must lead nowhere under a null; what other cells hold means nothing.
            (Data::Variable(strings), None) => strings.insert(slot, &[], fresh, epoch),
            (_, None) => {}
            (_, Some(_)) => debug_assert!(false, "the value was checked"),
        }
    }

    /// Writes another value that the column accepts to a slot that has one.
    pub(in crate::store) fn replace(
        &mut self,
        slot: usize,
        value: ValueRef<'_>,
        fresh: bool,
        epoch: &Epoch,
    ) {
        self.clear(slot, epoch);
        self.insert(slot, value, fresh, epoch);
    }

    /// Gives back what the value of a slot takes outside its cell.
    #[inline]
    pub(in crate::store) fn clear(&mut self, slot: usize, epoch: &Epoch) {
        if let Data::Variable(strings) = &mut self.data {
            strings.clear(slot, epoch);
        }
    }

    /// Gives what a row has before anything is set: null where it may be, else zero or nothing.
    pub(in crate::store) const fn zero_value(&self) -> ValueRef<'static> {
        if self.nulls.is_some() { ValueRef::Null } else { zero_of(self.ty) }
    }

    /// Writes zero values to a run of slots that have none.
    pub(in crate::store) fn zero_run(
        &mut self,
        slot: usize,
        len: usize,
        fresh: bool,
        epoch: &Epoch,
    ) {
        if let Some(nulls) = &mut self.nulls {
            nulls.set_run((slot, len), true, fresh, epoch);
        }
        match &mut self.data {
            Data::Variable(strings) => strings.zero(slot, len, fresh, epoch),
            // What other cells hold under a null means nothing.
            _ if self.nulls.is_some() => {}
            Data::Bits(bits) => bits.set_run((slot, len), false, fresh, epoch),
            Data::One(cells) => cells.zero(slot, len, fresh, epoch),
            Data::Two(cells) => cells.zero(slot, len, fresh, epoch),
            Data::Four(cells) => cells.zero(slot, len, fresh, epoch),
            Data::Eight(cells) => cells.zero(slot, len, fresh, epoch),
        }
    }

    /// Writes a run of values, none of them null, given as cells of the column's width (a bool is a
    /// byte), which the column accepts.
    pub(in crate::store) fn write_run(
        &mut self,
        slot: usize,
        cells: &[u8],
        fresh: bool,
        epoch: &Epoch,
    ) {
        let len = width(self.ty).map_or(0, |width| cells.len() / width);
        if let Some(nulls) = &mut self.nulls {
            nulls.set_run((slot, len), false, fresh, epoch);
        }
        match &mut self.data {
            Data::Bits(bits) => {
                let bools = cells.iter().map(|&byte| byte != 0);
                (slot..).zip(bools).for_each(|(slot, bit)| bits.set(slot, bit, fresh, epoch));
            }
            Data::One(column) => column.write(slot, cells, fresh, epoch),
            Data::Two(column) => column.write(slot, cells, fresh, epoch),
            Data::Four(column) => column.write(slot, cells, fresh, epoch),
            Data::Eight(column) => column.write(slot, cells, fresh, epoch),
            Data::Variable(_) => debug_assert!(false, "the values were checked"),
        }
    }

    /// Writes a run of values that the column accepts; to slots that have none, if they are `new`.
    pub(in crate::store) fn write_values(
        &mut self,
        slot: usize,
        values: &[ValueRef<'_>],
        (new, fresh): (bool, bool),
        epoch: &Epoch,
    ) {
        let Self { nulls, data: Data::Variable(strings), .. } = self else {
            let all = (slot..).zip(values);
            return all.for_each(|(slot, &value)| self.insert(slot, value, fresh, epoch));
        };
        if let Some(nulls) = nulls {
            for (slot, value) in (slot..).zip(values) {
                nulls.set(slot, matches!(value, ValueRef::Null), fresh, epoch);
            }
        }
        if !new {
            (slot..slot + values.len()).for_each(|slot| strings.clear(slot, epoch));
        }
        let bytes = values.iter().map(|value| match value {
            ValueRef::String(text) => text.as_bytes(),
            ValueRef::Bytes(bytes) => bytes,
            _ => &[],
        });
        strings.write(slot, bytes, fresh, epoch);
    }

    /// Borrows a run of cells: `len` of them, or fewer where a page ends; none if the column's values
    /// aren't cells of a fixed number of bytes.
    pub(in crate::store) fn run(&self, slot: usize, len: usize) -> &[u8] {
        match &self.data {
            Data::One(cells) => cells.run(slot, len),
            Data::Two(cells) => cells.run(slot, len),
            Data::Four(cells) => cells.run(slot, len),
            Data::Eight(cells) => cells.run(slot, len),
            Data::Bits(_) | Data::Variable(_) => &[],
        }
    }

    /// Tells whether a run has a null.
    pub(in crate::store) fn has_null(&self, slot: usize, len: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.first(slot, slot + len).is_some())
    }

    /// Finds the first of some cells that can't be a value of the column.
    pub(in crate::store) fn first_bad_cell(&self, cells: &[u8], blobs: &Blobs) -> Option<usize> {
        let eight = || cells.as_chunks().0.iter().map(|cell| u64::from_le_bytes(*cell));
        match self.ty {
            Type::Bool => cells.iter().position(|&byte| byte > 1),
            Type::Blob => eight().position(|number| !blobs.has(Blob(number))),
            Type::Reference(..) => eight().position(|number| number > RowId::MAX.0),
            _ => None,
        }
    }

    /// Moves a value to a slot that has none; its own slot has none afterwards.
    pub(in crate::store) fn move_cell(
        &mut self,
        from: usize,
        to: usize,
        fresh: bool,
        epoch: &Epoch,
    ) {
        if let Some(nulls) = &mut self.nulls {
            let null = nulls.get(from);
            nulls.set(to, null, fresh, epoch);
        }
        match &mut self.data {
            Data::Bits(bits) => {
                let bit = bits.get(from);
                bits.set(to, bit, fresh, epoch);
            }
            Data::One(cells) => cells.set(to, cells.get(from), fresh, epoch),
            Data::Two(cells) => cells.set(to, cells.get(from), fresh, epoch),
            Data::Four(cells) => cells.set(to, cells.get(from), fresh, epoch),
            Data::Eight(cells) => cells.set(to, cells.get(from), fresh, epoch),
            Data::Variable(strings) => strings.move_cell(from, to, fresh, epoch),
        }
    }

    /// Tells how much memory it takes, in bytes.
    pub(in crate::store) fn memory(&self) -> usize {
        let data = match &self.data {
            Data::Bits(bits) => bits.memory(),
            Data::One(cells) => cells.memory(),
            Data::Two(cells) => cells.memory(),
            Data::Four(cells) => cells.memory(),
            Data::Eight(cells) => cells.memory(),
            Data::Variable(strings) => strings.memory(),
        };
        data + self.nulls.as_ref().map_or(0, Bits::memory) + size_of::<Self>()
    }
}

fn filled<const W: usize>(cell: [u8; W], len: usize) -> Cells<W> {
    if cell == [0; W] { Cells::default() } else { Cells::filled(cell, len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_schema::{OnDelete, TableNumber};

    fn column(ty: Type, nullable: bool, default: Option<Value>) -> Column {
        let (number, name) = (FieldNumber(0), "f".to_owned());
        Column::new(&Field { number, name, ty, nullable, default }, 10)
    }

    #[test]
    fn every_type_is_written_moved_and_read() {
        let epoch = Epoch::first();
        let values = [
            (Type::Bool, ValueRef::Bool(true)),
            (Type::Int8, ValueRef::Int8(-3)),
            (Type::Int16, ValueRef::Int16(-300)),
            (Type::Int32, ValueRef::Int32(-70_000)),
            (Type::Int64, ValueRef::Int64(i64::MIN)),
            (Type::UInt8, ValueRef::UInt8(200)),
            (Type::UInt16, ValueRef::UInt16(60_000)),
            (Type::UInt32, ValueRef::UInt32(u32::MAX)),
            (Type::UInt64, ValueRef::UInt64(u64::MAX)),
            (Type::Float32, ValueRef::Float32(1.5)),
            (Type::Float64, ValueRef::Float64(-1e300)),
            (Type::String, ValueRef::String("a string in the heap")),
            (Type::Bytes, ValueRef::Bytes(b"\xff")),
            (Type::Timestamp, ValueRef::Timestamp(-1)),
            (Type::Blob, ValueRef::Blob(Blob(9))),
            (Type::Reference(TableNumber(0), OnDelete::Dangle), ValueRef::Reference(RowId(9))),
        ];
        for (ty, value) in values {
            let mut plain = column(ty, false, None);
            let mut column = column(ty, true, Some(value.to_value()));
            assert!(column.accepts(&value) && column.accepts(&ValueRef::Null));
            assert!(!plain.accepts(&ValueRef::Null));
            assert_eq!(column.get(9), value);
            column.insert(10, ValueRef::Null, true, &epoch);
            column.insert(11, value, true, &epoch);
            column.move_cell(11, 12, true, &epoch);
            column.move_cell(10, 11, true, &epoch);
            assert_eq!((column.get(11), column.get(12)), (ValueRef::Null, value));
            column.replace(9, ValueRef::Null, false, &epoch);
            assert_eq!((column.get(8), column.get(9)), (value, ValueRef::Null));
            plain.insert(10, value, true, &epoch);
            assert_eq!(plain.get(10), value);
            assert_ne!(plain.get(9), value);
            let others = values.iter().filter(|(other, _)| *other != ty);
            assert!(others.into_iter().all(|(_, other)| !plain.accepts(other)));
        }
    }
}
