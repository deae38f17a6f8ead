//! Names: everything in a schema gets a name that Rust accepts and that is unique in its scope.
//!
//! The rule: a name stays as it is if it can. A keyword becomes a raw identifier. Three kinds of names get `_`
//! appended, as often as necessary to be unique: keywords that can't be raw identifiers (`self`, `super`, `crate`,
//! `Self`, `_`), names that generated code uses itself, and names in use.

use std::collections::{BTreeMap, HashMap, HashSet};

use annals_schema::{Field, FieldNumber, Schema, TableNumber, Type};

/// The paths of the Rust types that fields have in the program, as a schema file has them.
pub(super) type Paths = BTreeMap<(TableNumber, FieldNumber), String>;

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
const OUTER: [&str; 60] = [
    "Change",
    "last_change",
    "insert",
    "insert_at",
    "insert_vector",
    "insert_vector_at",
    "edit",
    "update",
    "update_vector",
    "upsert",
    "delete",
    "delete_vector",
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
    "Database",
    "Replica",
    "Lazy",
    "Snapshot",
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
const INNER: [&str; 12] = [
    "id",
    "as_dynamic",
    "to_owned",
    "clone",
    "fmt",
    "Row",
    "Edit",
    "Table",
    "Some",
    "None",
    "Ok",
    "Err",
];

/// Reserved names for indexes, which are methods of their table: its other methods.
const METHODS: [&str; 20] = [
    "new",
    "view",
    "get",
    "require",
    "contains",
    "len",
    "is_empty",
    "iter",
    "into_iter",
    "range",
    "ids",
    "as_dynamic",
    "vector",
    "get_vector",
    "vector_of",
    "slices_of",
    "clone",
    "fmt",
    "deref",
    "to_owned",
];

/// Reserved names for the types of indexes in their table's module.
const TYPES: [&str; 20] = [
    "FnOnce",
    "Change",
    "Edit",
    "Columns",
    "Id",
    "Row",
    "New",
    "Table",
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
    /// The type of its values, in its module.
    pub(super) owned: String,
    /// The marker of the table, in its module: `Kind`, unless an enum has that name.
    pub(super) kind: String,
    /// Getters and parameters, in the order of the fields.
    pub(super) fields: Vec<String>,
    /// Constants, in the order of the fields.
    pub(super) columns: Vec<String>,
    /// The enums of those fields that are ones, in the order of the fields.
    pub(super) enums: Vec<Option<EnumNames>>,
    /// The types of the program for those fields that have one, in the order of the fields.
    pub(super) own: Vec<Option<OwnNames>>,
}

/// The Rust names of a field with a type of the program.
pub(super) struct OwnNames {
    /// The path of the type, from anywhere.
    pub(super) path: String,
    /// The alias of the conversion, in the table's module.
    pub(super) alias: String,
}

impl OwnNames {
    fn new(field: &Field, path: &str, types: &mut Scope<'_>) -> Self {
        let alias = types.declare(&format!("{}Value", camel_case(&field.name, "Field")));
        let path = match path.strip_prefix("crate::") {
            Some(path) => format!("crate::{}", identifiers(path)),
            None => format!("::{}", identifiers(path)),
        };
        Self { path, alias }
    }
}

fn identifiers(path: &str) -> String {
    path.split("::").map(identifier).collect::<Vec<_>>().join("::")
}

/// The Rust names of a field that is an `enum`.
pub(super) struct EnumNames {
    /// The type, in the table's module.
    pub(super) ty: String,
    /// The variants, by their numbers.
    pub(super) variants: Vec<String>,
}

impl EnumNames {
    /// A type that can't have the field's name has the table's before it: `JobKind`.
    fn new(field: &Field, table: &str, types: &mut Scope<'_>) -> Option<Self> {
        let Type::Enum(variants) = field.ty else { return None };
        let camel = camel_case(&field.name, "Enum");
        let name = if types.is_impossible(&camel) { format!("{table}{camel}") } else { camel };
        let mut scope = Scope::new(&[], std::iter::empty());
        let variants = variants
            .numbered()
            .map(|variant| scope.declare(&camel_case(variant.name(), "Variant")));
        Some(Self { ty: types.declare(&name), variants: variants.collect() })
    }
}

/// The Rust names of an index.
pub(super) struct IndexNames {
    /// The method.
    pub(super) name: String,
    /// The type, in the table's module.
    pub(super) ty: String,
}

impl Names {
    pub(super) fn new(schema: &Schema, paths: &Paths) -> Self {
        let tables = schema.tables().iter().map(|table| table.name.as_str());
        let mut outer = Scope::new(&OUTER, tables);
        let mut variants = Scope::new(&[], std::iter::empty());
        let mut scopes = Vec::new();
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
            let camel = camel_case(&table.name, "Table");
            let mut types = Scope::new(&TYPES, std::iter::empty());
            let (variant, owned) = (variants.declare(&camel), types.declare(&camel));
            let enums = table.fields.iter().map(|field| EnumNames::new(field, &owned, &mut types));
            let enums = enums.collect();
            let kind =
                if types.is_impossible("Kind") { format!("{owned}Kind") } else { "Kind".into() };
            let kind = types.declare(&kind);
            scopes.push((types, Scope::new(&METHODS, std::iter::empty())));
            let own = Vec::new();
            TableNames { number, name, variant, owned, kind, fields, columns, enums, own }
        });
        let mut tables: Vec<_> = tables.collect();
        let indexes = schema.indexes().iter().map(|index| {
            let place = place_of(&tables, index.table);
            let table = place.and_then(|place| schema.tables().get(place));
            // Under its table, an index needn't say that it is one of it.
            let of_table = table.and_then(|table| index.name.strip_prefix(&table.name));
            let short = of_table.and_then(|name| name.strip_prefix('_'));
            let short = short.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
            let short = short.unwrap_or(&index.name);
            let ty = camel_case(short, "Index");
            match place.and_then(|place| scopes.get_mut(place)) {
                Some((types, methods)) => {
                    IndexNames { name: methods.declare(short), ty: types.declare(&ty) }
                }
                None => IndexNames { name: short.to_owned(), ty },
            }
        });
        let indexes = indexes.collect();
        // The last ones, so that they change no other name.
        for ((table, names), (types, _)) in schema.tables().iter().zip(&mut tables).zip(&mut scopes)
        {
            let own = table.fields.iter().map(|field| {
                let path = paths.get(&(table.number, field.number))?;
                Some(OwnNames::new(field, path, types))
            });
            names.own = own.collect();
        }
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
