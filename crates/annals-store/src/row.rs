//! A row, and reading its fields.

use std::ops::{Bound, Range as Ids, RangeBounds};

use std::fmt;
use std::sync::Arc;

use annals_schema::{
    Blob, Date, Decimal, FieldNumber, RowId, Timestamp, Type, Uuid, Value, ValueRef, WideValue,
    column_types,
};

use crate::ahead::CopiedRows;
use crate::columns::column::Column;
use crate::columns::fetched::Fetched;
use crate::columns::primitive::VariantNumber;
use crate::columns::raw::ValueKind;
use crate::row_walk::Rows;
use crate::view::{TableView, no_row};
use crate::{Error, Result};

/// A row in a view.
#[derive(Clone)]
pub struct Row<'a> {
    pub(super) table: TableView<'a>,
    pub(super) id: RowId,
    pub(super) slot: usize,
    held: Held,
}

/// The values of all columns, if the view doesn't keep them in memory: those of one of some rows.
type Held = Option<(Arc<CopiedRows>, usize)>;

impl fmt::Debug for Row<'_> {
    /// Shows the fields by their names, and references as ids of their tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table.schema();
        let name_of = |table| self.table.view.table_name(table);
        let mut shown = f.debug_struct("Row");
        shown.field("id", &format_args!("{}::Id({})", table.name, self.id.0));
        for field in &table.fields {
            match (field.ty, self.value(field.number)) {
                (_, ValueRef::Null) => shown.field(&field.name, &format_args!("None")),
                (Type::Reference(to, _), ValueRef::Reference(id)) => {
                    let id = format_args!("Some({}::Id({}))", name_of(to), id.0);
                    shown.field(&field.name, &id)
                }
                (_, value) if field.nullable => shown.field(&field.name, &Some(Plain(value))),
                (_, value) => shown.field(&field.name, &Plain(value)),
            };
        }
        shown.finish()
    }
}

/// A value, shown as the Rust value of a getter.
struct Plain<'a>(ValueRef<'a>);

impl fmt::Debug for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.widen() {
            WideValue::Null => f.write_str("None"),
            WideValue::Bool(v) => v.fmt(f),
            WideValue::Integer(v) => v.fmt(f),
            WideValue::Float32(v) => v.fmt(f),
            WideValue::Float64(v) => v.fmt(f),
            WideValue::String(v) => v.fmt(f),
            WideValue::Bytes(v) => v.fmt(f),
            WideValue::Timestamp(v) => Timestamp(v).fmt(f),
            WideValue::Written(v) => write!(f, "{v}"),
            WideValue::Blob(v) => v.fmt(f),
            WideValue::Reference(v) => v.fmt(f),
        }
    }
}

/// The parts of a row that are in memory; in the whole state, if the view is lazy.
struct Loaded<'a> {
    table: TableView<'a>,
    slot: usize,
    held: Held,
}

impl<'a> Row<'a> {
    /// Returns the row that is in a slot. The other parts are loaded now, so that reading its fields can't fail.
    #[inline(always)] // a row that isn't moved through memory can be read while others are waited for
    pub(super) fn load(table: TableView<'a>, id: RowId, slot: usize) -> Result<Self> {
        let Loaded { table, slot, held } = match table.data.is_at_hand(slot) {
            true => Loaded { table, slot, held: None },
            false => load_row(&table, slot)?,
        };
        Ok(Self { table, id, slot, held })
    }

    /// Makes a row that has its values, in the order of the table's fields.
    pub(super) fn holding(table: TableView<'a>, id: RowId, values: Vec<Value>) -> Self {
        Self::copied(table, id, (Arc::new(CopiedRows::Values(values.into())), 0))
    }

    /// Makes a row whose values are at hand.
    #[inline(always)] // as `load`
    pub(super) const fn at_hand(table: TableView<'a>, id: RowId, slot: usize) -> Self {
        Self { table, id, slot, held: None }
    }

