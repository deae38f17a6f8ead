//! The state that a database in shared mode needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::journal::Recovery;
use crate::storage::Directory;
use crate::{Error, ErrorKind, Result};

/// The state that a database in shared mode needs.
#[derive(Debug)]
pub(in crate::db) struct Sharing {
    pub(in crate::db) directory: Arc<dyn Directory>,
    /// The file's name in the directory.
    pub(in crate::db) file: String,
    pub(in crate::db) recovery: Recovery,
    /// True if another program changed the schema that this one's code relies on.
    pub(in crate::db) is_outdated: AtomicBool,
}

impl Sharing {
    /// Records whether the file has a newer schema than the program: then this handle can't read or write any more.
    pub(in crate::db) fn note_schema(&self, is_outdated: bool) -> Result<()> {
        if is_outdated {
            self.is_outdated.store(true, Ordering::Relaxed);
        }
        self.check_schema()
    }

    pub(in crate::db) fn check_schema(&self) -> Result<()> {
        match self.is_outdated.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(outdated(&self.directory.display(&self.file))),
        }
    }
}

/// Returns the error of a program that doesn't know the schema any more.
pub(in crate::db) fn outdated(file: &str) -> Error {
    Error::new(
        ErrorKind::SchemaMismatch,
        format!(
            "{file}: another program upgraded the schema meanwhile: end this program, and start one that was compiled \
             with the new schema"
        ),
    )
}
