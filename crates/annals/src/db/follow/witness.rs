//! The points of a journal that its image proves: everything up to the points of its roots was on permanent storage
//! before the roots were written.
//!
//! So a journal that ends before one of them was truncated, or replaced by an older one: it is damaged, and must not
//! be continued as if nothing were missing.

use crate::image::{Identity, Witness, image_name, witnesses};
use crate::journal::{Head, Survey, segments};
use crate::storage::{Directory, Storage};
use crate::{Error, Result};

/// Returns the points that the roots of the image beside a journal prove; nothing if it has no image.
#[must_use]
pub fn image_witnesses(directory: &dyn Directory, journal: &str, head: &Head) -> Vec<Witness> {
    witnesses(directory, &image_name(journal), &identity(head))
}

/// Refuses a journal that ends before the point of a file beside it, or before a later segment.
///
/// # Errors
/// `Corrupt`, with the names of the journal and of the file that proves more; `Io`.
pub fn check_end(
    witnesses: &[Witness],
    survey: &Survey,
    directory: &dyn Directory,
    name: &str,
    storage: &dyn Storage,
) -> Result<()> {
    check_witnesses(witnesses, survey, &directory.display(name))
        .or_else(|error| match storage.is_linked() {
            // Another process continued the journal in a new segment, which the witness is of.
            Ok(false) if survey.sealed.is_some() => Ok(()),
            _ => Err(error),
        })
        .and_then(|()| segments::refuse_replaced(directory, name, storage, &survey.head.header))
}

/// Refuses a journal that ends before the point of a file beside it, sealed or not: nothing is committed in the next
/// segment before that certainly has the path.
fn check_witnesses(witnesses: &[Witness], survey: &Survey, shown: &str) -> Result<()> {
    let (end, segment) = (survey.end, survey.head.header.segment);
    // Not by the place: a restart that was taken back leaves a root for the beginning of a segment that was rebuilt.
    let is_beyond = |it: &&Witness| it.point.txid > end.txid;
    let Some(beyond) = witnesses.iter().find(is_beyond) else { return Ok(()) };
    let Witness { what, segment: of, point } = beyond;
    let place = match *of == segment {
        true => format!("position {}", point.position),
        false => {
            format!("position {} of segment {of}, and this is segment {segment}", point.position)
        }
    };
    Err(Error::corrupt(format!(
        "{shown}: damaged: it ends with transaction {} at position {}, but the {what} beside it stands for \
         transaction {} at {place}, up to which all had reached permanent storage: the file was cut, or is an \
         older copy. It was not changed: restore it from a backup, or write all that verifies into a new file \
         with `annals recover {shown} --salvage NEW`; if the older copy is what you want, delete the {what}",
        end.txid, end.position, point.txid
    )))
}

/// Returns the position up to which witnesses prove a segment to have been flushed, among those whose frame exists.
pub(in crate::db) fn known(
    witnesses: &[Witness],
    storage: &dyn Storage,
    head: &Head,
) -> Result<u64> {
    let mut known = 0;
    for witness in witnesses.iter().filter(|it| it.segment == head.header.segment) {
        if ends_there(storage, head, witness)? {
            known = known.max(witness.point.position);
        }
    }
    Ok(known)
}

/// Returns true if the frame that ends at a point exists, according to its last bytes.
pub(in crate::db) fn ends_there(
    storage: &dyn Storage,
    head: &Head,
    witness: &Witness,
) -> Result<bool> {
    let Witness { segment, point, .. } = witness;
    if *segment != head.header.segment || *point == head.start() {
        return Ok(true);
    }
    let Some(at) = point.position.checked_sub(8) else { return Ok(false) };
    let mut chain = [0; 8];
    let read = storage.read_at(at, &mut chain);
    let read = read.map_err(|error| Error::io("can't read the journal", error))?;
    Ok(read == chain.len() && u64::from_le_bytes(chain) == point.chain)
}

/// Returns which segment of which journal it is.
#[must_use]
pub const fn identity(head: &Head) -> Identity {
    Identity {
        journal_id: head.header.journal_id,
        segment: head.header.segment,
        segment_hash: head.hash,
    }
}
