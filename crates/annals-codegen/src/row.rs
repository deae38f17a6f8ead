//! A table's rows: getters, and the values of a new one.

use super::names::TableNames;
use super::types::Column;
use super::{Function, block, must_use};
use annals_schema::{Table, Type};

/// Writes the row and its getters.
pub(super) fn row(table: &Table, owned: &str, columns: &[Column<'_>]) -> String {
    let mut getters = vec![
        getter("Returns the row's id.", "id", "Id", "Id::from(self.0.id())"),
        getter(
            "Returns the same row without the types of its schema.",
            "as_dynamic",
            "&::annals::Row<'a>",
            "&self.0",
        ),
    ];
    for column in columns {
        let gives = column.value("");
        getters.push(getter(&column.description(), column.name, &gives, &column.read()));
    }
    getters.push(getter(
        "Copies the values of the row.",
        "to_owned",
        owned,
        &copied(owned, columns),
    ));
    format!(
        "\
/// A row of `{}`. Its getters can't fail, and cost no search.
#[derive(Clone)]
pub struct Row<'a>(::annals::Row<'a>);

impl<'a> From<::annals::Row<'a>> for Row<'a> {{
    #[inline]
    fn from(row: ::annals::Row<'a>) -> Self {{
        Self(row)
    }}
}}

impl ::std::fmt::Debug for Row<'_> {{
    #[inline]
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {{
        ::std::fmt::Debug::fmt(&self.0, f)
    }}
}}

{}",
        table.name,
        block("impl<'a> Row<'a>", &getters),
    )
}

fn getter(doc: &str, name: &str, gives: &str, body: &str) -> String {
    let parameters = vec!["&self".to_owned()];
    must_use(&Function { doc: &[doc], name, parameters, gives, body }.write())
}

