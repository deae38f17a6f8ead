//! The tables on which single operations are measured.

use std::path::{Path, PathBuf};

use annals::{Level, Options};

annals::schema!("measured.schema");

pub(crate) use measured::{Database, keyed, plain, wide};

/// The short name.
pub(crate) const SHORT: &str = "TOTO";
/// A name that doesn't fit in its cell.
pub(crate) const LONG: &str = "a name that is too long to be kept within its cell";

const FILE: &str = "measured.annals";
/// The files beside the journal that make openings fast.
const IMAGE: &str = "measured.annals-image";

/// Returns where the database in a folder is.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Returns where its image is.
pub(crate) fn image(folder: &Path) -> PathBuf {
    folder.join(IMAGE)
}

/// Opens the database in a folder, or creates it; commits are soft unless they say otherwise, and nothing
/// happens in the background.
pub(crate) fn open(folder: &Path) -> annals::Result<Database> {
    Database::open_with(path(folder), &quiet())
}

/// Does the same with a limit on the memory for its image.
pub(crate) fn open_with_memory(folder: &Path, bytes: u64) -> annals::Result<Database> {
    Database::open_with(path(folder), &quiet().memory(bytes))
}

const fn quiet() -> Options {
    Options::new().background(false).level(Level::Soft)
}

/// Removes the image of the database in a folder, so that opening has to replay the journal.
pub(crate) fn forget_image(folder: &Path) -> std::io::Result<()> {
    let image = image(folder);
    if image.try_exists()? { std::fs::remove_file(image) } else { Ok(()) }
}
