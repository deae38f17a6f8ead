//! Putting what was written anew in its places, so that nothing of the old is left beside it.

use std::io;

use crate::image::image_name;
use crate::journal::format::Header;
use crate::journal::segments::{erased_name, erasing_name, kept_name, number_in};
use crate::storage::{Access, Directory};
use crate::{Error, Result};

/// What is before the number of an erasure in the second name of the old newest segment.
const BEFORE: &str = ".before-erasing-";

/// Ends an erasure that wrote the segment with this header, if it hasn't come to its end: steps 4 and 5. Gives what
/// was removed. The caller has the journal's locks.
///
/// # Errors
/// `Io`: the rest is done by whoever opens it next.
pub(in crate::db) fn finish(
    directory: &dyn Directory,
    journal: &str,
    header: &Header,
) -> Result<Vec<String>> {
    let Some(id) = header.last_erasure() else { return Ok(Vec::new()) };
    let marker = erasing_name(journal, id);
    match directory.open(&marker, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        _ => {}
    }
    // The path first, which must lead to the new one for certain.
    let placed =
        directory.flush().and_then(|()| put_in_place(directory, journal, (header.segment, id)));
    let finished = placed.and_then(|removed| {
        directory.flush()?;
        directory.remove(&marker)?;
        directory.flush()?;
        Ok(removed)
    });
    finished.map_err(|error| {
        let shown = directory.display(journal);
        Error::io(
            format!(
                "{shown}: the values are erased from the journal, but not all older files could be removed: \
                 open it for writing once more, which does that"
            ),
            error,
        )
    })
}

fn put_in_place(
    directory: &dyn Directory,
    journal: &str,
    (newest, id): (u64, u64),
) -> io::Result<Vec<String>> {
    for found in directory.list()? {
        let kept = found.strip_suffix(&erased_name("", id));
        if let Some(kept) = kept.filter(|kept| number_in(kept, journal).is_some()) {
            // It keeps the name by which it is found until the other is there for certain.
            let other = erasing_name(kept, id);
            match directory.link(&found, &other) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => linked?,
            }
            directory.rename(&other, kept)?;
        }
    }
    directory.flush()?;
    let mut removed = remove_derived(directory, journal, Some(id))?;
    // A restart that was interrupted may have left a second name of the old newest segment.
    for found in directory.list()? {
        if number_in(&found, journal).is_some_and(|number| number >= newest) {
            directory.remove(&found)?;
            removed.push(directory.display(&found));
        }
    }
    Ok(removed)
}

/// Removes all files beside a journal that are made of it, and what others left that didn't come to their end, but
/// for what belongs to an erasure.
pub(super) fn remove_derived(
    directory: &dyn Directory,
    journal: &str,
    but: Option<u64>,
) -> io::Result<Vec<String>> {
    let mut removed = Vec::new();
    let marker = but.map(|id| erasing_name(journal, id));
    for found in directory.list()? {
        if is_derived(&found, journal) && Some(&found) != marker.as_ref() {
            directory.remove(&found)?;
            // What the erasure itself made isn't worth a word.
            if but.is_none_or(|id| !found.ends_with(&format!("{id:016x}"))) {
                removed.push(directory.display(&found));
            }
        }
    }
    Ok(removed)
}

/// Removes the image, and what there is of older and unfinished ones.
pub(super) fn remove_images(directory: &dyn Directory, journal: &str) -> io::Result<()> {
    let image = image_name(journal);
    for found in directory.list()? {
        if found.strip_prefix(&image).is_some_and(is_of_cache) {
            directory.remove(&found)?;
        }
    }
    directory.flush()
}

/// Removes what an earlier erasure of a journal left that didn't come to step 3. This header is the journal's.
pub(super) fn remove_attempts(
    directory: &dyn Directory,
    journal: &str,
    header: &Header,
) -> io::Result<()> {
    for found in directory.list()? {
        let rest = found.strip_prefix(journal).unwrap_or_default();
        let rest = after_segment(rest).unwrap_or(rest);
        let id = [".erased-", ".erasing-", BEFORE].iter().find_map(|what| rest.strip_prefix(what));
        let own = header.last_erasure().map(|id| format!("{id:016x}"));
        if id.is_some_and(|id| is_hex(id) && own.as_deref() != Some(id)) {
            directory.remove(&found)?;
        }
    }
    Ok(())
}

