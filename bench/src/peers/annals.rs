//! Annals, through its typed API; and the same with nothing but the journal.

use std::ops::Range;
use std::path::{Path, PathBuf};

use annals::{BackfillMode, Backfilled, Options};

use super::{Peer, Table, Tail, fill_by_append, name, value};
use crate::engine::Failure;

annals::schema!("indexed.schema");

use indexed::item::Id;

const FILE: &str = "items.annals";
/// What is beside the journal and makes openings fast.
const IMAGE: &str = "items.annals-image";

pub(crate) struct Annals {
    /// Whether nothing but the journal is there to open.
    pub(super) replays_all: bool,
}

/// An open database.
pub(crate) struct Items(indexed::Database);

impl Annals {
    /// Opens the database in a folder, or creates it.
    pub(crate) fn connect(folder: &Path, options: &Options) -> Result<Items, Failure> {
        Ok(Items(indexed::Database::open_with(folder.join(FILE), options)?))
    }

    /// Gives where the image of the database in a folder is.
    pub(crate) fn image(folder: &Path) -> PathBuf {
        folder.join(IMAGE)
    }
}

impl Items {
    /// Gives where the last commit ends in the journal.
    pub(crate) fn position(&self) -> u64 {
        self.0.read().as_dynamic().point().position
    }

    /// Brings the image forward.
    pub(crate) fn backfill(&self, mode: BackfillMode) -> Result<Backfilled, Failure> {
        Ok(self.0.as_dynamic().backfill(mode)?)
    }
}

impl Peer for Annals {
    fn name(&self) -> &'static str {
        match self.replays_all {
            true => "Annals, full replay",
            false => "Annals",
        }
    }

    fn fill(&self, folder: &Path, rows: u64) -> Result<(), Failure> {
        fill_by_append(self.open(folder)?, rows)
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Table>, Failure> {
        Ok(Box::new(Self::connect(folder, &Options::new())?))
    }

    fn forget(&self, folder: &Path) -> Result<(), Failure> {
        let image = folder.join(IMAGE);
        if self.replays_all && image.try_exists()? {
            std::fs::remove_file(image)?;
        }
        Ok(())
    }

    fn tail(&self, folder: &Path) -> Result<Option<Tail>, Failure> {
        let inspection = annals::inspect(folder.join(FILE))?;
        let end = inspection.end.position;
        let root = inspection.image.filter(|_| !self.replays_all).map(|image| image.newest);
        let bytes = root.transpose()?.map_or(end, |root| root.tail);
        Ok(Some(Tail { bytes, end }))
    }
}

impl Table for Items {
    fn by_name(&mut self, name: &str) -> Result<i64, Failure> {
        let now = self.0.read();
        let row = now.item_by_name().find(name).next().ok_or("no row has the name")??;
        Ok(row.value())
    }

    fn by_id(&mut self, id: u64) -> Result<i64, Failure> {
        Ok(self.0.read().item().get(Id::new(id))?.value())
    }

    fn append(&mut self, ids: Range<u64>) -> Result<(), Failure> {
        Ok(self.0.write(|tx| {
            for id in ids {
                tx.item().insert(&name(id), value(id, 0))?;
            }
            Ok(())
        })?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        Ok(self.0.write(|tx| {
            for &id in ids {
                tx.item().set_value(Id::new(id), value(id, version))?;
            }
            Ok(())
        })?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
