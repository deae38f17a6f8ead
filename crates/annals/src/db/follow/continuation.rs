//! The file of transactions that a replica commits on its own: a journal that continues another from a transaction on.
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
//! Invariant: NAME, its segments and its image are only read.

use std::io;
use std::path::Path;
use std::sync::Arc;

use annals_schema::Txid;
use annals_storage::bytes::{Fields, hash};
use annals_storage::{ContinuedDirectory, Division, Later};

use crate::db::follow::options;
use crate::db::follow::options::Options;
use crate::image::image_name;
use crate::journal::format::FRAMES_AT;
use crate::journal::segments::{is_id, kept_name, number_in};
use crate::journal::{Head, Point, Retention};
use crate::storage::{Access, Directory, Storage};
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
pub struct Preface {
    /// The hash of the header of the segment.
    pub header: u64,
    /// The number of the segment.
    pub segment: u64,
    /// The end of the last transaction before it.
    pub from: Point,
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

    /// Writes it in an empty file, with the head that follows, and flushes that.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, storage: &dyn Storage, head: &[u8]) -> io::Result<()> {
        storage.write_at(0, &self.encode())?;
        storage.write_at(PREFACE, head)?;
        storage.flush()
    }

    /// Reads that of the file `own`; `None` if there is no such file.
    ///
    /// # Errors
    /// `NotAJournal`: it is another file; `Corrupt`, `Unsupported`, `Io`.
    pub fn find(directory: &dyn Directory, own: &str) -> Result<Option<Self>> {
        let storage = open_if_there(directory, own)?;
        storage.map(|storage| Self::read(&*storage, &directory.display(own))).transpose()
    }

    /// Returns a directory in which the file `own` is seen as the journal `name`, to write it.
    ///
    /// # Errors
    /// `Forgotten`: the journal doesn't have the cursor any more; `Diverged`: it is another one; `Io`.
    pub fn seen(
        &self,
        directory: &dyn Directory,
        name: &str,
        own: &str,
    ) -> Result<ContinuedDirectory> {
        let permitted = directory.for_journal(name, None);
        seen(permitted.unwrap_or_else(|| directory.again()), name, own, self, number_in)
    }

    /// Returns the options with which such a file is opened: it uses only roots of the image up to the cursor.
    #[must_use]
    pub fn options(&self, options: &Options) -> Options {
        Options {
            create: false,
            shared: false,
            retention: Retention::default(),
            roots_until: Some(self.from.txid),
            ..options.clone()
        }
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

fn open_if_there(directory: &dyn Directory, name: &str) -> Result<Option<Arc<dyn Storage>>> {
    match directory.open(name, Access::Read) {
        Ok(storage) => Ok(Some(storage)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("{}: can't open it", directory.display(name)), error)),
    }
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
        let Some(storage) = open_if_there(directory, found)? else { continue };
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
