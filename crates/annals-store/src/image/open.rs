//! Opening: the header, the newest root that can be relied on, and its catalog; or the reason why the
//! image can't be used.

use std::cmp::Reverse;
use std::sync::Arc;

use super::catalog::Catalog;
use super::create::{SetAside, open_file, set_aside};
use super::damage::Damage;
use super::file::{HeldRoots, Image};
use super::format::{IMAGE_HEADER_LEN, IMAGE_VERSION, Identity, ImageHeader, Root};
use super::roots::{Chosen, Roots, Slot};
use super::stored::is_damage;
use super::walk::{Object, WalkStep, read_catalog, walk};
use crate::{Error, ErrorKind, Result};
use annals_storage::Point;
use annals_storage::sync::lock;
use annals_storage::{Access, Directory, Storage, step};

/// The file found at the name of an image.
#[derive(Debug)]
pub enum Opened {
    /// Nothing.
    Missing,
    /// An image that can be used.
    Usable(Box<Usable>),
    /// An image that can't be used.
    SetAside(SetAside),
}

/// An image that can be used.
#[derive(Debug)]
pub struct Usable {
    /// The image.
    pub image: Image,
    /// Its newest root that can be relied on. The caller checks that the journal has that point.
    pub root: Root,
    /// The contents of that root.
    pub catalog: Catalog,
}

