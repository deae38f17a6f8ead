//! The type of an index, with its lookups.

use super::names::plain;
use super::table::array;
use super::types::Column;
use super::{Function, block};
use crate::{FieldNumber, Index, Type};

/// Writes the type of an index.
pub(super) fn lookup(index: &Index, ty: &str, columns: &[Column<'_>]) -> String {
    let find = |number: &FieldNumber| columns.iter().find(|c| c.field.number == *number);
    let fields: Vec<_> = index.fields.iter().filter_map(find).collect();
    let list: Vec<_> = fields.iter().map(|column| format!("`{}`", column.field.name)).collect();
    let (name, number) = (&index.name, index.number.0);
    let unique = if index.unique { "unique index" } else { "index" };
    format!(
        "\
/// The {unique} `{name}`: rows in order of {}.
#[derive(Clone, Copy, Debug)]
pub struct {ty}<'a> {{
    index: ::annals::typed::Index<'a, Kind>,
}}

{}
impl<'a> ::std::ops::Deref for {ty}<'a> {{
    type Target = ::annals::typed::Index<'a, Kind>;
    fn deref(&self) -> &Self::Target {{
        &self.index
    }}
}}

impl<'a> IntoIterator for {ty}<'a> {{
    type Item = ::annals::Result<Row<'a>>;
    type IntoIter = ::annals::typed::IndexRows<'a, Kind>;
    fn into_iter(self) -> Self::IntoIter {{
        self.index.iter()
    }}
}}
",
        list.join(", "),
        block(&format!("impl<'a> {ty}<'a>"), &functions(index, name, number, &fields))
    )
}

const ROWS: &str = "::annals::typed::IndexRows<'a, Kind>";

fn functions(index: &Index, name: &str, number: u32, fields: &[&Column<'_>]) -> Vec<String> {
    let mut functions = vec![format!(
        "pub(super) fn new(view: &'a ::annals::View) -> Self {{\n    \
         let number = ::annals::IndexNumber({number});\n    \
         Self {{ index: ::annals::typed::Index::new(view, number, \"{name}\") }}\n}}\n"
    )];
    functions.push(if index.unique { get(fields) } else { equal("find", "this key", fields) });
    for count in 1..fields.len() {
        let leading = fields.get(..count).unwrap_or(&[]);
        let names: Vec<_> = leading.iter().map(|column| plain(column.name)).collect();
        let name = format!("with_{}", names.join("_and_"));
        functions.push(equal(&name, "these leading fields", leading));
    }
    if let Some(first) = fields.first() {
        functions.extend(prefix(first));
        functions.push(range(first));
    }
    functions
}

fn parameters(fields: &[&Column<'_>]) -> Vec<String> {
    let own = std::iter::once("&self".to_owned());
    own.chain(fields.iter().map(|column| column.key_parameter())).collect()
}

fn generic(name: &str, fields: &[&Column<'_>]) -> String {
    let named = fields.iter().any(|column| column.names_lifetime());
    format!("{name}{}", if named { "<'k>" } else { "" })
}

fn keys(fields: &[&Column<'_>]) -> String {
    let arguments: Vec<_> = fields.iter().map(|column| column.key_argument()).collect();
    array(&arguments)
}

fn get(fields: &[&Column<'_>]) -> String {
    let nullable = fields.iter().any(|column| column.field.nullable);
    let note = "Keys with null aren't unique: it is the first of those rows.";
    let mut doc = vec!["Gives the row with this key, if there is one."];
    if nullable {
        doc.push(note);
    }
    doc.extend(["", "# Errors", "The row can't be loaded."]);
    Function {
        doc: &doc,
        name: &generic("get", fields),
        parameters: parameters(fields),
        gives: "::annals::Result<Option<Row<'a>>>",
        body: &format!("self.index.first({})", keys(fields)),
    }
    .write()
}

fn equal(name: &str, what: &str, fields: &[&Column<'_>]) -> String {
    Function {
        doc: &[&format!("Gives the rows with {what}, in the order of the index.")],
        name: &generic(name, fields),
        parameters: parameters(fields),
        gives: ROWS,
        body: &format!("self.index.equal({})", keys(fields)),
    }
    .write()
}

fn prefix(first: &Column<'_>) -> Option<String> {
    let (ty, bytes) = match first.field.ty {
        Type::String => ("&str", "prefix.as_bytes()"),
        Type::Bytes => ("&[u8]", "prefix"),
        _ => return None,
    };
    let function = Function {
        doc: &[&format!("Gives the rows whose `{}` begins with `prefix`.", first.field.name)],
        name: "prefix",
        parameters: vec!["&self".to_owned(), format!("prefix: {ty}")],
        gives: ROWS,
        body: &format!("self.index.prefix({bytes})"),
    };
    Some(function.write())
}

fn range(first: &Column<'_>) -> String {
    let (name, ty) = if first.is_borrowed() {
        ("range<'k>", first.plain("'k "))
    } else {
        ("range", first.plain(""))
    };
    let doc = format!("Gives the rows whose `{}` is in the bounds.", first.field.name);
    let mut doc = vec![doc.as_str()];
    if first.field.nullable {
        doc.push("Null is in no bounds.");
    }
    Function {
        doc: &doc,
        name,
        parameters: vec!["&self".to_owned(), format!("bounds: impl ::std::ops::RangeBounds<{ty}>")],
        gives: ROWS,
        body: "self.index.range(bounds)",
    }
    .write()
}
