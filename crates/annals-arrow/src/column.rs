//! A column that is being filled.

use std::sync::Arc;

use annals::model::Variants;
use annals::store::{Primitive, VectorView};
use annals::{Blob, Error, ErrorKind, Field, Result, Type, Value, ValueRef};
use arrow_array::builder::{BinaryBuilder, BinaryViewBuilder, StringBuilder, StringViewBuilder};
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::pinned::bytes_of;
use crate::shape::{Layout, data_type};

/// Runs code with the Rust type of a field's cells, if they are numbers or bytes that Arrow has in the same form.
macro_rules! with_primitive {
    ($ty:expr, $rust:ident => $do:expr, else $other:expr) => {
        match $ty {
            annals::Type::Int8 => {
                type $rust = i8;
                $do
            }
            annals::Type::Int16 => {
                type $rust = i16;
                $do
            }
            annals::Type::Int32 => {
                type $rust = i32;
                $do
            }
            annals::Type::Int64 => {
                type $rust = i64;
                $do
            }
            annals::Type::UInt8 => {
                type $rust = u8;
                $do
            }
            annals::Type::UInt16 => {
                type $rust = u16;
                $do
            }
            annals::Type::UInt32 => {
                type $rust = u32;
                $do
            }
            annals::Type::UInt64 => {
                type $rust = u64;
                $do
            }
            annals::Type::Float32 => {
                type $rust = f32;
                $do
            }
            annals::Type::Float64 => {
                type $rust = f64;
                $do
            }
            annals::Type::Timestamp => {
                type $rust = annals::Timestamp;
                $do
            }
            annals::Type::Date => {
                type $rust = annals::Date;
                $do
            }
            annals::Type::Uuid => {
                type $rust = annals::Uuid;
                $do
            }
            annals::Type::Reference(..) => {
                type $rust = annals::RowId;
                $do
            }
            _ => $other,
        }
    };
}
pub(crate) use with_primitive;

/// Where the bytes of blobs are read.
pub(crate) type Blobs<'b> = &'b dyn Fn(Blob) -> Result<Vec<u8>>;

/// The values.
enum Cells {
    Fixed(MutableBuffer),
    Bits(BooleanBufferBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    TextViews(StringViewBuilder),
    BytesViews(BinaryViewBuilder),
}

/// A column of a record batch.
pub(crate) struct Column {
    data_type: DataType,
    width: usize,
    variants: Option<Variants>,
    cells: Cells,
    nulls: NullBufferBuilder,
}

impl Column {
    /// Makes an empty column for values of a type.
    pub(crate) fn new(ty: Type, layout: Layout) -> Self {
        let data_type = data_type(ty, layout);
        let width = match &data_type {
            DataType::Dictionary(..) => 4,
            DataType::FixedSizeBinary(len) => usize::try_from(*len).unwrap_or(0),
            other => other.primitive_width().unwrap_or(0),
        };
        let cells = match &data_type {
            DataType::Boolean => Cells::Bits(BooleanBufferBuilder::new(0)),
            DataType::Utf8 => Cells::Text(StringBuilder::new()),
            DataType::Binary => Cells::Bytes(BinaryBuilder::new()),
            // Blocks of long values begin small, since a batch of a page has few of them.
            DataType::Utf8View => Cells::TextViews(StringViewBuilder::new()),
            DataType::BinaryView => Cells::BytesViews(BinaryViewBuilder::new()),
            _ => Cells::Fixed(MutableBuffer::new(0)),
        };
        let variants = if let Type::Enum(variants) = ty { Some(variants) } else { None };
        Self { data_type, width, variants, cells, nulls: NullBufferBuilder::new(0) }
    }

    /// Adds a value; returns how many bytes it takes outside its cell.
    pub(crate) fn push(&mut self, value: ValueRef<'_>, blobs: Blobs<'_>) -> Result<usize> {
        let read;
        let value = match value {
            ValueRef::Blob(blob) => {
                read = blobs(blob)?;
                ValueRef::Bytes(&read)
            }
            value => value,
        };
        let is_null = matches!(value, ValueRef::Null);
        let mut size = 0;
        match &mut self.cells {
            Cells::Bits(bits) => bits.append(matches!(value, ValueRef::Bool(true))),
            Cells::Text(texts) => texts.append_option(text(value, &mut size)),
            Cells::TextViews(texts) => texts.append_option(text(value, &mut size)),
            Cells::Bytes(bytes) => bytes.append_option(plain_bytes(value, &mut size)),
            Cells::BytesViews(bytes) => bytes.append_option(plain_bytes(value, &mut size)),
            Cells::Fixed(cells) => push_cell(cells, self.width, self.variants, value)?,
        }
        if !matches!(
            self.cells,
            Cells::Text(_) | Cells::TextViews(_) | Cells::Bytes(_) | Cells::BytesViews(_)
        ) {
            self.nulls.append(!is_null);
        }
        Ok(size)
    }

    /// Adds the values of a field; returns how many bytes they take outside their cells.
    pub(crate) fn extend(
        &mut self,
        ty: Type,
        values: &VectorView<'_>,
        blobs: Blobs<'_>,
    ) -> Result<usize> {
        with_primitive!(ty, Cell => self.extend_cells::<Cell>(values).map(|()| 0), else {
            let mut size = 0;
            match &mut self.cells {
                Cells::TextViews(texts) => values.for_each(&mut |value| {
                    let mut len = 0;
                    texts.append_option(text(value, &mut len));
                    size += len;
                    Ok(())
                })?,
                _ => values.for_each(&mut |value| {
                    size += self.push(value, blobs)?;
                    Ok(())
                })?,
            }
            Ok(size)
        })
    }

