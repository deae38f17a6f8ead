//! The type of an index, with its lookups.

use super::names::plain;
use super::types::Column;
use super::{Function, array, block, call};
use annals_schema::{FieldNumber, Index, Type};

/// Writes the type of an index.
pub(super) fn lookup(index: &Index, kind: &str, ty: &str, columns: &[Column<'_>]) -> String {
    let find = |&number: &FieldNumber| columns.iter().find(|column| column.field.number == number);
    let fields: Vec<_> = index.fields.iter().filter_map(find).collect();
    let list = fields.iter().zip(index.columns());
    let list = list.map(|(column, (_, word))| format!("`{}{word}`", column.field.name));
    let list: Vec<_> = list.collect();
    let name = &index.name;
    let unique = if index.unique { "unique index" } else { "index" };
    format!(
        "\
/// The {unique} `{name}`: rows in order of {}.
#[derive(Clone, Copy, Debug)]
pub struct {ty}<'a> {{
    index: ::annals::typed::Index<'a, {kind}>,
}}

{}
impl<'a> ::std::ops::Deref for {ty}<'a> {{
    type Target = ::annals::typed::Index<'a, {kind}>;
    #[inline]
    fn deref(&self) -> &Self::Target {{
        &self.index
    }}
}}

impl<'a> IntoIterator for {ty}<'a> {{
    type Item = ::annals::Result<Row<'a>>;
    type IntoIter = ::annals::typed::IndexRows<'a, {kind}>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {{
        self.index.iter()
    }}
}}
",
        list.join(", "),
        block(&format!("impl<'a> {ty}<'a>"), &functions(index, kind, &fields))
    )
}

/// Returns the type of the rows that a lookup finds.
fn rows(kind: &str) -> String {
    format!("::annals::typed::IndexRows<'a, {kind}>")
}

