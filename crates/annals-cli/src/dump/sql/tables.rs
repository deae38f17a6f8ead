//! The tables of a schema as SQL declares them.

use std::fmt::Write;
use std::sync::Arc;

use annals::model::{OnDelete, TypeClass};
use annals::{Field, FieldNumber, Index, Result, Schema, Table, TableNumber, Type};

use super::dialect::Dialect;
use super::literal;
use super::names::{Names, quoted};
use crate::present::Present;

/// All tables of a schema, with the names that everything has in SQL.
pub(crate) struct Tables<'s> {
    dialect: Dialect,
    schema: &'s Schema,
    /// The tables.
    pub(crate) tables: Vec<SqlTable<'s>>,
    /// The names of the indexes.
    indexes: Vec<String>,
    /// Fields of which something was erased: that is null, whatever the schema says.
    erased: Vec<(TableNumber, FieldNumber)>,
}

/// A table, and the quoted names of it and its columns in SQL.
pub(crate) struct SqlTable<'s> {
    /// The table.
    pub(crate) table: &'s Table,
    /// Its name.
    pub(crate) name: String,
    /// The columns of its fields.
    pub(crate) columns: Vec<String>,
    /// The name of PostgreSQL's index on the ids.
    key: String,
}

impl<'s> Tables<'s> {
    /// Returns a name to everything.
    pub(crate) fn new(schema: &'s Schema, dialect: Dialect) -> Self {
        let mut names = Names::new(dialect);
        let own: Vec<_> = schema.tables().iter().map(|table| names.take(&table.name)).collect();
        let indexes = schema.indexes().iter().map(|index| quoted(&names.take(&index.name)));
        let indexes = indexes.collect();
        let mut table = |(table, name): (&'s Arc<Table>, String)| {
            let mut columns = Names::of_columns(dialect);
            let column = |field| quoted(&columns.take(&annals_json::key(table, field)));
            let columns = table.fields.iter().map(column).collect();
            let key = quoted(&names.take(&format!("{name}_pkey")));
            SqlTable { table, name: quoted(&name), columns, key }
        };
        let tables = schema.tables().iter().zip(own).map(&mut table).collect();
        Self { dialect, schema, tables, indexes, erased: Vec::new() }
    }

    /// Returns a name to everything that is present.
    pub(crate) fn of(present: &'s Present<'_>, dialect: Dialect) -> Result<Self> {
        let mut tables = Self::new(present.schema(), dialect);
        for table in present.schema().tables() {
            let erased = crate::present::erased(present, table)?;
            tables.erased.extend(erased.iter().map(|field| (table.number, field.number)));
        }
        Ok(tables)
    }

    /// Returns the items with another name in SQL: table, column or index, and its name there.
    #[cfg(feature = "sqlite")]
    pub(crate) fn renamed(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for table in &self.tables {
            let name = &table.table.name;
            all.push((name.clone(), name.clone(), &table.name));
            let columns = table.table.fields.iter().zip(&table.columns);
            all.extend(columns.map(|(field, column)| {
                (format!("{name}.{}", field.name), annals_json::key(table.table, field), column)
            }));
        }
        let indexes = self.schema.indexes().iter().zip(&self.indexes);
        all.extend(indexes.map(|(index, name)| (index.name.clone(), index.name.clone(), name)));
        all.retain(|(_, plain, name)| quoted(plain) != **name);
        all.into_iter().map(|(shown, _, name)| (shown, name.clone())).collect()
    }

    /// Returns the statement that creates a table.
    pub(crate) fn create(&self, table: &SqlTable<'s>) -> String {
        let postgres = format!("BIGINT CONSTRAINT {} PRIMARY KEY", table.key);
        let id = self.dialect.choose("INTEGER PRIMARY KEY AUTOINCREMENT", &postgres);
        let mut text = format!("CREATE TABLE {} (\n  \"id\" {id}", table.name);
        // Text for PostgreSQL alone has the end of the line after it.
        let next = |text: &str| if text.ends_with('\n') { "  ," } else { ",\n  " };
        for (field, column) in table.table.fields.iter().zip(&table.columns) {
            text.push_str(next(&text));
            text.push_str(column);
            text.push(' ');
            self.push_type(&mut text, table.table.number, field, column);
        }
        let end = if text.ends_with('\n') { ");" } else { "\n);" };
        text + end
    }

    fn push_type(&self, text: &mut String, table: TableNumber, field: &Field, column: &str) {
        text.push_str(&type_word(field.ty, self.dialect));
        if !field.nullable && !self.erased.contains(&(table, field.number)) {
            text.push_str(" NOT NULL");
        }
        // The bytes of a blob are not at hand here, and neither dialect makes UUIDs.
        let has_constant = field.ty != Type::Blob && !field.has_new_uuids();
        if let Some(default) = field.default.as_ref().filter(|_| has_constant) {
            text.push_str(" DEFAULT (");
            literal::push(text, default.as_ref(), self.dialect);
            text.push(')');
        }
        if let Type::Enum(variants) = field.ty {
            let names: Vec<_> = variants.iter().map(|name| format!("'{name}'")).collect();
            let _ = write!(text, " CHECK ({column} IN ({}))", names.join(","));
        }
        if let Some(clause) = self.reference(field) {
            text.push_str(&self.dialect.choose(&format!(" {clause}"), ""));
        }
    }

