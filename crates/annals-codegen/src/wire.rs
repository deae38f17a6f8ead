//! The fields of a table's types for serde, which a macro of the library implements if its feature `serde` is on.

use super::indent;
use super::types::Column;
use annals_schema::{Table, Type};

/// Writes the fields of the owned values, and of the values of a new row.
pub(super) fn wire(table: &Table, owned: &str, columns: &[Column<'_>]) -> String {
    let of_owned = fields(columns, Column::owned_stored, Column::owned_default);
    let mut written = format!("owned {owned} {{\n{}}}", indent(&of_owned));
    let mut code = invocation(&written);
    if !table.single_row {
        let (generics, lifetime) = match columns.iter().any(Column::is_borrowed) {
            true => ("<'a>", "'a "),
            false => ("", ""),
        };
        let of_new = fields(columns, |column| of_new(column, lifetime), Column::default);
        written = format!("new New{generics} {{\n{}}}", indent(&of_new));
        code += &format!("\n{}", invocation(&written));
    }
    code
}

/// Returns the type that a field of a new row is read as.
fn of_new(column: &Column<'_>, lifetime: &str) -> String {
    match column.own {
        Some(_) => column.owned_stored(),
        None => column.value(lifetime),
    }
}

fn invocation(content: &str) -> String {
    format!("::annals::__serde! {{\n{}}}\n", indent(content))
}

fn fields<'a>(
    columns: &[Column<'a>],
    ty: impl Fn(&Column<'a>) -> String,
    default: impl Fn(&Column<'a>) -> String,
) -> String {
    let field = |column: &Column<'a>| {
        let form = match column.field.ty {
            Type::Bytes | Type::FixedBytes(_) | Type::Float32 | Type::Float64 => "AsText",
            _ => "Plain",
        };
        let may_be_absent = column.field.nullable || column.field.default.is_some();
        let absent = if may_be_absent { format!(" = {}", default(column)) } else { String::new() };
        let (text, name) = (&column.field.name, column.name);
        let own = column.own.map_or_else(String::new, |own| format!(" via {}", own.alias));
        format!("{text:?} {name}: {} as {form}{own}{absent},\n", ty(column))
    };
    columns.iter().map(field).collect()
}
