//! Values as cells on a screen: on one line, harmless, and of a known width.

use std::fmt::Write;

use annals::ValueRef;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::language;

/// The end of a truncated text.
const CUT: &str = "..";

/// Returns how many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns a value as a cell of at most `limit` columns; numbers and times are never cut. A string
/// is shown without quotes if it is unambiguous: not null, empty, or a quoted string.
pub(crate) fn cell(value: ValueRef<'_>, limit: Option<usize>) -> String {
    let Some(limit) = limit else { return full(value) };
    match value {
        ValueRef::String(text) => {
            let begun = beginning(text, limit);
            let mark = if begun.len() < text.len() { CUT } else { "" };
            cut(&(full(ValueRef::String(begun)) + mark), limit)
        }
        ValueRef::Bytes(bytes) => {
            // Each byte takes two columns.
            let shown = bytes.get(..limit).unwrap_or(bytes);
            cut(&full(ValueRef::Bytes(shown)), limit)
        }
        value => full(value),
    }
}

/// Returns a value as the language writes it, with no character that could steer a terminal.
pub(crate) fn literal(value: ValueRef<'_>) -> String {
    harmless(&language::value_text(value))
}

/// Escapes characters of a quoted text that could control a terminal.
pub(crate) fn harmless(text: &str) -> String {
    if !text.contains(steers) {
        return text.to_owned();
    }
    let mut harmless = String::new();
    for c in text.chars() {
        if steers(c) {
            // Writing to a string can't fail.
            let _ = write!(harmless, "\\u{{{:x}}}", u32::from(c));
        } else {
            harmless.push(c);
        }
    }
    harmless
}

/// Cuts a text to at most `limit` columns.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mark = CUT.get(..limit.min(CUT.len())).unwrap_or_default();
    let room = limit - mark.len();
    let mut taken = 0;
    let mut shown = String::new();
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        shown.push(c);
    }
    shown + mark
}

fn full(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::String(text) if is_plain(text) => text.to_owned(),
        value => literal(value),
    }
}

/// True if a string can be shown without quotes.
fn is_plain(text: &str) -> bool {
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    text != "null"
        && !text.starts_with('"')
        && !is_blank(text.chars().next())
        && !is_blank(text.chars().next_back())
        && !text.contains(steers)
}

/// True if a character has an effect on the terminal: control characters, ends of lines, and
/// characters that change the direction of a line or are invisible.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Returns the visible part of a long text, and some more: the whole of it may be a gigabyte.
fn beginning(text: &str, limit: usize) -> &str {
    /// Characters without width count too.
    const MORE: usize = 100;
    let end = text.char_indices().nth(limit * 4 + MORE);
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_no_string_and_no_string_is_null() {
        let shown = |text| cell(ValueRef::String(text), None);
        assert_eq!(cell(ValueRef::Null, None), "null");
        assert_eq!(shown("null"), "\"null\"");
        assert_eq!(shown(""), "\"\"");
        assert_eq!(shown(" a"), "\" a\"");
        assert_eq!(shown("a b"), "a b");
        assert_eq!(shown("\"\""), "\"\\\"\\\"\"");
        assert_eq!(shown("C:\\x"), "C:\\x");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let shown = |text| cell(ValueRef::String(text), None);
        assert_eq!(shown("a\u{1b}[31mb"), "\"a\\033[31mb\"");
        assert_eq!(shown("a\nb\u{9b}"), "\"a\\nb\\u{9b}\"");
        assert_eq!(shown("a\u{202e}b"), "\"a\\u{202e}b\"");
        assert_eq!(shown("\u{feff}b"), "\"\\u{feff}b\"");
        let all: String = (char::MIN..=char::MAX).collect();
        assert!(!shown(&all).contains(steers));
        assert!(!literal(ValueRef::String(&all)).contains(steers));
    }

    #[test]
    fn texts_are_cut_by_what_they_take_on_the_screen() {
        let shown = |text, limit| cell(ValueRef::String(text), Some(limit));
        assert_eq!(shown("abcdef", 6), "abcdef");
        assert_eq!(shown("abcdefg", 6), "abcd..");
        assert_eq!(shown("日本語", 6), "日本語");
        assert_eq!(shown("日本語です", 6), "日本..");
        assert_eq!(shown("日本語です", 7), "日本..");
        assert_eq!(shown("e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}e\u{301}");
        assert_eq!(shown("abc", 1), ".");
        assert_eq!(cell(ValueRef::Bytes(&[0xab; 1000]), Some(8)), "0xabab..");
        assert_eq!(cell(ValueRef::Int64(1_234_567_890), Some(4)), "1234567890");
        let long = "x".repeat(1 << 20);
        assert_eq!(shown(&long, 10), "xxxxxxxx..");
        // Whatever is cut fits.
        let odd = "a日\u{301}👩\u{200d}👩\u{200d}👧b\u{7}c";
        for limit in 0..40 {
            assert!(width(&shown(odd, limit)) <= limit, "{limit}");
        }
    }
}
