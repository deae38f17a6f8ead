//! One image with the model of what each of its roots holds.

use annals_schema::Txid;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::catalog::{Catalog, Kind};
use super::super::check::check;
use super::super::file::Image;
use super::super::format::{Identity, Root};
use super::super::miniature::{Changes, Content, Next, advance, arrays, content};
use super::super::open::{Opened, Usable};
use crate::Result;
use annals_simulated::{Rng, SimulatedClock};
use annals_storage::Point;
use annals_storage::{Access, Directory, SystemClock};

pub(super) const NAME: &str = "some.annals-image";

pub(super) const IDENTITY: Identity =
    Identity { journal_id: *b"a journal's id..", segment: 0, segment_hash: 0x5E6 };

/// The contents of a root.
pub(super) type Held = Vec<Content>;

#[derive(Debug)]
pub(super) struct World {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) image: Image,
    pub(super) catalog: Catalog,
    pub(super) model: Held,
    pub(super) root: Option<Root>,
    /// True if the roots before become key frames.
    pub(super) keeps_frames: bool,
}

pub(super) fn point(txid: u64) -> Point {
    Point {
        position: 16384 + 100 * txid,
        txid: Txid(txid),
        chain: txid.wrapping_mul(0x9E37_79B9_7F4A_7C15),
    }
}

/// An object's content, determined by two numbers.
pub(super) fn object(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.number().to_le_bytes()[0]).collect()
}

pub(super) fn change(changes: &[(usize, u64, Option<Vec<u8>>)]) -> BTreeMap<usize, Changes> {
    let mut all: BTreeMap<usize, Changes> = BTreeMap::new();
    for (array, number, change) in changes {
        all.entry(*array).or_default().insert(*number, change.clone());
    }
    all
}

/// Returns the path, and the findings there; asserts that it can be used.
pub(super) fn open(directory: &Arc<dyn Directory>) -> Usable {
    match Image::open(directory, NAME, &IDENTITY, Access::Write).unwrap() {
        Opened::Usable(usable) => *usable,
        other => panic!("{other:?}"),
    }
}

impl World {
    /// Creates an image of some arrays, without a root.
    pub(super) fn create(directory: Arc<dyn Directory>, heights: &[(u8, Kind)]) -> Result<Self> {
        let clock = SimulatedClock::new(1);
        let image = Image::create(&directory, NAME, &IDENTITY, &clock)?;
        let model = vec![Content::new(); heights.len()];
        Ok(Self {
            directory,
            image,
            catalog: arrays(heights),
            model,
            root: None,
            keeps_frames: false,
        })
    }

    /// Publishes changes as of a transaction.
    pub(super) fn advance(
        &mut self,
        txid: u64,
        changes: &BTreeMap<usize, Changes>,
        pinned: impl IntoIterator<Item = u64>,
    ) -> Result<()> {
        let old = self.root.map(|root| root.catalog);
        let pinned: Vec<_> = pinned.into_iter().collect();
        let metadata = txid.to_le_bytes();
        let keeps_frames = self.keeps_frames;
        let next = Next { point: point(txid), metadata: &metadata, pinned: &pinned, keeps_frames };
        let (root, catalog) = advance(&self.image, &self.catalog, old.as_ref(), changes, &next)?;
        (self.root, self.catalog) = (Some(root), catalog);
        self.model = after(&self.model, changes);
        Ok(())
    }

    /// Opens it again.
    pub(super) fn reopen(&mut self) {
        let usable = open(&self.directory);
        (self.image, self.root, self.catalog) = (usable.image, Some(usable.root), usable.catalog);
    }

    /// Checks its contents, and that it has no problems; itself and reopened.
    pub(super) fn check(&self) {
        assert_eq!(content(&self.image, &self.catalog).unwrap(), self.model);
        let usable = open(&self.directory);
        assert_eq!((Some(usable.root), &usable.catalog), (self.root, &self.catalog));
        assert_eq!(usable.catalog.metadata, usable.root.point.txid.0.to_le_bytes());
        let report = check(&self.directory, NAME, &SystemClock).unwrap();
        assert_eq!(report.problem, None);
        assert_eq!(report.root, self.root);
    }
}

/// Returns what there is after changes.
pub(super) fn after(model: &Held, changes: &BTreeMap<usize, Changes>) -> Held {
    let mut model = model.clone();
    for (array, changes) in changes {
        for (number, change) in changes {
            match change {
                Some(bytes) => drop(model[*array].insert(*number, bytes.clone())),
                None => drop(model[*array].remove(number)),
            }
        }
    }
    model
}