impl Image {
    /// Opens the image of a journal. One without a usable root, or of another journal, is renamed as damaged; it is
    /// left in place if it is opened for reading only. Reads the head and the catalog; if the last backfill may be
    /// incomplete, also all that it wrote.
    ///
    /// A root that is damaged is dropped, and the next older one taken. Known damage in `how.damage` counts; new
    /// damage is recorded there.
    ///
    /// # Errors
    /// `Io`.
    pub fn open<'d>(
        directory: &Arc<dyn Directory>,
        name: &str,
        identity: &Identity,
        how: impl Into<Judging<'d>>,
    ) -> Result<Opened> {
        let how = how.into();
        let access = how.access;
        let Some(storage) = open_file(&**directory, name, access)? else {
            return Ok(Opened::Missing);
        };
        match Self::load(directory, storage, name, &how, Some(identity)) {
            Ok(usable) => Ok(Opened::Usable(Box::new(usable))),
            Err(error) if error.kind() == ErrorKind::Io || error.is_remote() => Err(error),
            Err(error) if access == Access::Read => {
                Ok(Opened::SetAside(SetAside { reason: error.to_string(), kept_as: None }))
            }
            Err(error) => set_aside(&**directory, name, error.to_string()).map(Opened::SetAside),
        }
    }

    /// Loads the contents of a file; of any journal, if none is given.
    pub(super) fn load(
        directory: &Arc<dyn Directory>,
        storage: Arc<dyn Storage>,
        name: &str,
        how: &Judging<'_>,
        identity: Option<&Identity>,
    ) -> Result<Usable> {
        let shown = directory.display(name);
        let header = read_header(&*storage, &shown)?;
        if let Some(identity) = identity {
            check_identity(&header.identity, identity).map_err(|error| error.within(&shown))?;
        }
        let mut image = Self::new(directory, storage, name, how.access, header.hash());
        if let Some(damage) = how.damage {
            image = image.noting_in(damage);
        }
        let roots = image.roots()?;
        let (chosen, catalog, is_frame) =
            image.choose_sound(&roots, how).map_err(|error| within(error, &shown))?;
        *lock(&image.held) = HeldRoots {
            is_frame,
            live: None,
            newest: Some(chosen),
            other: roots.other(&chosen),
            last_number: roots.last_number(),
            temporary: None,
            // The publisher of the second root made sure of that before.
            is_named: chosen.root.number > 1,
            frames: None,
        };
        Ok(Usable { image, root: chosen.root, catalog })
    }

    /// Chooses the newest root of which nothing is known to be damaged: one of the two slots', else a key frame;
    /// true if it is one. Reads its catalog.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if there is none, with the reason.
    fn choose_sound(&self, roots: &Roots, how: &Judging<'_>) -> Result<(Chosen, Catalog, bool)> {
        let (len, mut catalog) = (self.len()?, None);
        let mut judge = |chosen: &Chosen| {
            if !chosen.is_whole {
                verify_written(self, &chosen.root)?;
            }
            catalog = Some(self.judge(&chosen.root, how)?);
            Ok(())
        };
        let failed = match roots.choose(len, &mut judge) {
            Ok(chosen) => {
                return Ok((chosen, catalog.ok_or_else(no_catalog)?, false));
            }
            Err(error) if !is_damage(&error) => return Err(error),
            Err(error) => error,
        };
        let mut told: Vec<_> = roots.slots.iter().enumerate().collect();
        let number = |slot: &Slot| slot.root().map(|root| root.number);
        told.sort_by_key(|(_, slot)| Reverse(number(slot)));
        let lists = told.iter().filter_map(|(_, slot)| slot.root());
        let mut frames: Vec<_> = lists.flat_map(|root| self.frames_of(root).to_vec()).collect();
        frames.sort_by_key(|root| Reverse(root.number));
        // The next root is written to the slot of the newest damaged one.
        let slot = told.first().map_or(0, |(slot, _)| 1 - *slot);
        for root in frames.into_iter().filter(|root| root.end <= len) {
            match self.judge(&root, how) {
                Ok(catalog) => return Ok((Chosen { root, slot, is_whole: true }, catalog, true)),
                Err(error) if is_damage(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(failed)
    }

    /// Reads the catalog of a root, unless an object of the root is damaged.
    pub(super) fn judge(&self, root: &Root, how: &Judging<'_>) -> Result<Catalog> {
        let catalog = read_catalog(self, root).inspect_err(|error| {
            if is_damage(error) {
                self.note_bad(&root.catalog, error);
            }
        })?;
        match (!how.is_whole && self.is_nothing_bad()) || self.is_sound(root, how.is_whole)? {
            true => Ok(catalog),
            false => {
                let number = root.number;
                Err(Error::corrupt(format!("damaged: root {number} reaches what doesn't verify")))
            }
        }
    }

    /// Returns true if the root in use is still the newest: no other was published since it was opened.
    ///
    /// # Errors
    /// `Io`.
    #[inline]
    pub fn is_newest(&self) -> Result<bool> {
        Ok(self.holds_newest(&self.roots()?))
    }

    /// Returns true if the file at the image's name is this image, with the same newest root. Also returns whether
    /// this handle may write it.
    ///
    /// # Errors
    /// `Io`.
    #[inline]
    pub fn is_writable_newest(&self) -> Result<bool> {
        let there = match self.directory.open(&self.name, Access::Read) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            there => there.map_err(|error| self.io("can't open it", error))?,
        };
        let is_same = read_header(&*there, &self.path()).is_ok_and(|it| it.hash() == self.header);
        let roots = Roots::read(&*there, self.header)
            .map_err(|error| self.io("can't read its roots", error))?;
        Ok(is_same && self.access == Access::Write && self.holds_newest(&roots))
    }

    /// Reads the newest root that is whole, and nothing else; `None` if there is none, or no image of this
    /// journal's.
    pub fn peek(directory: &dyn Directory, name: &str, identity: &Identity) -> Option<Root> {
        let storage = directory.open(name, Access::Read).ok()?;
        let header = read_header(&*storage, name).ok()?;
        check_identity(&header.identity, identity).ok()?;
        let roots = Roots::read(&*storage, header.hash()).ok()?;
        let whole = roots.slots.iter().filter_map(|slot| match slot {
            Slot::Whole(root) => Some(*root),
            _ => None,
        });
        whole.max_by_key(|root| root.number)
    }

    /// Reads both slots.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn roots(&self) -> Result<Roots> {
        Roots::read(&*self.storage, self.header)
            .map_err(|error| self.io("can't read its roots", error))
    }
}

/// How an image is opened.
#[derive(Clone, Copy, Debug)]
pub struct Judging<'d> {
    /// The purpose of opening the image.
    pub access: Access,
    /// The known damage, and the record for more.
    pub damage: Option<&'d Arc<Damage>>,
    /// All of a root is read before it is taken.
    pub is_whole: bool,
}

