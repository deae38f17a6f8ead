//! A table's module: its rows, how they are changed, and the types of its indexes.

use super::names::{Names, TableNames};
use super::types::Column;
use super::{Function, block, edit, enums, indent, index, join, must_use, own, row, wire};
use annals_schema::{Schema, Table, Type};

/// Where a module is generated.
pub(super) struct At<'a> {
    pub(super) schema: &'a Schema,
    pub(super) names: &'a Names,
    /// The type that represents the schema, as the module sees it.
    pub(super) marker: &'a str,
}

impl At<'_> {
    /// Writes the module of a table.
    pub(super) fn module(&self, table: &Table, names: &TableNames) -> String {
        let columns: Vec<_> = table
            .fields
            .iter()
            .zip(names.fields.iter().zip(names.enums.iter().zip(&names.own)))
            .map(|(field, (name, (of_enum, own)))| {
                Column::new(self.names, field, name, of_enum.as_ref()).with_own(own.as_ref())
            })
            .collect();
        let kind = &names.kind;
        let mut items =
            vec![self.kind(table, kind, &columns), row::row(table, &names.owned, &columns)];
        items.extend(own::aliases(&columns));
        let enums = columns.iter().zip(&names.enums);
        items.extend(enums.filter_map(|(column, names)| enums::of(column, names.as_ref()?)));
        if !table.single_row {
            items.push(row::new_row(table, kind, &columns));
        }
        if !table.single_row && !columns.is_empty() {
            items.push(row::columns(table, kind, &columns));
        }
        items.push(row::values(table, names, &columns));
        items.push(wire::wire(table, &names.owned, &columns));
        if !table.single_row {
            items.extend(constants(kind, &columns, &names.columns));
        }
        items.push(edit::edit(table, kind, &columns));
        if !table.single_row {
            items.push(self.reader(table, kind));
            for (index, names) in self.schema.indexes().iter().zip(&self.names.indexes) {
                if index.table == table.number {
                    items.push(index::lookup(index, kind, &names.ty, &columns));
                }
            }
        }
        let what = if table.single_row { ", which has one row" } else { "" };
        format!(
            "/// The table `{}`{what}.\npub mod {} {{\n{}}}\n",
            table.name,
            names.name,
            indent(&join(&items))
        )
    }

    /// Writes the table for reading, with its indexes.
    fn reader(&self, table: &Table, kind: &str) -> String {
        let indexes = self.schema.indexes().iter().zip(&self.names.indexes);
        let indexes = indexes.filter(|(index, _)| index.table == table.number);
        let accessors = indexes.map(|(index, names)| {
            let doc = format!("Returns the index `{}`.", index.name);
            must_use(
                &Function {
                    doc: &[&doc],
                    name: &names.name,
                    parameters: vec!["self".to_owned()],
                    gives: &format!("{}<'a>", names.ty),
                    body: &format!("{}::new(self.0.view())", names.ty),
                }
                .write(),
            )
        });
        let new = "\
#[inline]
pub(super) fn new(view: &'a ::annals::View) -> Self {
    Self(::annals::typed::Table::new(view))
}
";
        let functions: Vec<_> = std::iter::once(new.to_owned()).chain(accessors).collect();
        let name = &table.name;
        format!(
            "\
/// The table `{name}`, for reading, and its indexes.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a>(::annals::typed::Table<'a, {kind}>);

{}{}",
            block("impl<'a> Table<'a>", &functions),
            same_for_all(kind)
        )
    }

    /// Writes the marker of the table, and the types that are made with it.
    fn kind(&self, table: &Table, kind: &str, columns: &[Column<'_>]) -> String {
        let (name, number, marker) = (&table.name, table.number.0, self.marker);
        let known = known(columns);
        format!(
            "\
/// The kind of rows that the table `{name}` holds.
#[derive(Clone, Copy, Debug)]
pub enum {kind} {{}}

impl ::annals::typed::Record for {kind} {{
    const TABLE: ::annals::TableNumber = ::annals::TableNumber({number});
    const NAME: &'static str = \"{name}\";
    type Schema = {marker};
    type Row<'a> = Row<'a>;
    type Edit<'t, 'db: 't> = Edit<'t, 'db>;
{known}}}

/// The id of a row of `{name}`.
pub type Id = ::annals::typed::Id<{kind}>;

/// What became of a row of `{name}`.
pub type Change = ::annals::typed::Change<{kind}>;
"
        )
    }
}

/// Writes how a row gets its types where a newer program may have given it variants that this one doesn't know.
fn known(columns: &[Column<'_>]) -> String {
    let checks = columns.iter().filter_map(|column| {
        let Type::Enum(_) = column.field.ty else { return None };
        let (ty, number) = (column.stored(), column.number());
        Some(format!("        ::annals::typed::check_variant::<{ty}>(&row, {number})?;\n"))
    });
    let checks: String = checks.collect();
    if checks.is_empty() {
        return checks;
    }
    format!(
        "    #[inline]
    fn row(row: ::annals::Row<'_>) -> ::annals::Result<Row<'_>> {{
{checks}        Ok(Row(row))
    }}
"
    )
}

/// Writes how the methods that are the same for all tables are reached.
fn same_for_all(kind: &str) -> String {
    format!(
        "
impl<'a> ::std::ops::Deref for Table<'a> {{
    type Target = ::annals::typed::Table<'a, {kind}>;
    #[inline]
    fn deref(&self) -> &Self::Target {{
        &self.0
    }}
}}

impl<'a> IntoIterator for Table<'a> {{
    type Item = ::annals::Result<Row<'a>>;
    type IntoIter = ::annals::typed::Rows<'a, {kind}>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {{
        self.0.iter()
    }}
}}
"
    )
}

/// Writes the constants that name the fields.
fn constants(kind: &str, columns: &[Column<'_>], names: &[String]) -> Vec<String> {
    let constants = columns.iter().zip(names).map(|(column, name)| {
        let (field, ty, number) = (&column.field.name, column.column_type(), column.number());
        format!(
            "/// The column `{field}`, to be read and written in many rows at once.\n\
             pub const {name}: ::annals::typed::Column<{kind}, {ty}> = \
             ::annals::typed::Column::new({number});\n"
        )
    });
    constants.collect()
}

/// Writes the methods that return tables, given the expression of a view.
pub(super) fn accessors(schema: &Schema, names: &Names, view: &str) -> Vec<String> {
    let accessor = |table: &Table, names: &TableNames| {
        let name = &names.name;
        let function = |doc: &[&str], gives: &str, body: &str| {
            let parameters = vec!["&self".to_owned()];
            Function { doc, name, parameters, gives, body }.write()
        };
        if table.single_row {
            let doc = format!("Returns the only row of the table `{}`.", table.name);
            let body = format!("::annals::typed::only_row::<{name}::{}>({view})", names.kind);
            let gives = format!("::annals::Result<{name}::Row<'_>>");
            return function(&[&doc, "", "# Errors", "It can't be loaded."], &gives, &body);
        }
        let doc = format!("Returns the table `{}`.", table.name);
        let body = format!("{name}::Table::new({view})");
        must_use(&function(&[&doc], &format!("{name}::Table<'_>"), &body))
    };
    let tables = schema.tables().iter().zip(&names.tables);
    tables.map(|(table, names)| accessor(table, names)).collect()
}
