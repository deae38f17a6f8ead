//! Annals, through its typed API; and the same with nothing but the journal.

use std::ops::Range;
use std::path::Path;

use annals::Options;

use super::{Peer, Table, fill_by_append, name, value};
use crate::engine::Failure;

annals::schema!("indexed.schema");

use indexed::item::Id;

const FILE: &str = "items.annals";
/// What is beside the journal and makes openings fast.
const IMAGE: &str = "items.annals-image";

pub(super) struct Annals {
    /// Whether nothing but the journal is there to open.
    pub(super) replays_all: bool,
}

struct Items(indexed::Database);

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
        let database = indexed::Database::open_with(folder.join(FILE), &Options::new())?;
        Ok(Box::new(Items(database)))
    }

    fn forget(&self, folder: &Path) -> Result<(), Failure> {
        let image = folder.join(IMAGE);
        if self.replays_all && image.try_exists()? {
            std::fs::remove_file(image)?;
        }
        Ok(())
    }

    fn replays(&self) -> bool {
        true
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
