//! The store against a plain model, on random histories.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use annals::model::OnDelete;
use annals::store::{Store, Uniqueness};
use annals::{
    Command, ErrorKind, FieldNumber, Index, IndexNumber, RowId, Schema, TableNumber, Type, Value,
    ValueRef, View,
};

use crate::locales::{collations, value_cmp};

/// A small generator of random numbers (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[usize::try_from(self.below(items.len() as u64)).unwrap()]
    }
    pub(crate) fn small(&mut self) -> i8 {
        i8::try_from(self.below(7)).unwrap() - 3
    }

    pub(crate) fn string(&mut self) -> String {
        let len = match self.below(40) {
            0 => 20_000,
            1 => 3000,
            2..=8 => 13 + self.below(80),
            _ => self.below(13),
        };
        (0..len).map(|_| *self.pick(&['a', 'b', '\0', 'é', 'A'])).collect()
    }

    pub(crate) fn value(&mut self, ty: Type, nullable: bool) -> Value {
        if nullable && self.chance(20) {
            return Value::Null;
        }
        let small = self.small();
        let natural = small.unsigned_abs();
        match ty {
            Type::Int64 => Value::Int64(i64::from(small) << 50),
            Type::UInt64 => Value::UInt64(self.below(1 << 60)),
            Type::Float32 => Value::Float32(*self.pick(&[-0.0, 0.0, 1.5, -7.0, f32::NAN])),
            Type::Float64 => Value::Float64(*self.pick(&[-0.0, 0.0, 1e300, -1e-300, f64::NAN])),
            Type::String => Value::String(self.string()),
            Type::Bytes => Value::Bytes(self.string().into_bytes()),
            Type::Blob => Value::Null,
            Type::Reference(..) => Value::Reference(RowId(u64::from(natural))),
            ty => ty.sample(i64::from(small) * 77),
        }
    }
}

#[derive(Clone, Default)]
struct Model {
    schema: Schema,
    tables: Vec<ModelTable>,
}

#[derive(Clone, Default)]
struct ModelTable {
    rows: BTreeMap<u64, Vec<Value>>,
    next_id: u64,
}

/// Compares a value of a field of an index, by its place, with another.
fn field_cmp(index: &Index, at: usize, a: &Value, b: &Value) -> Ordering {
    let collated = index.collation(index.fields[at]);
    value_cmp(collated.map(|collated| collated.locale.as_str()), a, b)
}

fn key_cmp(index: &Index, a: &[Value], b: &[Value]) -> Ordering {
    let pairs = a.iter().zip(b).enumerate().map(|(at, (a, b))| field_cmp(index, at, a, b));
    pairs.fold(Ordering::Equal, Ordering::then)
}

impl Model {
    fn key(&self, index: usize, row: &[Value]) -> Vec<Value> {
        let fields = &self.schema.indexes()[index].fields;
        fields.iter().map(|f| row[f.0 as usize].clone()).collect()
    }

    /// True if another row has one of the unique keys of this one.
    fn conflicts(&self, table: usize, id: u64, row: &[Value]) -> bool {
        let indexes = 0..self.schema.indexes().len();
        indexes.into_iter().any(|number| self.conflicts_in(number, table, id, row))
    }

    fn conflicts_in(&self, number: usize, table: usize, id: u64, row: &[Value]) -> bool {
        let index = &self.schema.indexes()[number];
        self.key_if_unique(number, table, row).is_some_and(|key| {
            self.tables[table].rows.iter().any(|(&other, row)| {
                other != id && key_cmp(index, &key, &self.key(number, row)) == Ordering::Equal
            })
        })
    }

    fn key_if_unique(&self, number: usize, table: usize, row: &[Value]) -> Option<Vec<Value>> {
        let index = &self.schema.indexes()[number];
        let key =
            (index.unique && index.table.0 as usize == table).then(|| self.key(number, row))?;
        key.iter().all(|value| !matches!(value, Value::Null)).then_some(key)
    }

    fn is_consistent(&self) -> bool {
        let mut tables = self.tables.iter().enumerate();
        tables.all(|(t, table)| table.rows.iter().all(|(&id, row)| !self.conflicts(t, id, row)))
    }

