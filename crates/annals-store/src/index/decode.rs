//! Values that are read from the key of an index: the reverse of [`key`](super::key).
#![expect(clippy::big_endian_bytes, reason = "big-endian numbers compare as their bytes do")]

use annals_schema::{AnyDecimal, Blob, Date, RowId, Type, Uuid, ValueRef, column_types};

/// How one field is in a key.
#[derive(Debug)]
pub(crate) struct KeyField {
    ty: Type,
    is_nullable: bool,
    /// All bits set if the field is in descending order.
    flip: u8,
    /// A string or bytes whose key isn't their bytes.
    made: Vec<u8>,
}

/// True if the value of a field can be read from a key: a float can't, as zeros and NaNs have one key.
pub(crate) const fn has_values(ty: Type) -> bool {
    !matches!(ty, Type::Float32 | Type::Float64)
}

impl KeyField {
    /// Describes a field that [has values](has_values) in keys, and no collation.
    pub(crate) const fn new(ty: Type, is_nullable: bool, is_descending: bool) -> Self {
        let flip = if is_descending { u8::MAX } else { 0 };
        Self { ty, is_nullable, flip, made: Vec::new() }
    }

    /// Takes the field's value from the beginning of what is left of a key; `None` if there is none.
    #[inline]
    pub(crate) fn take<'k>(&'k mut self, rest: &mut &'k [u8]) -> Option<ValueRef<'k>> {
        let flip = self.flip;
        if self.is_nullable && number::<1>(rest, flip)? == [0] {
            return Some(ValueRef::Null);
        }
        macro_rules! take {
            ($($variant:ident: $rust:ty;)*) => {
                match self.ty {
                    $(Type::$variant => ValueRef::$variant(
                        <$rust>::from_be_bytes(number(rest, flip)?) ^ <$rust>::MIN
                    ),)*
                    Type::Bool => ValueRef::Bool(number::<1>(rest, flip)? != [0]),
                    Type::Timestamp => {
                        ValueRef::Timestamp(i64::from_be_bytes(number(rest, flip)?) ^ i64::MIN)
                    }
                    Type::Date => {
                        ValueRef::Date(Date(i32::from_be_bytes(number(rest, flip)?) ^ i32::MIN))
                    }
                    Type::Uuid => ValueRef::Uuid(Uuid(number(rest, flip)?)),
                    Type::Enum(variants) => {
                        let variant = variants.get(u16::from_be_bytes(number(rest, flip)?));
                        variant.map_or(ValueRef::Null, ValueRef::Enum)
                    }
                    Type::Decimal(scale) => {
                        let units = i128::from_be_bytes(number(rest, flip)?) ^ i128::MIN;
                        ValueRef::Decimal(AnyDecimal::new(units, scale))
                    }
                    Type::Blob => ValueRef::Blob(Blob(u64::from_be_bytes(number(rest, flip)?))),
                    Type::Reference(..) => {
                        ValueRef::Reference(RowId(u64::from_be_bytes(number(rest, flip)?)))
                    }
                    Type::String | Type::Json => {
                        let text = variable(rest, flip, &mut self.made)?;
                        ValueRef::String(std::str::from_utf8(text).ok()?)
                    }
                    Type::Bytes | Type::FixedBytes(_) => {
                        ValueRef::Bytes(variable(rest, flip, &mut self.made)?)
                    }
                    Type::Float32 | Type::Float64 => return None,
                }
            };
        }
        Some(column_types!(integers, take))
    }
}

/// Takes a number's bytes.
#[inline]
fn number<const W: usize>(rest: &mut &[u8], flip: u8) -> Option<[u8; W]> {
    let (number, behind) = rest.split_first_chunk::<W>()?;
    *rest = behind;
    Some(number.map(|byte| byte ^ flip))
}

/// Takes a string or bytes; `made` holds them if they aren't in the key as they are.
fn variable<'k>(rest: &mut &'k [u8], flip: u8, made: &'k mut Vec<u8>) -> Option<&'k [u8]> {
    let key = *rest;
    let end = key.iter().position(|&byte| byte == flip)?;
    if flip == 0 && key.get(end + 1) == Some(&0) {
        *rest = key.get(end + 2..)?;
        return key.get(..end);
    }
    made.clear();
    let mut bytes = key.iter().map(|byte| byte ^ flip);
    loop {
        match bytes.next()? {
            0 if bytes.next()? == 0 => break,
            byte => made.push(byte),
        }
    }
    *rest = key.get(key.len() - bytes.len()..)?;
    Some(made)
}
