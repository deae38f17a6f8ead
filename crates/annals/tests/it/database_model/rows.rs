//! Random changes of rows, one by one and by vectors.

use annals::event::Vector;
use annals::store::Values;
use annals::{ErrorKind, Field, FieldNumber, RowId, Timestamp, Type, Value, ValueRef};

use super::{Step, agree};
use crate::store_model::refs;

/// A run of values in the types that a program would have.
enum Typed {
    Int64(Vec<i64>),
    Time(Vec<Timestamp>),
    Bools(Vec<bool>),
    Ids(Vec<RowId>),
    Maybe(Vec<Option<RowId>>),
    Strings(Vec<String>),
    Any(Vec<Value>),
}

impl Step<'_, '_> {
    pub(super) fn value(&mut self, field: &Field) -> Value {
        match field.ty {
            Type::Reference(..) if !field.nullable || self.random.chance(70) => {
                Value::Reference(RowId(self.random.below(12)))
            }
            Type::Reference(..) => Value::Null,
            ty => self.random.value(ty, field.nullable),
        }
    }

    /// Draws an id: mostly small, so that ids meet.
    fn id(&mut self, table: u32) -> u64 {
        let next = self.model.tables[&table].next_id;
        match self.random.below(20) {
            0..8 => self.random.below(next + 1),
            8 => self.random.below(6000),
            _ => self.random.below(12),
        }
    }

    fn count(&mut self) -> u64 {
        match self.random.below(30) {
            0 => 1500 + self.random.below(1500),
            1..4 => self.random.below(150),
            _ => self.random.below(6),
        }
    }

    pub(super) fn insert(&mut self, table: u32) {
        let fields = self.model.fields(table);
        let values: Vec<_> = fields.iter().map(|field| self.value(field)).collect();
        let next = self.model.tables[&table].next_id;
        let id = if self.random.chance(60) { next } else { self.id(table) };
        let mut expected = self.model.free(table, id, 1);
        if expected.is_ok() {
            let mut with = self.model.clone();
            let doubled = with.doubled_by(table, id, &values);
            expected = if doubled { Err(ErrorKind::Unique) } else { Ok(()) };
        }
        if id == next {
            agree(self.tx.insert(Self::number(table), &refs(&values)), expected);
        } else {
            agree(self.tx.insert_at(Self::number(table), RowId(id), &refs(&values)), expected);
        }
        if expected.is_ok() {
            self.model.insert(table, id, values);
        }
    }

    pub(super) fn insert_vector(&mut self, table: u32) {
        let (count, next) = (self.count(), self.model.tables[&table].next_id);
        let id = if self.random.chance(50) { next } else { self.id(table) };
        let expected = self.model.free(table, id, count);
        if id == next {
            agree(self.tx.insert_vector(Self::number(table), count), expected);
        } else {
            agree(self.tx.insert_vector_at(Self::number(table), RowId(id), count), expected);
        }
        if expected.is_ok() {
            self.model.insert_zeros(table, id, count);
        }
    }

    /// Inserts whole rows by vectors, of which one may be of another length.
    pub(super) fn insert_rows(&mut self, table: u32) {
        let fields = self.model.fields(table);
        let (count, id) = (self.count(), self.id(table));
        let mut columns: Vec<_> = fields.iter().map(|field| self.column(field, count)).collect();
        let zero = usize::try_from(self.random.below(8)).unwrap();
        if let (Some(column), Some(field)) = (columns.get_mut(zero), fields.get(zero)) {
            column.iter_mut().for_each(|value| *value = field.zero_value());
        }
        let uneven = self.random.chance(5) && fields.len() > 1;
        if uneven {
            columns[0].push(fields[0].zero_value());
        }
        let expected = if uneven {
            Err(ErrorKind::Invalid)
        } else {
            self.model.free(table, id, if fields.is_empty() { 0 } else { count })
        };
        let typed: Vec<_> =
            fields.iter().zip(&columns).map(|(field, values)| typed(field, values)).collect();
        let pointers: Vec<_> = typed.iter().map(pointers).collect();
        let given: Vec<_> = typed.iter().zip(&pointers).map(|(t, p)| values(t, p)).collect();
        agree(self.tx.insert_rows_at(Self::number(table), RowId(id), &given), expected);
        if expected.is_ok() && !fields.is_empty() {
            for row in 0..usize::try_from(count).unwrap() {
                let row_values = columns.iter().map(|column| column[row].clone()).collect();
                self.model.insert(table, id + row as u64, row_values);
            }
        }
    }

    fn column(&mut self, field: &Field, count: u64) -> Vec<Value> {
        let one = self.random.chance(20).then(|| self.value(field));
        (0..count).map(|_| one.clone().unwrap_or_else(|| self.value(field))).collect()
    }

    pub(super) fn update(&mut self, table: u32) {
        let fields = self.model.fields(table);
        if fields.is_empty() {
            return;
        }
        let field = self.random.pick(&fields).clone();
        let (value, id) = (self.value(&field), self.id(table));
        let expected = self.model.there(table, id, 1);
        let number = Self::number(table);
        agree(self.tx.update(number, RowId(id), field.number, value.as_ref()), expected);
        if expected.is_ok() {
            self.model.set(table, id, field.number, value);
        }
    }

