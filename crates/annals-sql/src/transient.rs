//! Indexes of columns without one, which a statement makes for itself.
//!
//! SQLite makes such indexes for its own tables, but not for virtual ones: a join without an index would walk over all
//! rows of one table for each row of the other. The first search for values of some columns walks over the table, as if
//! nothing was known of it. The second one makes the index: one search isn't worth it.
//!
//! An index has the hash of the values of each row, and its id. So a search finds all rows that have the values, and
//! perhaps others: SQLite checks the conditions again. It is kept up to the end of the statement.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use annals::model::{WideValue, Written};
use annals::{FieldNumber, RowId, Snapshot, TableNumber, Txid, ValueRef};

use crate::host::Fault;
use crate::shape::Shape;

/// How many indexes are kept at most.
const KEPT: usize = 8;
/// How often a table that is too large for an index is walked over.
pub(crate) const WALKS: u32 = 16;
/// The bytes of an entry.
pub(crate) const ENTRY: usize = size_of::<Entry>();

type Entry = (u64, RowId);

/// The ids of rows by the hashes of their values, in the order of both.
#[derive(Debug)]
pub(crate) struct Hashed(Vec<Entry>);

impl Hashed {
    /// Makes the index of some columns.
    fn of(snapshot: &Snapshot, table: TableNumber, fields: &[FieldNumber]) -> Result<Self, Fault> {
        let table = snapshot.table(table)?;
        let mut all = Vec::with_capacity(usize::try_from(table.len()).unwrap_or(0));
        for row in table.rows() {
            let row = row?;
            all.push((hash(&mut fields.iter().map(|&field| row.value(field))), row.id()));
        }
        all.sort_unstable();
        Ok(Self(all))
    }

