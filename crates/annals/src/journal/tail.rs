//! Saving what recovery cuts off, if a commit may lie in it.

use std::io;
use std::sync::Arc;

use super::recover::Cut;
use super::survey::Survey;
use crate::storage::{Directory, Storage};
use crate::{Error, Result};

/// A tail is saved up to this length.
pub(super) const SAVE_AT_MOST: u64 = 64 << 20;
const COPY_STEP: u64 = 1 << 20;

/// Finds the end of the last byte that is not zero, at or behind the journal's end.
///
/// Cost: reads from the back, so no more than the zeros there, and a step.
pub(super) fn last_nonzero(storage: &dyn Storage, survey: &Survey) -> io::Result<u64> {
    let from = survey.end.position;
    // Where nothing but zeros follows what verifies, the survey has seen so.
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

/// Reads the next step of a range; an error if the file ended before.
fn read_step(storage: &dyn Storage, from: u64, to: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let step = usize::try_from((to - from).min(COPY_STEP)).map_err(io::Error::other)?;
    bytes.resize(step, 0);
    match storage.read_at(from, bytes)? {
        read if read == step => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Saves what follows the end up to `to`, if a commit may lie in it. Having no space for the copy is no
/// reason not to open: it is reported.
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
        commits: survey.doubtful.len() as u64,
        uncommitted_frames: survey.uncommitted_frames,
        may_have_been_acknowledged: survey.may_hold_a_commit(),
        saved_as: None,
    };
    if !survey.may_hold_a_commit() {
        return Ok(cut);
    }
    match copy(storage, directory, name, survey, to) {
        Ok(saved_as) => cut.saved_as = Some(directory.display(&saved_as)),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
        Err(error) => {
            let shown = directory.display(name);
            return Err(Error::io(format!("{shown}: can't save the tail before cutting it"), error));
        }
    }
    Ok(cut)
}

/// Copies what follows the end into a new file, and makes it durable.
fn copy(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    to: u64,
) -> io::Result<String> {
    let base = format!("{name}.tail-{}-{:016x}", survey.end.txid, survey.end.chain);
    let (saved_as, copy) = create_unused(directory, &base)?;
    let copied = (|| {
        let (mut at, start) = (survey.end.position, survey.end.position);
        let to = to.min(start + SAVE_AT_MOST);
        let mut bytes = Vec::new();
        while at < to {
            read_step(storage, at, to, &mut bytes)?;
            copy.write_at(at - start, &bytes)?;
            at += bytes.len() as u64;
        }
        copy.flush()?;
        directory.flush()
    })();
    if copied.is_err() {
        // Half a copy would only mislead; the error of writing it is what matters.
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

/// Copies a whole journal to a new name beside it, before it is changed; gives that name.
pub(crate) fn copy_whole(
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
) -> Result<String> {
    let base = format!("{name}.before-recovery-{}-{:016x}", survey.end.txid, survey.end.chain);
    let mut copied = Err(io::ErrorKind::AlreadyExists.into());
    for attempt in 1..=1000 {
        let to = if attempt == 1 { base.clone() } else { format!("{base}-{attempt}") };
        copied = directory.copy(name, &to).map(|()| to);
        if !copied.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    copied.and_then(|to| directory.flush().map(|()| to)).map_err(|error| {
        let shown = directory.display(name);
        let message = format!("{shown}: can't be copied, so it was not changed");
        Error::io(message, error)
    })
}
