//! The names that a journal's files have beside it.
//!
//! ```text
//! NAME                          the newest segment, by whose name the database is opened
//! NAME-segment-N                a kept segment
//! NAME.new-ID                   a journal that is being created
//! NAME.next-ID                  a segment that is to follow
//! NAME[-segment-N].erased-ID    a segment that an erasure has rewritten, until it has its own name
//! NAME.before-erasing-ID        the old newest segment, until the new one has the path
//! ```

use crate::head::Head;
use crate::{Error, Result};
use annals_storage::{Access, Directory, Storage};

/// The part of a name before the number of an attempt to begin a segment.
pub(crate) const NEXT: &str = ".next-";
/// The part of the old newest segment's second name before the number of an erasure.
pub const BEFORE_ERASING: &str = ".before-erasing-";
const ERASED: &str = ".erased-";
const NEW: &str = ".new-";
const KEPT: &str = "-segment-";

/// Returns the name that a segment has beside the journal after it is sealed.
pub fn kept_name(journal: &str, segment: u64) -> String {
    format!("{journal}{KEPT}{segment:06}")
}

/// Returns the name under which an erasure rewrites a segment that has this one.
pub fn erased_name(segment: &str, erasure: u64) -> String {
    format!("{segment}{ERASED}{erasure:016x}")
}

/// Returns the name of the file that exists until an erasure has finished.
pub fn erasing_name(journal: &str, erasure: u64) -> String {
    format!("{journal}.erasing-{erasure:016x}")
}

/// Returns the journal's name from a segment's: the same, unless it is the name of a kept one.
#[inline]
pub fn journal_of(name: &str, segment: u64) -> &str {
    name.strip_suffix(&kept_name("", segment)).filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Returns the number in the name of a kept segment of a journal; `None` for other names.
#[inline]
pub fn number_in(name: &str, journal: &str) -> Option<u64> {
    let number = name.strip_prefix(journal)?.strip_prefix(KEPT)?.parse().ok()?;
    (kept_name(journal, number) == name).then_some(number)
}

/// Returns the part after the number of a kept segment, in a name without the journal's.
#[inline]
pub fn after(rest: &str) -> Option<&str> {
    let number = rest.strip_prefix(KEPT)?;
    let end = number.find(|c: char| !c.is_ascii_digit())?;
    number.get(end..).filter(|_| end >= 6)
}

/// True if this is the random number at the end of a temporary name.
#[inline]
pub fn is_id(id: &str) -> bool {
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the name of the journal, for the name of a file beside a journal.
fn owner_of(name: &str) -> Option<&str> {
    let temporary = [ERASED, NEXT, BEFORE_ERASING, NEW].iter().find_map(|what| {
        let (before, id) = name.rsplit_once(what)?;
        is_id(id).then_some(before)
    });
    let segment = temporary.unwrap_or(name);
    let kept = segment.rsplit_once(KEPT).map(|(journal, _)| journal);
    let kept = kept.filter(|journal| number_in(segment, journal).is_some());
    kept.or(temporary).filter(|journal| !journal.is_empty())
}

/// Refuses to write a file of a journal's history through a kept name: only the journal's own name refers to its end.
///
/// # Errors
/// `Invalid`, with the name of the journal.
pub fn refuse_kept(directory: &dyn Directory, name: &str, storage: &dyn Storage) -> Result<()> {
    let Some(journal) = owner_of(name) else { return Ok(()) };
    let (shown, owner) = (directory.display(name), directory.display(journal));
    // Opening either of them reports the problem of an unreadable head.
    let read = |storage: &dyn Storage| Head::read(storage, &shown).ok().map(|head| head.header);
    let Some(header) = read(storage) else { return Ok(()) };
    let newest = directory.open(journal, Access::Read).ok().and_then(|newest| read(&*newest));
    match newest.is_some_and(|newest| newest.journal_id == header.journal_id) {
        false => Ok(()),
        true => Err(Error::invalid(format!(
            "{shown}: is segment {} of the database {owner}, and can only be read; nothing was changed: name \
             {owner} instead",
            header.segment
        ))),
    }
}

/// Refuses to continue after a sealed segment with the name of a kept one: its successor belongs to the journal of
/// that name, which is missing, or is another one.
///
/// # Errors
/// `Invalid`, with the name of the journal.
pub(super) fn refuse_sealed(directory: &dyn Directory, name: &str, segment: u64) -> Result<()> {
    let journal = journal_of(name, segment);
    if journal == name || directory.open(&kept_name(name, segment), Access::Read).is_ok() {
        return Ok(());
    }
    let (shown, owner) = (directory.display(name), directory.display(journal));
    Err(Error::invalid(format!(
        "{shown}: is segment {segment} of the database {owner}, sealed, and can only be read; nothing was changed: \
         put the newest segment back as {owner}, or copy this file to another name to continue from its end"
    )))
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

    #[test]
    fn the_journal_of_a_file_beside_it_is_known() {
        for (name, owner) in [
            ("a-segment-000003", Some("a")),
            ("a-segment-000003-segment-000000", Some("a-segment-000003")),
            ("a-segment-000003.erased-0123456789abcdef", Some("a")),
            ("a.erased-0123456789abcdef", Some("a")),
            ("a.next-0123456789abcdef", Some("a")),
            ("a.new-0123456789abcdef", Some("a")),
            ("a.before-erasing-0123456789abcdef", Some("a")),
            ("a.before-recovery-7-0123456789abcdef", None),
            ("a.next-1", None),
            ("a-segment-3", None),
            ("-segment-000003", None),
            ("a", None),
        ] {
            assert_eq!(owner_of(name), owner, "{name}");
        }
    }
}
