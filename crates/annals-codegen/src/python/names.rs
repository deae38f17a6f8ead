//! Names that Python accepts, and that mean nothing else where they are.

use std::collections::{HashMap, HashSet};

use annals_schema::{Field, FieldNumber, Index, IndexNumber, Schema, Table, TableNumber, Type};

/// Words that can't be names in Python.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// The attributes of databases, snapshots and transactions, which no table has.
pub(super) const OF_DATABASE: &[&str] = &[
    "as_it_was",
    "at",
    "backup",
    "blame",
    "close",
    "comment",
    "commit",
    "diff",
    "history",
    "read",
    "revert",
    "rollback",
    "savepoint",
    "schema",
    "set_soft",
    "set_time",
    "sql",
    "subscribe",
    "tables",
    "txid",
    "txid_of",
    "write",
];

/// The attributes of tables, which no index has by its short name.
pub(super) const OF_TABLE: &[&str] = &[
    "changes",
    "delete",
    "delete_all",
    "get",
    "ids",
    "index",
    "insert",
    "insert_all",
    "insert_row",
    "name",
    "range",
    "update",
    "update_all",
    "upsert",
    "upsert_all",
];

/// The attributes of rows, which no field has.
pub(super) const OF_ROW: &[&str] = &["_fields", "asdict", "id", "keys"];

/// Returns the name of an attribute, if there can be one: not if the name has another meaning, or if Python can't say it.
pub(super) fn attribute<'n>(name: &'n str, taken: &[&str]) -> Option<&'n str> {
    let is_other = taken.contains(&name) || KEYWORDS.contains(&name) || name.starts_with("__");
    (!is_other).then_some(name)
}

/// Returns a name that isn't a keyword: the package takes a field `class` as `class_`, too.
pub(super) fn plain(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// Returns a name in capitals: `road_sign` is `RoadSign`.
fn capitals(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

/// The names of the module's classes, which are distinct.
pub(super) struct Names {
    tables: HashMap<TableNumber, String>,
    enums: HashMap<(TableNumber, FieldNumber), String>,
    indexes: HashMap<IndexNumber, String>,
}

impl Names {
    /// Finds names: first for rows, which a program names most.
    pub(super) fn of(schema: &Schema) -> Self {
        let mut taken: HashSet<String> =
            ["Database", "Snapshot", "Transaction", "SCHEMA"].map(str::to_owned).into();
        let mut distinct = |mut name: String, ends: &[&str]| {
            while KEYWORDS.contains(&name.as_str())
                || ends.iter().any(|end| taken.contains(&format!("{name}{end}")))
            {
                name.push('_');
            }
            taken.extend(ends.iter().map(|end| format!("{name}{end}")));
            name
        };
        let tables = schema.tables().iter();
        let tables: HashMap<_, _> = tables
            .map(|table| {
                (
                    table.number,
                    distinct(capitals(&table.name), &["", "Table", "Writable", "Insert", "Update"]),
                )
            })
            .collect();
        let (mut enums, mut indexes) = (HashMap::new(), HashMap::new());
        for table in schema.tables() {
            let row = tables.get(&table.number).map_or("", String::as_str);
            for field in table.fields.iter().filter(|field| matches!(field.ty, Type::Enum(_))) {
                let name = format!("{row}{}", capitals(&field.name));
                enums.insert((table.number, field.number), distinct(name, &[""]));
            }
            for index in schema.indexes_of(table) {
                let name = format!("{row}{}", capitals(short(table, index)));
                indexes.insert(index.number, distinct(name, &[""]));
            }
        }
        Self { tables, enums, indexes }
    }

    /// Returns the name of the class of a table's rows.
    pub(super) fn row(&self, table: &Table) -> &str {
        self.tables.get(&table.number).map_or("", String::as_str)
    }

    /// Returns the name of the type of an enum's variants.
    pub(super) fn variants(&self, table: &Table, field: &Field) -> Option<&str> {
        self.enums.get(&(table.number, field.number)).map(String::as_str)
    }

    /// Returns the name of the class of a table in a snapshot.
    pub(super) fn table(&self, table: &Table) -> String {
        format!("{}Table", self.row(table))
    }

    /// Returns the name of the class of a table in a transaction.
    pub(super) fn writable(&self, table: &Table) -> String {
        format!("{}Writable", self.row(table))
    }

    /// Returns the name of the class of an index.
    pub(super) fn index(&self, index: &Index) -> &str {
        self.indexes.get(&index.number).map_or("", String::as_str)
    }
}

/// Returns the part of an index's name after the table's: `by_name` of `city_by_name`.
pub(super) fn short<'i>(table: &Table, index: &'i Index) -> &'i str {
    let rest = index.name.strip_prefix(&table.name).and_then(|rest| rest.strip_prefix('_'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(&index.name)
}
