//! A journal in memory.

use std::sync::Arc;

use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{Database, Options, Recovery};
use annals_simulated::SimulatedClock;

/// The file's name.
pub(crate) const NAME: &str = "some.annals";

/// Opens a database in memory without a thread.
pub(crate) fn open(
    directory: &Arc<MemoryDirectory>,
    recovery: Recovery,
) -> annals::Result<Database> {
    let options = Options::new().background(false).recovery(recovery);
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    options.open_in(directory, NAME, Arc::new(SimulatedClock::new(7)))
}

/// Returns the bytes of the file.
pub(crate) fn bytes_of(directory: &MemoryDirectory) -> Vec<u8> {
    let read = || {
        let file = directory.open(NAME, Access::Read)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
        file.read_at(0, &mut bytes).map(|_| bytes)
    };
    read().expect("a file in memory can be read")
}

/// Returns a directory with one file in it.
pub(crate) fn install(bytes: &[u8]) -> Arc<MemoryDirectory> {
    let directory = MemoryDirectory::new();
    let written = directory.create(NAME).and_then(|file| file.write_at(0, bytes));
    assert!(written.is_ok(), "a file in memory can be written");
    Arc::new(directory)
}