    fn sorted(&self, index: usize) -> Vec<(Vec<Value>, u64)> {
        let table = self.schema.indexes()[index].table.0 as usize;
        let rows = self.tables[table].rows.iter();
        let mut entries: Vec<_> = rows.map(|(&id, row)| (self.key(index, row), id)).collect();
        let index = &*self.schema.indexes()[index];
        let order = |a: &[Value], b: &[Value]| {
            let pairs = a.iter().zip(b).enumerate().map(|(at, (a, b))| {
                let order = field_cmp(index, at, a, b);
                if index.descending.contains(&index.fields[at]) { order.reverse() } else { order }
            });
            pairs.fold(Ordering::Equal, Ordering::then)
        };
        entries.sort_by(|a, b| order(&a.0, &b.0).then(a.1.cmp(&b.1)));
        entries
    }
}

pub(crate) fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// Compares all rows and indexes of a view with the model.
fn compare(view: &View, model: &Model, random: &mut Random) {
    view.check().unwrap();
    assert_eq!(**view.schema(), model.schema);
    for (number, expected) in model.tables.iter().enumerate() {
        let table = view.table(TableNumber(u32::try_from(number).unwrap())).unwrap();
        assert_eq!(table.len(), expected.rows.len() as u64);
        assert_eq!(table.next_id(), expected.next_id);
        let fields = table.schema().fields.len();
        let read = |row: annals::Row<'_>| {
            let field = |f| row.value(FieldNumber(u32::try_from(f).unwrap())).to_value();
            (row.id().0, (0..fields).map(field).collect::<Vec<_>>())
        };
        let rows = expected.rows.iter().map(|(&id, row)| (id, row.clone()));
        assert!(table.rows().map(|row| read(row.unwrap())).eq(rows.clone()));
        assert!(table.rows().rev().map(|row| read(row.unwrap())).eq(rows.rev()));
        let mut both = table.rows();
        let mut count = 0;
        while let Some(row) = if random.chance(50) { both.next() } else { both.next_back() } {
            count += usize::from(expected.rows.contains_key(&row.unwrap().id().0));
        }
        assert_eq!(count, expected.rows.len());
        for id in (0..20).map(|_| random.below(3000)) {
            assert_eq!(table.find(RowId(id)).unwrap().is_some(), expected.rows.contains_key(&id));
        }
    }
    (0..model.schema.indexes().len()).for_each(|index| compare_index(view, model, index, random));
}

fn ids<'a>(rows: impl Iterator<Item = annals::Result<annals::Row<'a>>>) -> Vec<u64> {
    rows.map(|row| row.unwrap().id().0).collect()
}

fn compare_index(view: &View, model: &Model, number: usize, random: &mut Random) {
    let index = view.index(IndexNumber(u32::try_from(number).unwrap())).unwrap();
    let sorted = model.sorted(number);
    let schema = &model.schema.indexes()[number];
    let fields = &model.schema.tables()[schema.table.0 as usize].fields;
    let matching = |test: &dyn Fn(&[Value]) -> bool| -> Vec<u64> {
        sorted.iter().filter(|(key, _)| test(key)).map(|&(_, id)| id).collect()
    };
    assert_eq!(ids(index.rows()), matching(&|_| true));
    let backwards: Vec<_> = matching(&|_| true).into_iter().rev().collect();
    assert_eq!(ids(index.rows().rev()), backwards);
    for _ in 0..6 {
        let depth = usize::try_from(random.below(schema.fields.len() as u64)).unwrap();
        let field = |at: usize| &fields[schema.fields[at].0 as usize];
        let leading: Vec<_> = if random.chance(60) && !sorted.is_empty() {
            random.pick(&sorted).0[..depth].to_vec()
        } else {
            (0..depth).map(|at| random.value(field(at).ty, field(at).nullable)).collect()
        };
        let under = |key: &[Value]| key_cmp(schema, &leading, key) == Ordering::Equal;
        assert_eq!(ids(index.equal(&refs(&leading))), matching(&under));
        let next = field(depth);
        let (a, b) = (random.value(next.ty, next.nullable), random.value(next.ty, next.nullable));
        let bound = |value: &Value, kind: u64| match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(value.clone()),
            _ => Bound::Excluded(value.clone()),
        };
        let (low, high) = (bound(&a, random.below(3)), bound(&b, random.below(3)));
        let inside = |key: &[Value]| {
            let value = &key[depth];
            let cmp = |bound| field_cmp(schema, depth, value, bound);
            let asked = [&low, &high].contains(&&Bound::Included(Value::Null));
            let above = match &low {
                Bound::Unbounded => true,
                Bound::Included(low) => cmp(low).is_ge(),
                Bound::Excluded(low) => cmp(low).is_gt(),
            };
            above
                && (asked || !matches!(value, Value::Null))
                && match &high {
                    Bound::Unbounded => true,
                    Bound::Included(high) => cmp(high).is_le(),
                    Bound::Excluded(high) => cmp(high).is_lt(),
                }
        };
        let expected = matching(&|key| under(key) && inside(key));
        let rows = || {
            let leading = refs(&leading);
            index.range(&leading, low.as_ref().map(Value::as_ref), high.as_ref().map(Value::as_ref))
        };
        assert_eq!(ids(rows()), expected, "{low:?} {high:?}");
        assert_eq!(ids(rows().rev()), expected.into_iter().rev().collect::<Vec<_>>());
        if next.ty.is_variable() && schema.collation(next.number).is_none() {
            let prefix = *random.pick(&["", "a", "ab", "é", "\0", "b\0"]);
            let begins = |key: &[Value]| match &key[depth] {
                Value::String(text) => text.starts_with(prefix),
                Value::Bytes(bytes) => bytes.starts_with(prefix.as_bytes()),
                _ => false,
            };
            let found = ids(index.prefix(&refs(&leading), prefix.as_bytes()));
            assert_eq!(found, matching(&|key| under(key) && begins(key)), "{prefix:?}");
        } else {
            let error = index.prefix(&refs(&leading), b"a").next().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }
}

