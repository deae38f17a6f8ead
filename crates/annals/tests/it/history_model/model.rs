//! The model: a naive database, written from the description of the language.
//!
//! Tables are maps of rows, rows are lists of values, blobs are strings of bytes, and every question is
//! answered by looking at all of them.

use std::collections::BTreeMap;
use std::rc::Rc;

use annals::{Command, ErrorKind, RowId, Type, Value};

pub(super) type Answer = Result<(), ErrorKind>;
pub(super) type Rows = BTreeMap<u64, Vec<Value>>;

#[derive(Clone)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) nullable: bool,
    /// What rows read in which nothing was written to the field.
    pub(super) default: Value,
}

#[derive(Clone)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    pub(super) single: bool,
    pub(super) is_indexed: bool,
    pub(super) next_field: u32,
    pub(super) next_id: u64,
    pub(super) rows: Rows,
}

#[derive(Clone, PartialEq)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) table: u32,
    pub(super) fields: Vec<u32>,
    pub(super) descending: Vec<u32>,
    /// The fields that have the order of a locale.
    pub(super) collated: Vec<(u32, String)>,
    pub(super) unique: bool,
}

#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) tables: BTreeMap<u32, Table>,
    pub(super) indexes: BTreeMap<u32, Index>,
    pub(super) next_table: u32,
    pub(super) next_index: u32,
    /// What was said of the schema, as commands and as lines.
    pub(super) commands: Vec<Command>,
    pub(super) lines: Vec<String>,
    /// Blob number n at n - 1.
    pub(super) blobs: Vec<Rc<Vec<u8>>>,
    /// The blob that more can be appended to.
    pub(super) open_blob: Option<usize>,
    /// Comments, times, marks and blobs, as they came.
    pub(super) notes: Vec<String>,
}

/// Returns what a field holds before anything is written to it, without a default.
pub(super) fn zero(ty: Type, nullable: bool) -> Value {
    match ty {
        _ if nullable => Value::Null,
        Type::String => Value::String(String::new()),
        Type::Bytes => Value::Bytes(Vec::new()),
        Type::Json => Value::String("null".to_owned()),
        Type::Blob => Value::Null,
        Type::Reference(..) => Value::Reference(RowId(0)),
        ty => ty.sample(0),
    }
}

impl Table {
    pub(super) fn place(&self, field: u32) -> Option<usize> {
        self.fields.iter().position(|known| known.number == field)
    }

    pub(super) fn zeros(&self) -> Vec<Value> {
        self.fields.iter().map(|field| zero(field.ty, field.nullable)).collect()
    }

    pub(super) fn defaults(&self) -> Vec<Value> {
        self.fields.iter().map(|field| field.default.clone()).collect()
    }

    /// Says why rows can't be inserted at some ids.
    pub(super) fn free(&self, id: u64, count: u64) -> Answer {
        if self.single || id > RowId::MAX.0 || id + count > RowId::MAX.0 + 1 {
            return Err(ErrorKind::Invalid);
        }
        let taken = self.rows.range(id..id + count).next().is_some();
        if taken { Err(ErrorKind::InUse) } else { Ok(()) }
    }

    /// Says why there aren't all of some rows.
    pub(super) fn there(&self, id: u64, count: u64) -> Answer {
        let found = self.rows.range(id..id.saturating_add(count)).count() as u64;
        if found == count { Ok(()) } else { Err(ErrorKind::NotFound) }
    }

    pub(super) fn insert(&mut self, id: u64, values: Vec<Value>) {
        assert_eq!(values.len(), self.fields.len());
        assert!(self.rows.insert(id, values).is_none());
        self.next_id = self.next_id.max(id + 1);
    }

    pub(super) fn set(&mut self, id: u64, field: u32, value: Value) {
        let place = self.place(field).unwrap();
        self.rows.get_mut(&id).unwrap()[place] = value;
    }
}

impl Model {
    pub(super) fn table(&self, number: u32) -> &Table {
        &self.tables[&number]
    }

    pub(super) fn table_mut(&mut self, number: u32) -> &mut Table {
        self.tables.get_mut(&number).unwrap()
    }

    pub(super) fn has(&self, table: u32, id: u64) -> bool {
        self.tables.get(&table).is_some_and(|table| table.rows.contains_key(&id))
    }

    pub(super) fn insert_zeros(&mut self, table: u32, id: u64, count: u64) {
        let table = self.table_mut(table);
        let zeros = table.zeros();
        (id..id + count).for_each(|id| table.insert(id, zeros.clone()));
    }

    /// Ends what ends with a transaction.
    pub(super) fn end_transaction(&mut self) {
        self.open_blob = None;
    }

    pub(super) fn write_piece(&mut self, number: u64, offset: u64, bytes: &[u8]) {
        let at = usize::try_from(number).unwrap() - 1;
        if at == self.blobs.len() {
            self.blobs.push(Rc::default());
        }
        assert_eq!(at + 1, self.blobs.len(), "only the last blob grows");
        assert_eq!(offset, self.blobs[at].len() as u64);
        Rc::make_mut(&mut self.blobs[at]).extend(bytes);
    }
}
