//! Creation and setting aside: an image appears under its name only with a whole, durable root, and
//! leaves it as a whole.
//!
//! ```text
//! 1. create NAME.new-ID, write the head: header, and two blank slots
//! 2. write the objects of the first root, then its first copy; flush; write its second copy
//! 3. link it as NAME (fails if somebody was faster)
//! 4. remove NAME.new-ID, flush the directory; if that fails, remove NAME
//! ```
//!
//! Steps 2 to 4 are those of publishing the first root. The process that publishes the second one flushes the
//! directory first, in case the creator ended before step 4. Orphans of an interrupted creation are removed by the
//! next one: creating an image needs the lock of backfills.

use std::io;
use std::sync::Arc;

use super::file::{Image, Temporary};
use super::format::{IMAGE_VERSION, Identity, ImageHeader, OBJECTS_AT, journal_id_of};
use super::space::Space;
use crate::{Error, ErrorKind, Result};
use annals_storage::header::holds_journal;
use annals_storage::sync::lock;
use annals_storage::{Access, Clock, Directory, Storage};

/// How images begin.
const CACHE_MAGIC: &[u8] = b"\x89AN";

/// Returns the name of the image beside a journal.
pub fn image_name(journal: &str) -> String {
    format!("{journal}-image")
}

/// The fate of an image that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its problem.
    pub reason: String,
    /// Its kept name, beside the journal; `None` if it was left in place.
    pub kept_as: Option<String>,
}

/// Takes an image out of the way: it is kept as `<image>-damaged`, or, where another file has that name, under one
/// that isn't in use. An older kept one is replaced, if it is proven to be of the same journal. A journal that has
/// the name of an image stays where it is.
///
/// # Errors
/// `Io`.
#[inline]
pub fn set_aside(directory: &dyn Directory, name: &str, reason: String) -> Result<SetAside> {
    if holds_journal(directory, name) {
        return Ok(SetAside { reason: is_journal(directory, name), kept_as: None });
    }
    match move_aside(directory, name) {
        Ok(kept_as) => Ok(SetAside { reason, kept_as: Some(kept_as) }),
        Err(error) => {
            let shown = directory.display(name);
            Err(Error::io(format!("{shown}: can't set the image aside ({reason})"), error))
        }
    }
}

/// Renames an image, and returns its new name.
fn move_aside(directory: &dyn Directory, name: &str) -> io::Result<String> {
    let id = |name: &str| Ok::<_, io::Error>(journal_id_of(&beginning(directory, name)?));
    let kept_as = format!("{name}-damaged");
    if id(name)?.is_some_and(|own| id(&kept_as).is_ok_and(|older| older == Some(own))) {
        return directory.rename(name, &kept_as).and_then(|()| directory.flush()).map(|()| kept_as);
    }
    let mut attempt = 1;
    loop {
        let unused = if attempt == 1 { kept_as.clone() } else { format!("{kept_as}-{attempt}") };
        match directory.link(name, &unused) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            linked => {
                linked.and_then(|()| directory.remove(name)).and_then(|()| directory.flush())?;
                return Ok(unused);
            }
        }
    }
}

/// Reads the beginning of a file, with the head of an image.
fn beginning(directory: &dyn Directory, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 8192];
    let read = directory.open(name, Access::Read)?.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn is_journal(directory: &dyn Directory, name: &str) -> String {
    let shown = directory.display(name);
    format!("{shown}: is a database, but has a name that another one needs: move it elsewhere")
}

/// Removes a useless image.
///
/// # Errors
/// `Io`.
pub fn discard(directory: &dyn Directory, name: &str) -> Result<()> {
    directory.remove(name).map_err(|error| {
        let shown = directory.display(name);
        Error::io(format!("{shown}: can't remove the image, which is of no use any more"), error)
    })
}

impl Image {
    /// Creates an image, which gets its name when its first root is published, and is nothing before.
    ///
    /// # Errors
    /// `InUse` if there is an image of that name; `Io`.
    #[inline]
    pub fn create(
        directory: &Arc<dyn Directory>,
        name: &str,
        identity: &Identity,
        clock: &dyn Clock,
    ) -> Result<Self> {
        Self::begin(directory, name, identity, false, clock)
    }