    fn extend_cells<T: Primitive>(&mut self, values: &VectorView<'_>) -> Result<()> {
        let Cells::Fixed(cells) = &mut self.cells else { return Ok(()) };
        for chunk in values.chunks_with_nulls::<T>()? {
            cells.extend_from_slice(bytes_of(&chunk?));
        }
        note_nulls(&mut self.nulls, values)
    }

    /// Returns how many cells of a fixed width there are.
    pub(crate) fn len(&self) -> u64 {
        self.nulls.len() as u64
    }

    /// Returns the array.
    pub(crate) fn finish(self) -> Result<ArrayRef> {
        let Self { data_type, width, variants, cells, mut nulls } = self;
        Ok(match cells {
            Cells::Text(mut texts) => Arc::new(texts.finish()),
            Cells::TextViews(mut texts) => Arc::new(texts.finish()),
            Cells::Bytes(mut bytes) => Arc::new(bytes.finish()),
            Cells::BytesViews(mut bytes) => Arc::new(bytes.finish()),
            Cells::Bits(mut bits) => {
                let bits = bits.finish();
                Arc::new(arrow_array::BooleanArray::new(bits, nulls.finish()))
            }
            Cells::Fixed(cells) => {
                let len = cells.len() / width.max(1);
                fixed(data_type, variants, len, cells.into(), nulls.finish())?
            }
        })
    }
}

/// Says which value Arrow has no room for, and how to get it.
pub(crate) fn named(error: Error, table: &str, field: &Field, row: u64) -> Error {
    if error.kind() != ErrorKind::Invalid {
        return error;
    }
    let name = &field.name;
    error
        .within(format_args!("table `{table}`, row {row}, field `{name}`"))
        .advising(format_args!("ask for texts, with SQL: CAST({name} AS TEXT)"))
}

/// Makes an array of cells of a fixed width.
pub(crate) fn fixed(
    data_type: DataType,
    variants: Option<Variants>,
    len: usize,
    cells: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    if let Some(variants) = variants {
        let keys = Int32Array::new(cells.into(), nulls);
        let names =
            StringArray::from_iter_values(variants.iter().map(annals::model::Variant::name));
        let made = DictionaryArray::try_new(keys, Arc::new(names));
        return made.map(|array| Arc::new(array) as ArrayRef).map_err(crate::from_arrow);
    }
    let array = ArrayData::builder(data_type).len(len).add_buffer(cells).nulls(nulls).build();
    array.map(make_array).map_err(crate::from_arrow)
}

/// Adds which of the values are null.
pub(crate) fn note_nulls(nulls: &mut NullBufferBuilder, values: &VectorView<'_>) -> Result<()> {
    let mut done = 0;
    for at in values.nulls() {
        let at = at?;
        nulls.append_n_non_nulls(place(at - done));
        nulls.append_null();
        done = at + 1;
    }
    nulls.append_n_non_nulls(place(values.len() - done));
    Ok(())
}

/// Converts a count of things in memory.
#[expect(clippy::cast_possible_truncation, reason = "so many things are in this memory")]
pub(crate) const fn place(count: u64) -> usize {
    count as usize
}

fn text<'v>(value: ValueRef<'v>, size: &mut usize) -> Option<&'v str> {
    let ValueRef::String(text) = value else { return None };
    *size = text.len();
    Some(text)
}

fn plain_bytes<'v>(value: ValueRef<'v>, size: &mut usize) -> Option<&'v [u8]> {
    let ValueRef::Bytes(bytes) = value else { return None };
    *size = bytes.len();
    Some(bytes)
}

/// The smallest number that Arrow's 38 digits don't hold.
const TOO_LARGE: u128 = 10_u128.pow(38);

#[expect(clippy::host_endian_bytes, reason = "Arrow's arrays have the order of the machine")]
fn push_cell(
    cells: &mut MutableBuffer,
    width: usize,
    variants: Option<Variants>,
    value: ValueRef<'_>,
) -> Result<()> {
    macro_rules! push {
        ($($variant:ident: $rust:ty;)*) => {
            match value {
                $(ValueRef::$variant(v) => cells.extend_from_slice(&v.to_ne_bytes()),)*
                ValueRef::Timestamp(v) => cells.extend_from_slice(&v.to_ne_bytes()),
                ValueRef::Date(v) => cells.extend_from_slice(&v.0.to_ne_bytes()),
                ValueRef::Uuid(v) => cells.extend_from_slice(&v.0),
                ValueRef::Reference(v) => cells.extend_from_slice(&v.0.to_ne_bytes()),
                ValueRef::Bytes(v) => cells.extend_from_slice(v),
                ValueRef::Float32(v) => cells.extend_from_slice(&v.to_ne_bytes()),
                ValueRef::Float64(v) => cells.extend_from_slice(&v.to_ne_bytes()),
                ValueRef::Decimal(v) if v.units().unsigned_abs() >= TOO_LARGE => {
                    return Err(Error::invalid(format!("{v} has 39 digits, and Arrow's decimals have 38")));
                }
                ValueRef::Decimal(v) => cells.extend_from_slice(&v.units().to_ne_bytes()),
                ValueRef::Enum(v) => {
                    let mut all = variants.into_iter().flat_map(Variants::iter);
                    let key = all.position(|each| each.number() == v.number()).unwrap_or(0);
                    let key = i32::try_from(key).unwrap_or(0);
                    cells.extend_from_slice(&key.to_ne_bytes());
                }
                _ => cells.extend_zeros(width),
            }
        };
    }
    annals_schema::column_types!(integers, push);
    Ok(())
}

/// Returns the value of a field by its number, null if there is none.
pub(crate) fn value_of(values: &[Value], number: annals::FieldNumber) -> ValueRef<'_> {
    values.get(number.0 as usize).map_or(ValueRef::Null, Value::as_ref)
}
