//! Cells that are numbers, and the columns of them: which type writes all of them again as they are.

use annals::Type;

use crate::exchange::scalar::{Scalar, Seen, exact_float, is_written_so};
use crate::notes::note;

/// The summary of a column's cells.
pub(super) struct Column {
    pub(super) seen: Seen,
    /// True if all cells are numbers.
    are_numbers: bool,
    /// The digits that all cells have after the point; `None` at the beginning, and then if they differ.
    scale: Option<Option<u8>>,
    /// The first number that would be written otherwise by a field of numbers, and its line.
    odd: Option<(u64, String)>,
}

impl Column {
    /// Begins without a cell.
    pub(super) fn new() -> Self {
        Self { seen: Seen::default(), are_numbers: true, scale: None, odd: None }
    }

    /// Adds a cell of a line that isn't null.
    pub(super) fn see(&mut self, text: &str, line: u64) {
        if let Ok(value) = text.parse::<bool>() {
            self.are_numbers = false;
            return self.seen.see(Scalar::Bool(value));
        }
        let int = text.parse::<i128>().ok().filter(|value| value.to_string() == text);
        let float = Some(text).filter(|text| is_plain(text)).and_then(exact_float);
        self.seen.see(match (int, float) {
            (Some(value), _) => Scalar::Int(value),
            (None, Some(value)) => Scalar::Real(value),
            (None, None) => Scalar::Text(text),
        });
        self.are_numbers &= is_number(text);
        if int.is_none() && float.is_none() && self.odd.is_none() && self.are_numbers {
            self.odd = Some((line, text.to_owned()));
        }
        let scale = scale(text);
        self.scale = Some(scale.filter(|_| self.scale.is_none_or(|before| before == scale)));
    }

    /// Returns the type that holds all cells as they are written; `shown` is the column's name in notes.
    pub(super) fn ty(&self, shown: &str) -> Type {
        // Numbers beside texts stay as they are written.
        let ty = if self.seen.is_mixed() { Type::String } else { self.seen.natural(false) };
        if ty != Type::String || !self.are_numbers || self.seen.is_empty() {
            return ty;
        }
        if let Some(decimal) = self.scale.flatten().and_then(decimal) {
            return decimal;
        }
        let first = match &self.odd {
            Some((line, text)) => format!(", as {} in line {line}", annals_schema::shorten(text)),
            None => String::new(),
        };
        note(&format!(
            "{shown} has numbers of which a field of numbers would lose digits{first}: they become texts; with \
             --schema they can have another type"
        ));
        Type::String
    }
}

fn decimal(scale: u8) -> Option<Type> {
    Type::named(&format!("decimal({scale})"))
}

/// True if a text is a number for people.
fn is_number(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(is_part) && text.parse::<f64>().is_ok()
}

/// Returns the digits after the point, if a decimal with that many writes the number so.
fn scale(text: &str) -> Option<u8> {
    let (_, fraction) = text.split_once('.')?;
    let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale > 0)?;
    is_written_so(text, decimal(scale)?).then_some(scale)
}

/// True if a text looks as programs write floats: `0.5`, `2.0` and `1.5e-07`, but not `1.10`, which may be a version,
/// nor `1E5`, which may be the name of something.
fn is_plain(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !are_digits(whole) || !fraction.is_none_or(are_digits) {
        return false;
    }
    match (exponent, fraction) {
        (None, None) => false,
        (None, Some(fraction)) => {
            let begins = whole == "0" || !whole.starts_with('0');
            begins && (fraction == "0" || !fraction.ends_with('0'))
        }
        (Some(exponent), fraction) => {
            let is_large = exponent.parse::<u32>().is_ok_and(|exponent| exponent >= 16);
            whole.len() == 1 && (fraction.is_some() || exponent.starts_with(['+', '-']) || is_large)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(cells: &[&str]) -> String {
        let mut column = Column::new();
        cells.iter().for_each(|cell| column.see(cell, 2));
        column.ty("column x").to_string()
    }

    #[test]
    fn a_column_has_a_type_that_writes_its_cells_as_they_are() {
        let cases: [(&[&str], &str); 27] = [
            (&["1", "-2"], "int64"),
            (&["18446744073709551615"], "uint64"),
            (&["99999999999999999999"], "string"),
            (&["0.5", "2", "-7.25"], "float64"),
            (&["2.0", "0.30000000000000004"], "float64"),
            (&["0.1", "1e-05", "1e+16", "1.5E7"], "float64"),
            (&["1.000000000000000056e-01", "1.000000000000000000e+00"], "float64"),
            (&["6.02214076e23", "1e100"], "float64"),
            (&["1.10", "1.1", "2.0"], "string"),
            (&["12.50", "3.00", "-0.25"], "decimal(2)"),
            (&["12.50", "3"], "string"),
            (&["-0.00", "0.50"], "string"),
            (&["0.1234567890123456789", "1000000000.000000001"], "string"),
            (&["0.1234567890123456789"], "decimal(19)"),
            (&["1e-400"], "string"),
            (&["1E5", "9E2", "3"], "string"),
            (&["12e5"], "string"),
            (&["007"], "string"),
            (&["07.5"], "string"),
            (&["+1.5"], "string"),
            (&[".5"], "string"),
            (&["9007199254740993", "0.5"], "string"),
            (&["1.5", "x"], "string"),
            (&["nan"], "string"),
            (&["1.2.3"], "string"),
            (&["true", "false"], "bool"),
            (&[], "string"),
        ];
        for (cells, wanted) in cases {
            assert_eq!(ty(cells), wanted, "{cells:?}");
        }
    }
}
