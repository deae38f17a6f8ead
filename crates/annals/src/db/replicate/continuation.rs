//! Transactions that a replica commits on its own: a journal that continues another from a transaction on.
//!
//! ```text
//! NAME        ── history ──── cursor ── what the other side accepted since ──►
//! NAME-local                    └────── what was committed here ──►
//! ```
//!
//! Its file has a preface (journal, segment, cursor), a head of its own, and the frames after the cursor, at the positions
//! that they would have in NAME. So they have the chains with which they become history elsewhere, as they are. All
//! before the cursor is read from NAME, where it never changes, and the state at the cursor comes from NAME's image.
//!
//! Invariants
//! 1. NAME is on permanent storage up to the cursor before its continuation has a name.
//! 2. NAME, its segments and its image are only read.

use std::io;
use std::path::Path;
use std::sync::Arc;

use annals_schema::Txid;
use annals_storage::bytes::{Fields, hash};
use annals_storage::{ContinuedDirectory, Division, Later};

use crate::db::follow::options;
use crate::db::follow::options::Options;
use crate::db::replicate::Source;
use crate::db::write::database::Database;
use crate::image::image_name;
use crate::journal::format::FRAMES_AT;
use crate::journal::segments::{is_id, kept_name, number_in};
use crate::journal::{Cursor, Head, Point, Retention, first_slot, head_with};
use crate::storage::{Access, Clock, Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// The beginning of a continuation.
const MAGIC: [u8; 16] = *b"annals local\r\n\x1a\n";

/// What follows a journal's name in that of its continuation.
pub const LOCAL: &str = "-local";

/// What follows that, with a cursor, once it was pushed.
pub const PUSHED: &str = ".pushed-";

/// What follows a journal's name in that of a continuation for one rebase, with the digits of a random number.
pub const REBASE: &str = ".rebase-";

/// The version of its preface.
const VERSION: u32 = 1;

/// The length of the preface, of which the first bytes are used.
const PREFACE: u64 = 4096;

/// How many bytes of it are used: magic, version, 4 zeros, hash of the segment's header, segment, position, transaction,
/// chain, and a checksum of these.
const USED: usize = 72;

/// Where a continuation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Preface {
    /// The hash of the header of the segment.
    header: u64,
    segment: u64,
    from: Point,
}

impl Preface {
    fn encode(&self) -> [u8; USED] {
        let mut bytes = [0; USED];
        let Self { header, segment, from: Point { position, txid, chain } } = *self;
        let words = [header, segment, position, txid.0, chain];
        let parts = MAGIC.into_iter().chain(u64::from(VERSION).to_le_bytes());
        let parts = parts.chain(words.into_iter().flat_map(u64::to_le_bytes));
        bytes.iter_mut().zip(parts).for_each(|(place, byte)| *place = byte);
        let (fields, sum) = bytes.split_at_mut(USED - 8);
        sum.copy_from_slice(&hash(fields).to_le_bytes());
        bytes
    }

    fn read(storage: &dyn Storage, shown: &str) -> Result<Self> {
        let mut bytes = [0; USED];
        let read = storage.read_at(0, &mut bytes);
        let read = read.map_err(|error| Error::io(format!("{shown}: can't read it"), error))?;
        let fields = Fields(&bytes);
        if read < USED || fields.array(0) != MAGIC {
            let message = format!("{shown}: isn't a journal of changes that were made offline");
            return Err(Error::new(ErrorKind::NotAJournal, message));
        }
        if !fields.checked(USED - 8) {
            return Err(Error::corrupt(format!(
                "{shown}: its beginning is damaged: restore it from a backup"
            )));
        }
        if fields.u32(16) != VERSION {
            let version = fields.u32(16);
            let message = format!("{shown}: has version {version}, which a newer program reads");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let (header, segment, txid) = (fields.u64(24), fields.u64(32), Txid(fields.u64(48)));
        let from = Point { position: fields.u64(40), txid, chain: fields.u64(56) };
        Ok(Self { header, segment, from })
    }
}

/// A continuation that is open for writing.
#[derive(Debug)]
pub struct Continuation {
    /// The database as of the cursor, and with all transactions since.
    pub database: Database,
    preface: Preface,
}

impl Continuation {
    /// Returns the cursor after which it begins.
    #[must_use]
    pub fn from(&self) -> Cursor {
        self.preface.from.into()
    }