    /// Makes a row of values that were copied.
    pub(super) const fn copied(
        table: TableView<'a>,
        id: RowId,
        held: (Arc<CopiedRows>, usize),
    ) -> Self {
        Self { table, id, slot: 0, held: Some(held) }
    }

    /// Returns the row of an id, and loads it as [`load`](Self::load) does.
    ///
    /// # Errors
    /// `NotFound` if there is no such row; `Corrupt`, `Io` or `PageLost` if it can't be loaded.
    #[inline(always)] // as `load`
    pub(super) fn get(table: TableView<'a>, id: RowId) -> Result<Self> {
        let Loaded { table, slot, held } = match table.data.rows.at_hand(id.0) {
            Some(slot) if table.data.is_at_hand(slot) => Loaded { table, slot, held: None },
            _ => find(&table, id)?,
        };
        Ok(Self { table, id, slot, held })
    }

    /// Returns the state for reading a field.
    #[inline(always)]
    fn parts(&self) -> Parts<'_> {
        Parts { table: self.table, slot: self.slot, held: self.held.as_ref() }
    }

    /// Returns the table that it is in.
    #[must_use]
    pub const fn table(&self) -> TableView<'a> {
        self.table
    }

    /// Returns the row's id.
    #[must_use]
    pub const fn id(&self) -> RowId {
        self.id
    }

    /// Returns the value of a field.
    ///
    /// # Panics
    /// If the table has no such field: a bug of the caller, who knows the schema.
    #[inline]
    #[must_use]
    pub fn value(&self, field: FieldNumber) -> ValueRef<'_> {
        self.parts().value(field)
    }

    /// Reads a field, if that needs no lookup: null, or the result of `read` for its column.
    #[inline(always)]
    fn quick<'r, T>(
        &'r self,
        field: FieldNumber,
        read: impl FnOnce(&'r Column, usize) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.held.is_some() {
            return None;
        }
        let column = self.table.data.column(field)?;
        match column.null_at_hand(self.slot)? {
            true => Some(None),
            false => read(column, self.slot).map(Some),
        }
    }

    /// Reads a field whose type is known when compiling.
    ///
    /// # Panics
    /// If the table has no such field, or it is of another type: a bug of the caller.
    #[inline(always)]
    #[must_use]
    pub fn read<'r, T: Cell<'r>>(&'r self, field: FieldNumber) -> T {
        T::read(self, field)
    }
}

/// The state for reading a field of a row, apart from the row: so the row stays in registers in calls.
#[derive(Clone, Copy)]
struct Parts<'r> {
    table: TableView<'r>,
    slot: usize,
    held: Option<&'r (Arc<CopiedRows>, usize)>,
}

impl<'r> Parts<'r> {
    /// Returns the value of a field.
    fn value(self, field: FieldNumber) -> ValueRef<'r> {
        let data = self.table.data;
        let column = data.column(field).expect("the caller knows the table's fields");
        if let Some((held, at)) = self.held {
            return data.place_of(field).map_or(ValueRef::Null, |place| held.value(place, *at));
        }
        match column.get(self.slot) {
            Ok(Fetched::Here(value)) => value,
            _ => {
                debug_assert!(false, "`load` saw to it that the value stays in memory");
                column.zero_value()
            }
        }
    }
}

/// Finds a row that isn't at hand, and loads it.
#[inline(never)] // so that a row that is at hand costs little
fn find<'a>(table: &TableView<'a>, id: RowId) -> Result<Loaded<'a>> {
    match table.data.rows.find(id.0) {
        Ok(Some(slot)) if table.data.is_at_hand(slot) => {
            Ok(Loaded { table: *table, slot, held: None })
        }
        Ok(Some(slot)) => load_row(table, slot),
        Ok(None) => match table.past_row(id)? {
            Some(Row { table, slot, held, .. }) => Ok(Loaded { table, slot, held }),
            None => Err(no_row(table.view, table.number, id)),
        },
        Err(error) => Err(error),
    }
}