/// Finds kept segments that don't belong to the history that is known: what they hold can't be read.
pub(super) fn find_stray(
    directory: &dyn Directory,
    journal: &str,
    known: &[u64],
    newest: u64,
) -> io::Result<Option<String>> {
    let is_stray = |found: &String| {
        number_in(found, journal).is_some_and(|number| number < newest && !known.contains(&number))
    };
    Ok(directory.list()?.into_iter().find(is_stray))
}

/// Gives the name of a kept segment while it is being erased from, and of the newest one.
pub(super) fn new_name(journal: &str, kept: Option<u64>, id: u64) -> String {
    match kept {
        Some(number) => erased_name(&kept_name(journal, number), id),
        None => erased_name(journal, id),
    }
}

/// Gives the second name of the old newest segment, until the new one has its path.
pub(super) fn before_name(journal: &str, id: u64) -> String {
    format!("{journal}{BEFORE}{id:016x}")
}

/// Tells whether a file is made of a journal, so that it may hold its values, but is none of its segments.
fn is_derived(found: &str, journal: &str) -> bool {
    let Some(rest) = found.strip_prefix(journal) else { return false };
    if ["-image", "-history"].iter().any(|what| rest.strip_prefix(what).is_some_and(is_of_cache)) {
        return true;
    }
    let temporary = [".next-", ".salvage-", ".erased-", ".erasing-", BEFORE];
    let is_temporary =
        |rest: &str| temporary.iter().any(|what| rest.strip_prefix(what).is_some_and(is_hex));
    let saved = [".tail-", ".before-recovery-"].iter().find_map(|what| rest.strip_prefix(what));
    is_temporary(rest)
        || after_segment(rest).is_some_and(is_temporary)
        || saved.is_some_and(is_of_point)
}

/// Tells whether this follows the name of a cache: of itself, one that was set aside, or one that isn't finished.
fn is_of_cache(rest: &str) -> bool {
    rest.is_empty() || rest == "-damaged" || rest.strip_prefix(".new-").is_some_and(is_hex)
}

/// Tells whether this is a txid and a chain; what follows them makes a name unused, or is of its own image.
fn is_of_point(rest: &str) -> bool {
    let Some((txid, rest)) = rest.split_once('-') else { return false };
    let is_number = !txid.is_empty() && txid.bytes().all(|byte| byte.is_ascii_digit());
    let (chain, rest) = rest.split_at_checked(16).unwrap_or_default();
    is_number && is_hex(chain) && (rest.is_empty() || rest.starts_with('-'))
}

/// Gives what follows the number of a kept segment.
fn after_segment(rest: &str) -> Option<&str> {
    let number = rest.strip_prefix("-segment-")?;
    let end = number.find(|c: char| !c.is_ascii_digit())?;
    number.get(end..).filter(|_| end >= 6)
}

fn is_hex(id: &str) -> bool {
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_a_journal_is_known_by_its_name() {
        let id = "0123456789abcdef";
        for (rest, expected) in [
            ("-image", true),
            ("-image-damaged", true),
            ("-history", true),
            ("-image.new-0123456789abcdef", true),
            (".tail-7-0123456789abcdef", true),
            (".tail-7-0123456789abcdef-2", true),
            (".before-recovery-7-0123456789abcdef", true),
            (".before-recovery-7-0123456789abcdef-image", true),
            (".next-0123456789abcdef", true),
            ("-segment-000001.erased-0123456789abcdef", true),
            (".erased-0123456789abcdef", true),
            (".erasing-0123456789abcdef", true),
            (".before-erasing-0123456789abcdef", true),
            ("", false),
            ("-segment-000001", false),
            ("-segment-000001.annals", false),
            (".new-0123456789abcdef", false),
            (".tail-7-0123456789abcdeg", false),
            (".tail--0123456789abcdef", false),
            (".tails", false),
            ("-images", false),
            ("-image.annals", false),
            ("-history.annals", false),
            (".next-1", false),
        ] {
            assert_eq!(is_derived(&format!("a{rest}"), "a"), expected, "{rest}");
        }
        assert!(!is_derived(&format!("b.next-{id}"), "a"));
    }
}
