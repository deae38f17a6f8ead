//! A root as another machine may read it: the bytes of the file, with a head that has this root alone.
//!
//! The root is pinned, so what it reaches doesn't change. The slots of the file do, while they are read: a newer root is
//! written there. So their bytes are made anew.

use std::io;
use std::sync::{Arc, Mutex};

use super::file::Image;
use super::format::{IMAGE_HEADER_LEN, Identity, OBJECTS_AT, Root};
use super::open::{Opened, Usable};
use super::pin::RootPin;
use super::roots::ROOTS;
use crate::{Error, ErrorKind, Result};
use annals_storage::{Access, Clock, Directory, Storage};

/// How often it starts over if the image gets a newer root meanwhile.
const TRIES: usize = 100;

/// The pin of a root that another machine reads, until it is released.
pub type ExposedPin = Mutex<Option<RootPin>>;

/// A root of an image that was the newest, pinned.
#[derive(Debug)]
pub struct Exposed {
    /// The root.
    pub root: Root,
    /// The hash of the image's header.
    pub header: u64,
    /// The bytes before the first object.
    pub head: Vec<u8>,
    /// The file, of which the bytes after the head are read.
    pub storage: Arc<dyn Storage>,
    /// The end of what the root and its key frames reach.
    pub len: u64,
    /// Keeps the root's space from being overwritten.
    pub pin: Arc<ExposedPin>,
}

impl Image {
    /// Pins the newest root of an image; `None` if there is none that can be used, or no pins on this system.
    ///
    /// Cost: reads the head, the catalog and the list of key frames.
    ///
    /// # Errors
    /// `Io`; `Busy` if there is a newer root each time.
    pub fn expose(
        directory: &Arc<dyn Directory>,
        name: &str,
        identity: &Identity,
        clock: &dyn Clock,
    ) -> Result<Option<Exposed>> {
        for _ in 0..TRIES {
            let Opened::Usable(usable) = Self::open(directory, name, identity, Access::Read)?
            else {
                return Ok(None);
            };
            let Usable { image, root, .. } = *usable;
            let pin = match image.pin(root.number, clock) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
                pin => pin.map_err(|error| image.io("can't pin its root", error))?,
            };
            if image.is_newest()? {
                return image.exposed(root, pin).map(Some);
            }
        }
        let shown = directory.display(name);
        Err(Error::new(
            ErrorKind::Busy,
            format!(
                "{shown}: other processes updated the image during each attempt to read it; try again later"
            ),
        ))
    }

    fn exposed(self, root: Root, pin: RootPin) -> Result<Exposed> {
        let mut head = vec![0; usize::try_from(OBJECTS_AT).unwrap_or_default()];
        if let Some(header) = head.get_mut(..IMAGE_HEADER_LEN) {
            let read = self.storage.read_at(0, header);
            read.map_err(|error| self.io("can't read its header", error))?;
        }
        let copies = ROOTS.places().take(ROOTS.copies_at.len());
        for at in copies.filter_map(|at| usize::try_from(at).ok()) {
            let bytes = root.encode(self.header);
            if let Some(to) = head.get_mut(at..at + bytes.len()) {
                to.copy_from_slice(&bytes);
            }
        }
        let frames = self.frames_of(&root);
        let len = frames.iter().map(|frame| frame.end).fold(root.end, u64::max);
        let (header, storage) = (self.header, Arc::clone(&self.storage));
        let pin = Arc::new(Mutex::new(Some(pin)));
        Ok(Exposed { root, header, head, storage, len, pin })
    }
}
