//! Copies of a database: backups, and copies that follow.

use std::path::Path;
use std::sync::Arc;

use annals_schema::Schema;

use crate::Result;
use crate::db::handle::database::Database;
use crate::db::options::{Options, locate};
use crate::db::replay::scan::Sink;
use crate::debug::brief;
use crate::event::Event;
use crate::journal::Committed;
use crate::replica::{self, Converted, Copied, Pushing};
use crate::storage::{Clock, Directory, SystemClock};

impl Options {
    /// Writes a copy of a database into the new file `to`, while others may write, restart and forget: the
    /// same journal, with all of its history that is left, up to the last transaction that is known to be
    /// on permanent storage. Each frame is verified. Kept segments lie beside the copy as they do beside the
    /// original; an image isn't copied, and isn't needed. Writes nothing to the original.
    ///
    /// The copy has its name only once all of it is on permanent storage. It may be written from then on;
    /// but a copy that [`push`](Self::push) is to bring forward later must not be.
    ///
    /// Cost: reads all that is copied, and writes it; what follows the last slot is read twice. Memory for a
    /// frame, 1 MiB or one large row.
    ///
    /// # Errors
    /// `InUse` if there is a file `to`, or one of its kept segments; `NotFound`; `NotAJournal`; `Corrupt`;
    /// `Unsupported`; `Cancelled`; `Io`. Nothing is left of the copy then.
    pub fn backup(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied> {
        let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
        self.backup_in((from.0, &from.1), (to.0, &to.1), Arc::new(SystemClock))
    }

    /// As [`Self::backup`], in any directories, with any clock.
    ///
    /// # Errors
    /// As [`Self::backup`].
    pub fn backup_in(
        &self,
        from: (Arc<dyn Directory>, &str),
        to: (Arc<dyn Directory>, &str),
        clock: Arc<dyn Clock>,
    ) -> Result<Copied> {
        replica::backup(from, to, clock, self.watch.clone())
    }

    /// Writes a database into the new file `to` in the newest version of the format, its whole history with all
    /// segments: compressed, if `compress` says so (with the feature `zstd`), else not. What is compressed can be
    /// read like any database, without being unpacked to a disk, but not written; converted again, it has the
    /// same bytes as before. Others may write `from` meanwhile: as with [`backup`](Self::backup), what is known to be
    /// on permanent storage is converted, and [`Converted::soft`] counts the transactions after that.
    ///
    /// Cost: reads `from` twice and what is written once, and verifies it all. Where `from` is being written, or wasn't
    /// closed, a backup beside `to` is made first. Reading compressed files keeps 2 MiB of them unpacked.
    ///
    /// # Errors
    /// `InUse` if there is a file `to`, or one of its kept segments; `NotFound`; `NotAJournal`; `Corrupt`;
    /// `Unsupported`; `Cancelled`; `Io`. Nothing is left of the new file then.
    pub fn convert(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        compress: bool,
    ) -> Result<Converted> {
        let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
        let check = |directory: &dyn Directory, name: &str| {
            Self::new().scan_in(directory, name, &mut Nothing)
        };
        let (from, to, how) =
            ((from.0, from.1.as_str()), (to.0, to.1.as_str()), self.watch.clone());
        replica::convert(from, to, compress, (Arc::new(SystemClock), how), check)
    }

    /// Makes ready to bring a copy `to` up to a database `from`. Nothing is opened yet.
    ///
    /// # Errors
    /// `Io` if a path can't be used.
    pub fn push(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Push> {
        let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
        Ok(self.push_in((from.0, &from.1), (to.0, &to.1), Arc::new(SystemClock)))
    }

    /// As [`Self::push`], in any directories, with any clock.
    #[must_use]
    pub fn push_in(
        &self,
        from: (Arc<dyn Directory>, &str),
        to: (Arc<dyn Directory>, &str),
        clock: Arc<dyn Clock>,
    ) -> Push {
        Push(Pushing::new(from, to, clock, self.watch.clone()))
    }
}

/// Takes what a scan verifies, and does nothing with it.
struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _: &Schema, _: &Event<'_>) -> Result<()> {
        Ok(())
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}

/// Brings a copy of a database up to it: once, or again and again while others write it.
///
/// The copy has the same frames, byte for byte, and so the same txids and chains, and goes on in a new
/// segment where the original does. It is a database at every moment, also after a crash, and others may
/// read it meanwhile. Only transactions are copied that are known to be on permanent storage. (A half commit
/// at the very end is, though a power cut may still undo it, as `docs/crash.md` says.)
///
/// ```
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (path, copy) = (folder.path().join("a.annals"), folder.path().join("copy.annals"));
/// let database = annals::Database::open(&path)?;
/// database.write(|tx| tx.comment("one"))?;
/// database.hard_checkpoint()?; // so that all is known to be hard
/// let mut push = annals::Options::new().push(&path, &copy)?;
/// assert_eq!(push.bring_up()?.transactions, 1);
/// database.write(|tx| tx.comment("two"))?;
/// database.hard_checkpoint()?;
/// assert_eq!(push.bring_up()?.transactions, 1);
/// push.close()?;
/// assert_eq!(annals::inspect(&copy)?.end, annals::inspect(&path)?.end);
/// # Ok(())
/// # }
/// ```
pub struct Push(Pushing);

brief!(Push, "Push");

impl Push {
    /// Copies all that is there by now; creates the copy if there is none, with all history that is left.
    /// Nobody else may have the copy open for writing; it is locked from now on.
    ///
    /// After an error it may be called again: the copy is recovered, and goes on behind its last
    /// transaction.
    ///
    /// Cost: reads and writes what is new, with a flush for each 16 MiB, and for each call that brings
    /// something.
    ///
    /// # Errors
    /// `Diverged` if the copy isn't the beginning of the original, naming the last transaction that both have;
    /// `NotFound` if there is no original, or if it has forgotten what the copy needs; `Busy` if somebody has
    /// the copy open for writing; `Corrupt`; `Unsupported`; `Cancelled`; `Io`.
    pub fn bring_up(&mut self) -> Result<Copied> {
        self.0.bring_up()
    }

    /// Closes the copy properly. Without this the next one to open it recovers it, and nothing is lost.
    ///
    /// # Errors
    /// `Io`; `Poisoned` after a failed flush.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl Database {
    /// Writes a copy of the database into a new file, as [`Options::backup`] does: all that is acknowledged by
    /// now, which a hard checkpoint makes hard first. Commits go on meanwhile.
    ///
    /// # Errors
    /// As [`Options::backup`] and [`hard_checkpoint`](Self::hard_checkpoint).
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<Copied> {
        let (directory, name) = locate(to.as_ref())?;
        self.backup_in(directory, &name)
    }

    /// As [`Self::backup`], in any directory.
    ///
    /// # Errors
    /// As [`Self::backup`].
    pub fn backup_in(&self, directory: Arc<dyn Directory>, name: &str) -> Result<Copied> {
        self.hard_checkpoint()?;
        let (file, clock) = (self.file(), Arc::clone(&self.core().clock));
        let from = (Arc::clone(&file.directory), file.journal.as_str());
        replica::backup(from, (directory, name), clock, None)
    }
}
