//! A table's module: its rows, what writes them, and the types of its indexes.

use super::names::{Names, TableNames, plain};
use super::types::Column;
use super::{Function, block, call, indent, index, join};
use crate::{Schema, Table};

/// The most fields whose values `insert` takes one by one.
const MOST_PARAMETERS: usize = 5;

/// Writes the module of a table.
pub(super) fn module(
    schema: &Schema,
    names: &Names,
    table: &Table,
    names_of_table: &TableNames,
) -> String {
    let columns: Vec<_> = table
        .fields
        .iter()
        .zip(&names_of_table.fields)
        .map(|(field, name)| Column::new(names, field, name))
        .collect();
    let wide = columns.len() > MOST_PARAMETERS;
    let mut items = vec![kind(table), row(table, &columns)];
    if wide {
        items.push(new_row(table, &columns));
    }
    items.push(writer(table, &columns, wide));
    for (index, names_of_index) in schema.indexes().iter().zip(&names.indexes) {
        if index.table == table.number {
            items.push(index::lookup(index, &names_of_index.ty, &columns));
        }
    }
    format!(
        "/// The table `{}`.\npub mod {} {{\n{}}}\n",
        table.name,
        names_of_table.name,
        indent(&join(&items))
    )
}

/// Writes the marker of the table, and the types that are made with it.
fn kind(table: &Table) -> String {
    let (name, number) = (&table.name, table.number.0);
    format!(
        "\
/// The kind of rows that the table `{name}` holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {{}}

impl ::annals::typed::Record for Kind {{
    const TABLE: ::annals::TableNumber = ::annals::TableNumber({number});
    const NAME: &'static str = \"{name}\";
    type Row<'a> = Row<'a>;
}}

/// The id of a row of `{name}`.
pub type Id = ::annals::typed::Id<Kind>;

/// The table `{name}`, for reading.
pub type Table<'a> = ::annals::typed::Table<'a, Kind>;
"
    )
}

/// Writes the row and its getters.
fn row(table: &Table, columns: &[Column<'_>]) -> String {
    let mut getters = vec![
        getter("Gives the row's id.", "id", "Id", "Id::from(self.0.id())"),
        getter(
            "Gives the same row without the types of its schema.",
            "as_dynamic",
            "&::annals::Row<'a>",
            "&self.0",
        ),
    ];
    for column in columns {
        let doc = column.description();
        getters.push(getter(&doc, column.name, &column.value(""), &column.read()));
    }
    format!(
        "\
/// A row of `{}`. Its getters can't fail, and cost no search.
#[derive(Clone)]
pub struct Row<'a>(::annals::Row<'a>);

impl<'a> From<::annals::Row<'a>> for Row<'a> {{
    fn from(row: ::annals::Row<'a>) -> Self {{
        Self(row)
    }}
}}

{}
{}",
        table.name,
        block("impl<'a> Row<'a>", &getters),
        debug(columns)
    )
}