impl From<Access> for Judging<'_> {
    fn from(access: Access) -> Self {
        Self { access, damage: None, is_whole: false }
    }
}

impl<'d> From<&'d Arc<Damage>> for Judging<'d> {
    fn from(damage: &'d Arc<Damage>) -> Self {
        Self { access: Access::Read, damage: Some(damage), is_whole: false }
    }
}

fn no_catalog() -> Error {
    Error::corrupt("damaged: it has no catalog")
}

/// A point in a file beside a journal: the journal was on permanent storage up to there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The name of that file in messages.
    pub what: &'static str,
    /// The segment of the journal.
    pub segment: u64,
    /// The point of the root.
    pub point: Point,
}

/// Returns the points of the journal in the roots of an image; nothing if there is none, or it is another's, or can't
/// be read.
pub fn witnesses(directory: &dyn Directory, name: &str, journal: &Identity) -> Vec<Witness> {
    let copies = || {
        let storage = directory.open(name, Access::Read).ok()?;
        let header = read_header(&*storage, name).ok()?;
        let Identity { journal_id, segment, segment_hash } = header.identity;
        let is_other = segment == journal.segment && segment_hash != journal.segment_hash;
        if step!(WitnessIgnored, journal_id != journal.journal_id || is_other, else true) {
            return None;
        }
        Roots::copies(&*storage, header.hash()).ok()
    };
    let witness = |root: Root| Witness { what: "image", segment: root.segment, point: root.point };
    copies().unwrap_or_default().into_iter().map(witness).collect()
}

/// Puts the image's path in front of a message that may have it already.
fn within(error: Error, shown: &str) -> Error {
    if error.to_string().starts_with(shown) { error } else { error.within(shown) }
}

/// Verifies all that a root's backfill wrote: an object written by it is reached through nodes that were
/// written by it too.
pub(super) fn verify_written(image: &Image, root: &Root) -> Result<()> {
    step!(FirstCopyTrusted, else return Ok(()));
    if !root.wrote(&root.catalog) {
        return Err(Error::corrupt("damaged: the root's catalog is another backfill's"));
    }
    walk(image, root, |object, stored| {
        if !root.wrote(stored) {
            return Ok(WalkStep::Skip);
        }
        if matches!(object, Object::Page | Object::Bytes | Object::Frames) {
            image.verify(stored)?;
        }
        Ok(WalkStep::Enter)
    })
    .map(drop)
}

/// Reads the header of an image.
///
/// # Errors
/// `Corrupt`, `Unsupported`, `Io`.
pub(super) fn read_header(storage: &dyn Storage, shown: &str) -> Result<ImageHeader> {
    let mut bytes = [0; IMAGE_HEADER_LEN];
    storage
        .read_at(0, &mut bytes)
        .map_err(|error| Error::io(format!("{shown}: can't read its header"), error))?;
    let header = ImageHeader::decode(&bytes).ok_or_else(|| {
        Error::corrupt(format!("{shown}: damaged: the image's header doesn't verify"))
    })?;
    if header.version > IMAGE_VERSION
        || header.incompatible != 0
        || header.read_only_compatible != 0
    {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "{shown}: made by a newer version of Annals (format {} of images, incompatible features {:#x}, \
                 read-only compatible ones {:#x})",
                header.version, header.incompatible, header.read_only_compatible
            ),
        ));
    }
    match header.version {
        0 => Err(Error::corrupt(format!("{shown}: damaged: the image's header makes no sense"))),
        _ => Ok(header),
    }
}

/// Refuses an image of another journal, or of a segment that this journal doesn't have.
pub(super) fn check_identity(found: &Identity, journal: &Identity) -> Result<()> {
    let reason = if found.journal_id != journal.journal_id {
        "it belongs to another journal"
    } else if found.segment > journal.segment {
        "it is of a later segment than the journal has"
    } else if found.segment == journal.segment && found.segment_hash != journal.segment_hash {
        "it belongs to another segment of the journal"
    } else {
        return Ok(());
    };
    Err(Error::invalid(reason))
}
