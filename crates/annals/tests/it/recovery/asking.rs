//! A program sees how far reading has come and what will be done, and can stop it.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use annals::Level::{Checksummed as C, Soft as S};
use annals::journal::Survey;
use annals::{ErrorKind, Options, Phase, Progress, Recovery};

use super::{NAME, define, ids, insert, install, open, open_with, options, written};

/// Returns options that note each call, and the notes.
fn watched(stop_at: usize) -> (Options, Arc<Mutex<Vec<Progress>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let options = options(Recovery::Checked).on_progress(move |progress| {
        let mut notes = notes.lock().unwrap();
        notes.push(progress);
        if notes.len() > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (options, seen)
}

fn long_journal() -> Vec<u8> {
    let disk = install(&written(&[]).1);
    let database = open(&disk, Recovery::Checked).unwrap();
    let text = "x".repeat(3 << 20);
    for _ in 0..3 {
        database.write(|tx| tx.comment(&text)).unwrap();
    }
    disk.content(NAME).unwrap()
}

#[test]
fn progress_grows_and_can_stop_everything() {
    let bytes = long_journal();
    let (options, seen) = watched(usize::MAX);
    let disk = install(&bytes);
    drop(open_with(&options, &disk).unwrap());
    let calls = seen.lock().unwrap().clone();
    assert!((3..40).contains(&calls.len()), "{} calls", calls.len());
    assert!(calls.windows(2).all(|two| two[0].done <= two[1].done), "{calls:?}");
    assert!(calls.iter().all(|call| call.phase == Phase::Reading), "{calls:?}");
    assert!(calls.iter().all(|call| call.done <= call.total && call.total == bytes.len() as u64));
    assert_eq!(calls.last().unwrap().done, bytes.len() as u64, "the end is told");

    for stop_at in 0..calls.len() {
        let disk = install(&bytes);
        let (options, _) = watched(stop_at);
        let error = open_with(&options, &disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert_eq!(disk.transcript(), "", "nothing was changed");
        assert_eq!(disk.content(NAME).unwrap(), bytes);
        let error = options.open_read_only_in(&disk, NAME).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        let error = annals_tools::examine_in(&options, &disk, NAME).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        // The lock is free again.
        drop(open(&disk, Recovery::Checked).unwrap());
    }
}

#[test]
fn a_program_sees_the_plan_and_can_say_no() {
    let (_, bytes) = written(&[(C, false), (S, false), (S, false)]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let ask = |answer: ControlFlow<()>, recovery| {
        let asked = Arc::clone(&asked);
        options(recovery).copy_first(true).before_recovery(move |survey: &Survey| {
            asked.lock().unwrap().push(survey.clone());
            answer
        })
    };
    let disk = install(&bytes);
    let error = open_with(&ask(ControlFlow::Break(()), Recovery::ToHard), &disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(disk.transcript(), "", "nothing was changed");
    let plan = asked.lock().unwrap().pop().unwrap();
    assert_eq!((plan.end.txid.0, plan.left_out_count, plan.is_closed()), (3, 2, false));
    assert!(plan.has_tail() && plan.may_hold_a_commit());
    assert_eq!(plan.last.unwrap().txid, annals::Txid(3));

    let database = open_with(&ask(ControlFlow::Continue(()), Recovery::ToHard), &disk).unwrap();
    assert_eq!(ids(&database.read()), [3]);
    let copy = database.recovered().copied_to.clone().unwrap();
    let point = database.read().point();
    let name = format!("journal.before-recovery-{}-{:016x}", point.txid, point.chain);
    assert_eq!(copy, format!("simulated:{name}"));
    assert_eq!(disk.content(&name).unwrap(), bytes, "the copy is the file as it was");
    drop(database);

    // A clean file is no reason for a copy; a new one is no reason to ask.
    let before = asked.lock().unwrap().len();
    drop(open_with(&ask(ControlFlow::Continue(()), Recovery::ToHard), &disk).unwrap());
    assert_eq!(asked.lock().unwrap().len(), before + 1);
    let new = annals_simulated::SimulatedDisk::new(5);
    let database = open_with(&ask(ControlFlow::Break(()), Recovery::ToHard), &new).unwrap();
    define(&database);
    insert(&database, C);
    assert_eq!(asked.lock().unwrap().len(), before + 1);
}

#[test]
fn without_space_for_the_copy_nothing_is_changed() {
    let (_, bytes) = written(&[(C, false), (S, false)]);
    let disk = install(&bytes);
    disk.limit_space(0);
    let error = open_with(&options(Recovery::ToHard).copy_first(true), &disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(disk.content(NAME).unwrap(), bytes);
    let copies = annals::storage::Directory::list(&disk).unwrap();
    assert_eq!(copies, [NAME], "nothing is left of the copy");
}

#[test]
fn a_file_that_is_not_there_is_not_examined() {
    let missing = annals_tools::examine(&Options::new(), "there/is/no/such/file").unwrap_err();
    assert_ne!(missing.kind(), annals::ErrorKind::Corrupt);
}
