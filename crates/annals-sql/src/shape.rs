//! Tables of a schema with the names that they have in SQL.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use annals::{FieldNumber, IndexNumber, Schema, Snapshot, Table, TableNumber, Type, TypeClass};

use crate::forms::declared;
use crate::host::Fault;

/// The kinds of virtual tables that each table has: the end of the name, and the word in its declaration.
pub(crate) const KINDS: [(&str, &str); 5] = [
    ("", "rows"),
    ("_at", "at"),
    ("_history", "history"),
    ("_changes", "changes"),
    ("_blame", "blame"),
];

/// A column of a table; that of a field, as the id is the first column of each.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) field: FieldNumber,
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) is_nullable: bool,
    /// The declared type and collation.
    words: String,
    collation: Option<String>,
}

/// A field of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyColumn {
    /// The column of the table in SQL.
    pub(crate) column: usize,
    pub(crate) is_descending: bool,
    /// True if it is in the order of a language.
    pub(crate) is_collated: bool,
}

/// An index.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) number: IndexNumber,
    pub(crate) name: String,
    pub(crate) columns: Vec<KeyColumn>,
    pub(crate) is_unique: bool,
}

/// A table, as SQL sees it.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) schema: Arc<Schema>,
    pub(crate) table: TableNumber,
    /// Its name here.
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) keys: Vec<Key>,
}

/// Names, of which SQLite takes those for the same that differ in capitals only.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// Returns the name, with `_` appended as long as it is taken, and takes it. `sqlite_..` is SQLite's own.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        if name.to_ascii_lowercase().starts_with("sqlite_") {
            free.insert(0, '_');
        }
        while !self.0.insert(free.to_ascii_lowercase()) {
            free.push('_');
        }
        free
    }
}

/// Returns a name in quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Column {
    /// Returns the collation by which SQLite compares the column.
    pub(crate) fn collation(&self) -> &str {
        self.collation.as_deref().unwrap_or("BINARY")
    }

    /// True if the values are texts in SQL.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.ty.class(), TypeClass::String | TypeClass::Written)
    }

    /// Appends the declaration of a column with such values.
    pub(crate) fn declare(&self, text: &mut String, before: &str) {
        let name = quoted(&format!("{before}{}", self.name));
        // Writing to a string doesn't fail.
        let _ = write!(text, ", {name} {}", self.words);
        if let Some(collation) = &self.collation {
            let _ = write!(text, " COLLATE {}", quoted(collation));
        }
    }
}

impl Shape {
    fn new(schema: &Arc<Schema>, table: &Table, name: String) -> Self {
        let mut names = Names::default();
        // The id of the row is the first column.
        names.take("id");
        let columns: Vec<_> = table
            .fields
            .iter()
            .map(|field| {
                let (words, collation) = declared(field.ty);
                Column {
                    field: field.number,
                    name: names.take(&annals_json::key(table, field)),
                    ty: field.ty,
                    is_nullable: field.nullable,
                    words,
                    collation,
                }
            })
            .collect();
        let place = |number| columns.iter().position(|column: &Column| column.field == number);
        let keys = schema.indexes().iter().filter(|index| index.table == table.number);
        let keys = keys.filter_map(|index| {
            let columns = index.fields.iter().map(|&field| {
                Some(KeyColumn {
                    column: place(field)? + 1,
                    is_descending: index.descending.contains(&field),
                    is_collated: index.collated.iter().any(|it| it.field == field),
                })
            });
            let columns = columns.collect::<Option<_>>()?;
            Some(Key {
                number: index.number,
                name: index.name.clone(),
                columns,
                is_unique: index.unique,
            })
        });
        let keys = keys.collect();
        Self { schema: Arc::clone(schema), table: table.number, name, columns, keys }
    }

    /// Returns a column by its place in SQL; `None` for the id, and for others.
    pub(crate) fn column(&self, place: usize) -> Option<&Column> {
        self.columns.get(place.checked_sub(1)?)
    }

    /// Returns the number of a transaction's table, unless the schema has changed since.
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), Fault> {
        let schema = snapshot.schema();
        if Arc::ptr_eq(schema, &self.schema) || **schema == *self.schema {
            return Ok(());
        }
        Err(Fault::new(format!(
            "the schema of the database has changed since `{}` was attached: attach it again, or open another connection",
            self.name
        )))
    }
}

/// Returns the tables of a schema, and the names of the virtual tables of each, in the order of [`KINDS`].
pub(crate) fn shapes(schema: &Arc<Schema>, prefix: &str) -> Vec<(Arc<Shape>, Vec<String>)> {
    let mut names = Names::default();
    for fixed in ["annals_log", "annals_schema"] {
        names.take(fixed);
    }
    let own: Vec<_> = schema
        .tables()
        .iter()
        .map(|table| names.take(&format!("{prefix}{}", table.name)))
        .collect();
    let shapes = schema.tables().iter().zip(own).map(|(table, name)| {
        let others = KINDS.iter().skip(1).map(|(end, _)| names.take(&format!("{name}{end}")));
        let all = std::iter::once(name.clone()).chain(others).collect();
        (Arc::new(Shape::new(schema, table, name)), all)
    });
    shapes.collect()
}
