//! Random statements, done to a transaction and to the model.

use annals::{Command, ErrorKind, FieldNumber, RowId, TableNumber, Transaction, Type, Value};

use super::draw;
use super::model::{Answer, Field, Model, zero};
use crate::store_model::{Random, refs};

/// A transaction and what it should see.
pub(super) struct Step<'a, 'db> {
    pub(super) tx: &'a mut Transaction<'db>,
    pub(super) model: &'a mut Model,
    pub(super) random: &'a mut Random,
    /// True if anything is in the journal that rolling back must take out again.
    pub(super) wrote: bool,
}

/// Compares how a statement ended with how it should have.
#[track_caller]
pub(super) fn agree<T>(result: annals::Result<T>, expected: Answer) {
    match (&result, expected) {
        (Ok(_), Ok(())) => {}
        (Err(error), Err(kind)) => assert_eq!(error.kind(), kind, "{error}"),
        (Ok(_), Err(kind)) => panic!("it went well, and should have been {kind:?}"),
        (Err(error), Ok(())) => panic!("{error:?}"),
    }
}

/// Returns the field that a command has just added, if each row must have it set before the commit.
pub(super) fn unset(model: &Model, command: &Command) -> Option<(u32, Field)> {
    let Command::AddField { table, ty, nullable: false, default: None, .. } = command else {
        return None;
    };
    let of_model = model.table(table.0);
    let is_required = matches!(ty, Type::Reference(..)) && !ty.is_always_nullable();
    let field = of_model.fields.last().filter(|_| is_required && !of_model.rows.is_empty())?;
    Some((table.0, field.clone()))
}

impl Step<'_, '_> {
    /// Does anything.
    pub(super) fn run(&mut self) {
        if self.model.tables.len() < 2 || self.random.chance(12) {
            self.command();
        } else {
            self.statement();
        }
    }

    /// Does anything that leaves the schema alone.
    pub(super) fn statement(&mut self) {
        let tables: Vec<_> = self.model.tables.keys().copied().collect();
        if tables.is_empty() {
            return self.note();
        }
        let table = *self.random.pick(&tables);
        match self.random.below(100) {
            0..18 => self.insert(table),
            18..21 => self.insert_zero(table),
            21..26 => self.insert_vector(table),
            26..35 => self.insert_rows(table),
            35..53 => self.update(table),
            53..65 => self.update_vector(table),
            65..77 => self.delete(table),
            77..82 => self.delete_vector(table),
            82..92 => self.blob(),
            92..96 => self.missing_table(),
            _ => self.note(),
        }
    }

    fn command(&mut self) {
        let command = draw::command(self.random, self.model);
        let expected = self.model.command(&command);
        agree(self.tx.apply_command(&command), expected);
        if expected.is_ok() {
            self.fill(&command);
        }
        self.done(expected);
    }

    /// Sets a new required reference without a default in each row, as the commit wants it.
    fn fill(&mut self, command: &Command) {
        if let Some((table, field)) = unset(self.model, command) {
            self.fill_field(table, &field);
        }
    }

    /// Sets a field in each row.
    pub(super) fn fill_field(&mut self, table: u32, field: &Field) {
        let rows: Vec<_> = self.model.table(table).rows.keys().copied().collect();
        for id in rows {
            let value = self.value(field);
            let number = FieldNumber(field.number);
            agree(self.tx.update(TableNumber(table), RowId(id), number, value.as_ref()), Ok(()));
            self.model.table_mut(table).set(id, field.number, value);
        }
    }

    /// Looks at everything after a statement that failed, since nothing may have changed.
    pub(super) fn done(&mut self, ended: Answer) {
        match ended {
            Ok(()) => self.wrote = true,
            Err(_) => super::look::rows(self.tx.view(), self.model),
        }
    }

    fn note(&mut self) {
        match self.random.below(3) {
            0 => {
                let text = self.random.string();
                self.tx.comment(&text).unwrap();
                self.model.notes.push(format!("comment {text}"));
            }
            1 => {
                let seconds = self.random.next().cast_signed();
                self.tx.timestamp(seconds).unwrap();
                self.model.notes.push(format!("timestamp {seconds}"));
            }
            _ => {
                self.tx.valid_data().unwrap();
                self.model.notes.push("valid_data".to_owned());
            }
        }
        self.wrote = true;
    }

    pub(super) fn value(&mut self, field: &Field) -> Value {
        draw::value(self.random, self.model, field.ty, field.nullable)
    }

