//! Changes with the types of their tables.

use std::fmt;
use std::marker::PhantomData;

use annals_schema::{
    Blob, Date, Decimal, FieldNumber, RowId, TableNumber, Timestamp, Txid, Uuid, Value, ValueRef,
    column_types,
};

use super::{Column, Id, Record};
use crate::{Error, Result, RowChange};

/// A kind of rows whose values are known by themselves, as a struct; generated code has one for each table.
pub trait Versioned: Record {
    /// The values of a row, owned.
    type Values: Clone + fmt::Debug + PartialEq;

    /// Takes them, each by its number.
    ///
    /// # Errors
    /// A value isn't of its field's type, which opening rules out.
    fn values(row: &mut RowValues) -> Result<Self::Values>;
}

/// The values of a row, from which a struct takes its own.
#[derive(Debug)]
pub struct RowValues(Vec<Value>, TableNumber);

impl RowValues {
    /// Takes the value of a field.
    ///
    /// # Errors
    /// There is none of that type.
    pub fn take<T: Owned>(&mut self, field: FieldNumber) -> Result<T> {
        let value = self.0.get_mut(field.0 as usize);
        let value = value.map_or(Value::Null, |value| std::mem::replace(value, Value::Null));
        T::from_value(value).ok_or_else(|| {
            let (table, field) = (self.1.0, field.0);
            Error::corrupt(format!(
                "table number {table}, field number {field}: the change has a value of a type other than the \
                 program's schema has; use only changes of this database"
            ))
        })
    }
}

/// A Rust value that a field's value is taken as: owned, and an `Option` where it may be null.
pub trait Owned: Sized {
    /// Takes a value; `None` if it is of another type. Null elsewhere than in an `Option` is an erased value, which
    /// is read as zero, false or empty, as a getter does.
    fn from_value(value: Value) -> Option<Self>;

    /// Copies a value; as [`from_value`](Self::from_value).
    #[inline]
    fn from_ref(value: ValueRef<'_>) -> Option<Self> {
        Self::from_value(value.to_value())
    }
}

macro_rules! owned {
    ($($rust:ty, $variant:ident, $taken:ident => $made:expr, $zero:expr;)+) => {$(
        impl Owned for $rust {
            #[inline]
            fn from_ref(value: ValueRef<'_>) -> Option<Self> {
                match value {
                    ValueRef::$variant($taken) => Some(Self::from($made)),
                    ValueRef::Null => Some($zero),
                    _ => None,
                }
            }

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$variant($taken) => Some($made),
                    Value::Null => Some($zero),
                    _ => None,
                }
            }
        }
    )+};
}

macro_rules! owned_numbers {
    ($($variant:ident: $rust:ty $(, $also:ident)?;)*) => {
        owned! { $($rust, $variant, v => v, Self::default();)* }
    };
}

column_types!(numbers, owned_numbers);

owned! {
    bool, Bool, v => v, false;
    String, String, v => v, Self::new();
    Vec<u8>, Bytes, v => v, Self::new();
    Timestamp, Timestamp, v => Self(v), Self(0);
    Date, Date, v => v, Self(0);
    Uuid, Uuid, v => v, Self([0; 16]);
    Blob, Blob, v => v, Self(0);
    RowId, Reference, v => v, Self(0);
}

impl<const SCALE: u8> Owned for Decimal<SCALE> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Decimal(v) => v.try_into().ok(),
            Value::Null => Some(Self::default()),
            _ => None,
        }
    }
}

impl<const LEN: usize> Owned for [u8; LEN] {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Bytes(v) => v.try_into().ok(),
            Value::Null => Some([0; LEN]),
            _ => None,
        }
    }
}

impl<R: Record> Owned for Id<R> {
    #[inline]
    fn from_ref(value: ValueRef<'_>) -> Option<Self> {
        RowId::from_ref(value).map(Self::from)
    }

    fn from_value(value: Value) -> Option<Self> {
        RowId::from_value(value).map(Self::from)
    }
}

