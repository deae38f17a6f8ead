//! A wide row as the bytes that an engine without columns keeps, and its keys in each index.
//!
//! Numbers are first, at fixed places, then the lengths of the four strings, and the strings. The key of an index
//! that isn't unique ends with the id, so that equal values are no conflict.

use super::Fields;
use crate::engines::Failure;

/// Where the lengths of the strings begin; before them are the numbers, 8 bytes each.
const LENGTHS: usize = 8 * 8;
const STRINGS: usize = LENGTHS + 4 * 2;
/// The length that means null.
const NULL: u16 = u16::MAX;

/// Makes bytes those of a row.
pub(super) fn encode(bytes: &mut Vec<u8>, row: &Fields<'_>) -> Result<(), Failure> {
    let numbers = [
        i64::from(row.year).cast_unsigned(),
        i64::from(row.level).cast_unsigned(),
        row.quantity.cast_unsigned(),
        row.price.to_bits(),
        row.active.into(),
        row.created.cast_unsigned(),
        row.rating.to_bits().into(),
        row.parent,
    ];
    bytes.clear();
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    let strings = [Some(row.code), Some(row.name), row.note, Some(row.city)];
    for string in strings {
        let len = string.map_or(Ok(NULL), |string| u16::try_from(string.len()))?;
        bytes.extend_from_slice(&len.to_le_bytes());
    }
    strings.iter().flatten().for_each(|string| bytes.extend_from_slice(string.as_bytes()));
    Ok(())
}

/// Returns the row that bytes are of.
pub(super) fn decode(bytes: &[u8]) -> Result<Fields<'_>, Failure> {
    const SHORT: &str = "a row is too short";
    let number = |place: usize| {
        let bytes = bytes.get(place * 8..).and_then(|bytes| bytes.first_chunk()).ok_or(SHORT)?;
        Ok::<_, Failure>(u64::from_le_bytes(*bytes))
    };
    let mut strings = bytes.get(STRINGS..).ok_or(SHORT)?;
    let mut string = |place: usize| {
        let place = LENGTHS + place * 2;
        let len = bytes.get(place..).and_then(|bytes| bytes.first_chunk()).ok_or(SHORT)?;
        let len = u16::from_le_bytes(*len);
        if len == NULL {
            return Ok(None);
        }
        let (own, behind) = strings.split_at_checked(len.into()).ok_or(SHORT)?;
        strings = behind;
        Ok::<_, Failure>(Some(std::str::from_utf8(own)?))
    };
    Ok(Fields {
        code: string(0)?.ok_or(SHORT)?,
        name: string(1)?.ok_or(SHORT)?,
        note: string(2)?,
        city: string(3)?.ok_or(SHORT)?,
        year: i16::try_from(number(0)?.cast_signed())?,
        level: i32::try_from(number(1)?.cast_signed())?,
        quantity: number(2)?.cast_signed(),
        price: f64::from_bits(number(3)?),
        active: number(4)? != 0,
        created: number(5)?.cast_signed(),
        rating: f32::from_bits(u32::try_from(number(6)?)?),
        parent: number(7)?,
    })
}

/// Returns the key of a row, in the order of the ids.
pub(super) const fn key(id: u64) -> [u8; 8] {
    #[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
    id.to_be_bytes()
}

/// Returns what the keys of a level begin with.
pub(super) const fn level_prefix(level: i32) -> [u8; 4] {
    #[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
    (level.cast_unsigned() ^ 1 << 31).to_be_bytes()
}

/// Returns the key of a row in the index of its level.
pub(super) fn level_key(level: i32, id: u64) -> [u8; 12] {
    let mut whole = [0; 12];
    whole[..4].copy_from_slice(&level_prefix(level));
    whole[4..].copy_from_slice(&key(id));
    whole
}

/// Makes bytes what the keys of a city and year begin with.
pub(super) fn city_prefix(bytes: &mut Vec<u8>, city: &str, year: i16) {
    bytes.clear();
    bytes.extend_from_slice(city.as_bytes());
    #[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
    let year = (year.cast_unsigned() ^ 1 << 15).to_be_bytes();
    bytes.extend_from_slice(&[0, year[0], year[1]]);
}

/// Returns the id at the end of a key.
pub(super) fn id_in(key: &[u8]) -> Result<&[u8; 8], Failure> {
    key.last_chunk().ok_or_else(|| "a key is too short".into())
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;

    #[test]
    fn rows_come_back_and_cut_ones_are_refused() {
        for id in 0..50 {
            let row = Row::new(id, 1, 50);
            let mut bytes = Vec::new();
            encode(&mut bytes, &row.fields()).unwrap();
            assert_eq!(decode(&bytes).unwrap(), row.fields());
            assert!(decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
