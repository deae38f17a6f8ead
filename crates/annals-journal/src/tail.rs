//! Saving the bytes that recovery cuts, if a commit may be in them.

use std::io;
use std::sync::Arc;

use super::outcome::Cut;
use super::survey::Survey;
use crate::{Error, Result};
use annals_storage::{Directory, Storage, step};

/// A tail is saved up to this length.
pub(super) const SAVE_AT_MOST: u64 = 64 << 20;
const COPY_STEP: u64 = 1 << 20;

/// Finds the end of the last byte that is not zero, at or after the journal's end.
///
/// Cost: reads from the back, so no more than the zeros there, and a step.
pub(super) fn last_nonzero(storage: &dyn Storage, survey: &Survey) -> io::Result<u64> {
    let from = survey.end.position;
    // If only zeros follow the verified part, the survey has seen that.
    let mut to = if survey.tail.is_some() { survey.len } else { survey.verified_to };
    let mut bytes = Vec::new();
    while from < to {
        let at = to.saturating_sub(COPY_STEP).max(from);
        read_step(storage, at, to, &mut bytes)?;
        if let Some(place) = bytes.iter().rposition(|&byte| byte != 0) {
            return Ok(at + place as u64 + 1);
        }
        to = at;
    }
    Ok(from)
}

/// Reads the next step of a range, twice: the bytes read here are cut, so a wrong bit would be the only copy. An
/// error if the reads differ, or if the file ended before.
fn read_step(storage: &dyn Storage, from: u64, to: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let step = usize::try_from((to - from).min(COPY_STEP)).map_err(io::Error::other)?;
    let mut again = vec![0; step];
    bytes.resize(step, 0);
    for buffer in [&mut *bytes, &mut again] {
        if storage.read_at(from, buffer)? != step {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if step!(CutReadOnce, *bytes == again, else true) {
        return Ok(());
    }
    let message = format!("two reads of {step} bytes at position {from} gave different ones");
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

/// True if an error is only lack of space: on the disk, in this user's quota, or in the limit on a file.
fn is_want_of_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Returns the advice for a file that can't be written.
fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem => {
            "; allow this program to create files there, or recover a copy of the file elsewhere"
        }
        _ if is_want_of_space(error) => {
            "; make room there, or recover a copy of the file elsewhere"
        }
        _ => "",
    }
}

/// Saves the bytes after the end up to `to`, if a commit may be in them. Having no space for the copy is no reason
/// not to open: it is reported.
pub(super) fn save(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    to: u64,
) -> Result<Cut> {
    let mut cut = Cut {
        position: survey.end.position,
        txid: survey.end.txid,
        bytes: to - survey.end.position,
        commits: survey.left_out_count,
        uncommitted_frames: survey.uncommitted_frames,
        may_have_been_acknowledged: survey.may_hold_a_commit(),
        saved_as: None,
    };
    if !survey.may_hold_a_commit() {
        return Ok(cut);
    }
    let elsewhere = directory.for_copies(storage);
    let directory = elsewhere.as_deref().unwrap_or(directory);
    let base = format!("{name}.tail-{}-{:016x}", survey.end.txid, survey.end.chain);
    let from = survey.end.position;
    match copy(storage, directory, &base, from, to.min(from + SAVE_AT_MOST)) {
        Ok(saved_as) => cut.saved_as = Some(directory.display(&saved_as)),
        Err(error) if is_want_of_space(&error) => {}
        Err(error) => {
            let shown = directory.display(&base);
            return Err(Error::io(
                format!(
                    "{shown}: what is to be cut can't be saved so, and nothing was changed{}",
                    advice(&error)
                ),
                error,
            ));
        }
    }
    Ok(cut)
}

/// Copies a range into a new file, and makes it durable; returns its name.
fn copy(
    storage: &dyn Storage,
    directory: &dyn Directory,
    base: &str,
    from: u64,
    to: u64,
) -> io::Result<String> {
    let (saved_as, copy) = create_unused(directory, base)?;
    let copied = (|| {
        let (mut at, mut bytes) = (from, Vec::new());
        while at < to {
            read_step(storage, at, to, &mut bytes)?;
            copy.write_at(at - from, &bytes)?;
            at += bytes.len() as u64;
        }
        copy.flush()?;
        directory.flush()
    })();
    if copied.is_err() {
        // Half a copy would only mislead; the error of writing it is the relevant one.
        let _ = directory.remove(&saved_as);
    }
    copied.map(|()| saved_as)
}

/// Creates a file under a name that no earlier recovery used: an earlier copy may hold more.
fn create_unused(directory: &dyn Directory, base: &str) -> io::Result<(String, Arc<dyn Storage>)> {
    for attempt in 1.. {
        let name = if attempt == 1 { base.to_owned() } else { format!("{base}-{attempt}") };
        match directory.create(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Copies a whole journal to a new file beside it, before the journal is changed; returns the new name. Of a device
/// it copies the journal's part.
pub fn copy_whole(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
) -> Result<String> {
    let base = format!("{name}.before-recovery-{}-{:016x}", survey.end.txid, survey.end.chain);
    let elsewhere = directory.for_copies(storage);
    let copied = match &elsewhere {
        Some(elsewhere) => copy(storage, &**elsewhere, &base, 0, survey.len),
        None => copy_file(directory, name, &base),
    };
    let copied = copied.map(|to| elsewhere.as_deref().unwrap_or(directory).display(&to));
    copied.map_err(|error| {
        let (shown, copy) =
            (directory.display(name), elsewhere.as_deref().unwrap_or(directory).display(&base));
        let message =
            format!("{shown}: can't be copied to {copy}, so it was not changed{}", advice(&error));
        Error::io(message, error)
    })
}

/// Copies a file under a name that isn't in use.
fn copy_file(directory: &dyn Directory, name: &str, base: &str) -> io::Result<String> {
    for attempt in 1.. {
        let to = if attempt == 1 { base.to_owned() } else { format!("{base}-{attempt}") };
        match directory.copy(name, &to) {
            Ok(()) => return directory.flush().map(|()| to),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::{Rule, Tail};
    use annals_simulated::{SimulatedClock, SimulatedDisk};
    use annals_storage::{Access, MemoryDirectory, OverlayDirectory};

    const REST: &[u8] = b"what follows the last commit";

    /// Saves a tail that may hold a commit in `directory`, which is made of that of the journal.
    fn saved(directory: impl FnOnce(&MemoryDirectory) -> Arc<dyn Directory>) -> Result<Cut> {
        let own = MemoryDirectory::new();
        let storage = crate::create(&own, "journal", &SimulatedClock::new(1)).unwrap().unwrap();
        let rule = Rule::default();
        let mut survey = Survey::make(&*storage, "journal", rule, |_, _| Ok(())).unwrap();
        storage.write_at(survey.end.position, REST).unwrap();
        survey.tail = Some(Tail::default());
        let to = survey.end.position + REST.len() as u64;
        let directory = directory(&own);
        let cut = save(&*storage, &*directory, "journal", &survey, to)?;
        let copies = directory.list().unwrap().into_iter().filter(|name| name.contains(".tail-"));
        for copy in copies {
            let mut bytes = vec![0; 100];
            let read = directory.open(&copy, Access::Read).unwrap().read_at(0, &mut bytes).unwrap();
            assert_eq!(bytes.split_at(read).0, REST);
        }
        Ok(cut)
    }

    #[test]
    fn only_want_of_space_is_no_reason_to_keep_a_tail() {
        let cut = saved(|own| own.again()).unwrap();
        assert!(cut.saved_as.is_some_and(|name| name.contains("journal.tail-0-")));
        let full = |_: &MemoryDirectory| {
            let disk = SimulatedDisk::new(1);
            disk.limit_space(0);
            Arc::new(disk) as Arc<dyn Directory>
        };
        assert_eq!(saved(full).unwrap().saved_as, None);
        let denied = |own: &MemoryDirectory| {
            let overlay = OverlayDirectory::new(own.again(), "journal", 0).unwrap();
            Arc::new(overlay) as Arc<dyn Directory>
        };
        let error = saved(denied).unwrap_err().to_string();
        assert!(error.contains("nothing was changed; allow this program"), "{error}");
    }
}