    /// Draws an id: mostly small, so that ids meet.
    pub(super) fn id(&mut self, table: u32) -> u64 {
        let next = self.model.table(table).next_id;
        match self.random.below(400) {
            0..160 => self.random.below(next.saturating_add(1)),
            160..180 => self.random.below(6000),
            180 => RowId::MAX.0 + self.random.below(2),
            181..183 => self.random.below(1 << 62),
            _ => self.random.below(12),
        }
    }

    fn insert(&mut self, table: u32) {
        let fields = self.model.table(table).fields.clone();
        let mut values: Vec<_> = fields.iter().map(|field| self.value(field)).collect();
        let next = self.model.table(table).next_id;
        let id = if self.random.chance(60) { next } else { self.id(table) };
        let mut expected = self.model.table(table).free(id, 1);
        if expected.is_ok() && self.model.is_taken(table, &values) {
            expected = Err(ErrorKind::Unique);
        }
        if expected.is_ok() && self.random.chance(3) {
            match self.random.below(values.len() as u64 + 1) {
                0 => values.push(Value::Int8(1)),
                bad => {
                    let at = usize::try_from(bad).unwrap() - 1;
                    let Field { ty, nullable, .. } = fields[at];
                    values[at] = draw::bad_value(self.random, self.model, ty, nullable);
                }
            }
            expected = Err(ErrorKind::Invalid);
        }
        let (number, row) = (TableNumber(table), refs(&values));
        if id == next && self.random.chance(90) {
            let given = self.tx.insert(number, &row);
            assert!(given.as_ref().is_ok_and(|given| given.0 == id) || expected.is_err());
            agree(given, expected);
        } else {
            agree(self.tx.insert_at(number, RowId(id), &row), expected);
        }
        if expected.is_ok() {
            self.model.table_mut(table).insert(id, values);
        }
        self.done(expected);
    }

    fn insert_zero(&mut self, table: u32) {
        let id = self.id(table);
        let expected = self.model.table(table).free(id, 1);
        agree(self.tx.insert_zero(TableNumber(table), RowId(id)), expected);
        if expected.is_ok() {
            self.model.insert_zeros(table, id, 1);
        }
        self.done(expected);
    }

    fn update(&mut self, table: u32) {
        let Some(field) = self.field(table) else { return };
        let (mut value, id) = (self.value(&field), self.id(table));
        if self.random.chance(15) {
            value = zero(field.ty, field.nullable);
        }
        let mut expected = self.model.table(table).there(id, 1);
        if expected.is_ok() && self.random.chance(4) {
            value = draw::bad_value(self.random, self.model, field.ty, field.nullable);
            expected = Err(ErrorKind::Invalid);
        }
        let number = FieldNumber(field.number);
        agree(self.tx.update(TableNumber(table), RowId(id), number, value.as_ref()), expected);
        if expected.is_ok() {
            self.model.table_mut(table).set(id, field.number, value);
        }
        self.done(expected);
    }

    /// Picks a field.
    pub(super) fn field(&mut self, table: u32) -> Option<Field> {
        let fields = &self.model.table(table).fields;
        (!fields.is_empty()).then(|| self.random.pick(fields).clone())
    }

    fn delete(&mut self, table: u32) {
        let id = self.id(table);
        let expected = self.model.delete(table, id, 1);
        agree(self.tx.delete(TableNumber(table), RowId(id)), expected);
        self.done(expected);
    }

    /// Asks for tables and fields that aren't there, or aren't there any more.
    fn missing_table(&mut self) {
        let gone = |number: &u32| !self.model.tables.contains_key(number);
        let number = (0..).find(gone).unwrap_or_default();
        let (table, not_found) = (TableNumber(number), Err(ErrorKind::NotFound));
        agree(self.tx.insert(table, &[]), not_found);
        agree(self.tx.insert_vector(table, 3), not_found);
        agree(self.tx.delete(table, RowId(0)), not_found);
        agree(self.tx.update(table, RowId(0), FieldNumber(0), Value::Null.as_ref()), not_found);
        let tables = self.model.tables.iter();
        let row =
            tables.filter_map(|(&number, table)| Some((number, *table.rows.keys().next()?))).next();
        if let Some((table, id)) = row {
            let field = FieldNumber(self.model.table(table).next_field);
            let value = Value::Null;
            agree(self.tx.update(TableNumber(table), RowId(id), field, value.as_ref()), not_found);
        }
        self.done(not_found);
    }
}
