//! Packing into another file: a new journal whose first transaction is the state of a database, without its history.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{locate, write_state};
use annals::reports::Packed;
use annals::{Error, ErrorKind, Level, Options, Point, Result, Snapshot, Txid};
use annals_journal::format::FRAMES_AT;
use annals_journal::{Checkpoints, Head, Settled, Writer, first_slot, head_with, new_header};
use annals_storage::{Clock, Directory, Hold, Lock, Storage, SystemClock};

use crate::copies::Source;
use crate::names::{Names, like};

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
    let (storage, after) = write_journal(&*to, names.temporary(), &snapshot, clock)
        .map_err(|error| names.explain(error))?;
    let is_done = after <= before;
    if is_done {
        names.give()?;
    }
    // It was locked until it had its name.
    drop(storage);
    Ok(Packed { is_done, before, after, forgotten: None, pinned: None })
}

/// Writes a new journal whose only transaction is a state, and closes it; returns the file, which is locked, and how
/// many bytes it has.
///
/// # Errors
/// `Busy`: another process has opened the new file; `Io`.
fn write_journal(
    directory: &dyn Directory,
    name: &str,
    snapshot: &Snapshot,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<dyn Storage>, u64)> {
    let shown = directory.display(name);
    let io = |error| Error::io(format!("{shown}: can't be written"), error);
    let storage = directory.create(name).map_err(io)?;
    if !storage.try_lock(Lock::Head, Hold::Exclusive).map_err(io)? {
        return Err(Error::new(
            ErrorKind::Busy,
            format!("{shown}: somebody else has just opened it"),
        ));
    }
    let header = new_header(&**clock);
    let start = Point { position: FRAMES_AT, txid: Txid(0), chain: header.hash() };
    let secret = clock.secret();
    storage.write_at(0, &head_with(&header, &first_slot(start, secret))).map_err(io)?;
    debug_assert!(Head::read(&*storage, &shown).is_ok_and(|head| head.start() == start));
    let settled = Settled::new_journal(start, secret);
    let checkpoints = Arc::new(Checkpoints::new(
        Arc::clone(&storage),
        &shown,
        header.hash(),
        annals_storage::process_id(),
        start,
        &settled,
    ));
    let mut writer = Writer::new(Arc::clone(&checkpoints), Arc::clone(clock), i64::MIN, 8);
    let mut end = start;
    if snapshot.txid() > Txid(0) {
        writer.begin(Level::Checksummed)?;
        write_state(&mut writer, snapshot, snapshot.last_blob().0, header.segment)?;
        end = writer.commit(Level::Checksummed, None)?;
    }
    checkpoints.acknowledge(end, 1, true);
    checkpoints.close()?;
    Ok((storage, end.position))
}
