//! The comments of a request that runs once: its key, and after it the hash of the request with its answer.
//!
//! A server writes them and finds them again; an erasure leaves the key, so that the request doesn't run again.

/// The words before a key, and before the answer to its request.
const KEY: &str = "request ";
const ANSWER: &str = "answer ";
/// What is left of an answer, after [`ANSWER`].
const GONE: &str = "erased";
/// The most characters of a key.
pub const LONGEST_KEY: usize = 200;
/// The characters of a hash: of older ones, and of those that begin with a salt.
const HASHES: [usize; 2] = [16, 32];

/// An answer, as a comment has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered<'c> {
    /// The hash of the request, and the answer.
    With(&'c str, &'c str),
    /// Values that the request wrote were erased, and this with them.
    Erased,
}

/// True if a text may be a key.
#[must_use]
pub fn is_key(text: &str) -> bool {
    (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the comment of a key.
#[must_use]
pub fn of_key(key: &str) -> String {
    format!("{KEY}{key}")
}

/// True if a comment may be that of a key: it is, if that of an answer follows.
#[must_use]
pub fn may_be_of_key(comment: &str) -> bool {
    comment.strip_prefix(KEY).is_some_and(is_key)
}

/// Returns the comment of an answer.
#[must_use]
pub fn of_answer(hash: &str, answer: &str) -> String {
    format!("{ANSWER}{hash} {answer}")
}

/// Returns the comment that an erasure leaves of an answer.
#[must_use]
pub fn of_erased_answer() -> String {
    format!("{ANSWER}{GONE}")
}

/// Reads the comment after that of a key; `None` if it is no answer.
#[must_use]
pub fn read_answer(comment: &str) -> Option<Answered<'_>> {
    let rest = comment.strip_prefix(ANSWER)?;
    if rest == GONE {
        return Some(Answered::Erased);
    }
    let (hash, answer) = rest.split_once(' ')?;
    let is_hash = HASHES.contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(Answered::With(hash, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        assert!(may_be_of_key(&of_key("k-1")) && !may_be_of_key("request of Ada Lovelace"));
        assert!(!may_be_of_key(&of_key("")) && !may_be_of_key(&of_key(&"k".repeat(201))));
        for hash in ["0123456789abcdef", "0123456789abcdef0123456789abcdef"] {
            let comment = of_answer(hash, "{\"ids\":[7]}");
            assert_eq!(read_answer(&comment), Some(Answered::With(hash, "{\"ids\":[7]}")));
        }
        assert_eq!(read_answer(&of_erased_answer()), Some(Answered::Erased));
        for other in ["answer", "answer 42 is right", "answer erased?", "answer 0123456789abcdef"] {
            assert_eq!(read_answer(other), None, "{other}");
        }
    }
}
