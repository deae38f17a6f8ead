//! Segments: a journal goes on in a new file, and the old one is sealed and kept beside it.
//!
//! The path of the database always leads to the newest segment; the one with number N before it is
//! PATH-segment-N. One *restart* makes the other:
//!
//! ```text
//! 1. make the old segment hard to its end, and let a slot tell that
//! 2. write the new one as PATH.next-ID, flush it, hold its locks       (its header has the seal's chain)
//! 3. link the old one as PATH-segment-N, flush the directory           (or it would have no name at 5)
//! 4. write the seal behind the end of the old one, flush it            (nobody writes behind a seal)
//! 5. rename PATH.next-ID to PATH, flush the directory                  (now, and not before, it is the next)
//! 6. let go of the old one's locks
//! ```
//!
//! Before 4 nothing has happened but that a name or two lie about. After 4 only 5 is missing: the next one
//! who opens the sealed segment at the path, and has its locks, gives the path to what was prepared, which
//! begins with the header that is in the seal (`next`). A file is nobody's successor until it has the path,
//! so there never are two.
//!
//! In reading order: `seal` ends a segment, `next` is the one that follows, `kept` reads those before,
//! `retention` says which of them may go; a `place` is where something is in all of them.

mod kept;
mod next;
mod place;
mod retention;
mod seal;

pub(crate) use kept::Kept;
pub(crate) use next::{Maker, Next, are_held, finish, is_read, keep, keep_path, remove};
pub(crate) use place::Place;
pub use retention::{Plan, Retention, SegmentFacts};
pub(crate) use seal::{Seal, Sealer, Sealing, with_next};

/// Gives the name that a segment has beside the journal once it is sealed.
pub(crate) fn kept_name(journal: &str, segment: u64) -> String {
    format!("{journal}-segment-{segment:06}")
}

/// Gives the name under which an erasure writes a segment anew that has this one.
pub(crate) fn erased_name(segment: &str, erasure: u64) -> String {
    format!("{segment}.erased-{erasure:016x}")
}

/// Gives the name of the file that is there as long as an erasure hasn't come to its end.
pub(crate) fn erasing_name(journal: &str, erasure: u64) -> String {
    format!("{journal}.erasing-{erasure:016x}")
}

/// Gives the journal's name from a segment's: the same, unless it is the name of a kept one.
pub(crate) fn journal_of(name: &str, segment: u64) -> &str {
    name.strip_suffix(&kept_name("", segment)).filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Gives the number in the name of a kept segment of a journal; none for other names.
pub(crate) fn number_in(name: &str, journal: &str) -> Option<u64> {
    let number = name.strip_prefix(journal)?.strip_prefix("-segment-")?.parse().ok()?;
    (kept_name(journal, number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_segment_is_known_by_its_name() {
        assert_eq!(kept_name("city.annals", 3), "city.annals-segment-000003");
        assert_eq!(journal_of("city.annals-segment-000003", 3), "city.annals");
        assert_eq!(journal_of("city.annals-segment-000003", 4), "city.annals-segment-000003");
        assert_eq!(journal_of("-segment-000003", 3), "-segment-000003");
        for number in [0, 999_999, 1_000_000] {
            assert_eq!(number_in(&kept_name("a", number), "a"), Some(number));
        }
        for other in ["a-segment-3", "a-segment-+00003", "a-segment-0000003", "b-segment-000003"] {
            assert_eq!(number_in(other, "a"), None, "{other}");
        }
    }
}
