//! The reader and writer of a table in a transaction.

use super::names::plain;
use super::table::{MOST_PARAMETERS, has_columns, has_new};
use super::types::Column;
use super::{Function, array, block, call};
use crate::Table;

/// Generates the reader and writer of the table in a transaction.
pub(super) fn writer(table: &Table, columns: &[Column<'_>]) -> String {
    let ty = if table.single_row { "SingleWriter" } else { "Writer" };
    let mut functions = vec![format!(
        "#[inline]\npub(super) fn new(transaction: &'t mut ::annals::Transaction<'db>) -> Self {{\n    \
         Self(::annals::typed::{ty}::new(transaction))\n}}\n"
    )];
    if table.single_row {
        functions.extend(columns.iter().map(single_setter));
        functions.push(single_read());
    } else {
        functions.extend(insert(table, columns));
        functions.extend(columns.iter().map(setter));
        functions.extend(reads());
    }
    let name = &table.name;
    let what = if table.single_row { "only row of the table" } else { "table" };
    let mut code = format!(
        "\
/// The {what} `{name}` in a transaction, for reading and writing.
#[derive(Debug)]
#[must_use]
pub struct Writer<'t, 'db>(::annals::typed::{ty}<'t, 'db, Kind>);

{}",
        block("impl<'t, 'db> Writer<'t, 'db>", &functions)
    );
    if !table.single_row {
        code += DEREF;
    }
    code
}

/// How the methods that are the same for all tables are reached.
const DEREF: &str = "
impl<'t, 'db> ::std::ops::Deref for Writer<'t, 'db> {
    type Target = ::annals::typed::Writer<'t, 'db, Kind>;
    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'t, 'db> ::std::ops::DerefMut for Writer<'t, 'db> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
";

/// Writes the setter of a field of the only row.
fn single_setter(column: &Column<'_>) -> String {
    let doc = format!("Sets the field `{}`.", column.field.name);
    Function {
        doc: &[&doc, "", "# Errors", "The journal can't be written."],
        name: &format!("set_{}", plain(column.name)),
        parameters: vec!["&mut self".to_owned(), column.parameter()],
        gives: "::annals::Result<()>",
        body: &call("self.0.set", &[column.number(), column.argument()]),
    }
    .write()
}

/// Writes how the only row is read.
fn single_read() -> String {
    Function {
        doc: &[
            "Returns the row as the transaction sees it.",
            "",
            "# Errors",
            "It can't be loaded.",
        ],
        name: "row",
        parameters: vec!["self".to_owned()],
        gives: "::annals::Result<Row<'t>>",
        body: "self.0.into_row()",
    }
    .write()
}

const UNIQUE: &str = "A row has the same key in a unique index, or the journal can't be written.";

/// Writes the ways to insert a row.
fn insert(table: &Table, columns: &[Column<'_>]) -> Vec<String> {
    let borrows = columns.iter().any(Column::is_borrowed);
    let new = format!("row: New{}", if borrows { "<'_>" } else { "" });
    let is_wide = columns.len() > MOST_PARAMETERS;
    let (parameters, values): (Vec<_>, _) = if is_wide {
        (vec![new.clone()], "&row.values()".to_owned())
    } else {
        let arguments: Vec<_> = columns.iter().map(Column::argument).collect();
        (columns.iter().map(Column::parameter).collect(), array(&arguments))
    };
    let with = |first: &[&str]| -> Vec<String> {
        let first = first.iter().map(|&parameter| parameter.to_owned());
        first.chain(parameters.iter().cloned()).collect()
    };
    let insert = Function {
        doc: &["Inserts a row with the table's next id.", "", "# Errors", UNIQUE],
        name: "insert",
        parameters: with(&["&mut self"]),
        gives: "::annals::Result<Id>",
        body: &call("self.0.insert", std::slice::from_ref(&values)),
    };
    let used =
        "The id is in use, a row has the same key in a unique index, or the journal can't be";
    let insert_at = Function {
        doc: &["Inserts a row at a free id.", "", "# Errors", used, "written."],
        name: "insert_at",
        parameters: with(&["&mut self", "id: Id"]),
        gives: "::annals::Result<()>",
        body: &call("self.0.insert_at", &["id".to_owned(), values]),
    };
    let mut functions = vec![insert.write(), insert_at.write()];
    if has_new(table) {
        functions.insert(1, insert_row(new));
        functions.push(insert_vector(table, columns));
    }
    functions
}

/// Writes the way to insert many rows.
fn insert_vector(table: &Table, columns: &[Column<'_>]) -> String {
    let names_lifetime = columns.iter().any(|column| column.field.nullable);
    let vectors = columns.iter().map(Column::vector_argument).collect::<Vec<_>>();
    let (name, parameters, vectors) = if has_columns(table) {
        ("insert_vector", vec!["rows: Columns<'_>".to_owned()], "&rows.vectors()".to_owned())
    } else {
        let (name, lifetime) =
            if names_lifetime { ("insert_vector<'k>", "'k ") } else { ("insert_vector", "") };
        let parameters = columns.iter().map(|column| column.vector_parameter(lifetime));
        (name, parameters.collect(), array(&vectors))
    };
    Function {
        doc: &[
            "Inserts many rows with the table's next ids: for each field a slice, all of the same",
            "length. Returns the first row's id. Unique keys are checked at commit.",
            "",
            "# Errors",
            "The slices aren't of the same length, or the journal can't be written.",
        ],
        name,
        parameters: std::iter::once("&mut self".to_owned()).chain(parameters).collect(),
        gives: "::annals::Result<Id>",
        body: &call("self.0.insert_vector", &[vectors]),
    }
    .write()
}

/// Writes the way to insert a row by the names of its fields.
fn insert_row(row: String) -> String {
    let rest = "are the schema's defaults with `..Default::default()`; `New::from` copies a row.";
    Function {
        doc: &[
            "Inserts a row with the table's next id, given by the names of its fields. The others",
            rest,
            "",
            "# Errors",
            UNIQUE,
        ],
        name: "insert_row",
        parameters: vec!["&mut self".to_owned(), row],
        gives: "::annals::Result<Id>",
        body: "self.0.insert(&row.values())",
    }
    .write()
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
        doc: &["Returns the row with that id.", "", "# Errors", "There is none."],
        name: "get",
        parameters: vec!["self".to_owned(), "id: Id".to_owned()],
        gives: "::annals::Result<Row<'t>>",
        body: "self.0.into_table().get(id)",
    };
    let find = Function {
        doc: &[
            "Returns the row with that id, if there is one; follows a reference.",
            "",
            "# Errors",
            "It can't be loaded.",
        ],
        name: "find",
        parameters: vec!["self".to_owned(), "id: impl ::annals::typed::Nullable<Id>".to_owned()],
        gives: "::annals::Result<Option<Row<'t>>>",
        body: "self.0.into_table().find(id)",
    };
    let iter = Function {
        doc: &["Returns all rows in order of their ids."],
        name: "iter",
        parameters: vec!["self".to_owned()],
        gives: "::annals::typed::Rows<'t, Kind>",
        body: "self.0.into_table().iter()",
    };
    [get.write(), find.write(), iter.write()]
}