/// Writes the expression that makes the values of a row its own.
fn copied(owned: &str, columns: &[Column<'_>]) -> String {
    let values = columns.iter().map(|column| {
        let (copied, own) = match (column.field.ty, column.field.nullable) {
            _ if !column.is_borrowed() => ("", ""),
            (Type::FixedBytes(_), true) => ("", ".copied()"),
            (Type::FixedBytes(_), false) => ("*", ""),
            (_, true) => ("", ".map(Into::into)"),
            (_, false) => ("", ".into()"),
        };
        format!("    {0}: {copied}self.{0}(){own},\n", column.name)
    });
    format!("{owned} {{\n{}}}", values.collect::<String>())
}

/// Writes the values of a new row.
pub(super) fn new_row(table: &Table, kind: &str, columns: &[Column<'_>]) -> String {
    let borrows = columns.iter().any(Column::is_borrowed);
    let (generics, elided) = if borrows { ("<'a>", "<'_>") } else { ("", "") };
    let lifetime = if borrows { "'a " } else { "" };
    let has_own = columns.iter().any(|column| column.own.is_some());
    let declared = has_own || columns.iter().any(|column| column.field.default.is_some());
    // No row is the zero of a required reference.
    let demands = columns.iter().any(Column::demands_a_row);
    let derived = match (has_own, declared || demands) {
        // A type of the program need not be `Copy`.
        (true, _) => "Clone, Debug",
        (false, true) => "Clone, Copy, Debug",
        (false, false) => "Clone, Copy, Debug, Default",
    };
    let fields = columns.iter().map(|column| {
        let (doc, name) = (column.description(), column.name);
        format!("    /// {doc}\n    pub {name}: {},\n", column.value(lifetime))
    });
    let fields = fields.collect::<String>();
    let body = if fields.is_empty() { "{}".to_owned() } else { format!("{{\n{fields}}}") };
    format!(
        "\
/// The values of a new row of `{}`. {}`From` copies a row.
#[derive({})]
pub struct New{generics} {body}

impl ::annals::typed::NewRow for New{elided} {{
    type Kind = {kind};
    #[inline]
    fn with<T>(self, take: impl FnOnce(&[::annals::ValueRef<'_>]) -> T) -> T {{
        let values = {};
        take(&values)
    }}
}}
{}
{}",
        table.name,
        if demands { "" } else { "`Default` gives those of the schema; " },
        derived,
        values_of_self(columns),
        if declared && !demands { default(columns, borrows) } else { String::new() },
        copy(columns, borrows),
    )
}

fn values_of_self(columns: &[Column<'_>]) -> String {
    let values: Vec<_> = columns.iter().map(Column::value_of_new).collect();
    format!("[{}]", values.join(", "))
}

fn vectors_of_self(columns: &[Column<'_>]) -> String {
    let vectors = columns.iter().map(|column| match (column.field.ty, column.field.nullable) {
        (Type::Enum(_), false) => format!("::annals::typed::variants(self.{})", column.name),
        _ => format!("self.{}.into()", column.name),
    });
    format!("[{}]", vectors.collect::<Vec<_>>().join(", "))
}

/// Writes the values of a row by themselves.
pub(super) fn values(table: &Table, names: &TableNames, columns: &[Column<'_>]) -> String {
    let TableNames { owned, kind, .. } = names;
    let fields = columns.iter().map(|column| {
        let (doc, name, ty) = (column.description(), column.name, column.owned());
        format!("    /// {doc}\n    pub {name}: {ty},\n")
    });
    let fields = fields.collect::<String>();
    let taken =
        columns.iter().map(|column| format!("            {}: {}?,\n", column.name, column.taken()));
    let (body, row, made) = match columns.is_empty() {
        true => ("{}".to_owned(), "_", format!("Ok({owned} {{}})")),
        false => {
            let taken = taken.collect::<String>();
            (format!("{{\n{fields}}}"), "row", format!("Ok({owned} {{\n{taken}        }})"))
        }
    };
    let is_float = |column: &Column<'_>| matches!(column.field.ty, Type::Float32 | Type::Float64);
    let may_not_be_eq = |column: &Column<'_>| is_float(column) || column.own.is_some();
    let eq = if columns.iter().any(may_not_be_eq) { "" } else { ", Eq" };
    format!(
        "\
/// The values of a row of `{}` by themselves, as [`Row::to_owned`] and a [`Change`] have them.
/// `insert`, `update` and `upsert` take a reference to them.
#[derive(Clone, Debug, PartialEq{eq})]
pub struct {owned} {body}

impl ::annals::typed::Versioned for {kind} {{
    type Values = {owned};
    fn values({row}: &mut ::annals::typed::RowValues) -> ::annals::Result<{owned}> {{
        {made}
    }}
}}
{}",
        table.name,
        if table.single_row { String::new() } else { as_new(names, columns) },
    )
}

/// Writes how values by themselves become those of a new row.
fn as_new(TableNames { owned, kind, .. }: &TableNames, columns: &[Column<'_>]) -> String {
    let values: Vec<_> = columns.iter().map(Column::value_of_owned).collect();
    format!(
        "
impl ::annals::typed::NewRow for &{owned} {{
    type Kind = {kind};
    #[inline]
    fn with<T>(self, take: impl FnOnce(&[::annals::ValueRef<'_>]) -> T) -> T {{
        let values = [{}];
        take(&values)
    }}
}}
",
        values.join(", ")
    )
}

/// Writes the defaults that the schema declares.
fn default(columns: &[Column<'_>], borrows: bool) -> String {
    let elided = if borrows { "<'_>" } else { "" };
    let values: Vec<_> =
        columns.iter().map(|column| format!("{}: {}", column.name, column.default())).collect();
    format!(
        "
impl Default for New{elided} {{
    #[inline]
    fn default() -> Self {{
        {}
    }}
}}
",
        literal(&values)
    )
}

/// Writes how the values of a row are taken for a new one.
fn copy(columns: &[Column<'_>], borrows: bool) -> String {
    let (generics, of) = if borrows { ("<'a>", "&'a Row<'_>") } else { ("", "&Row<'_>") };
    let values: Vec<_> =
        columns.iter().map(|column| format!("{0}: row.{0}()", column.name)).collect();
    let row = if values.is_empty() { "_" } else { "row" };
    format!(
        "\
impl{generics} From<{of}> for New{generics} {{
    #[inline]
    fn from({row}: {of}) -> Self {{
        {}
    }}
}}
",
        literal(&values)
    )
}

/// Writes the columns of many new rows.
pub(super) fn columns(table: &Table, kind: &str, columns: &[Column<'_>]) -> String {
    let fields = columns.iter().map(|column| {
        let (doc, name) = (column.description(), column.name);
        format!("    /// {doc}\n    pub {name}: &'a [{}],\n", column.value_stored("'a "))
    });
    format!(
        "\
/// The values of many new rows of `{}`: for each field a slice, all of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {{
{}}}

impl ::annals::typed::NewRows for Columns<'_> {{
    type Kind = {kind};
    #[inline]
    fn with<T>(self, take: impl FnOnce(&[::annals::typed::Vector<'_>]) -> T) -> T {{
        let vectors = {};
        take(&vectors)
    }}
}}
",
        table.name,
        fields.collect::<String>(),
        vectors_of_self(columns),
    )
}

/// Writes a struct literal in a function of an implementation.
fn literal(fields: &[String]) -> String {
    let lines: String = fields.iter().map(|field| format!("            {field},\n")).collect();
    format!("Self {{\n{lines}        }}")
}
