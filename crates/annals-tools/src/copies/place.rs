//! Where a journal lies.

use std::sync::Arc;

use annals_storage::Directory;

/// A directory and the name of a journal in it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) name: String,
    /// As messages name it.
    pub(crate) shown: String,
}

impl Place {
    pub(crate) fn new(directory: Arc<dyn Directory>, name: &str) -> Self {
        let shown = directory.display(name);
        Self { directory, name: name.to_owned(), shown }
    }
}
