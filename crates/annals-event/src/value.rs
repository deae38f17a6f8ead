//! How single values are written.

use annals_schema::{Field, Table, ValueRef, column_types};

use super::compact;

/// Appends a value, encoded as the table of column types says.
macro_rules! encoded {
    (boolean, $out:ident, $v:ident) => {
        $out.push(u8::from($v))
    };
    (fixed, $out:ident, $v:ident) => {
        $out.extend_from_slice(&$v.to_le_bytes())
    };
    (signed, $out:ident, $v:ident) => {
        compact::put_signed($out, $v.into())
    };
    (compact, $out:ident, $v:ident) => {
        compact::put($out, $v.into())
    };
    (text, $out:ident, $v:ident) => {
        put_bytes($out, $v.as_bytes())
    };
    (bytes, $out:ident, $v:ident) => {
        put_bytes($out, $v)
    };
    (blob, $out:ident, $v:ident) => {
        compact::put($out, $v.0)
    };
}

/// True if a field has a bit in the null bitmap of a row. References and blobs carry their null
/// themselves.
pub(super) const fn has_null_bit(field: &Field) -> bool {
    field.nullable && !field.ty.carries_null()
}

/// Appends one value. Its type is that of its field, so it isn't written. Null is only written for
/// references.
#[inline(always)] // a match for each value of each row that is inserted
pub(super) fn put_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    macro_rules! put {
        ($($variant:ident: $owned:ty, $borrowed:ty, $word:literal, $code:literal, $coding:ident, $doc:expr;)*) => {
            match value {
                ValueRef::Null => out.push(1), // compact 0: the reference or blob that leads nowhere
                $(ValueRef::$variant(v) => encoded!($coding, out, v),)*
                ValueRef::Decimal(v) => put_shortest(out, v.units()),
                ValueRef::Enum(v) => compact::put(out, v.number().into()),
                ValueRef::Reference(id) => compact::put(out, id.0 + 1),
            }
        };
    }
    column_types!(all, put)
}

/// Appends a number of 128 bits as its lowest bytes, after their number: as few as keep its sign.
fn put_shortest(out: &mut Vec<u8>, number: i128) {
    let unused = (if number < 0 { !number } else { number }).leading_zeros();
    let len = (129 - unused).div_ceil(8);
    put_bytes(out, number.to_le_bytes().get(..len as usize).unwrap_or_default());
}

#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    compact::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// True if a value is an erased one of a field.
#[must_use]
pub fn is_erased(field: &Field, value: &ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Null) && !field.nullable
}

/// True if a row has such a value.
#[must_use]
pub fn has_erased(table: &Table, values: &[ValueRef<'_>]) -> bool {
    table.fields.iter().zip(values).any(|(field, value)| is_erased(field, value))
}