    /// Returns a reader of the frames of a database that has the cursor: of this one, or of the one that it continues. It
    /// finds all places after the cursor without reading what is before it.
    #[must_use]
    pub fn source(&self, database: &Database) -> Source {
        Source::new(database.clone()).knowing(self.preface.segment, self.preface.from)
    }
}

/// Begins the file `own`, which continues a database after a transaction, or after the last one; returns false if there is
/// such a file already.
///
/// Cost: flushes the journal, brings its image forward, and writes 20 KiB.
///
/// # Errors
/// `Unsupported`: the transaction isn't in the present segment; `Io`; those of beginning a transaction.
pub fn begin_continuation(database: &Database, after: Option<Txid>, own: &str) -> Result<bool> {
    let file = database.inner().file();
    let directory = file.directory.again();
    let shown = directory.display(own);
    let io = |error| Error::io(format!("{shown}: can't create it"), error);
    if there_is(&*directory, own).map_err(io)? {
        return Ok(false);
    }
    // Opening it will begin at this root. Without one it takes longer.
    let _ = database.backfill(crate::BackfillMode::Full);
    let (preface, head) = {
        // Nothing is committed meanwhile.
        let _transaction = database.begin()?;
        let inner = database.inner();
        inner.harden()?;
        let (published, file) = (inner.group.published(), inner.file());
        let end = published.point;
        let from = match after.filter(|&after| after != end.txid) {
            None => Some(end),
            Some(after) => Source::new(database.clone()).point_after(after)?,
        };
        let from = from.ok_or_else(|| {
            let message =
                format!("{shown}: the journal continued in another file since: clone it again");
            Error::new(ErrorKind::Unsupported, message)
        })?;
        let head = head_with(&file.head()?.header, &first_slot(from, inner.clock().secret()));
        (Preface { header: file.segment_hash()?, segment: file.segment, from }, head)
    };
    let temporary = format!("{own}.new-{:016x}", database.inner().clock().random());
    let storage = directory.create(&temporary).map_err(io)?;
    let written = storage
        .write_at(0, &preface.encode())
        .and_then(|()| storage.write_at(PREFACE, &head))
        .and_then(|()| storage.flush())
        .and_then(|()| directory.link(&temporary, own));
    let removed = directory.remove(&temporary);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        written => written.and(removed).and_then(|()| directory.flush()).map_err(io)?,
    }
    Ok(true)
}

