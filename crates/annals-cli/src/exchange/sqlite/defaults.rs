//! Defaults of columns that are a single value.

use annals::{Field, Type, Value};
use rusqlite::Connection;

use super::types;
use crate::exchange::scalar::{Converted, convert};

/// Returns the value of a default; `None` if it isn't of the field's type, or is different each time.
pub(super) fn value(
    connection: &Connection,
    field: &Field,
    expression: &str,
    words: &str,
) -> Option<Value> {
    if !is_literal(expression) || field.ty == Type::Blob {
        return None;
    }
    let query = format!("SELECT {expression}");
    let converted = connection.query_row(&query, [], |row| {
        Ok(convert(types::scalar(row.get_ref(0)?, types::declared(words)), field.ty))
    });
    match converted.ok()? {
        Some(Converted::Value(value)) if field.accepts(value.as_ref()) => Some(value),
        _ => None,
    }
}

/// True if an expression names no column and calls no function: outside of its quotes there are only a few
/// words, digits and signs.
fn is_literal(expression: &str) -> bool {
    let outside: String = expression.split('\'').step_by(2).collect::<Vec<_>>().join(" ");
    let is_letter = |c: char| c.is_alphabetic() || c == '_';
    let mut words = outside.split(|c| !is_letter(c)).filter(|word| !word.is_empty());
    let known = ["X", "E", "NULL", "TRUE", "FALSE", "CAST", "AS", "TEXT"];
    words.all(|word| known.iter().any(|known| known.eq_ignore_ascii_case(word)))
        && outside.chars().all(|c| is_letter(c) || c.is_ascii_digit() || " ().+-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literals_are_evaluated() {
        for expression in
            ["1", "-1.5e3", "'it''s'", "X'00ff'", "(NULL)", "TRUE", "(-9223372036854775807-1)"]
        {
            assert!(is_literal(expression), "{expression}");
        }
        for expression in
            ["CURRENT_TIMESTAMP", "(random())", "(1);DROP TABLE t", "(SELECT 1)", "\"a\"", "/**/1"]
        {
            assert!(!is_literal(expression), "{expression}");
        }
    }
}