    /// Returns the target of a reference, and its rule.
    fn reference(&self, field: &Field) -> Option<String> {
        let Type::Reference(target, on_delete) = field.ty else { return None };
        let target = self.tables.iter().find(|table| table.table.number == target)?;
        let rule = match on_delete {
            OnDelete::Dangle => "",
            OnDelete::Restrict => " ON DELETE RESTRICT",
            OnDelete::Cascade => " ON DELETE CASCADE",
            OnDelete::SetNull => " ON DELETE SET NULL",
        };
        Some(format!("REFERENCES {}(\"id\"){rule}", target.name))
    }

    /// Returns the statements that create the indexes.
    pub(crate) fn indexes(&self) -> Vec<String> {
        let indexes = self.schema.indexes().iter().zip(&self.indexes);
        indexes.filter_map(|(index, name)| self.index(index, name)).collect()
    }

    fn index(&self, index: &Index, name: &str) -> Option<String> {
        let table = self.tables.iter().find(|table| table.table.number == index.table)?;
        let unique = if index.unique { "UNIQUE " } else { "" };
        let column = |number: &FieldNumber| {
            let column = table.columns.get(table.table.place_of(*number)?)?;
            let order = if index.descending.contains(number) { " DESC" } else { "" };
            Some(format!("{column}{order}"))
        };
        let columns: Vec<_> = index.fields.iter().filter_map(column).collect();
        Some(format!("CREATE {unique}INDEX {name} ON {} ({});", table.name, columns.join(", ")))
    }

    /// Returns PostgreSQL's statements that declare the references which are enforced.
    pub(super) fn constraints(&self) -> Vec<String> {
        let mut statements = Vec::new();
        for table in &self.tables {
            for (field, column) in table.table.fields.iter().zip(&table.columns) {
                let enforced =
                    matches!(field.ty, Type::Reference(_, on_delete) if on_delete.is_enforced());
                if let Some(clause) = self.reference(field).filter(|_| enforced) {
                    let name = &table.name;
                    statements
                        .push(format!("ALTER TABLE {name} ADD FOREIGN KEY ({column}) {clause};"));
                }
            }
        }
        statements
    }
}

impl SqlTable<'_> {
    /// Returns SQLite's statement that sets the next id.
    pub(crate) fn sequence(&self, next: u64) -> String {
        let name = self.name.trim_matches('"');
        match next.checked_sub(1) {
            Some(last) => format!("INSERT INTO sqlite_sequence VALUES('{name}',{last});"),
            None => String::new(),
        }
    }

    /// Returns PostgreSQL's statement that assigns ids.
    pub(super) fn identity(&self, next: u64) -> String {
        let name = &self.name;
        format!(
            "ALTER TABLE {name} ALTER \"id\" ADD GENERATED BY DEFAULT AS IDENTITY (MINVALUE 0 START {next});"
        )
    }
}

/// Returns the word for a type.
pub(crate) fn type_word(ty: Type, dialect: Dialect) -> String {
    let word = ty.to_string().to_ascii_uppercase();
    // To SQLite, which has no such types, these are texts and bytes: so the first word says.
    match ty {
        Type::Decimal(scale) => {
            return dialect.choose(&format!("TEXT {word}"), &format!("NUMERIC(39,{scale})"));
        }
        Type::Date | Type::Uuid | Type::Json => {
            return dialect.choose(&format!("TEXT {word}"), &word);
        }
        // SQLite takes numbers in brackets only, but any quoted word.
        Type::Enum(variants) => {
            return dialect.choose(&format!("TEXT \"ENUM({variants})\""), "TEXT");
        }
        Type::FixedBytes(_) => return dialect.choose(&format!("BLOB {word}"), "BYTEA"),
        _ => {}
    }
    let (sqlite, postgres) = match ty.class() {
        TypeClass::Bool => ("BOOLEAN", "BOOLEAN"),
        TypeClass::Integer { least, most } => {
            let has_room = |min: i64, max: i64| i128::from(min) <= least && most <= max.into();
            let postgres = match () {
                () if has_room(i16::MIN.into(), i16::MAX.into()) => "SMALLINT",
                () if has_room(i32::MIN.into(), i32::MAX.into()) => "INTEGER",
                () if has_room(i64::MIN, i64::MAX) => "BIGINT",
                // To SQLite `NUMERIC` is a column that makes floats of large numbers.
                () => {
                    let digits = most.to_string().len();
                    return dialect.choose(&word, &format!("NUMERIC({digits})"));
                }
            };
            (word.as_str(), postgres)
        }
        TypeClass::Float32 => ("FLOAT32", "REAL"),
        TypeClass::Float64 => ("FLOAT64", "DOUBLE PRECISION"),
        TypeClass::String | TypeClass::Written => ("TEXT", "TEXT"),
        TypeClass::Bytes => ("BLOB", "BYTEA"),
        TypeClass::Blob => ("LONGBLOB", "BYTEA"),
        TypeClass::Timestamp => ("TIMESTAMP_MICROSECONDS", "BIGINT"),
        TypeClass::Reference => ("INTEGER", "BIGINT"),
    };
    match dialect {
        Dialect::Sqlite => sqlite.to_owned(),
        Dialect::Postgres | Dialect::Both => postgres.to_owned(),
    }
}
