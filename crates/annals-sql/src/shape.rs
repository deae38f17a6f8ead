//! Tables of a schema with the names that they have in SQL.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use annals::model::TypeClass;
use annals::{
    Command, Field, FieldNumber, IndexNumber, Schema, Snapshot, Table, TableNumber, Type,
};

use crate::forms::declared;
use crate::host::Fault;

/// A kind of virtual table: the same for each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rows,
    At,
    History,
    Changes,
    Blame,
    AsItWas,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Rows, Self::At, Self::History, Self::Changes, Self::Blame, Self::AsItWas];

    /// Returns the end of the name.
    pub(crate) const fn ending(self) -> &'static str {
        match self {
            Self::Rows => "",
            Self::At => "_at",
            Self::History => "_history",
            Self::Changes => "_changes",
            Self::Blame => "_blame",
            Self::AsItWas => "_as_it_was",
        }
    }

    /// Returns how many columns it has for so many fields.
    const fn columns(self, fields: usize) -> usize {
        match self {
            Self::Rows => 1 + fields,
            Self::At | Self::AsItWas => 2 + fields,
            Self::History => 6 + 2 * fields,
            Self::Changes => 4 + 2 * fields,
            Self::Blame => 8,
        }
    }
}

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
    fn new(schema: &Arc<Schema>, table: &Table, dropped: &[Field], name: String) -> Self {
        let mut names = Names::default();
        // The id of the row is the first column.
        names.take("id");
        let columns: Vec<_> = table
            .fields
            .iter()
            .chain(dropped)
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

    /// Returns the same table as any past schema has it, without indexes, under another name.
    fn as_it_was(schema: &Arc<Schema>, table: &Table, dropped: &[Field], name: String) -> Self {
        Self { keys: Vec::new(), ..Self::new(schema, table, dropped, name) }
    }

    /// Returns a name, or one like it, that no column has.
    pub(crate) fn free_name(&self, name: &str) -> String {
        let mut names = Names::default();
        self.columns.iter().for_each(|column| drop(names.take(&column.name)));
        names.take(name)
    }

    /// Returns a column by its place in SQL; `None` for the id, and for others.
    pub(crate) fn column(&self, place: usize) -> Option<&Column> {
        self.columns.get(place.checked_sub(1)?)
    }

    /// Returns the column of a value before or after a change, by its place in SQL; so many others are before them.
    pub(crate) fn side(&self, place: usize, others: usize) -> Option<&Column> {
        let place = place.checked_sub(others)?;
        let (side, column) = (place.checked_div(self.columns.len())?, place % self.columns.len());
        self.columns.get(column).filter(|_| side < 2)
    }

    /// True if the schema of a state has a column.
    pub(crate) fn was(&self, state: &Snapshot, column: &Column) -> bool {
        let table = state.schema().table(self.table);
        table.is_some_and(|table| table.field(column.field).is_some())
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

/// The virtual tables of a schema.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) shapes: Vec<Arc<Shape>>,
    pub(crate) all: Vec<Named>,
    /// How many tables the database has.
    pub(crate) count: usize,
}

/// A virtual table.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The place of its shape.
    pub(crate) shape: usize,
    pub(crate) columns: usize,
}

impl Tables {
    /// Names the virtual tables of a schema, each with the same beginning.
    pub(crate) fn of(schema: &Arc<Schema>, prefix: &str) -> Self {
        let mut names = Names::default();
        for fixed in ["annals_log", "annals_schema"] {
            names.take(&format!("{prefix}{fixed}"));
        }
        let mut tables = Self { count: schema.tables().len(), ..Self::default() };
        let own =
            schema.tables().iter().map(|table| names.take(&format!("{prefix}{}", table.name)));
        let own: Vec<_> = own.collect();
        for (table, own) in schema.tables().iter().zip(own) {
            let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::AsItWas);
            let kinds = kinds.map(|kind| match kind {
                Kind::Rows => (kind, own.clone()),
                kind => (kind, names.take(&format!("{own}{}", kind.ending()))),
            });
            let kinds: Vec<_> = kinds.collect();
            tables.add(Shape::new(schema, table, &[], own), kinds);
        }
        for (table, dropped) in of_all_times(schema) {
            let own = format!("{prefix}{}", table.name);
            let kinds = [(Kind::AsItWas, names.take(&format!("{own}{}", Kind::AsItWas.ending())))];
            tables.add(Shape::as_it_was(schema, &table, &dropped, own), kinds);
        }
        tables
    }

    fn add(&mut self, shape: Shape, kinds: impl IntoIterator<Item = (Kind, String)>) {
        for (kind, name) in kinds {
            let columns = kind.columns(shape.columns.len());
            self.all.push(Named { name, kind, shape: self.shapes.len(), columns });
        }
        self.shapes.push(Arc::new(shape));
    }
}

/// Returns the tables that there ever were, the present ones first, each with the fields that were dropped from it.
fn of_all_times(schema: &Schema) -> Vec<(Table, Vec<Field>)> {
    let (mut then, mut tables, mut fields) = (Schema::default(), Vec::new(), Vec::new());
    for command in schema.commands().iter() {
        match command {
            Command::DropTable { table } => tables.extend(then.table(*table).cloned()),
            Command::DropField { table, field } => {
                let dropped = then.table(*table).and_then(|table| table.field(*field));
                fields.extend(dropped.map(|field| (*table, field.clone())));
            }
            _ => {}
        }
        // They built this schema.
        let _ = then.apply(command.clone());
    }
    let present = schema.tables().iter().map(|table| Table::clone(table));
    let of = |table: Table| {
        let of_table = fields.iter().filter(|(number, _)| *number == table.number);
        let dropped = of_table.map(|(_, field)| field.clone()).collect();
        (table, dropped)
    };
    present.chain(tables).map(of).collect()
}