/// Loads the row that is in a slot.
#[inline(never)] // so that a row that is at hand costs little
fn load_row<'a>(table: &TableView<'a>, slot: usize) -> Result<Loaded<'a>> {
    let table = *table;
    if table.data.values_stay(slot)? {
        return Ok(Loaded { table, slot, held: None });
    }
    let copied = CopiedRows::of_slot(table.data, slot)?;
    Ok(Loaded { table, slot, held: Some((Arc::new(copied), 0)) })
}

/// A Rust type that a field can be read as: `bool`, the integers and floats, `&str`, `&[u8]`,
/// `Timestamp`, `Blob`, `RowId`, and `Option` of each for fields that may be null.
pub trait Cell<'r>: Sized {
    /// Reads the field (a null field read as a plain type returns its zero).
    ///
    /// # Panics
    /// If the table has no such field, or it is of another type: a bug of the caller.
    fn read(row: &'r Row<'_>, field: FieldNumber) -> Self;
}

/// Returns an error with the field's type and the requested one.
#[cold]
fn wrong_type(table: TableView<'_>, field: FieldNumber, asked: &str) -> ! {
    let table = table.schema();
    let (name, ty) = table.field(field).map_or(("?", None), |f| (&*f.name, Some(f.ty)));
    panic!("field `{name}` of table `{}` is {ty:?}, and was read as {asked}", table.name)
}

macro_rules! cell {
    ($({const $parameter:ident: $of:ty})? $type:ty, $quick:expr, $zero:expr, $($pattern:pat $(if $guard:expr)? => $value:expr),+) => {
        impl<'r $(, const $parameter: $of)?> Cell<'r> for $type {
            #[inline(always)]
            fn read(row: &'r Row<'_>, field: FieldNumber) -> Self {
                #[inline(never)] // so that reading what is at hand stays short
                fn slow<'r $(, const $parameter: $of)?>(row: Parts<'r>, field: FieldNumber) -> $type {
                    match row.value(field) {
                        $($pattern $(if $guard)? => $value,)+
                        ValueRef::Null => $zero,
                        _ => wrong_type(row.table, field, stringify!($type)),
                    }
                }
                match row.quick(field, $quick) {
                    Some(Some(value)) => value,
                    _ => slow(row.parts(), field),
                }
            }
        }

        impl<'r $(, const $parameter: $of)?> Cell<'r> for Option<$type> {
            #[inline(always)]
            fn read(row: &'r Row<'_>, field: FieldNumber) -> Self {
                #[inline(never)] // so that reading what is in its place is short
                fn slow<'r $(, const $parameter: $of)?>(
                    row: Parts<'r>,
                    field: FieldNumber,
                ) -> Option<$type> {
                    match row.value(field) {
                        $($pattern $(if $guard)? => Some($value),)+
                        ValueRef::Null => None,
                        _ => wrong_type(row.table, field, stringify!(Option<$type>)),
                    }
                }
                match row.quick(field, $quick) {
                    Some(value) => value,
                    None => slow(row.parts(), field),
                }
            }
        }
    };
}

macro_rules! numbers {
    ($($variant:ident: $rust:ty $(, $also:ident)?;)*) => {$(
        cell!(
            $rust,
            |column, slot| column.cell(slot, ValueKind::$variant).map(<$rust>::from_le_bytes),
            <$rust>::default(),
            ValueRef::$variant(v) => v $(, ValueRef::$also(v) => v)?
        );
    )*};
}

