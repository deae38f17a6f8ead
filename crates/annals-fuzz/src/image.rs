//! Files that may be images.

use std::sync::Arc;

use annals::image_testing::{can_be_used, go_on, problem, read, repair, write};
use annals::storage::{Access, Directory, MemoryDirectory};
use annals_simulated::SimulatedClock;

use crate::memory::peak;

const NAME: &str = "some.annals-image";

/// Makes an image of the bytes, by the first one. After 0 they are used unchanged, and after 1 with corrected
/// checksums. Otherwise they are a program that makes an image. Bytes at the end then change as many bytes of it,
/// before the checksums are corrected.
///
/// # Panics
/// If memory grows out of proportion, reading changes the file, a check finds no problem in an unreadable file, or a
/// backfill damages a sound one.
pub fn image(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let mut bytes = match how {
        0 | 1 => rest.to_vec(),
        count => made(rest, usize::from(*count % 8)),
    };
    if *how > 0 {
        repair(&mut bytes);
    }
    let directory = install(&bytes);
    let (found, taken) = peak(|| problem(&directory, NAME));
    let limit = (4 << 20) + 8 * bytes.len();
    assert!(taken < limit, "checking {} bytes took {taken}", bytes.len());
    let found = match found {
        Ok(found) => found,
        Err(error) => panic!("a file in memory can be read: {error}"),
    };
    let used = can_be_used(&directory, NAME);
    assert_eq!(bytes_of(&*directory), bytes, "looking changed the file");
    assert!(matches!(used, Ok(true)) || found.is_some(), "nothing is wrong, but: {used:?}");
    if let Some(problem) = &found {
        assert!(
            problem.contains("damaged") || problem.contains("newer"),
            "an odd problem: {problem}"
        );
        // A backfill may find that too; it must do so without a panic.
        let _ = go_on(&directory, NAME, b"more");
        return;
    }
    let before = match read(&directory, NAME) {
        Ok(held) => held,
        Err(error) => panic!("nothing is wrong, but it can't be read: {error}"),
    };
    for metadata in [&b"more"[..], b"", b"and more"] {
        if let Err(error) = go_on(&directory, NAME, metadata) {
            let text = error.to_string();
            assert!(text.contains("can't go back"), "nothing is wrong, but it can't go on: {text}");
            return;
        }
        assert!(matches!(problem(&directory, NAME), Ok(None)), "a backfill damaged it");
        let after = read(&directory, NAME);
        assert!(
            after.is_ok_and(|after| after.arrays == before.arrays && after.metadata == metadata)
        );
    }
}

/// Makes an image by a program, and changes so many of its bytes.
fn made(program: &[u8], count: usize) -> Vec<u8> {
    let (program, changes) = program.split_at(program.len().saturating_sub(3 * count));
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let written = write(&directory, NAME, &SimulatedClock::new(1), program);
    assert!(written.is_ok(), "an image in memory can be written: {written:?}");
    let mut bytes = bytes_of(&*directory);
    for change in changes.chunks_exact(3) {
        let &[high, low, to] = change else { continue };
        // The start of a unit is where what can be wrong is.
        let at = usize::from(high) * 4096 + usize::from(low);
        let len = bytes.len();
        if let Some(byte) = bytes.get_mut(at % len) {
            *byte = to;
        }
    }
    bytes
}

fn install(bytes: &[u8]) -> Arc<dyn Directory> {
    let directory = MemoryDirectory::new();
    let written = directory.create(NAME).and_then(|file| file.write_at(0, bytes));
    assert!(written.is_ok(), "a file in memory can be written");
    Arc::new(directory)
}

fn bytes_of(directory: &dyn Directory) -> Vec<u8> {
    let read = || {
        let file = directory.open(NAME, Access::Read)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
        file.read_at(0, &mut bytes).map(|_| bytes)
    };
    read().expect("a file in memory can be read")
}