impl<T: Owned> Owned for Option<T> {
    #[inline]
    fn from_ref(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Null => Some(None),
            value => T::from_ref(value).map(Some),
        }
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A change of one row of a table.
///
/// ```
/// annals::schema!("tutorial.schema");
/// use tutorial::{Change, city};
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
/// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lile" })?))?;
/// db.write(|tx| {
///     tx.edit(lille)?.set_name("Lille")?;
///     Ok(())
/// })?;
///
/// // The first transaction made the tables, the second inserted a row.
/// for transaction in db.changes(annals::Txid(3)..)? {
///     for change in transaction?.changes {
///         let Change::City(change) = change else { continue };
///         assert!(change.is_update() && change.changed(city::NAME));
///         assert_eq!(change.id, lille);
///         assert_eq!(change.after.unwrap().name, "Lille");
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Change<R: Versioned> {
    /// The row.
    pub id: Id<R>,
    /// Its values before; `None`: there was no such row.
    pub before: Option<R::Values>,
    /// Its values after; `None` if it was deleted.
    pub after: Option<R::Values>,
    fields: Vec<FieldNumber>,
    kind: PhantomData<fn() -> R>,
}

impl<R: Versioned> Change<R> {
    /// Adds the table's types to a change of one of its rows.
    ///
    /// # Errors
    /// It is of another table, or a value isn't of its field's type.
    pub fn new(change: RowChange) -> Result<Self> {
        if change.table != R::TABLE {
            return Err(Error::invalid(format!("a change of another table than `{}`", R::NAME)));
        }
        let fields = change.fields().collect();
        let RowChange { table, id, before, after } = change;
        let values = |row: Option<Vec<Value>>| {
            row.map(|row| R::values(&mut RowValues(row, table))).transpose()
        };
        let (before, after) = (values(before)?, values(after)?);
        Ok(Self { id: id.into(), before, after, fields, kind: PhantomData })
    }

    /// True if the row is new.
    #[must_use]
    pub const fn is_insert(&self) -> bool {
        self.before.is_none()
    }

    /// True if the row existed before and still does.
    #[must_use]
    pub const fn is_update(&self) -> bool {
        self.before.is_some() && self.after.is_some()
    }

    /// True if the row was deleted.
    #[must_use]
    pub const fn is_delete(&self) -> bool {
        self.after.is_none()
    }

    /// True if the values of a field differ, as in `change.changed(city::NAME)`. For an inserted or deleted row, true
    /// unless the field is null.
    #[must_use]
    pub fn changed<T>(&self, column: Column<R, T>) -> bool {
        self.fields.contains(&column.field())
    }
}

impl<R: Versioned> Clone for Change<R> {
    fn clone(&self) -> Self {
        let Self { id, before, after, fields, kind } = self;
        let (before, after, fields) = (before.clone(), after.clone(), fields.clone());
        Self { id: *id, before, after, fields, kind: *kind }
    }
}

impl<R: Versioned> fmt::Debug for Change<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Change");
        shown.field("id", &self.id).field("before", &self.before).field("after", &self.after);
        shown.finish_non_exhaustive()
    }
}

impl<R: Versioned> PartialEq for Change<R> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.before == other.before && self.after == other.after
    }
}

/// A change of a row without the types of its table: which row it is, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedRow<'c> {
    /// The table's name in the program's schema.
    pub table: &'static str,
    /// The row.
    pub id: RowId,
    /// True if the row is new.
    pub is_insert: bool,
    /// True if the row was deleted.
    pub is_delete: bool,
    /// The fields whose values differ.
    pub fields: &'c [FieldNumber],
}

impl ChangedRow<'_> {
    /// True if the row existed before and still does.
    #[must_use]
    pub const fn is_update(&self) -> bool {
        !self.is_insert && !self.is_delete
    }
}

impl<R: Versioned> Change<R> {
    /// Returns the same change without the types of its table.
    #[must_use]
    pub fn row(&self) -> ChangedRow<'_> {
        let (is_insert, is_delete) = (self.is_insert(), self.is_delete());
        ChangedRow {
            table: R::NAME,
            id: self.id.into(),
            is_insert,
            is_delete,
            fields: &self.fields,
        }
    }
}

