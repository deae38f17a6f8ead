//! Where a statement ends that a person types over several lines.

/// True if the text ends with a whole statement: a `;` that is in no text, name or comment, or nothing at all.
pub(super) fn is_whole(text: &str) -> bool {
    let (mut rest, mut ends) = (text, true);
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '\'' | '"' | '`' => close(rest, c, &c.to_string()),
            '[' => close(rest, '[', "]"),
            '-' if rest.starts_with("--") => Some(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => rest.find("*/").map(|end| end + 2),
            c => {
                ends = if c == ';' { true } else { ends && c.is_whitespace() };
                Some(c.len_utf8())
            }
        };
        let Some(skipped) = skipped else { return false };
        if matches!(c, '\'' | '"' | '`' | '[') {
            ends = false;
        }
        rest = rest.get(skipped..).unwrap_or_default();
    }
    ends
}

/// Returns the length of a part in quotes.
fn close(text: &str, open: char, end: &str) -> Option<usize> {
    let begun = open.len_utf8();
    text.get(begun..)?.find(end).map(|place| begun + place + end.len())
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn a_statement_ends_with_a_semicolon() {
        for whole in [
            "",
            "  ",
            "SELECT 1;",
            "SELECT ';' ; ",
            "SELECT 1; -- done",
            "/* ; */",
            "SELECT 'it''s';",
        ] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in [
            "SELECT 1",
            "SELECT ';",
            "SELECT \";\"",
            "SELECT 1; SELECT",
            "/* ",
            "SELECT 1 -- ;",
            "'",
        ] {
            assert!(!is_whole(part), "{part}");
        }
    }
}
