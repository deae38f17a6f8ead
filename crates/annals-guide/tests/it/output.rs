//! What a block printed beside what stands below it.

/// True if lines are as expected: `…` stands for anything in a line, alone for any lines.
pub(crate) fn agrees(expected: &[&str], actual: &[&str]) -> bool {
    match (expected, actual) {
        ([], []) => true,
        (["…", rest @ ..], _) => {
            (0..=actual.len()).any(|skipped| agrees(rest, &actual[skipped..]))
        }
        ([line, expected @ ..], [printed, actual @ ..]) => {
            line_agrees(line, printed) && agrees(expected, actual)
        }
        _ => false,
    }
}

/// Returns the same of one line.
pub(crate) fn line_agrees(expected: &str, actual: &str) -> bool {
    let Some((first, rest)) = expected.split_once('…') else {
        return expected == actual;
    };
    let Some(mut actual) = actual.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<_> = rest.split('…').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match actual.split_once(part) {
            Some((_, behind)) => actual = behind,
            None => return false,
        }
    }
    actual.ends_with(last)
}

#[test]
fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
    for (expected, actual, is_so) in [
        ("", "", true),
        ("a\nb", "a\nb", true),
        ("a\nb", "a\nc", false),
        ("a", "a\nb", false),
        ("a\nb", "a", false),
        ("position=… level=soft", "position=17 level=soft", true),
        ("position=… level=soft", "position=17 level=half", false),
        ("…b…d", "abcd", true),
        ("…b…d", "acbd", true),
        ("…d…b", "abcd", false),
        ("aa…aa", "aaa", false),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("a\n…\nd", "a\nd", true),
        ("a\n…\nd", "a\nb\nc", false),
    ] {
        let (e, a): (Vec<_>, Vec<_>) = (expected.lines().collect(), actual.lines().collect());
        assert_eq!(agrees(&e, &a), is_so, "{expected:?} {actual:?}");
    }
}
