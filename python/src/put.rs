//! What a transaction does with rows that are given: the same for one, for many, and for those of a frame.

use annals::{
    Blob, Error, ErrorKind, FieldNumber, IndexNumber, Result, RowId, Table, Transaction, Value,
    ValueRef,
};
use annals_arrow::Sink;

use crate::values::Given as Read;

/// What is done with a row.
pub(crate) enum How {
    Insert,
    Update,
    /// Updates the row that has the key in a unique index of these fields, or inserts it.
    Upsert(IndexNumber, Vec<FieldNumber>),
    UpsertById,
    Delete,
}

/// A row as it is given.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) id: Option<RowId>,
    /// The values of all fields: defaults, where none is given.
    pub(crate) values: Vec<Read>,
    /// The fields that are given.
    pub(crate) present: Vec<FieldNumber>,
}

impl Given {
    /// True if it takes more than one statement.
    pub(crate) fn needs_savepoint(&self, how: &How) -> bool {
        let is_blob = |value: &Read| matches!(value, Read::Blob(_));
        let updates = !matches!(how, How::Insert) && self.present.len() > 1;
        updates || self.values.iter().any(is_blob)
    }

    /// Writes the blobs.
    pub(crate) fn ready(self, tx: &mut Transaction<'_>) -> Result<Ready> {
        let Self { id, values, present } = self;
        let values = values.into_iter().map(|value| match value {
            Read::Value(value) => Ok(value),
            Read::Blob(bytes) => tx.write_blob(bytes.as_slice()).map(Value::Blob),
        });
        Ok(Ready { id, values: values.collect::<Result<_>>()?, present })
    }
}

/// A row whose blobs are written.
pub(crate) struct Ready {
    id: Option<RowId>,
    values: Vec<Value>,
    present: Vec<FieldNumber>,
}

/// Does something with a row; returns its id.
pub(crate) fn put(tx: &mut Transaction<'_>, table: &Table, how: &How, row: Ready) -> Result<RowId> {
    let values: Vec<ValueRef<'_>> = row.values.iter().map(Value::as_ref).collect();
    Putting { tx, table, how, present: &row.present }.put(row.id, &values)
}

/// Takes rows that have these fields.
pub(crate) struct Putting<'t, 'db> {
    pub(crate) tx: &'t mut Transaction<'db>,
    pub(crate) table: &'t Table,
    pub(crate) how: &'t How,
    pub(crate) present: &'t [FieldNumber],
}

impl Putting<'_, '_> {
    fn put(&mut self, id: Option<RowId>, values: &[ValueRef<'_>]) -> Result<RowId> {
        let table = self.table.number;
        let found = match self.how {
            How::Insert => None,
            How::Update => Some(self.needed(id)?),
            How::Delete => {
                let id = self.needed(id)?;
                return self.tx.delete(table, id).map(|()| id);
            }
            How::UpsertById => {
                let id = self.needed(id)?;
                self.tx.view().table(table)?.contains(id)?.then_some(id)
            }
            How::Upsert(index, fields) => self.holder(*index, fields, values)?,
        };
        let Some(found) = found else {
            return match id {
                Some(id) => self.tx.insert_at(table, id, values).map(|()| id),
                None => self.tx.insert(table, values),
            };
        };
        if id.is_some_and(|id| id != found) {
            return Err(Error::invalid(format!(
                "table `{}`: the row of this key has the id {}, which stays; leave `id` out",
                self.table.name, found.0
            )));
        }
        // Also without fields to set.
        self.tx.view().table(table)?.get(found)?;
        for field in self.present {
            let value = values.get(field.0 as usize).copied().unwrap_or(ValueRef::Null);
            self.tx.update(table, found, *field, value)?;
        }
        Ok(found)
    }

    fn needed(&self, id: Option<RowId>) -> Result<RowId> {
        id.ok_or_else(|| {
            let name = &self.table.name;
            let which = match self.table.field_named("id") {
                None => String::new(),
                Some(_) => format!("; where it has one, its field `id` is `{name}.id`"),
            };
            Error::invalid(format!(
                "table `{name}`: a row has no `id`, which says what it is{which}"
            ))
        })
    }

    /// Returns the row that has the key already; a key with null is no other's.
    fn holder(
        &self,
        index: IndexNumber,
        fields: &[FieldNumber],
        values: &[ValueRef<'_>],
    ) -> Result<Option<RowId>> {
        let missing = fields.iter().find(|field| !self.present.contains(field));
        if let Some(field) = missing.and_then(|field| self.table.field(*field)) {
            let message = format!("the key of the row is missing: field `{}`", field.name);
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let key: Vec<_> =
            fields.iter().filter_map(|field| values.get(field.0 as usize).copied()).collect();
        if key.contains(&ValueRef::Null) {
            return Ok(None);
        }
        let row = self.tx.view().index(index)?.first(&key)?;
        Ok(row.map(|row| row.id()))
    }
}

impl Sink for Putting<'_, '_> {
    fn insert(&mut self, id: Option<RowId>, values: &[ValueRef<'_>]) -> Result<()> {
        self.put(id, values).map(drop)
    }

    fn write_blob(&mut self, bytes: &[u8]) -> Result<Blob> {
        self.tx.write_blob(bytes)
    }
}
