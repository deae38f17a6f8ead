//! Parts of the values of a vector event, each of which can be read alone.

use annals_schema::{Field, ValueRef};

use super::compact::Malformed;
use super::input::Decoder;
use super::value::{has_null_bit, put_value};
use super::{Vector, from_cell, is_erased, width};
use crate::Result;

/// Consecutive values of a vector event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorPart {
    /// How far its bytes are after those of the first value.
    pub at: usize,
    /// How many bytes it has.
    pub len: usize,
    /// How many values are before it.
    pub first: u64,
    /// How many it has.
    pub count: u64,
    /// True if they are cells.
    pub is_cells: bool,
    /// A bit for each value that is null and has no bytes, if there is any: 32 in each number, the lowest first.
    pub nulls: Vec<u64>,
}

/// How many bits a number of [`VectorPart::nulls`] has.
const BITS: u64 = 32;

/// Cuts the values of a vector event into parts of about `most` bytes; `None` if one was erased.
#[must_use]
pub fn parts(field: &Field, values: Vector<'_>, most: usize) -> Option<Vec<VectorPart>> {
    let values = match (values, width(field.ty)) {
        (Vector::Cells(cells), Some(width)) => {
            return Some(parts_of_cells(cells.len(), width, most));
        }
        (Vector::Cells(_), None) => return None,
        (Vector::Values(values), _) => values,
    };
    let (mut parts, mut bytes) = (Vec::new(), Vec::new());
    let mut part = VectorPart::default();
    for value in values {
        if is_erased(field, value) {
            return None;
        }
        if part.len >= most {
            let (at, first) = (part.at + part.len, part.first + part.count);
            parts.push(std::mem::replace(
                &mut part,
                VectorPart { at, first, ..VectorPart::default() },
            ));
        }
        if has_null_bit(field) && matches!(value, ValueRef::Null) {
            let place = usize::try_from(part.count / BITS).ok()?;
            part.nulls.resize(place + 1, 0);
            part.nulls.last_mut().map(|bits| *bits |= 1 << (part.count % BITS))?;
        } else {
            bytes.clear();
            put_value(&mut bytes, *value);
            part.len += bytes.len();
        }
        part.count += 1;
    }
    parts.push(part);
    Some(parts)
}

fn parts_of_cells(len: usize, width: usize, most: usize) -> Vec<VectorPart> {
    let each = (most / width).max(1);
    let count = len / width;
    let part = |first: usize| {
        let count = each.min(count - first);
        VectorPart {
            at: first * width,
            len: count * width,
            first: first as u64,
            count: count as u64,
            is_cells: true,
            nulls: Vec::new(),
        }
    };
    (0..count).step_by(each).map(part).collect()
}

/// Returns one of the values of a part, given its bytes.
///
/// # Errors
/// `Corrupt`: the bytes are no such values.
pub fn part_value<'p>(
    field: &Field,
    part: &VectorPart,
    bytes: &'p [u8],
    place: u64,
) -> Result<ValueRef<'p>> {
    if part.is_cells {
        let width = width(field.ty).unwrap_or(usize::MAX);
        let cell =
            usize::try_from(place).ok().and_then(|place| bytes.chunks_exact(width).nth(place));
        let cell = cell.ok_or(Malformed("it ends too early"))?;
        return Ok(from_cell(field.ty, cell));
    }
    let mut decoder = Decoder { input: bytes, end: 0, table: None, last_id: None };
    let is_null = |place: u64| {
        let bits = usize::try_from(place / BITS).ok().and_then(|word| part.nulls.get(word));
        bits.is_some_and(|bits| bits >> (place % BITS) & 1 == 1)
    };
    let mut value = ValueRef::Null;
    for place in 0..=place {
        value = if is_null(place) { ValueRef::Null } else { decoder.value(field.ty)? };
    }
    Ok(value)
}