column_types!(numbers, numbers);
cell!(bool, Column::bit, false, ValueRef::Bool(v) => v);
cell!(&'r str, |column, slot| column.text(slot, ValueKind::String), "", ValueRef::String(v) => v);
cell!(&'r [u8], |column, slot| column.variable(slot, ValueKind::Bytes), &[], ValueRef::Bytes(v) => v);
cell!(
    Timestamp,
    |column, slot| column.cell(slot, ValueKind::Timestamp).map(|v| Timestamp(i64::from_le_bytes(v))),
    Timestamp(0),
    ValueRef::Timestamp(v) => Timestamp(v)
);
cell!(
    Date,
    |column, slot| column.cell(slot, ValueKind::Date).map(Date::from_le_bytes),
    Date(0),
    ValueRef::Date(v) => v
);
cell!(
    Uuid,
    |column, slot| column.cell(slot, ValueKind::Uuid).map(Uuid),
    Uuid([0; 16]),
    ValueRef::Uuid(v) => v
);
cell!(
    {const SCALE: u8} Decimal<SCALE>,
    Column::decimal,
    Decimal::default(),
    ValueRef::Decimal(v) if v.scale() == SCALE => Decimal::from_units(v.units())
);
cell!(
    {const LEN: usize} &'r [u8; LEN],
    |column, slot| column.variable(slot, ValueKind::Bytes).and_then(|v| v.try_into().ok()),
    const { &[0; LEN] },
    ValueRef::Bytes(v) => v.try_into().unwrap_or(const { &[0; LEN] })
);
cell!(
    VariantNumber,
    |column, slot| column.cell(slot, ValueKind::Enum).map(|v| VariantNumber(u16::from_le_bytes(v))),
    VariantNumber(0),
    ValueRef::Enum(v) => VariantNumber(v.number())
);
cell!(
    Blob,
    |column, slot| column.cell(slot, ValueKind::Blob).map(|v| Blob(u64::from_le_bytes(v))),
    Blob(0),
    ValueRef::Blob(v) => v
);
cell!(
    RowId,
    |column, slot| column.cell(slot, ValueKind::Reference).map(|v| RowId(u64::from_le_bytes(v))),
    RowId(0),
    ValueRef::Reference(v) => v
);

impl<'a> TableView<'a> {
    /// Returns the row, if there is one with that id.
    #[inline]
    pub fn find(&self, id: RowId) -> Result<Option<Row<'a>>> {
        match self.data.rows.find(id.0) {
            Ok(Some(slot)) => Row::load(*self, id, slot).map(Some),
            Ok(None) if self.view.lazy.is_some() => self.past_row(id),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the row; `NotFound` (naming table and id) if there is none with that id.
    #[inline(always)] // see `Row::get`
    pub fn get(&self, id: RowId) -> Result<Row<'a>> {
        Row::get(*self, id)
    }

    /// Returns the row of a table that always has exactly one.
    ///
    /// # Errors
    /// `Invalid` if it isn't such a table.
    pub fn single(&self) -> Result<Row<'a>> {
        let row = self.rows().next().filter(|_| self.data.single);
        row.unwrap_or_else(|| {
            let name = &self.schema().name;
            Err(Error::invalid(format!(
                "table `{name}` isn't one of a single row: `set_single_row {name} true` makes it so"
            )))
        })
    }

    /// Returns all rows in order of their ids.
    #[must_use]
    pub fn rows(&self) -> Rows<'a> {
        Rows::new(*self, self.data.rows.iter())
    }

    /// Returns the rows whose ids are in the bounds, in order of their ids, from both ends. Beginning
    /// anywhere takes logarithmic time: the row after an id is the first of `range(id..)`, the row
    /// before it the last of `range(..id)`.
    #[must_use]
    pub fn range(&self, ids: impl RangeBounds<RowId>) -> Rows<'a> {
        let low = match ids.start_bound() {
            Bound::Included(id) => id.0,
            Bound::Excluded(id) => id.0.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let high = match ids.end_bound() {
            Bound::Included(id) => id.0.saturating_add(1),
            Bound::Excluded(id) => id.0,
            Bound::Unbounded => u64::MAX,
        };
        self.rows_in(low..high)
    }

    pub(super) fn rows_in(&self, ids: Ids<u64>) -> Rows<'a> {
        Rows::new(*self, self.data.rows.range(ids))
    }
}

#[cfg(test)]
mod tests;
