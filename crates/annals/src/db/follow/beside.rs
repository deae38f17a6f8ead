//! The files that Annals creates beside a journal: recognized by their names, and proven by their contents.
//!
//! A name proves nothing: any program may have given it to a file. So nothing is removed here, or called this
//! journal's, before its own bytes say so: a header with the journal's id, or the point at which a tail was cut off.

use std::collections::BTreeSet;
use std::io;

use crate::image::{self, image_name};
use crate::journal::Copies;
use crate::journal::format::FRAMES_AT;
use crate::journal::segments::{after, is_id, kept_name, number_in};
use crate::storage::{Access, Directory, Storage, is_same_file};

/// The kind of a file beside a journal, from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image, also a damaged or unfinished one.
    Cache,
    /// A segment that is kept.
    Segment(u64),
    /// A file of an unfinished operation.
    Temporary,
    /// The bytes that a recovery cut off after this transaction, with this chain.
    Tail(u64, u64),
    /// A copy of the journal from before a recovery.
    Copy,
}

/// The part before the number in the name of a file that only an unfinished operation leaves.
const TEMPORARY: [&str; 11] = [
    ".new-",
    ".next-",
    ".erased-",
    ".erasing-",
    ".before-erasing-",
    ".salvage-",
    ".backup-",
    ".pack-",
    ".convert-",
    ".import-",
    ".merge-",
];

/// Returns the kind of a file beside a journal, from its name; `None` for other names.
#[must_use]
pub fn kind(found: &str, journal: &str) -> Option<Kind> {
    if let Some(number) = number_in(found, journal) {
        return Some(Kind::Segment(number));
    }
    if found.strip_prefix(&*image_name(journal)).is_some_and(is_of_cache) {
        return Some(Kind::Cache);
    }
    let rest = found.strip_prefix(journal)?;
    if is_temporary(rest) || after(rest).is_some_and(is_temporary) {
        return Some(Kind::Temporary);
    }
    if let Some((txid, chain, "" | "-")) = rest.strip_prefix(".tail-").and_then(point) {
        return Some(Kind::Tail(txid, chain));
    }
    rest.strip_prefix(".before-recovery-").and_then(point).map(|_| Kind::Copy)
}

fn is_temporary(rest: &str) -> bool {
    TEMPORARY.iter().filter_map(|what| rest.strip_prefix(what)).any(|rest| {
        let (id, rest) = rest.split_at_checked(16).unwrap_or_default();
        is_id(id) && (rest.is_empty() || rest.starts_with(['-', '.']))
    })
}

/// True if this is a suffix of a cache's name: empty, or the suffix of a damaged or unfinished cache.
fn is_of_cache(rest: &str) -> bool {
    let aside = rest.strip_prefix("-damaged").is_some_and(|rest| {
        rest.is_empty()
            || rest.strip_prefix('-').is_some_and(|number| number.parse::<u64>().is_ok())
    });
    rest.is_empty() || aside || rest.strip_prefix(".new-").is_some_and(is_id)
}

/// Reads a txid and a chain, and whether something follows that makes a name unused.
fn point(rest: &str) -> Option<(u64, u64, &str)> {
    let (txid, rest) = rest.split_once('-')?;
    let (chain, rest) = rest.split_at_checked(16).filter(|(chain, _)| is_id(chain))?;
    let more = rest.get(..1).unwrap_or_default();
    Some((txid.parse().ok()?, u64::from_str_radix(chain, 16).ok()?, more))
}

/// Files beside a journal.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Those that are proven to be of this journal.
    pub own: Vec<(String, Kind)>,
    /// Those whose names say so, and nothing else does.
    pub unproven: Vec<String>,
}

impl Beside {
    /// Lists all files beside a journal with an id. A tail is proven if `known` has the point after which it was cut
    /// off.
    ///
    /// # Errors
    /// Those of the system.
    pub fn find(
        directory: &dyn Directory,
        journal: &str,
        id: &[u8; 16],
        known: &BTreeSet<(u64, u64)>,
    ) -> io::Result<Self> {
        let mut all = Self::default();
        for found in directory.list()? {
            let Some(kind) = kind(&found, journal) else { continue };
            let is_own = match kind {
                Kind::Tail(txid, chain) => known.contains(&(txid, chain)),
                _ => is_of(directory, &found, kind, id)?,
            };
            match is_own {
                true => all.own.push((found, kind)),
                false => all.unproven.push(found),
            }
        }
        Ok(all)
    }
}

