//! Restoring a database from an archive, up to any moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annals::internals::locate;
use annals::{Cursor, Error, ErrorKind, Moment, Options, Result, Txid};
use annals_storage::Spool;

use super::memory;
use super::pull::Archive;
use crate::frames::frames_up_to;
use crate::{Connection, Description, Granted, Patience, Pulled, Pushed, Replica};

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The last transaction that the file has, with the chain that proves all before it.
    pub end: Cursor,
}

/// Restores a database from an archive: all of it, or up to a transaction, or to the last one of a time or a comment. Each
/// frame is verified and applied, up to the chain that the archive has for it. The file appears only when it is whole; a
/// restore that was interrupted continues where it was.
///
/// A time or a comment is looked up in a whole copy, which is made beside the file first.
///
/// # Errors
/// `InUse`: there is such a file; `Corrupt`, `Invalid`: something in the archive doesn't verify; `NotFound`: it has no such
/// moment; those of the bucket, `Io`.
pub fn restore(
    archive: Archive,
    path: &Path,
    moment: Option<Moment>,
    options: &Options,
) -> Result<Restored> {
    if path.try_exists().map_err(|error| Error::io(format!("{}", path.display()), error))? {
        let message = format!("{}: there is such a file: name another", path.display());
        return Err(Error::new(ErrorKind::InUse, message));
    }
    let folder = beside(path, ".restoring");
    let io = |error| Error::io(format!("{}: cannot restore", folder.display()), error);
    let is_new = match std::fs::create_dir(&folder) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(io(error)),
    };
    let restored = restore_in(&folder, archive, path, moment, options);
    if is_new && matches!(&restored, Err(error) if error.kind() == ErrorKind::NotFound) {
        // There is nothing to continue with.
        std::fs::remove_dir_all(&folder).map_err(io)?;
    }
    restored
}

/// Restores it in a folder, and then moves it to its place.
fn restore_in(
    folder: &Path,
    archive: Archive,
    path: &Path,
    moment: Option<Moment>,
    options: &Options,
) -> Result<Restored> {
    let file = folder.join(path.file_name().unwrap_or_default());
    let connection: Arc<dyn Connection> = Arc::new(archive);
    let upto = match moment {
        None => None,
        Some(Moment::Txid(txid)) => Some(txid),
        Some(moment) => {
            let whole = folder.join("whole.annals");
            let copy = pull_all(Arc::clone(&connection), &whole, options)?;
            let found = copy.database().txid_of(moment);
            copy.close()?;
            Some(found?)
        }
    };
    let source: Arc<dyn Connection> = match upto {
        None => connection,
        Some(txid) => Arc::new(Until { connection, txid }),
    };
    let replica = pull_all(source, &file, options)?;
    let end = replica.cursor();
    replica.close()?;
    if upto.is_some_and(|upto| upto != end.txid) {
        let upto = upto.unwrap_or_default();
        let message = format!(
            "there is no transaction {upto} in the archive: the last one is {}; nothing was restored",
            end.txid
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    publish(folder, &file, path)?;
    Ok(Restored { end })
}

fn pull_all(connection: Arc<dyn Connection>, file: &Path, options: &Options) -> Result<Replica> {
    let replica = Replica::connect_with(connection, file, options, Patience::default())?;
    replica.pull()?;
    Ok(replica)
}

fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}

/// Moves the restored files to their places: first all others, then the newest segment, by whose name the database is opened.
fn publish(folder: &Path, file: &Path, path: &Path) -> Result<()> {
    let io =
        |error| Error::io(format!("{}: cannot place the restored files", path.display()), error);
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let target = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        names.push(entry.map_err(io)?.file_name());
    }
    let belongs = |it: &&std::ffi::OsString| it.to_string_lossy().starts_with(&name);
    let is_first = |it: &&std::ffi::OsString| it.to_string_lossy() != name;
    let (others, newest): (Vec<_>, Vec<_>) = names.iter().filter(belongs).partition(is_first);
    let (directory, _) = locate(path)?;
    for names in [others, newest] {
        for name in names {
            std::fs::rename(folder.join(name), target.join(name)).map_err(io)?;
        }
        directory.flush().map_err(io)?;
    }
    std::fs::remove_dir_all(folder).map_err(io)
}

/// A connection that has no transactions after one.
#[derive(Debug)]
struct Until {
    connection: Arc<dyn Connection>,
    txid: Txid,
}

impl Connection for Until {
    fn name(&self) -> String {
        self.connection.name()
    }

    fn describe(&self) -> Result<Description> {
        self.connection.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        if let Some(end) = after.filter(|after| after.txid >= self.txid) {
            return Ok(Pulled { next: end, is_seal: false });
        }
        let mut batch = memory();
        let mut pulled = self.connection.pull(after, wait, &mut batch)?;
        let io = |error| Error::io("can't spool what was fetched", error);
        let mut most = batch.end() - batch.begin();
        if !pulled.is_seal && pulled.next.txid > self.txid {
            let part = frames_up_to(&batch, after.is_none(), self.txid)?.ok_or_else(|| {
                let message = format!(
                    "{}: transaction {} isn't kept there: it begins later",
                    self.name(),
                    self.txid
                );
                Error::new(ErrorKind::NotFound, message)
            })?;
            pulled.next = Cursor { txid: self.txid, chain: part.chain };
            most = part.bytes;
        }
        let copied = batch.pieces(|_, piece| {
            let count = usize::try_from(most).unwrap_or(usize::MAX).min(piece.len());
            most -= count as u64;
            into.append(piece.get(..count).unwrap_or_default())
        });
        copied.map_err(io)?;
        Ok(pulled)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        self.connection.push(from, frames, lease)
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.connection.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.connection.unlock(ticket)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.connection.chains(txids)
    }
}