fn functions(index: &Index, kind: &str, fields: &[&Column<'_>]) -> Vec<String> {
    let (name, number) = (&index.name, index.number.0);
    let mut functions = vec![format!(
        "#[inline]\npub(super) fn new(view: &'a ::annals::View) -> Self {{\n    \
         let number = ::annals::IndexNumber({number});\n    \
         let index = ::annals::typed::Index::new(view, number, \"{name}\");\n    \
         Self {{ index }}\n}}\n"
    )];
    if index.unique {
        functions.extend([get(fields), require(fields)]);
    } else {
        functions.push(equal(&named("with", fields), "this key", fields, kind));
    }
    for (count, next) in fields.iter().enumerate() {
        let leading = fields.get(..count).unwrap_or(&[]);
        let behind = Behind { leading, next, kind };
        if count > 0 {
            let name = named("with", leading);
            functions.push(equal(&name, "these leading fields", leading, kind));
        }
        // In the order of a language, strings that begin alike needn't follow one another.
        if index.collation(next.field.number).is_none() {
            functions.extend(behind.prefix());
        }
        functions.push(behind.range());
        functions.extend(behind.nulls());
        if count > 0 {
            let name = named("cursor_at", leading);
            functions.push(cursor(&name, "leading fields aren't", leading, kind));
        }
    }
    functions.push(cursor("cursor_at", "key isn't", fields, kind));
    functions
}

/// Makes `with_last_name_and_first_name`. No two are the same in an index, since each list of
/// leading fields begins with the one before, and the first words differ.
fn named(what: &str, leading: &[&Column<'_>]) -> String {
    let names: Vec<_> = leading.iter().map(|column| plain(column.name)).collect();
    format!("{what}_{}", names.join("_and_"))
}

fn parameters(fields: &[&Column<'_>]) -> Vec<String> {
    let own = std::iter::once("&self".to_owned());
    own.chain(fields.iter().map(|column| column.parameter())).collect()
}

/// Writes a name with the lifetime of its parameters, if one of them names it.
fn generic(name: &str, columns: &[&Column<'_>]) -> String {
    let named = columns.iter().any(|column| column.names_lifetime());
    format!("{name}{}", if named { "<'k>" } else { "" })
}

fn keys(fields: &[&Column<'_>]) -> String {
    let arguments: Vec<_> = fields.iter().map(|column| column.argument()).collect();
    array(&arguments)
}

fn get(fields: &[&Column<'_>]) -> String {
    let nullable = fields.iter().any(|column| column.field.nullable);
    let note = "Keys with null aren't unique: it is the first of those rows.";
    let mut doc = vec!["Returns the row with this key, if there is one."];
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

fn require(fields: &[&Column<'_>]) -> String {
    Function {
        doc: &[
            "Returns the row with this key.",
            "",
            "# Errors",
            "There is none, and the error names the key; or it can't be loaded.",
        ],
        name: &generic("require", fields),
        parameters: parameters(fields),
        gives: "::annals::Result<Row<'a>>",
        body: &format!("self.index.require({})", keys(fields)),
    }
    .write()
}

fn equal(name: &str, what: &str, fields: &[&Column<'_>], kind: &str) -> String {
    Function {
        doc: &[&format!("Returns the rows with {what}, in the order of the index.")],
        name: &generic(name, fields),
        parameters: parameters(fields),
        gives: &rows(kind),
        body: &format!("self.index.equal({})", keys(fields)),
    }
    .write()
}

fn cursor(name: &str, what: &str, fields: &[&Column<'_>], kind: &str) -> String {
    Function {
        doc: &[
            &format!("Returns a cursor before the first row whose {what} less than what is given."),
            "",
            "# Errors",
            "The rows can't be loaded.",
        ],
        name: &generic(name, fields),
        parameters: parameters(fields),
        gives: &format!("::annals::Result<::annals::typed::Cursor<'a, {kind}>>"),
        body: &format!("self.index.cursor_at({})", keys(fields)),
    }
    .write()
}

/// A field of an index, after leading ones that are given.
struct Behind<'f, 'c> {
    leading: &'f [&'f Column<'c>],
    next: &'f Column<'c>,
    /// The marker of the table.
    kind: &'f str,
}

impl Behind<'_, '_> {
    /// Writes a lookup of this field, `name` or `name_with_..`; without leading fields, its parameter
    /// is called `alone`.
    fn function(
        &self,
        name: &str,
        alone: &str,
        doc: &[&str],
        parameter: impl Fn(&str) -> Option<String>,
        body: impl Fn(&str) -> String,
    ) -> String {
        let (mut name, value) = match self.leading {
            [] => (name.to_owned(), alone),
            leading => (named(&format!("{name}_with"), leading), self.next.name),
        };
        let parameter = parameter(value);
        let borrows = parameter.as_ref().is_some_and(|parameter| parameter.contains("&'k "));
        if borrows || self.leading.iter().any(|column| column.names_lifetime()) {
            name += "<'k>";
        }
        let parameters = parameters(self.leading).into_iter().chain(parameter).collect();
        let gives = &rows(self.kind);
        Function { doc, name: &name, parameters, gives, body: &body(value) }.write()
    }

    /// Says which rows are found: those with the leading fields, and `what`.
    fn doc(&self, what: &str) -> String {
        let with = if self.leading.is_empty() { "" } else { "with these leading fields " };
        format!("Returns the rows {with}whose `{}` {what}.", self.next.field.name)
    }

    fn prefix(&self) -> Option<String> {
        let (ty, bytes) = match self.next.field.ty {
            Type::String | Type::Json => ("&str", ".as_bytes()"),
            Type::Bytes | Type::FixedBytes(_) => ("&[u8]", ""),
            _ => return None,
        };
        let doc = self.doc("begins with a prefix");
        let body =
            |name: &str| call("self.index.prefix", &[keys(self.leading), format!("{name}{bytes}")]);
        let parameter = |name: &str| Some(format!("{name}: {ty}"));
        Some(self.function("prefix", "prefix", &[&doc], parameter, body))
    }

    fn range(&self) -> String {
        let doc = self.doc("is in the bounds");
        let mut doc = vec![doc.as_str()];
        if self.next.field.nullable {
            doc.push("Null is in no bounds.");
        }
        let lifetime = if self.next.is_borrowed() { "'k " } else { "" };
        let ty = self.next.plain(lifetime);
        let parameter = |name: &str| Some(format!("{name}: impl ::std::ops::RangeBounds<{ty}>"));
        let bounds = |name: &str| match self.next.own {
            Some(own) => format!("{}::bounds(&{name})", own.alias),
            None => name.to_owned(),
        };
        let body = |name: &str| call("self.index.range", &[keys(self.leading), bounds(name)]);
        self.function("range", "bounds", &doc, parameter, body)
    }

    fn nulls(&self) -> Option<String> {
        let doc = self.doc("is null");
        let mut arguments: Vec<_> = self.leading.iter().map(|column| column.argument()).collect();
        arguments.push("::annals::ValueRef::Null".to_owned());
        let body = |_: &str| format!("self.index.equal({})", array(&arguments));
        let nullable = self.next.field.nullable;
        nullable.then(|| self.function("nulls", "", &[&doc], |_| None, body))
    }
}
