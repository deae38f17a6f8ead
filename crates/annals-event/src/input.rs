//! Reading numbers and values from the bytes of events. Every length is checked before use.

use annals_schema::{
    AnyDecimal, Blob, RowId, Schema, Table, TableNumber, Type, ValueRef, column_types,
};

use super::compact::Malformed;
use super::{MAX_VECTOR, compact};

/// The rest of a frame, and the context of its events.
pub(super) struct Decoder<'p> {
    pub(super) input: &'p [u8],
    /// Where the input ends in the file.
    pub(super) end: u64,
    pub(super) table: Option<TableNumber>,
    pub(super) last_id: Option<RowId>,
}

/// Takes a value, encoded as the table of column types says.
macro_rules! decoded {
    ($self:ident, fixed, $variant:ident, $rust:ty) => {
        ValueRef::$variant(<$rust>::from_le_bytes($self.array()?))
    };
    ($self:ident, compact, $variant:ident, $rust:ty) => {
        ValueRef::$variant($self.number()?)
    };
    ($self:ident, blob, $variant:ident, $rust:ty) => {
        match compact::take(&mut $self.input)? {
            0 => ValueRef::Null,
            number if number <= Blob::MAX.0 => ValueRef::$variant(Blob(number)),
            _ => return Err(Malformed("the number of a blob is out of range")),
        }
    };
    ($self:ident, $encoding:ident, $variant:ident, $rust:ty) => {
        ValueRef::$variant($self.$encoding()?)
    };
}

impl<'p> Decoder<'p> {
    /// Takes the number of rows from `id` on; returns the last id too.
    pub(super) fn count(&mut self, id: RowId) -> Result<(u64, RowId), Malformed> {
        let count = compact::take(&mut self.input)?;
        if !(1..=MAX_VECTOR).contains(&count) {
            return Err(Malformed("the number of rows is out of range"));
        }
        match id.0 + (count - 1) {
            last if last <= RowId::MAX.0 => Ok((count, RowId(last))),
            _ => Err(Malformed("the id of a row is out of range")),
        }
    }

    pub(super) fn table<'s>(&self, schema: &'s Schema) -> Result<&'s Table, Malformed> {
        let number = self.table.ok_or(Malformed("it names no table"))?;
        schema.table(number).ok_or(Malformed("it names a table that isn't there"))
    }

    pub(super) fn value(&mut self, ty: Type) -> Result<ValueRef<'p>, Malformed> {
        macro_rules! value {
            ($($variant:ident: $owned:ty, $borrowed:ty, $word:literal, $code:literal, $coding:ident, $doc:expr;)*) => {
                match ty {
                    $(Type::$variant => decoded!(self, $coding, $variant, $owned),)*
                    Type::Json => Self::narrow(ty, ValueRef::String(self.text()?))?,
                    Type::FixedBytes(_) => Self::narrow(ty, ValueRef::Bytes(self.bytes()?))?,
                    Type::Decimal(scale) => ValueRef::Decimal(AnyDecimal::new(self.shortest()?, scale)),
                    Type::Enum(variants) => {
                        let variant = variants.get(self.number()?).map(ValueRef::Enum);
                        variant.ok_or(Malformed("a value is none of the variants of its field"))?
                    }
                    Type::Reference(..) => match compact::take(&mut self.input)? {
                        0 => ValueRef::Null,
                        next if next - 1 <= RowId::MAX.0 => ValueRef::Reference(RowId(next - 1)),
                        _ => return Err(Malformed("a reference is out of range")),
                    },
                }
            };
        }
        Ok(column_types!(all, value))
    }

    /// Checks a value of a type that has fewer values than its kind.
    fn narrow(ty: Type, value: ValueRef<'p>) -> Result<ValueRef<'p>, Malformed> {
        match ty.accepts(false, value) {
            true => Ok(value),
            false => Err(Malformed("a value is none of its type")),
        }
    }

    /// Takes the lowest bytes of a number of 128 bits.
    fn shortest(&mut self) -> Result<i128, Malformed> {
        let bytes = self.bytes()?;
        let highest = bytes.last().filter(|_| bytes.len() <= size_of::<i128>());
        let is_negative = highest.ok_or(Malformed("a decimal is out of range"))? >> 7 == 1;
        let mut number = [if is_negative { 0xff } else { 0 }; size_of::<i128>()];
        number.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        Ok(i128::from_le_bytes(number))
    }

    fn boolean(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a bool is neither 0 nor 1")),
        }
    }

    pub(super) fn id(&mut self) -> Result<RowId, Malformed> {
        match compact::take(&mut self.input)? {
            id if id <= RowId::MAX.0 => Ok(RowId(id)),
            _ => Err(Malformed("the id of a row is out of range")),
        }
    }

    pub(super) fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(compact::take(&mut self.input)?)
            .map_err(|_| Malformed("a number is out of range"))
    }

    pub(super) fn signed<T: TryFrom<i64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(compact::take_signed(&mut self.input)?)
            .map_err(|_| Malformed("a number is out of range"))
    }

    pub(super) fn text(&mut self) -> Result<&'p str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'p [u8], Malformed> {
        // A length beyond the address space is beyond the input, too.
        let len = usize::try_from(compact::take(&mut self.input)?).unwrap_or(usize::MAX);
        self.slice(len)
    }

    pub(super) fn slice(&mut self, len: usize) -> Result<&'p [u8], Malformed> {
        let (taken, rest) =
            self.input.split_at_checked(len).ok_or(Malformed("it ends too early"))?;
        self.input = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.input.split_first_chunk().ok_or(Malformed("it ends too early"))?;
        self.input = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let [byte] = self.array()?;
        Ok(byte)
    }
}
