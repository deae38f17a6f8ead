//! The conversions of a table's fields whose types are the program's.

use super::types::Column;

/// Writes an alias for each of them, whose functions the rest of the module calls; nothing if there are none.
pub(super) fn aliases(columns: &[Column<'_>]) -> Option<String> {
    let alias = |column: &Column<'_>| {
        let own = column.own?;
        let which = if column.field.nullable { "OwnOrNull" } else { "Own" };
        let (alias, stored, path) = (&own.alias, column.stored(), &own.path);
        Some(format!("type {alias} = ::annals::typed::{which}<{stored}, {path}>;\n"))
    };
    let aliases: String = columns.iter().filter_map(alias).collect();
    (!aliases.is_empty()).then_some(aliases)
}
