//! Batches of writes: every engine and every storage writes what a naive program would, and what goes
//! wrong is told.

use std::io;
use std::sync::Arc;

use annals::storage::{
    Access, Batched, Directory, Engine, FileDirectory, MemoryDirectory, Storage, join,
};
use annals_simulated::{Fault, Rng, SimulatedDisk, is_power_off};

const MIB: usize = 1 << 20;

/// Returns pieces of random bytes, in any order, of which many are adjacent; all end before `len`.
fn pieces<'a>(bytes: &'a [u8], len: usize, rng: &mut Rng) -> Vec<(u64, &'a [u8])> {
    let (mut pieces, mut at) = (Vec::new(), rng.index(5000));
    loop {
        let longest = if rng.percent(2) { 2 * MIB } else { 20_000 };
        let piece = &bytes[..rng.index(longest.min(bytes.len()))];
        if at + piece.len() > len {
            break;
        }
        pieces.push((at as u64, piece));
        at += piece.len() + if rng.percent(30) { rng.index(30_000) } else { 0 };
    }
    for index in 0..pieces.len() {
        let other = rng.index(pieces.len());
        pieces.swap(index, other);
    }
    pieces
}

fn content(file: &dyn Storage) -> Vec<u8> {
    let mut content = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    assert_eq!(file.read_at(0, &mut content).unwrap(), content.len());
    content
}

/// Writes some batches over each other and compares the file with bytes in memory; returns what the last
/// one said.
fn compare(file: &dyn Storage, seed: u64) -> Batched {
    let mut rng = Rng::new(seed);
    let mut bytes = vec![0; 2 * MIB];
    let mut model = Vec::new();
    let mut last = None;
    for _ in 0..4 {
        rng.fill(&mut bytes);
        let pieces = pieces(&bytes, 12 * MIB, &mut rng);
        for (at, piece) in &pieces {
            let from = usize::try_from(*at).unwrap();
            let end = from + piece.len();
            if end > model.len() && !piece.is_empty() {
                model.resize(end, 0);
            }
            if !piece.is_empty() {
                model[from..end].copy_from_slice(piece);
            }
        }
        let runs = join(pieces.iter().copied());
        let batched = file.write_batch(&runs).unwrap();
        assert_eq!(batched.bytes, pieces.iter().map(|(_, piece)| piece.len() as u64).sum::<u64>());
        assert!(batched.writes >= runs.len() as u64);
        assert!(content(file) == model, "the content differs");
        last = Some(batched);
    }
    assert_eq!(file.write_batch(&[]).unwrap().bytes, 0);
    file.flush().unwrap();
    last.unwrap()
}

