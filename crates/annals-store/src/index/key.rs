//! Keys of indexes: byte strings that compare as the values do.
//!
//! | value | bytes |
//! |---|---|
//! | null, in a field that may be null | `00` |
//! | any other value of such a field | `01`, then as below |
//! | bool | `00`, `01` |
//! | unsigned, references, blobs, numbers of variants | big-endian |
//! | signed, timestamps, dates, units of decimals | big-endian, sign bit flipped |
//! | uuids | as they are |
//! | floats | big-endian; the sign bit flipped if positive, all bits if negative; one NaN, all ones |
//! | strings, bytes | `00` as `00 ff`; at the end `00 00` |
//!
//! The bytes of a value in descending order are flipped, all of them.
//!
//! No encoded value is the beginning of another of the same field, so the values of a composite key
//! follow one another. An entry of an index is the key and then the row's id, eight bytes big-endian.
#![expect(clippy::big_endian_bytes, reason = "big-endian numbers compare as their bytes do")]

pub(crate) use crate::ids::id_of;
use annals_schema::{RowId, ValueRef, column_types};

/// Where a key is written to.
pub(crate) trait Out {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl Out for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A key to search for: it allocates memory only if it is long.
#[derive(Debug)]
pub(crate) struct Sought {
    short: [u8; 64],
    len: usize,
    /// All of it, if it isn't short.
    long: Vec<u8>,
}

impl Sought {
    pub(crate) const fn new() -> Self {
        Self { short: [0; 64], len: 0, long: Vec::new() }
    }

    /// Returns the key.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            self.short.get(..self.len).unwrap_or_default()
        } else {
            &self.long
        }
    }

    #[cold]
    fn put_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(self.short.get(..self.len).unwrap_or_default());
        }
        self.long.extend_from_slice(bytes);
    }
}

impl Out for Sought {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        match self.short.get_mut(self.len..self.len + bytes.len()) {
            Some(place) if self.long.is_empty() => {
                place.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            _ => self.put_long(bytes),
        }
    }
}

/// Appends a value of a field.
#[inline]
pub(crate) fn encode(out: &mut impl Out, nullable: bool, value: ValueRef<'_>) {
    if nullable {
        out.put(&[u8::from(!matches!(value, ValueRef::Null))]);
    }
    macro_rules! put {
        ($($variant:ident: $rust:ty;)*) => {
            match value {
                ValueRef::Null => {}
                ValueRef::Bool(v) => out.put(&[u8::from(v)]),
                $(ValueRef::$variant(v) => out.put(&(v ^ <$rust>::MIN).to_be_bytes()),)*
                ValueRef::Timestamp(v) => out.put(&(v ^ i64::MIN).to_be_bytes()),
                ValueRef::Date(v) => out.put(&(v.0 ^ i32::MIN).to_be_bytes()),
                ValueRef::Uuid(v) => out.put(&v.0),
                ValueRef::Enum(v) => out.put(&v.number().to_be_bytes()),
                ValueRef::Decimal(v) => out.put(&(v.units() ^ i128::MIN).to_be_bytes()),
                ValueRef::Float32(v) => {
                    let bits = if v == 0.0 { 0 } else { v.to_bits() };
                    let flip = if bits >> 31 == 0 { 1 << 31 } else { u32::MAX };
                    out.put(&(if v.is_nan() { u32::MAX } else { bits ^ flip }).to_be_bytes());
                }
                ValueRef::Float64(v) => {
                    let bits = if v == 0.0 { 0 } else { v.to_bits() };
                    let flip = if bits >> 63 == 0 { 1 << 63 } else { u64::MAX };
                    out.put(&(if v.is_nan() { u64::MAX } else { bits ^ flip }).to_be_bytes());
                }
                ValueRef::String(v) => {
                    escape(out, v.as_bytes());
                    out.put(&[0, 0]);
                }
                ValueRef::Bytes(v) => {
                    escape(out, v);
                    out.put(&[0, 0]);
                }
                ValueRef::Blob(v) => out.put(&v.0.to_be_bytes()),
                ValueRef::Reference(v) => out.put(&v.0.to_be_bytes()),
            }
        };
    }
    column_types!(integers, put)
}

