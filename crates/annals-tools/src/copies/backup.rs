//! A backup: a copy that is written under a temporary name, and gets its own once it is whole.

use std::path::Path;
use std::sync::Arc;

use annals::internals::locate;
use annals::{Options, Result};
use annals_storage::{Clock, Directory, SystemClock};

use super::push::{Copied, push_in};
use crate::names::Names;

/// Writes a copy of a database into the new file `to`, while others may write, restart and forget: the same journal,
/// with its whole kept history, up to the last transaction that is known to be on permanent storage. Each frame is
/// verified. Kept segments are beside the copy as beside the original; an image isn't copied, and isn't needed.
/// Writes nothing to the original.
///
/// A program that has the database open, and wants all that was acknowledged in the copy, calls
/// [`hard_checkpoint`](annals::Database::hard_checkpoint) first.
///
/// The copy has its name only once all of it is on permanent storage. It may be written from then on; but a copy that
/// [`push`](super::push()) updates must not be.
///
/// Cost: reads and writes all copied bytes; reads the frames after the last slot twice. Memory for a frame, 1 MiB or
/// one large row.
///
/// # Errors
/// `InUse` if there is a file `to`, or one of its kept segments; `NotFound`; `NotAJournal`; `Corrupt`;
/// `Unsupported`; `Cancelled`; `Io`. Nothing is left of the copy then.
pub fn backup(options: &Options, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied> {
    let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
    backup_in(options, from.0, &from.1, to.0, &to.1, Arc::new(SystemClock))
}

/// Does what [`backup`] does, with directories and a clock that the caller passes.
///
/// # Errors
/// As [`backup`].
pub fn backup_in(
    options: &Options,
    from: Arc<dyn Directory>,
    name: &str,
    to: Arc<dyn Directory>,
    new_name: &str,
    clock: Arc<dyn Clock>,
) -> Result<Copied> {
    let names = Names::new(&to, new_name, "backup", &*clock)?;
    let mut push = push_in(options, from, name, Arc::clone(&to), names.temporary(), clock);
    let copied = push.bring_up().and_then(|copied| push.close().map(|()| copied));
    let copied = copied.map_err(|error| names.explain(error))?;
    names.give()?;
    Ok(copied)
}