fn there_is(directory: &dyn Directory, name: &str) -> io::Result<bool> {
    match directory.open(name, Access::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the files of rebases of a journal that were interrupted: what they had is the other side's by now, or
/// nobody's. The caller has the journal for itself, as a rebase has.
pub(in crate::db) fn remove_orphans(directory: &dyn Directory, name: &str) {
    let is_orphan = |found: &String| {
        let rest = found.strip_prefix(name).and_then(|rest| rest.strip_prefix(REBASE));
        rest.and_then(|rest| rest.split_at_checked(16)).is_some_and(|(id, rest)| {
            is_id(id) && (rest.is_empty() || rest.starts_with('.') || rest.starts_with("-spool-"))
        })
    };
    for orphan in directory.list().unwrap_or_default().iter().filter(|found| is_orphan(found)) {
        // Any program may have given such a name to a file.
        let storage = directory.open(orphan, Access::Read);
        let is_ours = storage.is_ok_and(|it| {
            it.len().is_ok_and(|len| len == 0) || Preface::read(&*it, orphan).is_ok()
        });
        if is_ours {
            // A file that can't be removed is harmless.
            let _ = directory.remove(orphan);
        }
    }
}

/// Opens the file `own`, which continues the journal `name`; `None` if there is no such file.
///
/// Cost: as [`Options::open`], from the newest root of the image that isn't after the cursor.
///
/// # Errors
/// Those of [`Options::open`]; `Forgotten`: the journal doesn't have the cursor any more; `Diverged`: it is another one.
pub fn open_continuation(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
    own: &str,
    clock: Arc<dyn Clock>,
) -> Result<Option<Continuation>> {
    let shown = directory.display(own);
    let preface = match directory.open(own, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(format!("{shown}: can't open it"), error)),
        Ok(storage) => Preface::read(&*storage, &shown)?,
    };
    let permitted = directory.for_journal(name, None);
    let permitted = permitted.unwrap_or_else(|| directory.again());
    let seen = seen(permitted, name, own, &preface, number_in)?;
    let options = Options {
        create: false,
        shared: false,
        retention: Retention::default(),
        roots_until: Some(preface.from.txid),
        ..options.clone()
    };
    let database = options.open_in(Arc::new(seen), name, clock)?;
    Ok(Some(Continuation { database, preface }))
}

/// Returns a directory in which a continuation is seen as the journal; `number` is of files, as [`Later`] has it.
fn seen(
    directory: Arc<dyn Directory>,
    name: &str,
    own: &str,
    preface: &Preface,
    number: fn(&str, &str) -> Option<u64>,
) -> Result<ContinuedDirectory> {
    let base = base(&*directory, name, preface, &directory.display(own))?;
    let division = Division { preface: PREFACE, head: FRAMES_AT, from: preface.from.position };
    let later = Later { number, from: preface.segment };
    Ok(ContinuedDirectory::new(directory, base, name, own, division).hiding(later))
}

/// Splits a path into a directory and a name in it, for reading: a continuation is seen with what it continues. The image of
/// that may be of later transactions, so it is not used.
///
/// # Errors
/// Those of `options::locate`; a continuation can't be read, or what it continues isn't there.
pub fn locate(path: &Path) -> Result<(Arc<dyn Directory>, String)> {
    let (directory, own) = options::locate(path)?;
    let continued = own
        .rsplit_once(LOCAL)
        .filter(|(name, rest)| !name.is_empty() && (rest.is_empty() || rest.starts_with(PUSHED)));
    let Some((name, _)) = continued else { return Ok((directory, own)) };
    let shown = directory.display(&own);
    let preface = match directory.open(&own, Access::Read) {
        Ok(storage) => Preface::read(&*storage, &shown),
        // It is reported where it is opened.
        Err(_) => return Ok((directory, own)),
    };
    let preface = match preface {
        Err(error) if error.kind() == ErrorKind::NotAJournal => return Ok((directory, own)),
        preface => preface?,
    };
    let number = |name: &str, journal: &str| match name == image_name(journal) {
        true => Some(u64::MAX),
        false => number_in(name, journal),
    };
    let seen = seen(directory, name, &own, &preface, number)?;
    Ok((Arc::new(seen), name.to_owned()))
}

/// Returns the file of a journal that has the cursor of a continuation: the present segment, or one that is kept.
fn base(
    directory: &dyn Directory,
    name: &str,
    preface: &Preface,
    shown: &str,
) -> Result<Arc<dyn Storage>> {
    let names = [name.to_owned(), kept_name(name, preface.segment)];
    let mut newest = 0;
    for found in &names {
        let storage = match directory.open(found, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                let message = format!("{}: can't open it", directory.display(found));
                return Err(Error::io(message, error));
            }
            Ok(storage) => storage,
        };
        let head = Head::read(&*storage, &directory.display(found))?;
        newest = newest.max(head.header.segment);
        if head.header.segment == preface.segment && head.hash == preface.header {
            return Ok(storage);
        }
    }
    let (name, txid) = (directory.display(name), preface.from.txid);
    Err(match newest > preface.segment {
        true => Error::new(
            ErrorKind::Forgotten,
            format!("{shown}: begins after transaction {txid}, which {name} doesn't keep any more"),
        ),
        false => Error::new(
            ErrorKind::Diverged,
            format!("{shown}: begins after transaction {txid} of another journal than {name}"),
        ),
    })
}

/// Renames the file of a continuation, which is closed, durably; a name that is taken is replaced by none: it gets a
/// number.
///
/// # Errors
/// `Io`.
pub fn rename_continuation(directory: &dyn Directory, own: &str, to: &str) -> Result<String> {
    let io = |error| Error::io(format!("{}: can't rename it", directory.display(own)), error);
    let mut target = to.to_owned();
    for number in 2_u32.. {
        match directory.link(own, &target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A power cut may have come between the two names.
                if annals_storage::is_same_file(directory, &target, own).map_err(io)? {
                    break;
                }
                target = format!("{to}-{number}");
            }
            linked => {
                linked.map_err(io)?;
                break;
            }
        }
    }
    directory
        .flush()
        .and_then(|()| directory.remove(own))
        .and_then(|()| directory.flush())
        .map_err(io)?;
    Ok(target)
}