struct History {
    random: Random,
    store: Store,
    model: Model,
    published: Model,
    kept: Vec<(Arc<View>, Model)>,
}

const TYPES: [Type; 15] = [
    Type::Bool,
    Type::Int8,
    Type::Int16,
    Type::Int32,
    Type::Int64,
    Type::UInt8,
    Type::UInt16,
    Type::UInt32,
    Type::UInt64,
    Type::Float32,
    Type::Float64,
    Type::String,
    Type::Bytes,
    Type::Timestamp,
    Type::Reference(TableNumber(0), OnDelete::Dangle),
];

impl History {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            store: Store::new(),
            model: Model::default(),
            published: Model::default(),
            kept: Vec::new(),
        }
    }

    fn command(&mut self, command: &Command) {
        let rows_agree = match command {
            Command::CreateIndex { table, .. } => {
                let mut with = self.model.clone();
                with.schema.apply(command.clone()).unwrap();
                let number = table.0 as usize;
                let new = with.schema.indexes().len() - 1;
                let mut rows = with.tables[number].rows.iter();
                rows.all(|(&id, row)| !with.conflicts_in(new, number, id, row))
            }
            _ => true,
        };
        let result = self.store.apply_command(command);
        if let (Err(error), false) = (&result, rows_agree) {
            assert_eq!(error.kind(), ErrorKind::Unique);
            return;
        }
        result.unwrap();
        self.model.schema.apply(command.clone()).unwrap();
        match command {
            Command::CreateTable { .. } => self.model.tables.push(ModelTable::default()),
            Command::AddField { table, .. } => {
                let field = self.model.schema.table(*table).unwrap().fields.last().unwrap();
                let rows = self.model.tables[table.0 as usize].rows.values_mut();
                rows.for_each(|row| row.push(field.default_value()));
            }
            Command::CreateIndex { .. } => assert!(rows_agree),
            _ => unreachable!("no other is drawn"),
        }
    }

    fn random_command(&mut self) {
        let random = &mut self.random;
        let tables = self.model.schema.tables();
        let name = format!("n{}", random.below(1 << 40));
        let command = if tables.is_empty() || (tables.len() < 3 && random.chance(20)) {
            Command::CreateTable { name }
        } else {
            let owner = random.pick(tables);
            let table = owner.number;
            if owner.fields.len() < 2 || (owner.fields.len() < 9 && random.chance(60)) {
                let (ty, nullable) = (*random.pick(&TYPES), random.chance(40));
                let default = random.chance(60).then(|| random.value(ty, nullable));
                Command::AddField { table, name, ty, nullable, default }
            } else {
                let mut fields = Vec::new();
                for _ in 0..=random.below(2) {
                    let field = random.pick(&owner.fields).number;
                    if !fields.contains(&field) {
                        fields.push(field);
                    }
                }
                let descending = fields.iter().copied().filter(|_| random.chance(40)).collect();
                let is_string =
                    |field| owner.field(field).is_some_and(|field| field.ty == Type::String);
                let collated = collations(random, &fields, is_string);
                let unique = random.chance(25);
                Command::CreateIndex { name, table, fields, descending, collated, unique }
            }
        };
        if self.model.schema.indexes().len() < 6 || !matches!(command, Command::CreateIndex { .. })
        {
            self.command(&command);
        }
    }

    fn insert(&mut self, table: usize, id: u64) {
        let fields = &self.model.schema.tables()[table].fields;
        let random = &mut self.random;
        let row: Vec<_> = fields.iter().map(|f| random.value(f.ty, f.nullable)).collect();
        let number = TableNumber(u32::try_from(table).unwrap());
        let uniqueness = if random.chance(80) { Uniqueness::AtOnce } else { Uniqueness::AtCommit };
        let result = self.store.insert(number, RowId(id), &refs(&row), uniqueness);
        if self.model.tables[table].rows.contains_key(&id) {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InUse);
        } else if uniqueness == Uniqueness::AtOnce && self.model.conflicts(table, id, &row) {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Unique);
        } else {
            result.unwrap();
            let table = &mut self.model.tables[table];
            table.rows.insert(id, row);
            table.next_id = table.next_id.max(id + 1);
        }
    }

    fn delete(&mut self, table: usize, id: u64) {
        let number = TableNumber(u32::try_from(table).unwrap());
        let result = self.store.delete(number, RowId(id));
        match self.model.tables[table].rows.remove(&id) {
            Some(_) => result.unwrap(),
            None => assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound),
        }
    }

    fn update(&mut self, table: usize, id: u64) {
        let fields = &self.model.schema.tables()[table].fields;
        if fields.is_empty() {
            return;
        }
        let field = self.random.pick(fields);
        let value = self.random.value(field.ty, field.nullable);
        let number = TableNumber(u32::try_from(table).unwrap());
        let result = self.store.update(number, RowId(id), field.number, value.as_ref());
        match self.model.tables[table].rows.get_mut(&id) {
            Some(row) => {
                result.unwrap();
                row[field.number.0 as usize] = value;
            }
            None => assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound),
        }
    }

    fn some_id(&mut self, table: usize) -> u64 {
        let random = &mut self.random;
        let rows = &self.model.tables[table].rows;
        let from = match random.below(4) {
            0 => random.below(1 << 61),
            _ => random.below(3000),
        };
        let near = rows.range(from..).next().or_else(|| rows.iter().next_back());
        near.map_or(from, |(&id, _)| id)
    }

    fn end(&mut self) {
        let unique = self.store.check_unique();
        assert_eq!(unique.is_ok(), self.model.is_consistent());
        if unique.is_ok() && self.random.chance(80) {
            let view = self.store.commit();
            self.published = self.model.clone();
            if self.random.chance(25) {
                self.kept.push((view, self.model.clone()));
            }
        } else {
            self.store.rollback();
            self.model = self.published.clone();
        }
    }

    fn step(&mut self) {
        let tables = self.model.tables.len() as u64;
        if tables == 0 || self.random.chance(1) {
            return self.random_command();
        }
        let table = usize::try_from(self.random.below(tables)).unwrap();
        let next = self.model.tables[table].next_id;
        match self.random.below(100) {
            0..12 => self.insert(table, next),
            12..14 => (0..self.random.below(200)).for_each(|i| self.insert(table, next + i)),
            14..24 => {
                let id = self.random.below(3000);
                self.insert(table, id);
            }
            24..26 => {
                let from = self.random.below(2000);
                (0..400).for_each(|i| self.insert(table, from + i * 7 % 400));
            }
            26..29 => {
                let id = self.random.below(1 << 60);
                if next < 1 << 61 && self.random.chance(30) {
                    self.insert(table, id);
                }
            }
            29..70 => {
                let id = self.some_id(table);
                self.update(table, id);
            }
            70..88 => {
                let id = self.some_id(table);
                self.delete(table, id);
            }
            88..90 => {
                let from = self.some_id(table);
                let ids: Vec<_> = self.model.tables[table].rows.range(from..).take(300).collect();
                let ids: Vec<_> = ids.into_iter().map(|(&id, _)| id).collect();
                ids.into_iter().for_each(|id| self.delete(table, id));
            }
            _ => self.end(),
        }
    }

    fn run(mut self, steps: usize) {
        (0..12).for_each(|_| self.random_command());
        for step in 0..steps {
            self.step();
            if step % 200 == 199 && self.model.is_consistent() {
                compare(self.store.view(), &self.model, &mut self.random);
            }
        }
        for (view, model) in &self.kept {
            compare(view, model, &mut self.random);
        }
    }
}

#[test]
fn random_histories_agree_with_the_model() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in 1..=if full { 100 } else { 12 } {
        println!("seed {seed}");
        History::new(seed).run(if full { 3000 } else { 800 });
    }
}
