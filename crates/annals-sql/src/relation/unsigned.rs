//! Refusing what would compare large numbers of a `uint64` wrongly without a word.
//!
//! SQLite has no integers from 2^63 on. So ours are bytes, which it takes for more than any number, and in the text of a
//! query, or from a program, such a number is a float: a comparison of both would find too much or nothing. It is an
//! error, whatever the rows have, wherever SQLite says what a column is compared with.

use annals::Type;

use crate::host::{Asked, Fault, Form, Op};
use crate::shape::Column;

/// The first number that no integer of SQLite is.
const FIRST: f64 = 9_223_372_036_854_775_808.0;

/// True if a comparison with numbers from 2^63 on is to be refused.
pub(super) fn is_refused(column: Option<&Column>, op: Option<Op>) -> bool {
    let compares = !matches!(op, None | Some(Op::Like | Op::Glob | Op::IsNull));
    compares && column.is_some_and(|column| column.ty == Type::UInt64)
}

/// Refuses the values that are known when a query is prepared; `column` returns the one at a place in SQL.
pub(super) fn refuse_known<'c>(
    asked: &Asked,
    column: impl Fn(usize) -> Option<&'c Column>,
) -> Result<(), Fault> {
    for term in &asked.terms {
        let column = usize::try_from(term.column).ok().and_then(&column);
        if is_refused(column, term.op) {
            term.value.as_ref().map_or(Ok(()), |value| refuse(column, value))?;
        }
    }
    Ok(())
}

/// Refuses a value that a column of `uint64` is compared with.
pub(super) fn refuse(column: Option<&Column>, value: &Form<'_>) -> Result<(), Fault> {
    let number = match value {
        Form::Real(number) => Some(*number),
        Form::Text(text) => number(text),
        _ => None,
    };
    if number.is_none_or(|number| number < FIRST) {
        return Ok(());
    }
    let shown = match value {
        Form::Text(text) => format!("'{text}'"),
        _ => number.unwrap_or(FIRST).to_string(),
    };
    let name = column.map_or("a uint64", |column| &column.name);
    Err(Fault::new(format!(
        "`{name}` is compared with {shown}: a number from 2^63 on is a float in SQLite, not a uint64; write \
         annals_uint64('9223372036854775808'), with the digits in quotes"
    )))
}

/// Returns the number that SQLite makes of a text when it compares it with a column of numbers.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    // Rust also reads words, as "inf".
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.').then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_sqlite_takes_for_floats_are_refused() {
        for value in ["9223372036854775808", "18446744073709551615", " 1e300 ", "+1E19"] {
            assert!(refuse(None, &Form::Text(value.into())).is_err(), "{value}");
        }
        for value in ["9223372036854774000", "-1e300", "5", "", "inf", "x", "1e"] {
            assert_eq!(refuse(None, &Form::Text(value.into())).map_err(|it| it.message), Ok(()));
        }
        assert!(refuse(None, &Form::Real(FIRST)).is_err());
        assert!(refuse(None, &Form::Real(f64::INFINITY)).is_err());
        assert!(refuse(None, &Form::Real(-f64::INFINITY)).is_ok());
        assert!(refuse(None, &Form::Integer(i64::MAX)).is_ok());
    }
}
