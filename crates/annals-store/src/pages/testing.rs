//! An image in memory, for tests of saving and loading.
#![allow(clippy::unwrap_used, reason = "tests fail where it is wrong, as they should")]
#![cfg_attr(not(test), allow(dead_code, reason = "the tests of other crates use a part of it"))]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::image::{Source, Stored};
use crate::pages::keep::{Keep, Piece};
use crate::pages::load::Loader;
use crate::pages::pager::Pager;
use crate::pages::save::{Saved, Saver};
use crate::{Error, Result};

/// Where pieces begin: at multiples of this.
const UNIT: usize = 4096;

/// An image that tracks stored and unreachable objects.
#[derive(Debug, Default)]
pub struct TestImage {
    bytes: Mutex<Vec<u8>>,
    /// The stored objects that are still reachable, by place.
    live: Mutex<HashMap<u64, Stored>>,
    /// Where something was changed: its checksum is believed to be right.
    crafted: Mutex<HashSet<u64>>,
    /// True if reading fails.
    broken: Mutex<bool>,
    /// True if pages are packed.
    packs: Mutex<bool>,
}

impl TestImage {
    /// Makes an image, and a pager with a budget, in bytes, that keeps loaded items or doesn't.
    #[inline]
    pub fn new(budget: u64, keeps: bool) -> (Arc<Self>, Arc<Pager>) {
        let image = Arc::new(Self::default());
        let pager = Pager::new(Arc::clone(&image) as Arc<dyn Source>, budget, keeps);
        (image, Arc::new(pager))
    }

    /// Makes reading fail, or work again.
    #[inline]
    pub fn set_broken(&self, broken: bool) {
        *self.broken.lock().unwrap() = broken;
    }

    /// Packs pages from now on, or doesn't.
    #[inline]
    pub fn set_packing(&self, packs: bool) {
        *self.packs.lock().unwrap() = packs;
    }

    /// Returns how many pieces were stored and not left.
    pub(crate) fn live(&self) -> usize {
        self.live.lock().unwrap().len()
    }

    /// Makes another pager of the same image.
    pub(crate) fn pager(self: &Arc<Self>, budget: u64, keeps: bool) -> Arc<Pager> {
        Arc::new(Pager::new(Arc::clone(self) as Arc<dyn Source>, budget, keeps))
    }

    /// Returns the writer of pieces into it. With `once`, no object may become unreachable twice, as when each saved
    /// view continues from the previous one.
    #[inline]
    pub fn keeper(self: &Arc<Self>, once: bool) -> impl Keep + use<> {
        Keeper(Arc::clone(self), once)
    }

    /// Stores the output of `save`.
    pub(crate) fn save(
        self: &Arc<Self>,
        pager: &Arc<Pager>,
        save: impl FnOnce(&mut Saver),
    ) -> Saved {
        let mut saver = Saver::default();
        save(&mut saver);
        saver.store(pager, &mut self.keeper(true)).unwrap()
    }

    /// Changes a byte of a stored page, as if it had been written like that. `choose` returns a number below another,
    /// twice: the piece, the place in it; and the new byte.
    pub(crate) fn craft(&self, mut choose: impl FnMut(usize) -> (usize, u8)) {
        let live = self.live.lock().unwrap();
        let mut all = self.bytes.lock().unwrap();
        let at = |stored: &Stored| usize::try_from(stored.place).unwrap();
        // A node of a directory begins with 1.
        let is_page = |stored: &&Stored| !all[at(stored)..].starts_with(b"NODE");
        let mut pages: Vec<_> = live.values().filter(is_page).collect();
        pages.sort_by_key(|stored| stored.place);
        let piece = pages[choose(pages.len()).0];
        // The head of a page says most.
        let len = if choose(2).0 == 0 { 64.min(piece.len as usize) } else { piece.len as usize };
        let (place, byte) = choose(len);
        all[at(piece) + place] = byte;
        self.crafted.lock().unwrap().insert(piece.place);
    }

    /// Replaces bytes wherever they are in a stored page by as many others, as if they had been written like that.
    pub(crate) fn craft_bytes(&self, from: &[u8], to: &[u8]) {
        assert_eq!(from.len(), to.len());
        let live = self.live.lock().unwrap();
        let mut all = self.bytes.lock().unwrap();
        for stored in live.values() {
            let at = usize::try_from(stored.place).unwrap();
            let piece = &mut all[at..at + stored.len as usize];
            let places = piece.windows(from.len()).enumerate().filter(|(_, there)| *there == from);
            for place in places.map(|(place, _)| place).collect::<Vec<_>>() {
                piece[place..place + to.len()].copy_from_slice(to);
                self.crafted.lock().unwrap().insert(stored.place);
            }
        }
    }
}

/// Loads the saved view.
pub(crate) fn load<T>(
    saved: &Saved,
    pager: &Arc<Pager>,
    load: impl FnOnce(&mut Loader<'_>) -> Result<T>,
) -> Result<T> {
    let mut input = Loader::new(&saved.metadata, &saved.roots, pager);
    let loaded = load(&mut input)?;
    input.end()?;
    Ok(loaded)
}

impl Source for TestImage {
    fn holds(&self, stored: &Stored) -> Result<()> {
        let end = usize::try_from(stored.place).unwrap() + stored.len as usize;
        let holds = end <= self.bytes.lock().unwrap().len();
        holds.then_some(()).ok_or_else(|| Error::corrupt("the test's image is shorter"))
    }

    fn read(&self, stored: &Stored, out: &mut [u8]) -> Result<()> {
        if *self.broken.lock().unwrap() {
            return Err(Error::corrupt("the test broke it"));
        }
        let at = usize::try_from(stored.place).unwrap();
        out.copy_from_slice(&self.bytes.lock().unwrap()[at..at + stored.len as usize]);
        let is_right = stored.sum == Stored::sum_of(stored.place, out);
        assert!(is_right || self.crafted.lock().unwrap().contains(&stored.place), "{stored:?}");
        Ok(())
    }
}

/// Stores pieces in an image.
struct Keeper(Arc<TestImage>, bool);

impl Keep for Keeper {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        let piece = if *self.0.packs.lock().unwrap() { piece.packed() } else { piece };
        let packed = piece.stored_as();
        let piece = piece.as_ref();
        let mut bytes = self.0.bytes.lock().unwrap();
        // Nothing is in the head of an image.
        let at = bytes.len().max(3 * UNIT).next_multiple_of(UNIT);
        bytes.resize(at, 0);
        bytes.extend_from_slice(piece);
        let place = at as u64;
        let stored = Stored {
            place,
            sum: Stored::sum_of(place, piece),
            txid: 1,
            len: u32::try_from(piece.len()).unwrap(),
            packed,
            backfill: 1,
        };
        self.0.live.lock().unwrap().insert(place, stored);
        Ok(stored)
    }

    fn leave(&mut self, stored: Stored) {
        let was = self.0.live.lock().unwrap().remove(&stored.place);
        assert!(was == Some(stored) || !self.1, "only what is there is left, and once");
    }
}