#[test]
fn every_engine_and_storage_writes_the_same() {
    for (seed, engine) in
        [Engine::Uring, Engine::Vectored, Engine::OneByOne].into_iter().enumerate()
    {
        let folder = tempfile::tempdir().unwrap();
        let file = FileDirectory::new(folder.path()).with_engine(engine).create("x").unwrap();
        println!("{engine:?}: {:?}", compare(&*file, seed as u64));
    }
    let folder = tempfile::tempdir().unwrap();
    compare(&*FileDirectory::new(folder.path()).create("x").unwrap(), 4);
    compare(&*MemoryDirectory::new().create("x").unwrap(), 5);
    compare(&*SimulatedDisk::new(1).create("x").unwrap(), 6);
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_batch_takes_no_ring() {
    let folder = tempfile::tempdir().unwrap();
    let file = FileDirectory::new(folder.path()).create("x").unwrap();
    let batched = file.write_batch(&join([(4096, &b"small"[..])])).unwrap();
    assert_eq!(batched, Batched { writes: 1, bytes: 5, engine: Engine::Vectored });
}

#[test]
fn threads_write_batches_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = FileDirectory::new(folder.path()).with_engine(Engine::Uring).create("x").unwrap();
    let write = |number: u8| {
        let file = Arc::clone(&file);
        move || {
            let page = vec![number; 10_000];
            for _ in 0..20 {
                let places = (0..100).map(|at| ((at * 4 + u64::from(number)) * 10_000, &page[..]));
                file.write_batch(&join(places)).unwrap();
            }
        }
    };
    let threads: Vec<_> = (0..4).map(|number| std::thread::spawn(write(number))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let content = content(&*file);
    for (index, page) in content.chunks(10_000).enumerate() {
        assert!(page.iter().all(|byte| usize::from(*byte) == index % 4), "page {index}");
    }
    assert_eq!(content.len(), 4 * 100 * 10_000);
}

#[test]
fn a_file_that_is_only_read_takes_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryDirectory::new();
    let real = FileDirectory::new(folder.path());
    for directory in [&memory as &dyn Directory, &real, &SimulatedDisk::new(1)] {
        directory.create("x").unwrap();
        let file = directory.open("x", Access::Read).unwrap();
        let error = file.write_batch(&join([(0, &b"x"[..])])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}

#[test]
fn absurd_offsets_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    for engine in [Engine::Uring, Engine::Vectored, Engine::OneByOne] {
        let file = FileDirectory::new(folder.path()).with_engine(engine);
        let file = file.create(&format!("{engine:?}")).unwrap();
        for offset in [u64::MAX, i64::MAX as u64, i64::MAX as u64 - 1] {
            let runs = join([(0, &b"begins"[..]), (offset, b"xy")]);
            let error = file.write_batch(&runs).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{engine:?} {offset}: {error}");
        }
    }
}

/// Three runs, of which the middle one is two sectors and a bit.
fn simulated() -> (SimulatedDisk, Arc<dyn Storage>) {
    let disk = SimulatedDisk::new(1);
    let file = disk.create("x").unwrap();
    disk.flush().unwrap();
    file.set_len(4096).unwrap();
    file.flush().unwrap();
    disk.clear_transcript();
    (disk, file)
}

fn write_three(file: &dyn Storage) -> io::Result<Batched> {
    let page = [7; 600];
    file.write_batch(&join([(0, &page[..]), (1600, &page), (1000, &page), (3000, &page)]))
}

#[test]
fn on_the_simulated_disk_a_run_is_one_operation() {
    let (disk, file) = simulated();
    assert_eq!(write_three(&*file).unwrap().writes, 3);
    assert_eq!(disk.transcript(), "write x 0..600\nwrite x 1000..2200\nwrite x 3000..3600\n");
}

#[test]
fn on_the_simulated_disk_a_crash_tears_the_run_that_was_being_written() {
    let (disk, file) = simulated();
    disk.crash_at(disk.operations() + 1);
    assert!(is_power_off(&write_three(&*file).unwrap_err()));
    assert_eq!(disk.transcript().lines().count(), 2, "{}", disk.transcript());
    // Of the first run two sectors are open, of the second one four, of which one is in both.
    let states = disk.crash_states();
    let mut torn = 0;
    for state in states.every() {
        let content = state.content("x").unwrap();
        assert!(content[2200..].iter().all(|byte| *byte == 0), "the third run wasn't begun");
        let second = content[1000..2200].iter().filter(|byte| **byte == 7).count();
        torn += usize::from((1..1200).contains(&second));
    }
    assert!(torn > 0, "no state holds a part of the second run");
}

#[test]
fn faults_of_the_simulated_disk_end_a_batch() {
    let kinds = [
        (Fault::Io, io::ErrorKind::Other, 0),
        (Fault::NoSpace, io::ErrorKind::StorageFull, 0),
        (Fault::ShortWrite { bytes: 700 }, io::ErrorKind::Other, 700),
    ];
    for (fault, kind, written) in kinds {
        let (disk, file) = simulated();
        disk.fail_at(disk.operations() + 1, fault);
        assert_eq!(write_three(&*file).unwrap_err().kind(), kind, "{fault:?}");
        let content = content(&*file);
        assert_eq!(content.iter().filter(|byte| **byte == 7).count(), 600 + written, "{fault:?}");
    }
}