    pub(super) fn update_vector(&mut self, table: u32) {
        let fields = self.model.fields(table);
        if fields.is_empty() {
            return;
        }
        let field = self.random.pick(&fields).clone();
        let (count, id) = (self.count(), self.id(table));
        let mut column = self.column(&field, count);
        let mut expected = self.model.there(table, id, count);
        if count > 0 && self.random.chance(5) {
            let bad = usize::try_from(self.random.below(count)).unwrap();
            column[bad] = if field.ty == Type::Int8 { Value::UInt8(1) } else { Value::Int8(1) };
            expected = Err(ErrorKind::Invalid);
        }
        self.set_vector(table, id, &field, &column, expected);
        if expected.is_ok() {
            (id..).zip(column).for_each(|(id, v)| self.model.set(table, id, field.number, v));
        }
    }

    fn set_vector(
        &mut self,
        table: u32,
        id: u64,
        field: &Field,
        column: &[Value],
        expected: Result<(), ErrorKind>,
    ) {
        let (number, id) = (Self::number(table), RowId(id));
        let plain = refs(column);
        if self.random.chance(30) || expected == Err(ErrorKind::Invalid) {
            let vector = Vector::Values(&plain);
            agree(self.tx.update_vector(number, id, field.number, vector), expected);
            return;
        }
        let typed = typed(field, column);
        let pointers = pointers(&typed);
        let given = values(&typed, &pointers);
        agree(self.tx.update_vector(number, id, field.number, given), expected);
        self.read_back(number, id, field.number, column, expected.is_ok());
    }

    fn read_back(
        &self,
        table: annals::TableNumber,
        id: RowId,
        field: FieldNumber,
        column: &[Value],
        there: bool,
    ) {
        let view = self.tx.view().table(table).unwrap();
        let read = view.vector(field, id, column.len() as u64);
        assert_eq!(read.is_ok(), there);
        let Ok(read) = read else { return };
        assert!(read.values().map(|value| value.unwrap().into_value()).eq(column.iter().cloned()));
        if let [Value::Int64(_), ..] = column {
            let numbers: Vec<_> = column.iter().map(as_int64).collect();
            match numbers.iter().copied().collect::<Option<Vec<_>>>() {
                Some(numbers) => assert_eq!(read.to_vec::<i64>().unwrap(), numbers),
                None => assert_eq!(read.to_vec::<i64>().unwrap_err().kind(), ErrorKind::Invalid),
            }
        }
    }

    pub(super) fn delete(&mut self, table: u32) {
        let id = self.id(table);
        let expected = self.model.delete(table, id, 1);
        agree(self.tx.delete(Self::number(table), RowId(id)), expected);
    }

    pub(super) fn delete_vector(&mut self, table: u32) {
        let id = self.id(table);
        let rows = self.model.rows(table).range(id..).zip(id..);
        let run = rows.take_while(|((found, _), id)| **found == *id).count() as u64;
        let count = if self.random.chance(80) { self.random.below(run + 1) } else { self.count() };
        let expected = self.model.delete_all(table, id, count);
        agree(self.tx.delete_vector(Self::number(table), RowId(id), count), expected);
    }
}

fn as_int64(value: &Value) -> Option<i64> {
    if let Value::Int64(v) = value { Some(*v) } else { None }
}

/// Turns values into slices of a program's types, where there is one for all of them.
fn typed(field: &Field, values: &[Value]) -> Typed {
    let all = |f: &dyn Fn(&Value) -> bool| values.iter().all(f);
    let id = |value: &Value| if let Value::Reference(id) = value { Some(*id) } else { None };
    match field.ty {
        Type::Int64 if all(&|v| as_int64(v).is_some()) => {
            Typed::Int64(values.iter().filter_map(as_int64).collect())
        }
        Type::Timestamp if all(&|v| matches!(v, Value::Timestamp(_))) => {
            let time =
                |v: &Value| if let Value::Timestamp(t) = v { Timestamp(*t) } else { Timestamp(0) };
            Typed::Time(values.iter().map(time).collect())
        }
        Type::Bool if all(&|v| matches!(v, Value::Bool(_))) => {
            Typed::Bools(values.iter().map(|v| matches!(v, Value::Bool(true))).collect())
        }
        Type::Reference(..) if all(&|v| id(v).is_some()) => {
            Typed::Ids(values.iter().filter_map(id).collect())
        }
        Type::Reference(..) => Typed::Maybe(values.iter().map(id).collect()),
        Type::String if all(&|v| matches!(v, Value::String(_))) => {
            let text = |v: &Value| if let Value::String(s) = v { s.clone() } else { String::new() };
            Typed::Strings(values.iter().map(text).collect())
        }
        _ => Typed::Any(values.to_vec()),
    }
}

fn pointers(typed: &Typed) -> Vec<ValueRef<'_>> {
    if let Typed::Any(values) = typed { refs(values) } else { Vec::new() }
}

fn values<'a>(typed: &'a Typed, any: &'a [ValueRef<'a>]) -> Values<'a> {
    match typed {
        Typed::Int64(v) => v.as_slice().into(),
        Typed::Time(v) => v.as_slice().into(),
        Typed::Bools(v) => v.as_slice().into(),
        Typed::Ids(v) => v.as_slice().into(),
        Typed::Maybe(v) => v.as_slice().into(),
        Typed::Strings(v) => Values::strings(v),
        Typed::Any(_) => Vector::Values(any).into(),
    }
}