/// Appends the bytes of one field flipped, so that they compare in reverse.
#[cold]
#[inline(never)]
pub(crate) fn put_flipped(out: &mut impl Out, encode: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
    out.put(&bytes);
}

/// Appends the beginning of a string or of bytes.
pub(crate) fn encode_prefix(out: &mut impl Out, nullable: bool, prefix: &[u8]) {
    if nullable {
        out.put(&[1]);
    }
    escape(out, prefix);
}

#[inline]
fn escape(out: &mut impl Out, bytes: &[u8]) {
    if bytes.contains(&0) { escape_zeros(out, bytes) } else { out.put(bytes) }
}

#[cold]
fn escape_zeros(out: &mut impl Out, bytes: &[u8]) {
    for piece in bytes.split_inclusive(|&byte| byte == 0) {
        out.put(piece);
        if piece.last() == Some(&0) {
            out.put(&[0xff]);
        }
    }
}

/// Appends the id of the row that has the key.
#[inline]
pub(crate) fn encode_id(out: &mut impl Out, id: RowId) {
    out.put(&id.0.to_be_bytes());
}

/// Returns the least byte string that is greater than all that begin with `prefix`, if there is one.
pub(crate) fn successor(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return Some(prefix);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    fn key(values: &[ValueRef<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        values.iter().for_each(|&value| encode(&mut out, true, value));
        out
    }

    fn agree(values: &[ValueRef<'_>]) {
        for a in values {
            for b in values {
                let expected = a.total_cmp(b);
                assert_eq!(key(&[*a]).cmp(&key(&[*b])), expected, "{a:?} {b:?}");
                let last = [ValueRef::Int8(1), ValueRef::Int8(-1)];
                let composite = key(&[*a, last[0]]).cmp(&key(&[*b, last[1]]));
                assert_eq!(composite, expected.then(Ordering::Greater), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn keys_compare_as_values_do() {
        use ValueRef as V;
        agree(&[V::Null, V::Int64(i64::MIN), V::Int64(-1), V::Int64(0), V::Int64(i64::MAX)]);
        agree(&[V::Null, V::Int8(-128), V::Int8(-1), V::Int8(0), V::Int8(127)]);
        agree(&[V::Null, V::UInt16(0), V::UInt16(255), V::UInt16(256), V::UInt16(65535)]);
        agree(&[V::Null, V::Bool(false), V::Bool(true)]);
        agree(&[V::Null, V::Reference(RowId(0)), V::Reference(RowId::MAX)]);
        let floats = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY];
        let nans = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)];
        agree(&floats.iter().chain(&nans).map(|&f| V::Float64(f)).collect::<Vec<_>>());
        let singles = [f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-30, f32::INFINITY, f32::NAN];
        agree(&singles.map(V::Float32));
        agree(&["", "\0", "\0\0", "\0a", "a", "a\0", "a\0b", "a\u{1}", "aa", "é"].map(V::String));
        let bytes: [&[u8]; 6] = [b"", b"\0", b"\0\xff", b"\xff", b"\xff\xff", b"\x01"];
        agree(&bytes.map(V::Bytes));
    }

    #[test]
    fn a_key_that_is_looked_for_may_have_any_length() {
        for lens in [&[0][..], &[63, 1, 0, 2], &[64, 1], &[65, 3], &[30, 0, 40, 1], &[200]] {
            let (mut sought, mut key) = (Sought::new(), Vec::new());
            for (byte, &len) in (1..).zip(lens) {
                sought.put(&vec![byte; len]);
                key.put(&vec![byte; len]);
                assert_eq!(sought.bytes(), key);
            }
        }
    }

    #[test]
    fn successors_and_prefixes() {
        assert_eq!(successor(vec![1, 255]), Some(vec![2]));
        assert_eq!(successor(vec![255, 255]), None);
        let mut prefix = Vec::new();
        encode_prefix(&mut prefix, true, b"a\0");
        assert!(key(&[ValueRef::String("a\0b")]).starts_with(&prefix));
        assert!(!key(&[ValueRef::String("a")]).starts_with(&prefix));
        let mut entry = key(&[ValueRef::Null]);
        encode_id(&mut entry, RowId(77));
        assert_eq!(id_of(&entry), RowId(77));
    }
}
