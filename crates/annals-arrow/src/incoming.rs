//! Record batches as rows of a table.

use std::collections::HashSet;

use annals::{
    Blob, Error, Field, Result, RowId, Schema, Table, TableNumber, Transaction, Type, Value,
    ValueRef,
};
use arrow_array::RecordBatch;
use arrow_schema::Schema as Columns;

use crate::batches::{Batches, table_of};
use crate::convert::{Read, Wide, no_field, reader, value};
use crate::from_arrow;

/// Takes the rows.
pub trait Sink {
    /// Inserts a row, with the next id if none is given.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`].
    fn insert(&mut self, id: Option<RowId>, values: &[ValueRef<'_>]) -> Result<()>;

    /// Writes the bytes of a blob for the next row.
    ///
    /// # Errors
    /// Those of [`Transaction::write_blob`].
    fn write_blob(&mut self, bytes: &[u8]) -> Result<Blob>;
}

/// Inserts rows into a table, in a transaction.
#[derive(Debug)]
pub struct Inserting<'t, 'db> {
    transaction: &'t mut Transaction<'db>,
    table: TableNumber,
}

impl<'t, 'db> Inserting<'t, 'db> {
    /// Makes one for a table.
    pub const fn new(transaction: &'t mut Transaction<'db>, table: TableNumber) -> Self {
        Self { transaction, table }
    }
}

impl Sink for Inserting<'_, '_> {
    fn insert(&mut self, id: Option<RowId>, values: &[ValueRef<'_>]) -> Result<()> {
        match id {
            Some(id) => self.transaction.insert_at(self.table, id, values),
            None => self.transaction.insert(self.table, values).map(drop),
        }
    }

    fn write_blob(&mut self, bytes: &[u8]) -> Result<Blob> {
        self.transaction.write_blob(bytes)
    }
}

/// The way from columns to the fields of a table.
#[derive(Clone, Debug)]
pub struct Incoming {
    table: Table,
    /// The place of the column with the ids.
    id: Option<usize>,
    /// For each field the place of its column; without one it gets its default.
    columns: Vec<Option<usize>>,
    defaults: Vec<Value>,
    /// The number of rows in the batches before.
    before: u64,
}

impl Incoming {
    /// Finds the columns of a table's fields by their names. `id` is the row's id: without that column rows get the
    /// next ids. Fields without a column get their default.
    ///
    /// # Errors
    /// `NotFound`: there is no such table; `Invalid`: a column is of no field, or there twice.
    pub fn new(schema: &Schema, table: TableNumber, columns: &Columns) -> Result<Self> {
        let table = table_of(schema, table)?;
        let named = |name: &str| columns.fields().iter().position(|column| column.name() == name);
        let keys: Vec<String> =
            table.fields.iter().map(|field| annals_json::key(table, field)).collect();
        let mut names = HashSet::new();
        for name in columns.fields().iter().map(|column| column.name()) {
            if !names.insert(name) {
                return Err(Error::invalid(format!("column {name:?} is there twice")));
            }
            if name != "id" && !keys.contains(name) {
                let known = keys.join(", ");
                return Err(Error::invalid(format!(
                    "table `{}` has no field {name:?}; its columns are: id, {known}",
                    table.name
                )));
            }
        }
        Ok(Self {
            id: named("id"),
            columns: keys.iter().map(|key| named(key)).collect(),
            defaults: table.fields.iter().map(Field::default_value).collect(),
            table: table.clone(),
            before: 0,
        })
    }

    /// Inserts the rows of the next batch; returns how many there were.
    ///
    /// # Errors
    /// `Invalid`: a value doesn't fit its field. The message names the field and the row, by its number among all rows
    /// of all batches, from 0. Those of the sink.
    pub fn insert(&mut self, batch: &RecordBatch, sink: &mut impl Sink) -> Result<u64> {
        let id = self.id.map(|at| self.read(batch, at, "id")).transpose()?;
        let columns = self.table.fields.iter().zip(&self.columns);
        let columns = columns
            .map(|(field, at)| at.map(|at| self.read(batch, at, &field.name)).transpose())
            .collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let given = match id.as_ref().map(|read| read(row)) {
                None | Some(Wide::Null) => None,
                Some(wide) => {
                    let id = value(Type::Reference(self.table.number, Default::default()), wide);
                    let Some(ValueRef::Reference(id)) = id else {
                        return Err(self.misfit(row, "id", wide, "the id of a row"));
                    };
                    Some(id)
                }
            };
            let mut values = Vec::with_capacity(columns.len());
            for (place, (field, read)) in self.table.fields.iter().zip(&columns).enumerate() {
                values.push(match read {
                    None => self.defaults.get(place).map_or(ValueRef::Null, Value::as_ref),
                    Some(read) => self.value(row, field, read(row), sink)?,
                });
            }
            let inserted = sink.insert(given, &values);
            inserted.map_err(|error| error.within(self.row(row)))?;
        }
        drop((id, columns));
        self.before += batch.num_rows() as u64;
        Ok(batch.num_rows() as u64)
    }

    /// Returns what messages call a row of the batch.
    fn row(&self, row: usize) -> String {
        format!("row {} (counted from 0)", self.before + row as u64)
    }

    fn value<'v>(
        &self,
        row: usize,
        field: &Field,
        wide: Wide<'v>,
        sink: &mut impl Sink,
    ) -> Result<ValueRef<'v>> {
        match value(field.ty, wide) {
            Some(ValueRef::Bytes(bytes)) if field.ty == Type::Blob => {
                sink.write_blob(bytes).map(ValueRef::Blob)
            }
            Some(value) => Ok(value),
            None => {
                let what = format!("a value of type {}", field.ty);
                Err(self.misfit(row, &field.name, wide, &what))
            }
        }
    }

    fn read<'b>(&self, batch: &'b RecordBatch, at: usize, name: &str) -> Result<Read<'b>> {
        let Some(array) = batch.columns().get(at) else {
            return Err(Error::invalid("the batch has fewer columns than its stream says"));
        };
        reader(array.as_ref()).ok_or_else(|| {
            let (table, ty) = (&self.table.name, array.data_type());
            no_field(format_args!("table `{table}`, field `{name}`"), ty)
        })
    }

    fn misfit(&self, row: usize, name: &str, wide: Wide<'_>, what: &str) -> Error {
        let (table, row) = (&self.table.name, self.row(row));
        Error::invalid(format!("{row}: table `{table}`, field `{name}`: {wide} isn't {what}"))
    }
}

/// True if the values of a column of batches are ids of rows, and ascend.
///
/// # Errors
/// Those of the batches.
pub fn are_ids(batches: Batches, at: usize) -> Result<bool> {
    let mut last = None;
    for batch in batches {
        let batch = batch.map_err(from_arrow)?;
        let read = batch.columns().get(at).and_then(|array| reader(array.as_ref()));
        let Some(read) = read else { return Ok(false) };
        for row in 0..batch.num_rows() {
            let Wide::Integer(id) = read(row) else { return Ok(false) };
            if last.is_some_and(|last| last >= id) || id < 0 || id > RowId::MAX.0.into() {
                return Ok(false);
            }
            last = Some(id);
        }
    }
    Ok(true)
}
