//! Transactions that a replica commits on its own: beginning the file that has them, opening it, and putting it away.
//!
//! Invariant: a journal is on permanent storage up to the cursor before its continuation has a name.

use std::io;
use std::sync::Arc;

use annals::internals::{Preface, durable, files_of, settle};
use annals::{BackfillMode, Database, Error, ErrorKind, Options, Result, Txid};
use annals_journal::{first_slot, head_with};
use annals_storage::{Clock as _, Directory, SystemClock};

use crate::frames::Source;

/// Begins the file `own`, which continues the database `name` after a transaction, or after the last one, unless there
/// is such a file already.
///
/// Cost: flushes the journal, brings its image forward, and writes 20 KiB.
///
/// # Errors
/// `Unsupported`: the transaction isn't in the present segment; `Io`; those of beginning a transaction.
pub(crate) fn begin_continuation(
    database: &Database,
    directory: &dyn Directory,
    name: &str,
    after: Option<Txid>,
    own: &str,
) -> Result<()> {
    let permitted = directory.for_journal(name, None);
    let directory = &*permitted.unwrap_or_else(|| directory.again());
    let shown = directory.display(own);
    let io = |error| Error::io(format!("{shown}: can't create it"), error);
    // Opening it will begin at this root. Without one it takes longer.
    let _ = database.backfill(BackfillMode::Full);
    let (preface, head) = {
        // Nothing is committed meanwhile.
        let _transaction = database.begin()?;
        settle(database)?;
        let state = durable(database)?;
        let from = match after.filter(|&after| after != state.txid()) {
            None => Some(state.point()),
            Some(after) => Source::new(database.clone()).point_after(after)?,
        };
        let from = from.ok_or_else(|| {
            let message =
                format!("{shown}: the journal continued in another file since: clone it again");
            Error::new(ErrorKind::Unsupported, message)
        })?;
        let files = files_of(&state, Some(state.point().into()))?;
        let newest = files.last().map(|part| &part.head);
        let newest = newest.ok_or_else(|| Error::invalid("a journal has a segment"))?;
        let head = head_with(&newest.header, &first_slot(from, SystemClock.secret()));
        (Preface { header: newest.hash, segment: newest.header.segment, from }, head)
    };
    let temporary = format!("{own}.new-{:016x}", SystemClock.random());
    let storage = directory.create(&temporary).map_err(io)?;
    let written = preface.write(&*storage, &head).and_then(|()| directory.link(&temporary, own));
    let removed = directory.remove(&temporary);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written.and(removed).and_then(|()| directory.flush()).map_err(io),
    }
}

/// Opens the file `own`, which continues the journal `name`, as a database; `None` if there is no such file.
///
/// Cost: as [`Options::open`], from the newest root of the image that isn't after the cursor.
///
/// # Errors
/// Those of [`Options::open`]; `Forgotten`: the journal doesn't have the cursor any more; `Diverged`: it is another
/// one.
pub(crate) fn open_continuation(
    options: &Options,
    directory: &dyn Directory,
    name: &str,
    own: &str,
) -> Result<Option<(Preface, Database)>> {
    let Some(preface) = Preface::find(directory, own)? else { return Ok(None) };
    let seen = preface.seen(directory, name, own)?;
    let options = preface.options(options);
    let database = options.open_in(Arc::new(seen), name, Arc::new(SystemClock))?;
    Ok(Some((preface, database)))
}

/// Renames the file of a continuation, which is closed, durably; a name that is taken is replaced by none: it gets a
/// number.
///
/// # Errors
/// `Io`.
pub(crate) fn rename_continuation(directory: &dyn Directory, own: &str, to: &str) -> Result<()> {
    let (mut target, mut number) = (to.to_owned(), 2_u32);
    let renamed = loop {
        match directory.link(own, &target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A power cut may have come between the two names.
                match annals_storage::is_same_file(directory, &target, own) {
                    Ok(false) => target = format!("{to}-{number}"),
                    is_same => break is_same.map(drop),
                }
                number += 1;
            }
            linked => break linked,
        }
    };
    renamed
        .and_then(|()| directory.flush())
        .and_then(|()| directory.remove(own))
        .and_then(|()| directory.flush())
        .map_err(|error| Error::io(format!("{}: can't rename it", directory.display(own)), error))
}