    /// As [`Self::create`]; if it `replaces` the existing image, it is renamed over that one.
    pub(super) fn begin(
        directory: &Arc<dyn Directory>,
        name: &str,
        identity: &Identity,
        replaces: bool,
        clock: &dyn Clock,
    ) -> Result<Self> {
        let shown = directory.display(name);
        let io = |error| Error::io(format!("{shown}: can't create the image"), error);
        let names = directory.list().map_err(io)?;
        if !replaces && names.iter().any(|found| found == name) {
            return Err(taken(&**directory, name));
        }
        remove_leftovers(&**directory, name, &names);
        let header = ImageHeader {
            version: IMAGE_VERSION,
            compatible: 0,
            read_only_compatible: 0,
            incompatible: 0,
            identity: *identity,
            created: clock.now(),
        };
        let temporary = Temporary { name: format!("{name}.new-{:016x}", clock.random()), replaces };
        let storage = directory.create(&temporary.name).map_err(io)?;
        let image = Self::new(directory, storage, name, Access::Write, header.hash());
        lock(&image.held).temporary = Some(temporary);
        *lock(&image.working) = Some(Space::empty());
        let mut head = header.encode().to_vec();
        head.resize(usize::try_from(OBJECTS_AT).unwrap_or_default(), 0);
        image.storage.write_at(0, &head).map_err(io)?;
        Ok(image)
    }

    /// Returns an image its name, whose first root is on permanent storage.
    pub(super) fn link(&self, temporary: &Temporary) -> Result<()> {
        let Temporary { name, replaces } = temporary;
        let named = match replaces {
            true => self.directory.rename(name, &self.name),
            false => self.directory.link(name, &self.name),
        };
        named.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(&*self.directory, &self.name),
            _ => self.io("can't give the new image its name", error),
        })?;
        self.storage.renamed(&self.name);
        let unnamed = |error| self.io("can't make the new image's name durable", error);
        if *replaces {
            // A power cut leaves one of them, and their contents are the same.
            return self.directory.flush().map_err(unnamed);
        }
        // If it remains, it is harmless.
        let _ = self.directory.remove(name);
        self.directory.flush().map_err(|error| {
            // A later flush would prove nothing.
            let _ = self.directory.remove(&self.name);
            unnamed(error)
        })
    }
}

fn taken(directory: &dyn Directory, name: &str) -> Error {
    let shown = directory.display(name);
    let message = match holds_journal(directory, name) {
        true => is_journal(directory, name),
        false => format!(
            "{shown}: there is a file of that name already that this program doesn't use: delete it, by which nothing is \
             lost, or open the database again"
        ),
    };
    Error::new(ErrorKind::InUse, message)
}

/// Opens the file of an image; `None` if there is none.
///
/// # Errors
/// `Io`, also if it is no regular file: a device, a pipe, a directory.
pub(super) fn open_file(
    directory: &dyn Directory,
    name: &str,
    access: Access,
) -> Result<Option<Arc<dyn Storage>>> {
    use std::io::ErrorKind::{InvalidInput, IsADirectory, NotFound, PermissionDenied};
    let opened = directory.open(name, access).and_then(|storage| match storage.has_fixed_len() {
        true => Err(std::io::Error::new(InvalidInput, "it is a block device")),
        false => Ok(storage),
    });
    let error = match opened {
        Ok(storage) => return Ok(Some(storage)),
        Err(error) if error.kind() == NotFound => return Ok(None),
        Err(error) => error,
    };
    let advice = match error.kind() {
        InvalidInput | IsADirectory => {
            ", which is not a regular file: remove it or move it elsewhere, and a new one is made"
        }
        PermissionDenied => {
            "; let this user read and write it, or delete it, by which nothing is lost: a new one is made"
        }
        _ => "",
    };
    let shown = directory.display(name);
    Err(Error::io(format!("{shown}: can't open the image{advice}"), error))
}

/// Removes orphans of interrupted creations: files that begin like an image, or are still empty.
fn remove_leftovers(directory: &dyn Directory, name: &str, names: &[String]) {
    let is_temporary = |found: &&String| {
        let id = found.strip_prefix(name).and_then(|rest| rest.strip_prefix(".new-"));
        id.is_some_and(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    for leftover in names.iter().filter(is_temporary) {
        let head = beginning(directory, leftover).unwrap_or_default();
        // A power cut may have left the rest of it without its first sector.
        if head.starts_with(CACHE_MAGIC) || head.iter().take(512).all(|&byte| byte == 0) {
            // A file that can't be removed is harmless.
            let _ = directory.remove(leftover);
        }
    }
}
