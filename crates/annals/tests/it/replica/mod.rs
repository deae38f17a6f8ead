//! Copies of a journal: pushes and backups give the same frames in other files, at every moment a database.

mod backup;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod convert;
pub(crate) mod crash;
mod leftovers;
mod push;
mod refused;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{Options, Reader};
use annals_simulated::SimulatedClock;
use annals_tools::Push;

use crate::segments::{NAME, content, history};

const COPY: &str = "copy";

/// Makes ready to push the database of one directory to the other.
fn push(from: &MemoryDirectory, to: Arc<dyn Directory>) -> Push {
    // No two pushes draw the same numbers.
    static PUSHES: AtomicU64 = AtomicU64::new(100);
    let clock = Arc::new(SimulatedClock::new(PUSHES.fetch_add(1, Ordering::Relaxed)));
    annals_tools::push_in(&Options::new(), Arc::new(from.clone()), NAME, to, COPY, clock)
}

fn bytes(directory: &dyn Directory, name: &str) -> Vec<u8> {
    let file = directory.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Returns the names of a journal's segments, the oldest first.
fn segments(directory: &dyn Directory, name: &str) -> Vec<String> {
    let of_segments = |found: &String| {
        found == name || found.strip_prefix(name).is_some_and(|rest| rest.starts_with("-segment-"))
    };
    let mut names: Vec<_> = directory.list().unwrap().into_iter().filter(of_segments).collect();
    names.rotate_left(1); // the newest has the shortest name
    names
}

/// Compares a copy with its source: each segment has the same header and the same frames, and nothing else
/// lies about. `from` is the first segment of the source that the copy began with.
fn assert_same(from: &MemoryDirectory, to: &MemoryDirectory) {
    let (ours, theirs) = (segments(from, NAME), segments(to, COPY));
    assert_eq!(theirs.len(), to.list().unwrap().len(), "{:?}", to.list());
    assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let (a, b) = (bytes(from, ours), bytes(to, theirs));
        assert_eq!(a[..256], b[..256], "the header of {theirs}");
        let frames = b.len() - 16_384;
        assert!(a[16_384..][..frames] == b[16_384..], "the frames of {theirs}");
        assert!(a[16_384 + frames..].iter().all(|&byte| byte == 0), "{theirs} lacks frames");
    }
    let copy = Reader::open(to, COPY).unwrap();
    let original = Reader::open(from, NAME).unwrap();
    assert_eq!(content(&copy.read()), content(&original.read()));
    assert_eq!(copy.read().point(), original.read().point());
    assert!(annals_tools::inspect_in(&Options::new(), to, COPY).unwrap().is_closed());
    assert_eq!(history_of(to, COPY), history(from));
}

fn history_of(directory: &MemoryDirectory, name: &str) -> String {
    let renamed = MemoryDirectory::new();
    for file in segments(directory, name) {
        let to = renamed.create(&file.replace(name, NAME)).unwrap();
        to.write_at(0, &bytes(directory, &file)).unwrap();
    }
    history(&renamed)
}
