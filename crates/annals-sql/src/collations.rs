//! Collations of texts that stand for values: decimals by their size, variants in the order of their declaration, and
//! dates of all years.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use annals::Type;
use annals::model::Variants;
use rusqlite::Connection;

/// The collation of decimals.
const DECIMAL: &str = "annals_decimal";
/// The collation of dates.
const DATE: &str = "annals_date";

/// Returns the name of the collation of a type's texts; `None`: they are compared by their bytes.
pub(crate) fn of(ty: Type) -> Option<String> {
    match ty {
        Type::Decimal(_) => Some(DECIMAL.to_owned()),
        Type::Date => Some(DATE.to_owned()),
        Type::Enum(variants) => Some(enum_name(variants)),
        _ => None,
    }
}

/// The bytes of variants that a name has. With longer ones a table of many columns would have a declaration that is
/// longer than a confined connection allows.
const LONGEST: usize = 150;

/// Returns a name that is the same for the same variants only: two databases may be attached. Of many variants it has the
/// first ones and a hash.
fn enum_name(variants: Variants) -> String {
    let all = variants.to_string();
    if all.len() <= LONGEST {
        return format!("annals_enum({all})");
    }
    let mut hasher = DefaultHasher::new();
    all.hash(&mut hasher);
    let end = (0..=LONGEST).rev().find(|&end| all.is_char_boundary(end)).unwrap_or(0);
    format!("annals_enum({}..{:016x})", &all[..end], hasher.finish())
}

/// Makes the collations of types known to a connection.
pub(crate) fn register(
    connection: &Connection,
    types: impl Iterator<Item = Type>,
) -> rusqlite::Result<()> {
    let mut known = known(connection)?;
    let mut is_new = |name: &str| {
        let is_new = !known.iter().any(|known| known == name);
        known.extend(is_new.then(|| name.to_owned()));
        is_new
    };
    if is_new(DECIMAL) {
        connection.create_collation(DECIMAL, compare_decimals)?;
    }
    if is_new(DATE) {
        connection.create_collation(DATE, compare_dates)?;
    }
    for ty in types {
        if let Type::Enum(variants) = ty
            && is_new(&enum_name(variants))
        {
            let number = move |text: &str| variants.named(text).map(|variant| variant.number());
            let compare = move |a: &str, b: &str| match (number(a), number(b)) {
                (Some(a), Some(b)) => a.cmp(&b),
                // Other texts are after all variants.
                (a, b) => b.is_some().cmp(&a.is_some()).then_with(|| a.cmp(&b)),
            };
            let exact = move |a: &str, b: &str| compare(a, b).then_with(|| a.cmp(b));
            connection.create_collation(enum_name(variants).as_str(), exact)?;
        }
    }
    Ok(())
}

/// Returns the names of a connection's collations. While statements run, SQLite lets none be replaced.
fn known(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    // Not `pragma_collation_list`: a table of the database may have that name.
    let mut names = connection.prepare("PRAGMA collation_list")?;
    let names = names.query_map([], |row| row.get("name"))?;
    names.collect()
}

/// The parts of a decimal text: sign, digits before the point, digits after it, both without zeros at their ends.
fn decimal(text: &str) -> Option<(bool, &str, &str)> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + part.len() == 0 || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    Some((is_negative && !(whole.is_empty() && part.is_empty()), whole, part))
}

/// Compares decimals by their size. Other texts are after them.
fn compare_decimals(a: &str, b: &str) -> Ordering {
    let (Some(left), Some(right)) = (decimal(a), decimal(b)) else {
        return decimal(b).is_some().cmp(&decimal(a).is_some()).then_with(|| a.cmp(b));
    };
    let size =
        |(_, whole, part): (bool, &str, &str)| (whole.len(), whole.to_owned(), part.to_owned());
    match (left.0, right.0) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => size(left).cmp(&size(right)),
        (true, true) => size(right).cmp(&size(left)),
    }
}

/// Compares dates: years before 0 and after 9999 have a sign. Of other texts, as `1990`, the bytes decide.
fn compare_dates(a: &str, b: &str) -> Ordering {
    let era = |text: &str| -> (i8, i64) {
        let signed =
            |rest: &str| rest.split_once('-').and_then(|(year, _)| year.parse::<i64>().ok());
        match (text.strip_prefix('-').and_then(signed), text.strip_prefix('+').and_then(signed)) {
            (Some(year), _) => (-1, -year),
            (_, Some(year)) => (1, year),
            _ => (0, 0),
        }
    };
    era(a).cmp(&era(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the texts are in ascending order, each pair of them.
    fn assert_ascending(texts: &[&str], compare: impl Fn(&str, &str) -> Ordering) {
        for (at, a) in texts.iter().enumerate() {
            for (other, b) in texts.iter().enumerate() {
                assert_eq!(compare(a, b), at.cmp(&other), "{a} and {b}");
            }
        }
    }

    #[test]
    fn decimals_compare_by_size() {
        assert_ascending(
            &["-100.5", "-9", "-0.01", "0.00", "0.05", "9.5", "12.50", "12.51", "100", "abc", "b"],
            compare_decimals,
        );
        assert_eq!(compare_decimals("12.5", "012.50"), Ordering::Equal);
        assert_eq!(compare_decimals("-0.0", "0"), Ordering::Equal);
    }

    #[test]
    fn dates_compare_by_their_years() {
        assert_ascending(
            &[
                "-10000-01-01",
                "-00044-03-15",
                "-00044-05-01",
                "0000-01-01",
                "1990",
                "1990-02-03",
                "9999-12-31",
                "+10000-01-01",
                "+123456-01-01",
            ],
            compare_dates,
        );
    }
}
