//! What of an image is damaged: all of it is read, and what doesn't verify is listed.

use super::create::set_aside;
use super::file::Image;
use super::format::Root;
use super::open::read_header;
use super::stored::Stored;
use super::walk::{Object, Step, walk};
use crate::storage::Access;
use crate::sync::lock;
use crate::{Error, ErrorKind, Result};

/// What doesn't verify of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Pages and long values.
    pub(crate) objects: Vec<Stored>,
    /// Nodes of the directory, and catalogs. What they lead to isn't known.
    pub(crate) nodes: Vec<Stored>,
}

impl Damage {
    /// Tells whether all of it was written by earlier backfills than that of a root.
    #[cfg(feature = "testing")]
    pub(crate) fn is_older_than(&self, root: &Root) -> bool {
        let mut all = self.objects.iter().chain(&self.nodes).peekable();
        all.peek().is_some() && all.all(|stored| !root.wrote(stored))
    }
}

impl Image {
    /// Gives the newest root that this handle knows.
    pub(crate) fn newest_root(&self) -> Option<Root> {
        lock(&self.held).newest.map(|newest| newest.root)
    }

    /// Reads all that a root reaches, and lists what doesn't verify, or can't be read: at most `most`.
    ///
    /// # Errors
    /// `Corrupt` if there is more, or if what verifies says what can't be.
    pub(crate) fn damage(&self, root: &Root, most: usize) -> Result<Damage> {
        let mut damage = Damage::default();
        walk(self, root, |object, stored| match self.verify(stored) {
            Ok(()) => Ok(Step::Enter),
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => Err(error),
            Err(_) if damage.objects.len() + damage.nodes.len() == most => {
                Err(Error::corrupt(format!("more than {most} objects of the image are damaged")))
            }
            Err(_) => {
                match object {
                    Object::Page | Object::Bytes => damage.objects.push(*stored),
                    Object::Node(_) | Object::Catalog => damage.nodes.push(*stored),
                    // The past is read without them, and the next list replaces this one.
                    Object::Frames => {}
                }
                Ok(Step::Skip)
            }
        })?;
        Ok(damage)
    }

    /// Takes the image out of the way, if this handle may write it and nobody has done so yet; gives the name
    /// that it is kept by then. Whoever has it open goes on reading it.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn set_aside(&self, reason: &str) -> Result<Option<String>> {
        if self.access == Access::Read || !self.is_at_its_name() {
            return Ok(None);
        }
        set_aside(&*self.directory, &self.name, reason.to_owned()).map(|aside| aside.kept_as)
    }

    /// Tells whether what is at the image's name is this image.
    pub(crate) fn is_at_its_name(&self) -> bool {
        let there = self.directory.open(&self.name, Access::Read);
        let header = there.ok().and_then(|there| read_header(&*there, &self.name).ok());
        header.is_some_and(|header| header.hash() == self.header)
    }

    /// Writes an object again to its place, which is damaged. A root may reach it: what is written is what
    /// that root says, so whoever reads it meanwhile, and whatever is left of it by a power cut, gets either
    /// this or what was no good before.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn write_back(&self, stored: &Stored, bytes: &[u8]) -> Result<()> {
        debug_assert_eq!(Stored::sum_of(stored.place, bytes), stored.sum);
        self.write(&[(stored.place, &[bytes])]).map(drop)
    }
}
