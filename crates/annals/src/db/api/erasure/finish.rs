//! Completing the replacement of a journal by its new generation, so that nothing of the old one is left beside it.

use std::collections::BTreeSet;
use std::io;

use crate::db::api::erasure::marker;
use crate::db::api::erasure::marker::List;
use crate::db::follow::beside::{Beside, Kind, is_of, kind};
use crate::journal::Copies;
use crate::journal::format::Header;
use crate::journal::segments::{erased_name, erasing_name, number_in};
use crate::storage::{Access, Directory, is_same_file};
use crate::{Error, Result};

/// Ends an erasure that rewrote the segment with this header, if it hasn't finished: steps 4 and 5. The caller has
/// the journal's locks.
///
/// # Errors
/// `Io`: the next opening does the rest.
pub(in crate::db) fn finish(
    directory: &dyn Directory,
    journal: &str,
    header: &Header,
) -> Result<()> {
    let Some(id) = header.last_erasure() else { return Ok(()) };
    match directory.open(&erasing_name(journal, id), Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        _ => {}
    }
    // The path must certainly refer to the new one.
    let flushed = directory.flush();
    flushed.map_err(|error| unfinished(directory, journal, error))?;
    finish_published(directory, journal, header)
}

/// Does steps 4 and 5 after the path is durable.
///
/// # Errors
/// `Io`: the next opening does the rest.
pub fn finish_published(directory: &dyn Directory, journal: &str, header: &Header) -> Result<()> {
    let Some(id) = header.last_erasure() else { return Ok(()) };
    let marker = erasing_name(journal, id);
    let finished = read_list(directory, journal, header, &marker).and_then(|list| {
        put_in_place(directory, journal, id, list.overwrite)?;
        remove_listed(directory, journal, header, &list)?;
        directory.flush()?;
        directory.remove(&marker)?;
        directory.flush()
    });
    finished.map_err(|error| unfinished(directory, journal, error))
}

fn unfinished(directory: &dyn Directory, journal: &str, error: io::Error) -> Error {
    let shown = directory.display(journal);
    Error::io(
        format!(
            "{shown}: the values are erased from the journal, but not all older files could be removed: \
             open it for writing once more, which does that"
        ),
        error,
    )
}

/// Renames rewritten kept segments to their names, and overwrites the old ones if requested.
fn put_in_place(
    directory: &dyn Directory,
    journal: &str,
    id: u64,
    overwrite: bool,
) -> io::Result<()> {
    for found in directory.list()? {
        let kept = found.strip_suffix(&erased_name("", id));
        if let Some(kept) = kept.filter(|kept| number_in(kept, journal).is_some()) {
            // It keeps its present name until the other certainly exists.
            let other = erasing_name(kept, id);
            match directory.link(&found, &other) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => linked?,
            }
            if overwrite && !is_same_file(directory, &found, kept)? {
                overwrite_file(directory, kept)?;
            }
            directory.rename(&other, kept)?;
        }
    }
    directory.flush()
}

/// Reads the contents of the marker; if an older version made it, those files that are proven to be of the journal.
fn read_list(
    directory: &dyn Directory,
    journal: &str,
    header: &Header,
    marker: &str,
) -> io::Result<List> {
    let (marker, id) = (directory.open(marker, Access::Read)?, &header.journal_id);
    if let Some(list) = marker::read(&*marker, id)? {
        return Ok(list);
    }
    let beside = Beside::find(directory, journal, id, &BTreeSet::new())?;
    let names = removable(&beside, header).into_iter().map(|(name, _)| name).collect();
    Ok(List { names, overwrite: false })
}

/// Removes the files that are listed, and those of the erasure itself.
fn remove_listed(
    directory: &dyn Directory,
    journal: &str,
    header: &Header,
    list: &List,
) -> io::Result<()> {
    let id = header.last_erasure().unwrap_or_default();
    let (marker, own) = (erasing_name(journal, id), format!("{id:016x}"));
    for found in directory.list()?.into_iter().filter(|found| *found != marker) {
        let Some(kind) = kind(&found, journal) else { continue };
        if kind == Kind::Temporary && found.ends_with(&own) {
            let is_new = holds_new(directory, &found, journal, header)?;
            remove(directory, &found, list.overwrite && !is_new)?;
        } else if list.names.contains(&found)
            // It was proven when it was listed; the file with the name now is checked again.
            && (matches!(kind, Kind::Tail(..))
                || is_of(directory, &found, kind, &header.journal_id)?)
        {
            remove(directory, &found, list.overwrite)?;
        }
    }
    Ok(())
}

/// True if a name refers to a segment as it was rewritten.
fn holds_new(
    directory: &dyn Directory,
    found: &str,
    journal: &str,
    header: &Header,
) -> io::Result<bool> {
    let copies = Copies::read(&*directory.open(found, Access::Read)?)?;
    let is_new = |of: &Header| of.last_erasure() == header.last_erasure();
    Ok(copies.headers.iter().flatten().any(is_new) || is_same_file(directory, found, journal)?)
}

/// Removes a file, and overwrites it first if requested.
///
/// # Errors
/// Those of the system.
pub fn remove(directory: &dyn Directory, name: &str, overwrite: bool) -> io::Result<()> {
    if overwrite {
        overwrite_file(directory, name)?;
    }
    directory.remove(name)
}

/// Overwrites all bytes of a file with zeros, and flushes that; not if other names may refer to it, which keep it.
fn overwrite_file(directory: &dyn Directory, name: &str) -> io::Result<()> {
    const STEP: u64 = 1 << 20;
    let file = directory.open(name, Access::Write)?;
    if file.may_have_other_names()? {
        return Ok(());
    }
    let (len, zeros) = (file.len()?, vec![0; usize::try_from(STEP).map_err(io::Error::other)?]);
    for at in (0..len).step_by(1 << 20) {
        let step = usize::try_from((len - at).min(STEP)).map_err(io::Error::other)?;
        file.write_at(at, zeros.get(..step).unwrap_or_default())?;
    }
    file.flush()
}

/// Returns which files beside a journal are removed with values erased from it: all that are proven to derive from
/// it, except its kept segments and files of another unfinished erasure.
#[must_use]
pub fn removable(beside: &Beside, header: &Header) -> Vec<(String, Kind)> {
    let needed = header.last_erasure().map(|id| format!("{id:016x}"));
    let own = beside.own.iter().filter(|(name, kind)| match kind {
        // A restart that was interrupted may have left a second name of the newest.
        Kind::Segment(number) => *number >= header.segment,
        Kind::Temporary => needed.as_ref().is_none_or(|id| !name.ends_with(id)),
        Kind::Cache | Kind::Tail(..) | Kind::Copy => true,
    });
    own.cloned().collect()
}
