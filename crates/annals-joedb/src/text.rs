//! Texts of notes and messages.

use annals::ValueRef;

/// Formats a number of items: "1 row", "2 rows", "2 indexes".
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("{number} {noun}"),
        _ if noun.ends_with('x') => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

/// Returns a value as the shell reads it.
pub(crate) fn value_text(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _infallible = annals_schema::write_value(&mut text, value);
    text
}
