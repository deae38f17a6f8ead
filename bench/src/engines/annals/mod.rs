//! Annals, through its typed API; and the same with the journal alone.
//!
//! Durable commits are `checksummed`, the default, soft ones `soft`; all options are as they are. Threads share
//! flushes. A sum of all values runs over the slices of their column.

mod named;
mod small;
mod table;

use std::path::{Path, PathBuf};

use annals::Options;

use super::{Engine, Failure, Shape, Table, Tail};
pub(crate) use named::Named;
pub(crate) use small::Small;

const FILE: &str = "items.annals";
/// The files beside the journal that make openings fast.
const IMAGE: &str = "items.annals-image";

pub(crate) struct Annals {
    /// True if only the journal exists at the opening.
    pub(super) replays_all: bool,
}

impl Annals {
    /// Opens the database of a table with an index in a folder, or creates it.
    pub(crate) fn connect(folder: &Path, options: &Options) -> Result<Named, Failure> {
        Named::open(&folder.join(FILE), options)
    }

    /// Returns where the image of the database in a folder is.
    pub(crate) fn image(folder: &Path) -> PathBuf {
        folder.join(IMAGE)
    }
}

impl Engine for Annals {
    fn name(&self) -> &'static str {
        match self.replays_all {
            true => "Annals, full replay",
            false => "Annals",
        }
    }

    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        self.open(folder, shape)
    }

    fn open(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let options = Options::new();
        Ok(match shape {
            Shape::Small => Box::new(Small::open(&folder.join(FILE), &options)?),
            Shape::Named => Box::new(Self::connect(folder, &options)?),
        })
    }

    fn forget(&self, folder: &Path) -> Result<(), Failure> {
        let image = folder.join(IMAGE);
        if self.replays_all && image.try_exists()? {
            std::fs::remove_file(image)?;
        }
        Ok(())
    }

    fn tail(&self, folder: &Path) -> Result<Option<Tail>, Failure> {
        let inspection = annals_tools::inspect(&Options::new(), folder.join(FILE))?;
        let end = inspection.end.position;
        let root = inspection.image.filter(|_| !self.replays_all).map(|image| image.newest);
        let bytes = root.transpose()?.map_or(end, |root| root.tail);
        Ok(Some(Tail { bytes, end }))
    }
}