    /// Returns the places of the rows that may have some values.
    fn places(&self, values: &[ValueRef<'_>]) -> Range<usize> {
        let hash = hash(&mut values.iter().copied());
        let first = self.0.partition_point(|(it, _)| *it < hash);
        let count = self.0.get(first..).map_or(0, |rest| rest.partition_point(|it| it.0 == hash));
        first..first + count
    }

    /// Returns the row at a place.
    pub(crate) fn id(&self, place: usize) -> Option<RowId> {
        self.0.get(place).map(|(_, id)| *id)
    }
}

/// Returns a hash that is the same for values that SQL takes for the same.
fn hash(values: &mut dyn Iterator<Item = ValueRef<'_>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let float = |value: f64, hasher: &mut DefaultHasher| {
        let bits = match value {
            _ if value.is_nan() => f64::NAN.to_bits(),
            _ if value == 0.0 => 0,
            _ => value.to_bits(),
        };
        bits.hash(hasher);
    };
    for value in values {
        match value.widen() {
            WideValue::Null => {}
            WideValue::Bool(value) => value.hash(&mut hasher),
            WideValue::Integer(value) => value.hash(&mut hasher),
            WideValue::Float32(value) => float(value.into(), &mut hasher),
            WideValue::Float64(value) => float(value, &mut hasher),
            WideValue::String(value) => value.hash(&mut hasher),
            WideValue::Bytes(value) => value.hash(&mut hasher),
            WideValue::Timestamp(value) => value.hash(&mut hasher),
            WideValue::Written(Written::Date(value)) => value.hash(&mut hasher),
            WideValue::Written(Written::Uuid(value)) => value.hash(&mut hasher),
            WideValue::Written(Written::Decimal(value)) => value.units().hash(&mut hasher),
            WideValue::Written(Written::Enum(value)) => value.number().hash(&mut hasher),
            WideValue::Blob(value) => value.0.hash(&mut hasher),
            WideValue::Reference(value) => value.0.hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// What an index is made of.
#[derive(Clone, Debug, PartialEq)]
struct Of {
    table: TableNumber,
    /// The state of the database.
    txid: Txid,
    fields: Vec<FieldNumber>,
}

/// The searches for values of some columns.
#[derive(Debug)]
struct Searched {
    of: Of,
    times: u32,
    hashed: Option<Arc<Hashed>>,
}

/// The indexes that a statement has made.
#[derive(Debug, Default)]
pub(crate) struct Transients(Vec<Searched>);

/// The rows of a search: those at some places of an index.
pub(crate) type Places = (Arc<Hashed>, Range<usize>);

impl Transients {
    /// Searches for the rows that may have some values in columns; `None`: any row may. All indexes together take at
    /// most so many bytes.
    ///
    /// # Errors
    /// The index is needed, but too large.
    pub(crate) fn find(
        &mut self,
        snapshot: &Snapshot,
        shape: &Shape,
        columns: &[usize],
        values: &[ValueRef<'_>],
        most: usize,
    ) -> Result<Option<Places>, Fault> {
        let columns: Vec<_> = columns.iter().filter_map(|&it| shape.column(it)).collect();
        let fields = columns.iter().map(|column| column.field).collect();
        let of = Of { table: shape.table, txid: snapshot.txid(), fields };
        let place = match self.0.iter().position(|it| it.of == of) {
            Some(place) => place,
            None => {
                if self.0.len() == KEPT {
                    self.0.remove(0);
                }
                self.0.push(Searched { of, times: 0, hashed: None });
                self.0.len() - 1
            }
        };
        let taken: usize =
            self.0.iter().filter_map(|it| it.hashed.as_ref()).map(|it| it.0.len()).sum();
        let Some(searched) = self.0.get_mut(place) else { return Ok(None) };
        searched.times = searched.times.saturating_add(1);
        if searched.times == 1 {
            return Ok(None);
        }
        if searched.hashed.is_none() {
            let rows = snapshot.table(shape.table)?.len();
            let fits = usize::try_from(rows)
                .is_ok_and(|rows| (rows + taken).saturating_mul(ENTRY) <= most);
            if !fits && searched.times <= WALKS {
                return Ok(None);
            }
            if !fits {
                let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                return Err(too_large(shape, &names, rows, most));
            }
            let made = Hashed::of(snapshot, shape.table, &searched.of.fields)?;
            searched.hashed = Some(Arc::new(made));
        }
        let found = |hashed: &Arc<Hashed>| (Arc::clone(hashed), hashed.places(values));
        Ok(searched.hashed.as_ref().map(found))
    }
}

fn too_large(shape: &Shape, names: &[&str], rows: u64, most: usize) -> Fault {
    let name = &shape.schema.table(shape.table).map_or(&shape.name, |table| &table.name);
    Fault::new(format!(
        "`{name}` is searched by {} for each row of another table, without an index, and one for this statement would \
         take more than the {most} bytes of memory that it may: `{name}` has {rows} rows. Create an index: \
         create_index {name}_by_{} {name} {}",
        names.join(" and "),
        names.join("_"),
        names.join(",")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Tables;

    #[test]
    fn an_index_is_made_at_the_second_search_and_has_a_bound() {
        let db = annals::Database::in_memory().unwrap();
        let mut tx = db.begin().unwrap();
        let (table, field) = (TableNumber(0), "x".to_owned());
        tx.apply_command(&annals::Command::CreateTable { name: "t".to_owned() }).unwrap();
        let (ty, nullable) = (annals::Type::Int64, true);
        let add = annals::Command::AddField { table, name: field, ty, nullable, default: None };
        tx.apply_command(&add).unwrap();
        for number in 0..10 {
            tx.insert(table, &[ValueRef::Int64(number % 3)]).unwrap();
        }
        tx.commit().unwrap();
        let now = db.read();
        let tables = Tables::of(now.schema(), "");
        let shape = &tables.shapes[0];
        let mut transients = Transients::default();
        let find = |transients: &mut Transients, most: usize| {
            transients.find(&now, shape, &[1], &[ValueRef::Int64(1)], most)
        };
        assert!(find(&mut transients, 10 * ENTRY).unwrap().is_none(), "the first search");
        let (hashed, places) = find(&mut transients, 10 * ENTRY).unwrap().unwrap();
        let ids: Vec<_> = places.filter_map(|place| hashed.id(place)).map(|id| id.0).collect();
        assert_eq!(ids, [1, 4, 7]);

        let mut transients = Transients::default();
        for _ in 0..WALKS {
            assert!(find(&mut transients, 9 * ENTRY).unwrap().is_none());
        }
        let fault = find(&mut transients, 9 * ENTRY).unwrap_err();
        assert!(fault.message.ends_with("Create an index: create_index t_by_x t x"), "{fault:?}");
    }

    #[test]
    fn values_that_sql_takes_for_the_same_have_one_hash() {
        let hash = |value| hash(&mut std::iter::once(value));
        assert_eq!(hash(ValueRef::Float64(0.0)), hash(ValueRef::Float64(-0.0)));
        assert_eq!(hash(ValueRef::Float32(f32::NAN)), hash(ValueRef::Float32(-f32::NAN)));
        assert_ne!(hash(ValueRef::String("a")), hash(ValueRef::String("b")));
    }
}
