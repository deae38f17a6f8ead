//! The codec of the values of a vector event.
//!
//! Values of a fixed width without nulls are written as they are in memory, so that writing them is
//! one copy and reading them none. The output is valid: bools are 0 or 1, ids and numbers of blobs
//! are in range.

use annals_schema::{Blob, Field, RowId, Type, ValueRef, column_types};

use super::cell::width;
use super::compact::Malformed;
use super::input::Decoder;
use super::value::{has_null_bit, put_value};
use super::{Vector, opcode};

/// Appends the values of a vector, after a byte that says how.
pub(super) fn put(field: &Field, values: Vector<'_>, out: &mut Vec<u8>) {
    match values {
        Vector::Cells(cells) => {
            out.push(opcode::VECTOR_CELLS);
            out.extend_from_slice(cells);
        }
        Vector::Values(values) => {
            let null = |value: &ValueRef<'_>| matches!(value, ValueRef::Null);
            if width(field.ty).is_some() && !values.iter().any(null) {
                out.push(opcode::VECTOR_CELLS);
                values.iter().for_each(|&value| put_cell(out, value));
            } else {
                out.push(opcode::VECTOR_VALUES);
                put_values(field, values, out);
            }
        }
    }
}

/// Appends a value as the cell that [`Vector::Cells`] has for it.
fn put_cell(out: &mut Vec<u8>, value: ValueRef<'_>) {
    macro_rules! put {
        ($($variant:ident: $rust:ty;)*) => {
            match value {
                $(ValueRef::$variant(v) => out.extend_from_slice(&v.to_le_bytes()),)*
                ValueRef::Bool(v) => out.push(v.into()),
                ValueRef::Decimal(v) => out.extend_from_slice(&v.units().to_le_bytes()),
                ValueRef::Enum(v) => out.extend_from_slice(&v.number().to_le_bytes()),
                ValueRef::Blob(v) => out.extend_from_slice(&v.0.to_le_bytes()),
                ValueRef::Reference(v) => out.extend_from_slice(&v.0.to_le_bytes()),
                ValueRef::Null | ValueRef::String(_) | ValueRef::Bytes(_) => {}
            }
        };
    }
    column_types!(cells, put)
}

/// Appends the null bitmap, if the field has one, then the values that are not null in it.
fn put_values(field: &Field, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    let null = |value: &ValueRef<'_>| has_null_bit(field) && matches!(value, ValueRef::Null);
    if has_null_bit(field) {
        for eight in values.chunks(8) {
            let bits =
                eight.iter().rev().fold(0u8, |bits, value| bits << 1 | u8::from(null(value)));
            out.push(bits);
        }
    }
    values.iter().filter(|value| !null(value)).for_each(|&value| put_value(out, value));
}

/// Takes `count` values of a field; those that aren't cells are appended to `values`.
pub(super) fn take<'p, 'v>(
    decoder: &mut Decoder<'p>,
    field: &Field,
    count: usize,
    values: &'v mut Vec<ValueRef<'p>>,
) -> Result<Vector<'v>, Malformed>
where
    'p: 'v,
{
    match (decoder.byte()?, width(field.ty)) {
        (opcode::VECTOR_CELLS, Some(width)) => {
            let len = width.checked_mul(count).ok_or(Malformed("it ends too early"))?;
            let cells = decoder.slice(len)?;
            if are_valid(field.ty, cells) {
                return Ok(Vector::Cells(cells));
            }
            Err(Malformed("a vector has a value that its type hasn't"))
        }
        (opcode::VECTOR_VALUES, _) => {
            take_values(decoder, field, count, values)?;
            Ok(Vector::Values(values))
        }
        _ => Err(Malformed("a vector is written in an unknown way")),
    }
}

fn take_values<'p>(
    decoder: &mut Decoder<'p>,
    field: &Field,
    count: usize,
    values: &mut Vec<ValueRef<'p>>,
) -> Result<(), Malformed> {
    values.clear();
    let bitmap = decoder.slice(if has_null_bit(field) { count.div_ceil(8) } else { 0 })?;
    for place in 0..count {
        let byte = bitmap.get(place / 8).copied().unwrap_or(0);
        let null = byte >> (place % 8) & 1 == 1;
        values.push(if null { ValueRef::Null } else { decoder.value(field.ty)? });
    }
    Ok(())
}

/// True if all cells are values of the type. Without a branch for each cell; types that have a
/// value for all bits cost nothing.
fn are_valid(ty: Type, cells: &[u8]) -> bool {
    let numbers = || cells.as_chunks::<8>().0.iter().map(|cell| u64::from_le_bytes(*cell));
    match ty {
        Type::Bool => cells.iter().fold(0, |all, cell| all | cell) <= 1,
        Type::Enum(variants) => {
            let mut numbers = cells.as_chunks().0.iter().map(|cell| u16::from_le_bytes(*cell));
            numbers.all(|number| variants.get(number).is_some())
        }
        Type::Reference(..) => numbers().fold(true, |valid, id| valid & (id <= RowId::MAX.0)),
        Type::Blob => numbers().fold(true, |valid, n| valid & (n.wrapping_sub(1) < Blob::MAX.0)),
        _ => true,
    }
}
