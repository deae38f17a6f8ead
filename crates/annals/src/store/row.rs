//! A row, and reading its fields.

use std::fmt;

use annals_schema::{Blob, FieldNumber, RowId, Timestamp, ValueRef};

use super::rows::RowIter;
use super::view::TableView;
use crate::Result;

/// A row in a view.
#[derive(Clone)]
pub struct Row<'a> {
    pub(super) table: TableView<'a>,
    pub(super) id: RowId,
    pub(super) slot: usize,
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.table.data.columns.iter().map(|c| c.get(self.slot)).collect();
        f.debug_struct("Row").field("id", &self.id.0).field("values", &values).finish()
    }
}

impl Row<'_> {
    /// Gives the row's id.
    #[must_use]
    pub const fn id(&self) -> RowId {
        self.id
    }

    /// Gives the value of a field.
    ///
    /// # Panics
    /// If the table has no such field: a bug of the caller, who knows the schema.
    #[inline]
    #[must_use]
    pub fn value(&self, field: FieldNumber) -> ValueRef<'_> {
        let column = self.table.data.column(field);
        column.expect("the caller knows the table's fields").get(self.slot)
    }

    /// Reads a field whose type is known when compiling.
    ///
    /// # Panics
    /// If the table has no such field, or it is of another type: a bug of the caller.
    #[inline]
    #[must_use]
    pub fn read<'r, T: Cell<'r>>(&'r self, field: FieldNumber) -> T {
        T::read(self, field)
    }
}

/// A Rust type that a field can be read as: `bool`, the integers and floats, `&str`, `&[u8]`,
/// `Timestamp`, `Blob`, `RowId`, and `Option` of each for fields that may be null.
pub trait Cell<'r>: Sized {
    /// Reads the field (a null field read as a plain type gives its zero).
    ///
    /// # Panics
    /// If the table has no such field, or it is of another type: a bug of the caller.
    fn read(row: &'r Row<'_>, field: FieldNumber) -> Self;
}

/// Says which field was read as what.
#[cold]
fn wrong_type(row: &Row<'_>, field: FieldNumber, asked: &str) -> ! {
    let table = row.table.schema();
    let (name, ty) = table.field(field).map_or(("?", None), |f| (&*f.name, Some(f.ty)));
    panic!("field `{name}` of table `{}` is {ty:?}, and was read as {asked}", table.name)
}

macro_rules! cell {
    ($type:ty, $zero:expr, $($pattern:pat => $value:expr),+) => {
        impl<'r> Cell<'r> for $type {
            #[inline]
            fn read(row: &'r Row<'_>, field: FieldNumber) -> Self {
                match row.value(field) {
                    $($pattern => $value,)+
                    ValueRef::Null => $zero,
                    _ => wrong_type(row, field, stringify!($type)),
                }
            }
        }

        impl<'r> Cell<'r> for Option<$type> {
            #[inline]
            fn read(row: &'r Row<'_>, field: FieldNumber) -> Self {
                match row.value(field) {
                    $($pattern => Some($value),)+
                    ValueRef::Null => None,
                    _ => wrong_type(row, field, stringify!(Option<$type>)),
                }
            }
        }
    };
}

cell!(bool, false, ValueRef::Bool(v) => v);
cell!(i8, 0, ValueRef::Int8(v) => v);
cell!(i16, 0, ValueRef::Int16(v) => v);
cell!(i32, 0, ValueRef::Int32(v) => v);
cell!(i64, 0, ValueRef::Int64(v) => v, ValueRef::Timestamp(v) => v);
cell!(u8, 0, ValueRef::UInt8(v) => v);
cell!(u16, 0, ValueRef::UInt16(v) => v);
cell!(u32, 0, ValueRef::UInt32(v) => v);
cell!(u64, 0, ValueRef::UInt64(v) => v);
cell!(f32, 0.0, ValueRef::Float32(v) => v);
cell!(f64, 0.0, ValueRef::Float64(v) => v);
cell!(&'r str, "", ValueRef::String(v) => v);
cell!(&'r [u8], &[], ValueRef::Bytes(v) => v);
cell!(Timestamp, Timestamp(0), ValueRef::Timestamp(v) => Timestamp(v));
cell!(Blob, Blob(0), ValueRef::Blob(v) => v);
cell!(RowId, RowId(0), ValueRef::Reference(v) => v);

/// Rows in order of their ids, from both ends.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    pub(super) table: TableView<'a>,
    pub(super) rows: RowIter<'a>,
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (id, slot) = self.rows.next()?;
        Some(Ok(Row { table: self.table, id, slot }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.rows.left()).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

impl DoubleEndedIterator for Rows<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (id, slot) = self.rows.next_back()?;
        Some(Ok(Row { table: self.table, id, slot }))
    }
}
