//! A table's rows: getters, and the values of a new one.

use super::types::Column;
use super::{Function, block, indent};
use crate::{Table, Type};

/// Writes the row and its getters.
pub(super) fn row(table: &Table, columns: &[Column<'_>]) -> String {
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
        let body = format!("self.0.read({})", column.number());
        getters.push(getter(&column.description(), column.name, &column.value(""), &body));
    }
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
    Function { doc: &[doc], name, parameters, gives, body }.write().replacen(
        "pub fn",
        "#[must_use]\npub fn",
        1,
    )
}

/// Writes the values of a new row.
pub(super) fn new_row(table: &Table, columns: &[Column<'_>]) -> String {
    let borrows = columns.iter().any(Column::is_borrowed);
    let (generics, elided) = if borrows { ("<'a>", "'a") } else { ("", "'static") };
    let lifetime = if borrows { "'a " } else { "" };
    let declared = columns.iter().any(|column| column.field.default.is_some());
    let fields = columns.iter().map(|column| {
        let (doc, name) = (column.description(), column.name);
        format!("    /// {doc}\n    pub {name}: {},\n", column.value(lifetime))
    });
    let values: Vec<_> =
        columns.iter().map(|column| format!("self.{}.into()", column.name)).collect();
    format!(
        "\
/// The values of a new row of `{}`. `Default` gives those of the schema; `From` copies a row.
#[derive({})]
pub struct New{generics} {{
{}}}

impl{generics} New{generics} {{
    #[inline]
    fn values(self) -> [::annals::ValueRef<{elided}>; {}] {{
        let values = [{}];
        values
    }}
}}
{}
{}",
        table.name,
        if declared { "Clone, Copy, Debug" } else { "Clone, Copy, Debug, Default" },
        fields.collect::<String>(),
        columns.len(),
        values.join(", "),
        if declared { default(columns, borrows) } else { String::new() },
        copy(columns, borrows),
    )
}

/// Writes the values of a row by themselves.
pub(super) fn values(table: &Table, columns: &[Column<'_>]) -> String {
    let fields = columns.iter().map(|column| {
        let (doc, name, ty) = (column.description(), column.name, column.owned());
        format!("    /// {doc}\n    pub {name}: {ty},\n")
    });
    let fields = fields.collect::<String>();
    let taken = columns
        .iter()
        .map(|column| format!("            {}: row.take({})?,\n", column.name, column.number()));
    let (body, row, made) = match columns.is_empty() {
        true => ("{}".to_owned(), "_", "Ok(Values {})".to_owned()),
        false => {
            let taken = taken.collect::<String>();
            (format!("{{\n{fields}}}"), "row", format!("Ok(Values {{\n{taken}        }})"))
        }
    };
    let is_float = |column: &Column<'_>| matches!(column.field.ty, Type::Float32 | Type::Float64);
    let eq = if columns.iter().any(is_float) { "" } else { ", Eq" };
    format!(
        "\
/// The values of a row of `{}` by themselves, as a [`Change`] has them.
#[derive(Clone, Debug, PartialEq{eq})]
pub struct Values {body}

impl ::annals::typed::Versioned for Kind {{
    type Values = Values;
    fn values({row}: &mut ::annals::typed::RowValues) -> ::annals::Result<Values> {{
        {made}
    }}
}}
",
        table.name
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
    format!(
        "\
impl{generics} From<{of}> for New{generics} {{
    #[inline]
    fn from(row: {of}) -> Self {{
        {}
    }}
}}
",
        literal(&values)
    )
}

/// Writes the columns of many new rows.
pub(super) fn columns(table: &Table, columns: &[Column<'_>]) -> String {
    let fields = columns.iter().map(|column| {
        let (doc, name) = (column.description(), column.name);
        format!("    /// {doc}\n    pub {name}: &'a [{}],\n", column.value("'a "))
    });
    let values: Vec<_> =
        columns.iter().map(|column| format!("self.{}.into()", column.name)).collect();
    format!(
        "\
/// The values of many new rows of `{}`: for each field a slice, all of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {{
{}}}

impl<'a> Columns<'a> {{
    #[inline]
    fn vectors(self) -> [::annals::typed::Vector<'a>; {}] {{
        let vectors = [{}];
        vectors
    }}
}}
",
        table.name,
        fields.collect::<String>(),
        columns.len(),
        values.join(", "),
    )
}

/// Writes a struct literal in a function of an implementation: on one line if rustfmt would.
fn literal(fields: &[String]) -> String {
    let line = fields.join(", ");
    if line.chars().count() <= 18 {
        return format!("Self {{ {line} }}");
    }
    let lines: String = fields.iter().map(|field| format!("{field},\n")).collect();
    format!("Self {{\n{}        }}", indent(&indent(&indent(&lines))))
}