/// Removes the temporary names that a power cut left of a journal, which is open for writing: they refer to the same
/// file. Those of kept segments go with them.
pub(in crate::db) fn remove_second_names(
    directory: &dyn Directory,
    journal: &str,
    storage: &dyn Storage,
) -> io::Result<()> {
    if !storage.may_have_other_names()? {
        return Ok(());
    }
    let found = directory.list()?;
    let mut removed = Vec::new();
    for name in found.iter().filter(|name| kind(name, journal) == Some(Kind::Temporary)) {
        if is_same_file(directory, name, journal)? {
            removed.push(name.clone());
            removed.extend(found.iter().find(|held| **held == format!("{name}.held")).cloned());
            for kept in &found {
                let Some(number) = number_in(kept, name) else { continue };
                if is_same_file(directory, kept, &kept_name(journal, number))? {
                    removed.push(kept.clone());
                }
            }
        }
    }
    if removed.is_empty() {
        return Ok(());
    }
    removed.iter().try_for_each(|name| directory.remove(name))?;
    directory.flush()
}

/// Writes that a power cut leaves in part begin or end at multiples of this.
const SECTOR: usize = 512;

/// True if a file's own bytes show that it is of the journal with an id; for an unfinished one an empty first sector,
/// or that of a marker, suffices.
///
/// # Errors
/// Those of the system.
pub fn is_of(directory: &dyn Directory, name: &str, kind: Kind, id: &[u8; 16]) -> io::Result<bool> {
    let file = match directory.open(name, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let mut head = vec![0; usize::try_from(FRAMES_AT).map_err(io::Error::other)?];
    let read = file.read_at(0, &mut head)?;
    head.truncate(read);
    let mut headers = Copies::read(&*file)?.headers.into_iter().flatten().peekable();
    if headers.peek().is_some() {
        return Ok(headers.all(|header| header.journal_id == *id));
    }
    let is_cache = image::journal_id_of(&head) == Some(*id);
    let first = head.get(..SECTOR.min(head.len())).unwrap_or_default();
    let is_begun = first.starts_with(id) || first.iter().all(|&byte| byte == 0);
    Ok(is_cache || (kind == Kind::Temporary && is_begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_a_journal_is_known_by_its_name() {
        let tail = Some(Kind::Tail(7, 0x0123_4567_89ab_cdef));
        for (rest, expected) in [
            ("-image", Some(Kind::Cache)),
            ("-image-damaged", Some(Kind::Cache)),
            ("-image-damaged-2", Some(Kind::Cache)),
            ("-image.new-0123456789abcdef", Some(Kind::Cache)),
            (".tail-7-0123456789abcdef", tail),
            (".tail-7-0123456789abcdef-2", tail),
            (".before-recovery-7-0123456789abcdef", Some(Kind::Copy)),
            (".before-recovery-7-0123456789abcdef-image", Some(Kind::Copy)),
            (".next-0123456789abcdef", Some(Kind::Temporary)),
            (".new-0123456789abcdef", Some(Kind::Temporary)),
            (".backup-0123456789abcdef", Some(Kind::Temporary)),
            (".backup-0123456789abcdef-segment-000000", Some(Kind::Temporary)),
            ("-segment-000001.erased-0123456789abcdef", Some(Kind::Temporary)),
            (".erased-0123456789abcdef", Some(Kind::Temporary)),
            (".erasing-0123456789abcdef", Some(Kind::Temporary)),
            (".before-erasing-0123456789abcdef", Some(Kind::Temporary)),
            ("-segment-000001", Some(Kind::Segment(1))),
            ("", None),
            ("-segment-000001.annals", None),
            (".tail-7-0123456789abcdeg", None),
            (".tail--0123456789abcdef", None),
            (".tails", None),
            ("-images", None),
            ("-image.annals", None),
            ("-history", None),
            (".next-1", None),
            (".next-0123456789abcdefg", None),
        ] {
            assert_eq!(kind(&format!("a{rest}"), "a"), expected, "{rest}");
        }
        assert_eq!(kind("b.next-0123456789abcdef", "a"), None);
    }
}
