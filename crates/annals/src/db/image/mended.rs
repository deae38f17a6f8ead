//! An image that is read as if it were whole: what of it is damaged is made anew from the journal.
//!
//! ```text
//! read ─► it verifies ─────────────────────────────────────────────► given
//!      └► it doesn't ─► read again (a disk may read wrongly once) ──► given
//!                    └► known already ──────────────────────────────► given
//!                    └► read all of the image, list what is damaged;
//!                       replay the journal once for all of that ─────► given, told, written back
//!                                                               └────► lost: an error, told
//! ```
//!
//! Invariants
//! 1. What is given has the checksum that the image's directory says.
//! 2. What is made anew is written back to its place only if this handle may write, and if the newest root reaches it:
//!    then nothing else can lie there, not even where nobody sees the pins of older roots.
//! 3. At most `MOST` objects are made anew at once, and pages of them are kept. The store that they come from is
//!    dropped before they are given.
//! 4. For what can't be made anew no replay is tried again.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::rebuild::{Rebuilt, Wanted, rebuild};
use crate::image::{Image, LONGEST_PAGE, Source, Stored};
use crate::journal::lock;
use crate::storage::Directory;
use crate::{Error, ErrorKind, Result};

/// How many objects are made anew at most: an image that has more damage is replaced as a whole.
pub(super) const MOST: usize = 256;
/// How many findings are kept for a person to read.
const TOLD: usize = 100;

/// What a handle found damaged in images, and what became of it.
#[derive(Debug, Default)]
pub(in crate::db) struct Damages {
    told: Mutex<Vec<String>>,
    is_lost: AtomicBool,
    lost: Mutex<Option<Lost>>,
}

/// An image with damage that can't be mended.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub(super) image: Arc<Image>,
    pub(super) reason: String,
}

impl Damages {
    /// Gives a sentence for each thing that was found: at most the first hundred.
    pub(in crate::db) fn told(&self) -> Vec<String> {
        lock(&self.told).clone()
    }

    /// Tells something to a person, unless it was told before.
    pub(super) fn tell(&self, finding: String) {
        let mut told = lock(&self.told);
        if told.len() < TOLD && !told.contains(&finding) {
            told.push(finding);
        }
    }

    /// Tells whether an image has damage that can't be mended. A load.
    #[inline]
    pub(in crate::db) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Notes that an image has damage that can't be mended, and takes it out of the way if this handle may.
    pub(super) fn lose(&self, image: &Arc<Image>, reason: String) {
        let mut lost = lock(&self.lost);
        if lost.as_ref().is_some_and(|lost| Arc::ptr_eq(&lost.image, image)) {
            return;
        }
        let told = match image.set_aside(&reason) {
            Ok(Some(kept)) => {
                format!("the image was set aside as `{kept}`: {reason}; nothing is lost")
            }
            Ok(None) => format!("the image isn't used any more: {reason}; nothing is lost"),
            Err(error) => error.to_string(),
        };
        self.tell(told);
        *lost = Some(Lost { image: Arc::clone(image), reason });
        self.is_lost.store(true, Ordering::Release);
    }

    /// Gives the last image that had damage which can't be mended.
    pub(super) fn lost(&self) -> Option<Lost> {
        lock(&self.lost).clone()
    }

    /// Notes that nothing new is read from that image any more.
    pub(super) fn went_on(&self) {
        self.is_lost.store(false, Ordering::Release);
    }

    /// Gives what was told so far, and forgets it.
    pub(super) fn take_told(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.told))
    }
}

/// An image, and the journal that it belongs to.
#[derive(Debug)]
pub(super) struct Mended {
    image: Arc<Image>,
    directory: Arc<dyn Directory>,
    /// The name of the journal.
    journal: String,
    /// How much memory a store that is replayed may take, in bytes.
    budget: u64,
    damages: Arc<Damages>,
    known: Mutex<Known>,
}

/// What is known of what is damaged, by its place.
#[derive(Debug, Default)]
struct Known {
    rebuilt: Rebuilt,
    /// What the newest root reached when it was looked at last.
    reached: HashSet<u64>,
    /// Why something can't be made anew.
    hopeless: HashMap<u64, String>,
}

impl Mended {
    pub(super) fn new(
        image: &Arc<Image>,
        (directory, journal): (&Arc<dyn Directory>, &str),
        budget: u64,
        damages: &Arc<Damages>,
    ) -> Self {
        Self {
            image: Arc::clone(image),
            directory: Arc::clone(directory),
            journal: journal.to_owned(),
            budget,
            damages: Arc::clone(damages),
            known: Mutex::default(),
        }
    }

