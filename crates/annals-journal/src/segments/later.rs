//! Kept segments that are newer than the file at the journal's path: an older file took the path.

use std::io;

use super::names::{journal_of, kept_name, number_in};
use crate::format::Header;
use crate::head::Head;
use crate::outcome::Recovery;
use crate::survey::{Rule, Survey};
use crate::{Error, Result};
use annals_storage::{Access, Directory, Storage, is_same_file};

/// Returns the numbers of the kept segments that the journal reached after the file at its path, in order.
///
/// One with a higher number is newer if anything was committed in it: before that its path is durable. An empty one
/// may have lost the path to the segment before it. One with the same number is newer if it is sealed and the file at
/// the path isn't. An interrupted restart leaves two names of one file, or two files with the same end if both were
/// copied.
///
/// # Errors
/// `Io`.
pub fn later(
    directory: &dyn Directory,
    name: &str,
    storage: &dyn Storage,
    header: &Header,
) -> Result<Vec<u64>> {
    if storage.has_fixed_len() || journal_of(name, header.segment) != name {
        return Ok(Vec::new()); // a kept segment that is read by its own name has later ones
    }
    let shown = directory.display(name);
    let io = |error| Error::io(format!("{shown}: can't look at the files beside it"), error);
    let names = match directory.list() {
        // A user who may not list a directory may still open the files in it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Vec::new()),
        names => names.map_err(io)?,
    };
    let numbers = names.iter().filter_map(|found| number_in(found, name));
    let mut later = Vec::new();
    for number in numbers.filter(|&number| number >= header.segment) {
        if is_later(directory, name, number, storage, header).map_err(io)? {
            later.push(number);
        }
    }
    later.sort_unstable();
    Ok(later)
}

/// True if a kept segment is of this journal, and newer than the file at the path.
fn is_later(
    directory: &dyn Directory,
    name: &str,
    number: u64,
    storage: &dyn Storage,
    header: &Header,
) -> io::Result<bool> {
    let kept = kept_name(name, number);
    let file = match directory.open(&kept, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let Ok(head) = Head::read(&*file, &kept) else { return Ok(false) };
    if head.header.journal_id != header.journal_id || head.header.segment != number {
        return Ok(false);
    }
    let rule = Rule::new(Recovery::Checked).after(Some(head.hard_point()));
    let Ok(survey) = Survey::make(&*file, &kept, rule, |_, _| Ok(())) else { return Ok(false) };
    if number > header.segment {
        return Ok(!survey.is_empty());
    }
    let Some(seal) = survey.sealed else { return Ok(false) };
    let (mut own, mut other) = ([0; 8], [0; 8]);
    let at = seal.end.saturating_sub(8);
    let has_seal = file.read_at(at, &mut own)? == storage.read_at(at, &mut other)? && own == other;
    Ok(!has_seal && !is_same_file(directory, name, &kept)?)
}

/// Returns an error if the file is an older one than the journal's later segments beside it.
///
/// # Errors
/// `Corrupt`, with the names of the file and of the latest segment; `Io` if a file can't be read.
pub fn refuse_replaced(
    directory: &dyn Directory,
    name: &str,
    storage: &dyn Storage,
    header: &Header,
) -> Result<()> {
    let Some(number) = later(directory, name, storage, header)?.last().copied() else {
        return Ok(());
    };
    // The path may refer to a newer segment by now.
    if !storage.is_linked().unwrap_or(true) {
        return Ok(());
    }
    let (shown, kept) = (directory.display(name), directory.display(&kept_name(name, number)));
    Err(Error::corrupt(format!(
        "{shown}: damaged: it is segment {} of the journal, but {kept} beside it is segment {number}, after which \
         the journal continued: the file was replaced by an older one. It was not changed: restore the newest \
         segment from a backup, or write all that verifies into a new file with `annals recover {shown} --salvage \
         NEW`; if the older file is what you want, move the later segments elsewhere",
        header.segment
    )))
}
