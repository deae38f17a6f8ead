//! A database whose bytes the program holds.

use std::borrow::Cow;

use annals_storage::MemoryDirectory;

use crate::image::image_name;
use crate::journal::segments::kept_name;

/// The journal's name in messages.
const JOURNAL: &str = "the database";

/// The files of a database as bytes in the program, as `include_bytes!` gives them.
///
/// The journal suffices: `tutorial::Database::from_bytes(include_bytes!("tutorial.annals"))`. The image makes opening
/// quick where the history is long.
///
/// ```
/// use annals::Embedded;
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("city.annals");
/// # let db = annals::Options::new().open(&path)?;
/// # db.backfill(annals::BackfillMode::Full)?;
/// # db.close()?;
/// let (journal, image) = (std::fs::read(&path).unwrap(), std::fs::read(path.with_extension("annals-image")).unwrap());
/// let reader = annals::Options::new().open_bytes(Embedded::new(journal).image(image))?;
/// assert!(reader.findings().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Embedded {
    files: Vec<(String, Bytes)>,
}

/// The bytes of a file, which a `Debug` doesn't show.
#[derive(Clone)]
struct Bytes(Cow<'static, [u8]>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Embedded {
    /// Takes the bytes of a journal.
    pub fn new(journal: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { files: Vec::new() }.with(JOURNAL.to_owned(), journal.into())
    }

    /// Adds the bytes of the image, the file `NAME-image` beside the journal `NAME`.
    pub fn image(self, image: impl Into<Cow<'static, [u8]>>) -> Self {
        self.with(image_name(JOURNAL), image.into())
    }

    /// Adds the bytes of an earlier segment, the file `NAME-segment-000000` beside the journal `NAME`.
    pub fn segment(self, number: u64, segment: impl Into<Cow<'static, [u8]>>) -> Self {
        self.with(kept_name(JOURNAL, number), segment.into())
    }

    fn with(mut self, name: String, bytes: Cow<'static, [u8]>) -> Self {
        self.files.push((name, Bytes(bytes)));
        self
    }

    /// Returns them as a directory, and the journal's name in it.
    pub(in crate::db) fn into_directory(self) -> (MemoryDirectory, String) {
        let files = self.files.into_iter().map(|(name, Bytes(bytes))| (name, bytes));
        (MemoryDirectory::embedded(files), JOURNAL.to_owned())
    }
}

impl From<&'static [u8]> for Embedded {
    fn from(journal: &'static [u8]) -> Self {
        Self::new(journal)
    }
}

impl<const LEN: usize> From<&'static [u8; LEN]> for Embedded {
    fn from(journal: &'static [u8; LEN]) -> Self {
        Self::new(journal.as_slice())
    }
}

impl From<Vec<u8>> for Embedded {
    fn from(journal: Vec<u8>) -> Self {
        Self::new(journal)
    }
}
