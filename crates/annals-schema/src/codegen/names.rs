//! Names: everything in a schema gets a name that Rust accepts and that is unique in its scope.
//!
//! The rule: a name stays as it is if it can. A keyword becomes a raw identifier. Three kinds of names get `_`
//! appended, as often as necessary to be unique: keywords that can't be raw identifiers (`self`, `super`, `crate`,
//! `Self`, `_`), names that generated code uses itself, and names in use.

use std::collections::{HashMap, HashSet};

use crate::{Schema, TableNumber};

const KEYWORDS: [&str; 48] = [
    "as", "async", "await", "break", "const", "continue", "dyn", "else", "enum", "extern", "false",
    "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "static", "struct", "trait", "true", "type", "unsafe", "use", "where", "while",
    "abstract", "become", "box", "do", "final", "gen", "macro", "override", "priv", "try",
    "typeof", "unsized", "virtual", "yield",
];
const NEVER_RAW: [&str; 5] = ["self", "super", "crate", "Self", "_"];

/// Reserved names for tables and indexes, which are methods and modules: the other methods and items of the outer
/// module, and short names that its code uses.
const OUTER: [&str; 50] = [
    "Change",
    "view",
    "valid_data",
    "read_blob",
    "append_blob",
    "write_blob",
    "custom",
    "Custom",
    "Customs",
    "Function",
    "Reader",
    "txid",
    "as_dynamic",
    "clone",
    "comment",
    "timestamp",
    "set_time",
    "set_level",
    "submit",
    "commit",
    "rollback",
    "restore",
    "revert",
    "savepoint",
    "fmt",
    "from",
    "into",
    "try_into",
    "to_owned",
    "dynamic_view",
    "Schema",
    "Tables",
    "Writers",
    "Database",
    "Snapshot",
    "View",
    "Transaction",
    "SCHEMA",
    "bool",
    "str",
    "Result",
    "Option",
    "Ok",
    "Err",
    "Some",
    "None",
    "From",
    "FnMut",
    "Clone",
    "Copy",
];

/// Reserved names for fields, which are getters and parameters.
const INNER: [&str; 10] =
    ["id", "as_dynamic", "clone", "fmt", "Row", "Writer", "Some", "None", "Ok", "Err"];

/// Reserved names for the types of indexes in their table's module.
const TYPES: [&str; 21] = [
    "Kind",
    "Change",
    "Values",
    "Columns",
    "Id",
    "Row",
    "New",
    "Table",
    "Writer",
    "Option",
    "Result",
    "Some",
    "None",
    "Ok",
    "Err",
    "From",
    "Into",
    "AsRef",
    "Default",
    "IntoIterator",
    "Iterator",
];

/// The Rust names of a schema.
pub(super) struct Names {
    /// Those of the tables, in the schema's order.
    pub(super) tables: Vec<TableNames>,
    /// Those of the indexes, in the schema's order.
    pub(super) indexes: Vec<IndexNames>,
}

/// The Rust names of a table.
pub(super) struct TableNames {
    number: TableNumber,
    /// Module and method.
    pub(super) name: String,
    /// The variant of a change.
    pub(super) variant: String,
    /// Getters and parameters, in the order of the fields.
    pub(super) fields: Vec<String>,
    /// Constants, in the order of the fields.
    pub(super) columns: Vec<String>,
}

/// The Rust names of an index.
pub(super) struct IndexNames {
    /// The method.
    pub(super) name: String,
    /// The type, in the table's module.
    pub(super) ty: String,
}

impl Names {
    pub(super) fn new(schema: &Schema) -> Self {
        let tables = schema.tables().iter().map(|table| table.name.as_str());
        let indexes = schema.indexes().iter().map(|index| index.name.as_str());
        let mut outer = Scope::new(&OUTER, tables.chain(indexes));
        let mut variants = Scope::new(&[], std::iter::empty());
        let tables = schema.tables().iter().map(|table| {
            let fields = table.fields.iter().map(|field| field.name.as_str());
            let mut inner = Scope::new(&INNER, fields.clone());
            let fields: Vec<_> = fields.map(|field| inner.declare(field)).collect();
            // A parameter can't be called like a constant.
            let parameters: Vec<_> = fields.iter().map(|field| plain(field)).collect();
            let mut constants = Scope::new(&parameters, std::iter::empty());
            let columns = table.fields.iter().map(|field| field.name.to_ascii_uppercase());
            let columns = columns.map(|column| constants.declare(&column)).collect();
            let (number, name) = (table.number, outer.declare(&table.name));
            let variant = variants.declare(&camel_case(&table.name, "Table"));
            TableNames { number, name, variant, fields, columns }
        });
        let tables: Vec<_> = tables.collect();
        let mut types: Vec<_> =
            tables.iter().map(|_| Scope::new(&TYPES, std::iter::empty())).collect();
        let indexes = schema.indexes().iter().map(|index| IndexNames {
            name: outer.declare(&index.name),
            ty: match place_of(&tables, index.table).and_then(|place| types.get_mut(place)) {
                Some(scope) => scope.declare(&camel_case(&index.name, "Index")),
                None => camel_case(&index.name, "Index"),
            },
        });
        let indexes = indexes.collect();
        Self { tables, indexes }
    }

    /// Returns the names of a table, unless it was dropped.
    pub(super) fn table(&self, number: TableNumber) -> Option<&TableNames> {
        self.tables.get(place_of(&self.tables, number)?)
    }
}

fn place_of(tables: &[TableNames], number: TableNumber) -> Option<usize> {
    tables.iter().position(|table| table.number == number)
}

/// Returns the plain word of a name, to make a longer name of: `set_type` of `r#type`.
pub(super) fn plain(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// Makes a stand-alone identifier of a name.
pub(super) fn identifier(name: &str) -> String {
    Scope::new(&[], std::iter::empty()).declare(name)
}

/// One namespace of Rust, in which names are unique.
pub(super) struct Scope<'a> {
    reserved: &'a [&'a str],
    /// All names of the schema in this scope: none of them is displaced by a changed one.
    wanted: HashSet<&'a str>,
    taken: HashSet<String>,
    /// How often a name was declared that is numbered then.
    times: HashMap<String, u32>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(reserved: &'a [&'a str], wanted: impl Iterator<Item = &'a str>) -> Self {
        Self { reserved, wanted: wanted.collect(), taken: HashSet::new(), times: HashMap::new() }
    }

    fn declare(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        while self.is_impossible(&unique) || (unique != name && self.wanted.contains(&*unique)) {
            unique.push('_');
        }
        self.taken.insert(unique.clone());
        if KEYWORDS.contains(&&*unique) { format!("r#{unique}") } else { unique }
    }

    /// Declares a name that may be there several times: the second is `name_2`.
    pub(super) fn declare_numbered(&mut self, name: &str) -> String {
        let times = self.times.entry(name.to_owned()).or_insert(0);
        *times += 1;
        match *times {
            1 => self.declare(name),
            times => self.declare(&format!("{name}_{times}")),
        }
    }

    fn is_impossible(&self, name: &str) -> bool {
        NEVER_RAW.contains(&name) || self.reserved.contains(&name) || self.taken.contains(name)
    }
}

/// Makes `CityByName` of `city_by_name`; keeps a beginning that isn't a letter.
fn camel_case(name: &str, what: &str) -> String {
    let mut camel = String::new();
    for part in name.split('_') {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(letters);
    }
    match camel.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => camel,
        _ => format!("{what}{camel}"),
    }
}