/// A change of a row of any table that a program knows: generated code has an enum of them.
pub trait AnyChange: Sized {
    /// Adds the types to a change; `None` if the program doesn't know the table.
    ///
    /// # Errors
    /// A value isn't of its field's type.
    fn of(change: RowChange) -> Result<Option<Self>>;
}

/// Adds a table's types to a change of one of its rows, as one of those of any table.
///
/// # Errors
/// As [`Change::new`].
pub fn any_change<R: Versioned, C>(
    change: RowChange,
    of: impl Fn(Change<R>) -> C,
) -> Result<Option<C>> {
    Change::new(change).map(|change| Some(of(change)))
}

/// The changes that one transaction made to tables that the program knows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Changed<C> {
    /// Its number.
    pub txid: Txid,
    /// Its time.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// The rows that differ afterwards, each once, in the order in which they were first touched.
    pub changes: Vec<C>,
}

impl<C: AnyChange> Changed<C> {
    /// Returns the changes of a transaction with their types. Rows of tables that the program doesn't know are left
    /// out: a newer program may have added them.
    ///
    /// # Errors
    /// A value isn't of its field's type.
    pub fn new(changed: crate::Changed) -> Result<Self> {
        let crate::Changed { txid, time, comments, rows, .. } = changed;
        let changes = rows.into_iter().filter_map(|row| C::of(row).transpose());
        Ok(Self { txid, time, comments, changes: changes.collect::<Result<_>>()? })
    }
}

/// The changes of a range of transactions: see [`Database::changes`](crate::Database::changes).
#[derive(Debug)]
#[must_use = "it reads only when it is stepped"]
pub struct Changes<C> {
    changes: crate::Changes,
    kind: PhantomData<fn() -> C>,
}

impl<C: AnyChange> Changes<C> {
    /// Adds the types to changes.
    pub fn new(changes: crate::Changes) -> Self {
        Self { changes, kind: PhantomData }
    }
}

impl<C: AnyChange> Iterator for Changes<C> {
    type Item = Result<Changed<C>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.changes.next().map(|changed| changed.and_then(Changed::new))
    }
}

/// New commits from some transaction on: see [`Subscription`](crate::Subscription).
#[derive(Debug)]
pub struct Subscription<C> {
    subscription: crate::Subscription,
    kind: PhantomData<fn() -> C>,
}

impl<C: AnyChange> Subscription<C> {
    /// Adds the types to a subscription.
    #[must_use]
    pub fn new(subscription: crate::Subscription) -> Self {
        Self { subscription, kind: PhantomData }
    }

    /// Returns the next transaction if there is one already.
    ///
    /// # Errors
    /// As [`Subscription::try_next`](crate::Subscription::try_next).
    pub fn try_next(&mut self) -> Result<Option<Changed<C>>> {
        self.subscription.try_next()?.map(Changed::new).transpose()
    }

    /// Returns the next transaction; waits for it up to `timeout`.
    ///
    /// # Errors
    /// As [`Subscription::next_timeout`](crate::Subscription::next_timeout).
    pub fn next_timeout(&mut self, timeout: std::time::Duration) -> Result<Option<Changed<C>>> {
        self.subscription.next_timeout(timeout)?.map(Changed::new).transpose()
    }

    #[cfg(feature = "tokio")]
    pub(super) fn into_dynamic(self) -> crate::Subscription {
        self.subscription
    }

    /// Returns the same subscription without the types of its schema: for the last transaction that was given, and for
    /// whether it is over.
    #[must_use]
    pub const fn as_dynamic(&self) -> &crate::Subscription {
        &self.subscription
    }
}

impl<C: AnyChange> Iterator for Subscription<C> {
    type Item = Result<Changed<C>>;

    /// Waits for the next transaction; `None`: there will be none any more.
    fn next(&mut self) -> Option<Self::Item> {
        self.subscription.next().map(|changed| changed.and_then(Changed::new))
    }
}
