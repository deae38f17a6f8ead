//! Enums of generated code.

use std::borrow::Cow;
use std::fmt;

use annals_schema::{FieldNumber, Value, ValueRef, Variant};

use super::vector::Number;
use super::{ColumnType, Element, Owned, Sliced, Vector};
use crate::store::{VariantNumber, VectorView};
use crate::{Error, ErrorKind, Result, Row};

/// An `enum` of a schema; generated code has one for each such field.
pub trait Enum: Number + Default + Into<ValueRef<'static>> {
    /// The names of all variants, by their numbers.
    const NAMES: &'static [&'static str];

    /// Finds a variant by its number.
    fn from_number(number: u16) -> Option<Self>;

    /// Returns the number.
    fn number(self) -> u16;

    /// Returns the name in the schema.
    fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.number())).copied().unwrap_or_default()
    }
}

/// A text that is no variant of an `enum`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumError {
    text: String,
    names: &'static [&'static str],
}

impl fmt::Display for EnumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, names } = self;
        write!(f, "`{text}` is not a variant: write one of {}", names.join(", "))
    }
}

impl std::error::Error for EnumError {}

/// Finds a variant by its name in the schema; generated code calls it for `FromStr`.
///
/// # Errors
/// There is none of that name.
pub fn parse_variant<E: Enum>(text: &str) -> Result<E, EnumError> {
    // A dropped variant may have the name of a later one.
    let number = E::NAMES.iter().rposition(|name| *name == text);
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.and_then(E::from_number).ok_or_else(|| {
        let text = annals_schema::shorten(text).into_owned();
        EnumError { text, names: E::NAMES }
    })
}

/// Returns a variant as an untyped value; generated code calls it.
#[must_use]
pub fn variant<E: Enum>(value: E) -> ValueRef<'static> {
    const NO_NAME: &&str = &"";
    let name = E::NAMES.get(usize::from(value.number())).unwrap_or(NO_NAME);
    ValueRef::Enum(Variant::new(value.number(), name))
}

/// Refuses a row with a variant that the program doesn't know; generated code calls it for each row that is read.
///
/// # Errors
/// `SchemaMismatch`, with the row and the variant.
#[inline]
pub fn check_variant<E: Enum>(row: &Row<'_>, field: FieldNumber) -> Result<()> {
    match row.read::<Option<VariantNumber>>(field) {
        Some(number) if usize::from(number.0) >= E::NAMES.len() => Err(unknown(row, field)),
        _ => Ok(()),
    }
}

#[cold]
fn unknown(row: &Row<'_>, field: FieldNumber) -> Error {
    let table = row.table().schema();
    let (id, name) = (row.id().0, table.field(field).map_or("?", |field| &field.name));
    let what =
        format!("row {id} of `{}` has the variant `{}` in `{name}`", table.name, row.value(field));
    newer(&what)
}

#[cold]
fn unnamed(number: u16) -> Error {
    newer(&format!("a row has the variant number {number} of an enum"))
}

fn newer(what: &str) -> Error {
    let message =
        format!("{what}, which a newer program has added: use a newer program to read it");
    Error::new(ErrorKind::SchemaMismatch, message)
}

/// Returns the variant of a number that was read, after [`check_variant`].
pub fn variant_of<E: Enum>(VariantNumber(number): VariantNumber) -> E {
    E::from_number(number).unwrap_or_default()
}

impl<E: Enum> ColumnType for E {
    type In<'a> = Self;
    type Value = Self;
}

impl<E: Enum> ColumnType for Option<E> {
    type In<'a> = Self;
    type Value = Self;
}

impl<E: Enum> Sliced for E {
    type Cell = VariantNumber;

    fn of_cells(cells: Cow<'_, [VariantNumber]>) -> Result<Cow<'_, [Self]>> {
        let known = cells.iter().map(|cell| E::from_number(cell.0).ok_or_else(|| unnamed(cell.0)));
        known.collect::<Result<Vec<_>>>().map(Cow::Owned)
    }
}

impl<E: Enum> Element<'_> for E {
    fn read(vector: &VectorView<'_>) -> Result<Vec<Self>> {
        let unfit = || vector.unfit(std::any::type_name::<E>());
        Option::<E>::read(vector)?.into_iter().map(|value| value.ok_or_else(unfit)).collect()
    }
}

impl<E: Enum> Element<'_> for Option<E> {
    fn read(vector: &VectorView<'_>) -> Result<Vec<Self>> {
        let values = vector.values().map(|value| match value?.as_ref() {
            ValueRef::Enum(value) => match E::from_number(value.number()) {
                Some(variant) => Ok(Some(variant)),
                None => Err(unnamed(value.number())),
            },
            ValueRef::Null => Ok(None),
            _ => Err(vector.unfit(std::any::type_name::<E>())),
        });
        values.collect()
    }
}

impl<E: Enum> Owned for E {
    #[inline]
    fn from_ref(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Enum(value) => Self::from_number(value.number()),
            ValueRef::Null => Some(Self::default()),
            _ => None,
        }
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Enum(value) => E::from_number(value.number()),
            Value::Null => Some(E::default()),
            _ => None,
        }
    }
}

/// Returns the values of a column as they are written.
pub fn variants<E: Enum>(values: &[E]) -> Vector<'_> {
    Vector::each_of(values)
}