    /// Gives what is stored though it couldn't be read.
    #[cold]
    fn mend(&self, stored: &Stored, out: &mut [u8], error: Error) -> Result<()> {
        // Whoever else needs something of it waits: it is the same replay.
        let mut known = lock(&self.known);
        if known.give(stored, out) || self.image.read(stored, out).is_ok() {
            return Ok(());
        }
        let why = match known.hopeless.get(&stored.place).cloned() {
            Some(why) => why,
            None => match self.rebuild(stored, &mut known) {
                Ok(()) if known.give(stored, out) => {
                    self.write_back(&mut known);
                    return Ok(());
                }
                Ok(()) => "the journal doesn't lead to these very bytes".to_owned(),
                // The disk may be read again later, or the program opened with more memory.
                Err(why) if matches!(why.kind(), ErrorKind::Io | ErrorKind::Unsupported) => {
                    return Err(error.advising(format!("nor can it be made anew: {why}")));
                }
                Err(why) => why.to_string(),
            },
        };
        known.hopeless.insert(stored.place, why.clone());
        drop(known);
        Err(self.lose(error, &why))
    }

    /// Makes anew what was asked for, and all else that is damaged of what the newest root reaches, as far as
    /// that can be done.
    fn rebuild(&self, asked: &Stored, known: &mut Known) -> Result<()> {
        let image = &*self.image;
        let mut wanted = Wanted { image, objects: vec![*asked], nodes: (0, Vec::new()) };
        if let Some(root) = self.image.newest_root() {
            if root.end > self.budget {
                return Err(self.too_large(root.end));
            }
            let damage = image.damage(&root, MOST)?;
            let all = damage.objects.iter().chain(&damage.nodes);
            known.reached = all.map(|stored| stored.place).collect();
            wanted.objects.extend(damage.objects.into_iter().filter(|object| object != asked));
            if damage.nodes.contains(asked) {
                wanted.objects.retain(|object| object != asked);
            }
            // Without the catalog nobody knows where a node was.
            let places = image.places_of(&root, &damage.nodes).unwrap_or_default();
            wanted.nodes = (root.point.txid, places);
        }
        let rebuilt = rebuild(&*self.directory, &self.journal, wanted)?;
        for stored in rebuilt.values().map(|(stored, _)| stored) {
            self.damages.tell(format!(
                "{}: damaged: the {} bytes at {} were made anew from the journal; nothing is lost, but see \
                 to the disk",
                self.image.path(),
                stored.len,
                stored.place
            ));
        }
        known.rebuilt.extend(rebuilt);
        Ok(())
    }

    fn too_large(&self, len: u64) -> Error {
        let message = format!(
            "the store takes about {len} bytes, and only {} are allowed: allow more with Options::memory",
            self.budget
        );
        Error::new(ErrorKind::Unsupported, message)
    }

    /// Writes what was made anew to its place, if this handle may. Pages are kept nevertheless: should the
    /// disk not keep them, they aren't made anew each time.
    fn write_back(&self, known: &mut Known) {
        if !self.image.is_newest().unwrap_or(false) {
            return; // other roots have come since
        }
        let Known { rebuilt, reached, .. } = known;
        rebuilt.retain(|place, (stored, bytes)| {
            if !reached.contains(place) {
                return true;
            }
            let written = self.image.write_back(stored, bytes);
            written.is_err() || bytes.len() <= LONGEST_PAGE as usize
        });
    }

    /// Says that something can't be made anew. Who may write the image takes it out of the way, so that nobody
    /// begins with it any more.
    fn lose(&self, error: Error, why: &str) -> Error {
        let error = error.advising(format!("it can't be made anew from the journal: {why}"));
        if error.kind() != ErrorKind::Corrupt {
            return error; // the disk may be read again later
        }
        self.damages.lose(&self.image, error.to_string());
        error.advising(
            "nothing is lost: read again from a new snapshot (a reader pulls first), or delete the image",
        )
    }
}

impl Known {
    /// Gives what was made anew, if it was.
    fn give(&self, stored: &Stored, out: &mut [u8]) -> bool {
        let rebuilt = self.rebuilt.get(&stored.place).filter(|(known, _)| known == stored);
        let Some((_, bytes)) = rebuilt.filter(|(_, bytes)| bytes.len() == out.len()) else {
            return false;
        };
        out.copy_from_slice(bytes);
        true
    }
}

impl Source for Mended {
    fn read(&self, stored: &Stored, out: &mut [u8]) -> Result<()> {
        match self.image.read(stored, out) {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => {
                self.mend(stored, out, error)
            }
            read => read,
        }
    }

    fn holds(&self, stored: &Stored) -> Result<()> {
        self.image.holds(stored)
    }
}