/// Writes how a row is shown: with the names of its getters.
fn debug(columns: &[Column<'_>]) -> String {
    let fields: String = columns
        .iter()
        .map(|column| {
            let getter = column.name;
            let name = getter.trim_start_matches("r#");
            format!("\n            .field(\"{name}\", &self.{getter}())")
        })
        .collect();
    format!(
        "\
impl ::std::fmt::Debug for Row<'_> {{
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {{
        f.debug_struct(\"Row\")
            .field(\"id\", &self.id()){fields}
            .finish()
    }}
}}
"
    )
}

fn getter(doc: &str, name: &str, gives: &str, body: &str) -> String {
    let parameters = vec!["&self".to_owned()];
    Function { doc: &[doc], name, parameters, gives, body }.write().replacen(
        "pub fn",
        "#[inline]\n#[must_use]\npub fn",
        1,
    )
}

/// Writes the values of a new row, for tables with many fields.
fn new_row(table: &Table, columns: &[Column<'_>]) -> String {
    let borrows = columns.iter().any(Column::is_borrowed);
    let generics = if borrows { "<'a>" } else { "" };
    let lifetime = if borrows { "'a " } else { "" };
    let elided = if borrows { "'a" } else { "'static" };
    let fields: Vec<_> = columns
        .iter()
        .map(|column| {
            let (doc, name) = (column.description(), column.name);
            format!("/// {doc}\npub {name}: {},\n", column.value(lifetime))
        })
        .collect();
    let values: String = columns
        .iter()
        .map(|column| format!("            self.{}.into(),\n", column.name))
        .collect();
    let declared = columns.iter().any(|column| column.field.default.is_some());
    let derived = if declared { "Clone, Copy, Debug" } else { "Clone, Copy, Debug, Default" };
    let mut code = format!(
        "\
/// The values of a new row of `{}`. `Default` gives those of the schema.
#[derive({derived})]
pub struct New{generics} {{
{}}}

impl{generics} New{generics} {{
    fn values(self) -> [::annals::ValueRef<{elided}>; {}] {{
        [
{values}        ]
    }}
}}
",
        table.name,
        indent(&fields.concat()),
        columns.len(),
    );
    if declared {
        let elided = if borrows { "<'_>" } else { "" };
        let values: String = columns
            .iter()
            .map(|column| format!("            {}: {},\n", column.name, column.default()))
            .collect();
        code += &format!(
            "
impl Default for New{elided} {{
    fn default() -> Self {{
        Self {{
{values}        }}
    }}
}}
"
        );
    }
    code
}

/// Writes what reads and writes the table in a transaction.
fn writer(table: &Table, columns: &[Column<'_>], wide: bool) -> String {
    let mut functions = vec![
        "fn new(transaction: &'t mut ::annals::Transaction<'db>) -> Self {\n    \
         Self(::annals::typed::Writer::new(transaction))\n}\n"
            .replacen("fn", "pub(super) fn", 1),
    ];
    functions.extend(insert(columns, wide));
    functions.extend(columns.iter().map(setter));
    functions.extend(reads());
    format!(
        "\
/// The table `{}` in a transaction, for reading and writing.
#[derive(Debug)]
pub struct Writer<'t, 'db>(::annals::typed::Writer<'t, 'db, Kind>);

{}
impl<'t, 'db> ::std::ops::Deref for Writer<'t, 'db> {{
    type Target = ::annals::typed::Writer<'t, 'db, Kind>;
    fn deref(&self) -> &Self::Target {{
        &self.0
    }}
}}

impl<'t, 'db> ::std::ops::DerefMut for Writer<'t, 'db> {{
    fn deref_mut(&mut self) -> &mut Self::Target {{
        &mut self.0
    }}
}}
",
        table.name,
        block("impl<'t, 'db> Writer<'t, 'db>", &functions)
    )
}

/// Writes `insert` and `insert_at`.
fn insert(columns: &[Column<'_>], wide: bool) -> [String; 2] {
    let (parameters, values) = if wide {
        let borrows = columns.iter().any(Column::is_borrowed);
        let elided = if borrows { "<'_>" } else { "" };
        (vec![format!("row: New{elided}")], "&row.values()".to_owned())
    } else {
        let arguments: Vec<_> = columns.iter().map(Column::argument).collect();
        (columns.iter().map(Column::parameter).collect(), array(&arguments))
    };
    let mut with_id = vec!["&mut self".to_owned(), "id: Id".to_owned()];
    let mut without = vec!["&mut self".to_owned()];
    with_id.extend(parameters.iter().cloned());
    without.extend(parameters);
    let unique = "A row has the same key in a unique index, or the journal can't be written.";
    let first = Function {
        doc: &["Inserts a row with the table's next id.", "", "# Errors", unique],
        name: "insert",
        parameters: without,
        gives: "::annals::Result<Id>",
        body: &call("self.0.insert", std::slice::from_ref(&values)),
    };
    let used =
        "The id is in use, a row has the same key in a unique index, or the journal can't be";
    let second = Function {
        doc: &["Inserts a row at a free id.", "", "# Errors", used, "written."],
        name: "insert_at",
        parameters: with_id,
        gives: "::annals::Result<()>",
        body: &call("self.0.insert_at", &["id".to_owned(), values]),
    };
    [first.write(), second.write()]
}

/// Writes an array of values, on several lines if it is long.
pub(super) fn array(arguments: &[String]) -> String {
    let line = format!("&[{}]", arguments.join(", "));
    if line.len() <= 72 { line } else { format!("&[\n    {},\n]", arguments.join(",\n    ")) }
}

/// Writes the setter of a field.
fn setter(column: &Column<'_>) -> String {
    let doc = format!("Sets the field `{}` of a row.", column.field.name);
    Function {
        doc: &[
            &doc,
            "",
            "# Errors",
            "There is no row with that id, or the journal can't be written.",
        ],
        name: &format!("set_{}", plain(column.name)),
        parameters: vec!["&mut self".to_owned(), "id: Id".to_owned(), column.parameter()],
        gives: "::annals::Result<()>",
        body: &call("self.0.set", &["id".to_owned(), column.number(), column.argument()]),
    }
    .write()
}

/// Writes the reads whose rows live as long as the borrow of the transaction, not of the writer.
fn reads() -> [String; 3] {
    let get = Function {
        doc: &["Gives the row with that id.", "", "# Errors", "There is none."],
        name: "get",
        parameters: vec!["self".to_owned(), "id: Id".to_owned()],
        gives: "::annals::Result<Row<'t>>",
        body: "self.0.into_table().get(id)",
    };
    let find = Function {
        doc: &[
            "Gives the row with that id, if there is one.",
            "",
            "# Errors",
            "It can't be loaded.",
        ],
        name: "find",
        parameters: vec!["self".to_owned(), "id: Id".to_owned()],
        gives: "::annals::Result<Option<Row<'t>>>",
        body: "self.0.into_table().find(id)",
    };
    let iter = Function {
        doc: &["Gives all rows in order of their ids."],
        name: "iter",
        parameters: vec!["self".to_owned()],
        gives: "::annals::typed::Rows<'t, Kind>",
        body: "self.0.into_table().iter()",
    };
    [get.write(), find.write(), iter.write()]
}
