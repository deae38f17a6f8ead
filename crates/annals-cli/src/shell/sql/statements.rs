//! Where a statement ends that a person types over several lines.

/// True if the text ends with a whole statement: a `;` that is in no text, name or comment, or nothing at all.
pub(super) fn is_whole(text: &str) -> bool {
    let (mut rest, mut ends) = (text, true);
    while let Some(c) = rest.chars().next() {
        let Some(skipped) = part(rest, c) else { return false };
        let is_comment = rest.starts_with("--") || rest.starts_with("/*");
        ends = c == ';' || ends && (c.is_whitespace() || is_comment);
        rest = rest.get(skipped..).unwrap_or_default();
    }
    ends
}

/// Returns the statements of a text, each with its `;`.
#[cfg(feature = "net")]
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut statements, mut begin, mut at) = (Vec::new(), 0, 0);
    while let Some((rest, c)) = text.get(at..).and_then(|rest| Some((rest, rest.chars().next()?))) {
        at += part(rest, c).unwrap_or(rest.len());
        if c == ';' || at == text.len() {
            statements.extend(text.get(begin..at));
            begin = at;
        }
    }
    statements.retain(|statement| !statement.trim_matches([' ', '\t', '\r', '\n', ';']).is_empty());
    statements
}

/// Returns the length of what begins with a character: a part in quotes, a comment, or it alone; `None` if that has no end.
fn part(rest: &str, c: char) -> Option<usize> {
    match c {
        '\'' | '"' | '`' => close(rest, c, &c.to_string()),
        '[' => close(rest, '[', "]"),
        '-' if rest.starts_with("--") => Some(rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => rest.find("*/").map(|end| end + 2),
        c => Some(c.len_utf8()),
    }
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
    #[cfg(feature = "net")]
    fn statements_are_told_apart() {
        let text = "SELECT ';', \";\"; -- a;b\nSELECT 2;; /* ; */ SELECT [;] 'open; end";
        let expected =
            ["SELECT ';', \";\";", " -- a;b\nSELECT 2;", " /* ; */ SELECT [;] 'open; end"];
        assert_eq!(super::split(text), expected);
        assert!(super::split(" ; \n;").is_empty());
    }

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
