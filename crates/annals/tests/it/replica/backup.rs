//! A backup is whole and consistent whatever continues meanwhile, or isn't there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annals::reports::Older;
use annals::storage::{Directory, FileDirectory, MemoryDirectory};
use annals::{ErrorKind, Options, Reader};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

use super::{COPY, assert_same};
use crate::segments::{NAME, NOW, content, define, split, write};

#[test]
fn a_backup_has_all_segments_and_everything_that_was_acknowledged() {
    let (from, database, _) = split(2);
    write(&database, 30..33);
    let to = MemoryDirectory::new();
    let backup = || {
        let (from, to) = (Arc::new(from.clone()), Arc::new(to.clone()));
        let clock = Arc::new(SimulatedClock::new(5));
        annals_tools::backup_in(&Options::new(), from, NAME, to, COPY, clock)
    };
    database.hard_checkpoint().unwrap();
    let copied = backup().unwrap();
    assert_eq!((copied.transactions, copied.segment, copied.soft), (12, 2, 0));
    assert_eq!(copied.end, database.read().point());
    let again = backup().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InUse);
    database.close().unwrap();
    assert_same(&from, &to);
}

#[test]
fn a_backup_fails_wholly_at_every_operation() {
    let (from, database, _) = split(2);
    database.close().unwrap();
    let make = |disk: &SimulatedDisk| {
        let from: Arc<dyn Directory> = Arc::new(from.clone());
        let to: Arc<dyn Directory> = Arc::new(disk.clone());
        annals_tools::backup_in(
            &Options::new(),
            from,
            NAME,
            to,
            COPY,
            Arc::new(SimulatedClock::new(4)),
        )
    };
    let whole = SimulatedDisk::new(1);
    make(&whole).unwrap();
    let expected = content(&Reader::open(&whole, COPY).unwrap().read());
    for operation in 0..whole.operations() {
        let disk = SimulatedDisk::new(1);
        disk.fail_at(operation, Fault::Io);
        match make(&disk) {
            Ok(_) => {}
            Err(_) => assert!(Reader::open(&disk, COPY).is_err(), "operation {operation}"),
        }
        // After a power cut it is whole, or not there.
        let disk = SimulatedDisk::new(1);
        disk.crash_at(operation);
        let done = make(&disk);
        let states = disk.crash_states();
        for left in [states.oldest(), states.newest(), states.all_but_last()] {
            match Reader::open(&left, COPY) {
                Ok(reader) => assert_eq!(content(&reader.read()), expected),
                Err(error) => {
                    assert!(done.is_err());
                    assert_eq!(error.kind(), ErrorKind::NotFound, "operation {operation}: {error}");
                }
            }
        }
    }
}

#[test]
fn backups_are_consistent_while_others_write_restart_and_forget() {
    let folder = tempfile::tempdir().unwrap();
    let (path, stop) = (folder.path().join(NAME), AtomicBool::new(false));
    let database = annals::Database::open(&path).unwrap();
    database.write(define).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                write(&database, number..number + 1);
                match number % 40 {
                    19 => drop(database.restart(Older::Kept, NOW)),
                    39 => drop(database.restart(Older::Forgotten, NOW)),
                    _ => {}
                }
            }
        });
        let mut last = 0;
        for number in 0..25 {
            let to = folder.path().join(format!("backup-{number}"));
            // As another process does it, which knows only what the file tells.
            let copied = annals_tools::backup(&Options::new(), &path, &to).unwrap();
            let reader =
                Reader::open(&FileDirectory::new(folder.path()), &format!("backup-{number}"));
            let snapshot = reader.unwrap().read();
            content(&snapshot);
            assert_eq!(snapshot.point(), copied.end);
            assert!(copied.end.txid >= annals::Txid(last));
            last = copied.end.txid.0;
            let examined = annals_tools::examine(&Options::new(), &to).unwrap();
            assert_eq!((examined.problem, examined.inspection.is_closed()), (None, true));
            assert_eq!(
                examined.inspection.head.header.journal_id,
                annals_tools::inspect(&Options::new(), &path).unwrap().head.header.journal_id
            );
        }
        stop.store(true, Ordering::Relaxed);
        assert!(last > 1, "writers write meanwhile");
    });
}
