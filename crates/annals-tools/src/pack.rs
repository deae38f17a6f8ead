//! Packing into another file: a new journal whose first transaction is the state of a database, without its history.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{Names, like, locate, write_state};
use annals::reports::Packed;
use annals::{Options, Result};
use annals_storage::{Clock, Directory, SystemClock};

use crate::copies::Source;

/// Writes the present contents of a database into the new file `to`, without its history: schema, rows with their
/// ids, next ids and blobs. It is a separate journal, with its own id, whose first transaction is the whole state;
/// programs open it as they open `from`, which isn't changed. Nothing is written if it would have more bytes than
/// `from` has with all its segments.
///
/// Cost: as [`Options::open_read_only`], and writes all rows and blobs.
///
/// # Errors
/// `InUse` if there is a file `to`; those of [`Options::open_read_only`]; `Io`. Nothing is left
/// of the new file then.
pub fn pack(options: &Options, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Packed> {
    let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    pack_in(options, from.0, &from.1, to.0, &to.1, &clock)
}

/// Does what [`pack`] does, with directories and a clock that the caller passes.
///
/// # Errors
/// As [`pack`].
pub fn pack_in(
    options: &Options,
    from: Arc<dyn Directory>,
    name: &str,
    to: Arc<dyn Directory>,
    new_name: &str,
    clock: &Arc<dyn Clock>,
) -> Result<Packed> {
    let to = like(&*from, name, to, new_name)?;
    let names = Names::new(&to, new_name, "pack", &**clock)?;
    let snapshot = options.open_read_only_in(&*from, name)?.read();
    let mut before = 0;
    for part in Source::new(from, name).look(None)? {
        before += part.len()?;
    }
    let (storage, after) = write_state(&*to, names.temporary(), &snapshot, clock)
        .map_err(|error| names.explain(error))?;
    let is_done = after <= before;
    if is_done {
        names.give()?;
    }
    // It was locked until it had its name.
    drop(storage);
    Ok(Packed { is_done, before, after, forgotten: None, pinned: None })
}
