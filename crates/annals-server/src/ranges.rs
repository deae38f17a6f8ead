//! Ranges of files (RFC 9110, section 14).

use axum::http::{HeaderMap, header};

/// The part of a file that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All of it: there is no range, or one that the server needn't understand.
    All,
    /// From one byte to before another.
    Part { from: u64, to: u64 },
    /// A part after its end.
    Outside,
}

impl Asked {
    /// Reads the headers of a request for a file with this tag, in quotes, and length.
    pub(crate) fn of(headers: &HeaderMap, tag: &str, len: u64) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        if text(header::IF_RANGE).is_some_and(|expected| expected != tag) {
            return Self::All;
        }
        let range = text(header::RANGE).and_then(|range| range.strip_prefix("bytes="));
        range.and_then(|range| Self::parse(range, len)).unwrap_or(Self::All)
    }

    /// Reads one range; `None` for several ones, and for what is none.
    fn parse(range: &str, len: u64) -> Option<Self> {
        let (first, last) = range.trim().split_once('-')?;
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().unwrap_or(u64::MAX))
        };
        let part = match (first, last) {
            ("", last) => (len.saturating_sub(number(last)?), len),
            (first, "") => (number(first)?, len),
            (first, last) => (number(first)?, number(last)?.saturating_add(1)),
        };
        match part {
            (from, to) if first.is_empty() || from < to.min(len) => {
                let to = to.min(len);
                Some(if from < to { Self::Part { from, to } } else { Self::Outside })
            }
            (from, to) if from < to || last.is_empty() => Some(Self::Outside),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_understood_and_all_else_is_the_whole_file() {
        let part = |from, to| Asked::Part { from, to };
        for (range, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=10-19", part(10, 20)),
            ("bytes=10-", part(10, 100)),
            ("bytes=10-1000", part(10, 100)),
            ("bytes=-30", part(70, 100)),
            ("bytes=-300", part(0, 100)),
            ("bytes=99-99999999999999999999999", part(99, 100)),
            ("bytes=100-", Asked::Outside),
            ("bytes=100-120", Asked::Outside),
            ("bytes=-0", Asked::Outside),
            ("bytes=20-10", Asked::All),
            ("bytes=0-1,5-6", Asked::All),
            ("bytes=+1-2", Asked::All),
            ("bytes=a-b", Asked::All),
            ("bytes=-", Asked::All),
            ("lines=1-2", Asked::All),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, range.parse().unwrap());
            assert_eq!(Asked::of(&headers, "\"a\"", 100), expected, "{range}");
            headers.insert(header::IF_RANGE, "\"a\"".parse().unwrap());
            assert_eq!(Asked::of(&headers, "\"a\"", 100), expected, "{range}");
            assert_eq!(Asked::of(&headers, "\"b\"", 100), Asked::All, "{range}");
        }
    }
}
