//! A copy that isn't the beginning of its source is refused, and nothing is changed.

use std::sync::Arc;

use annals::ErrorKind;
use annals::reports::Older;
use annals::storage::{Directory, MemoryDirectory};
use annals_simulated::SimulatedClock;

use super::{COPY, bytes, push, segments};
use crate::segments::{NOW, define, open, options, split, write};

/// Tries a push that must be refused; returns the message.
fn refused(from: &MemoryDirectory, to: &MemoryDirectory, kind: ErrorKind) -> String {
    let content = |name: &String| (name.clone(), bytes(to, name)[8192..].to_vec());
    let before: Vec<_> = segments(to, COPY).iter().map(content).collect();
    let error = push(from, Arc::new(to.clone())).bring_up().unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let after: Vec<_> = segments(to, COPY).iter().map(content).collect();
    // But for the live block and the slots, which opening writes.
    let frames = |all: &[(String, Vec<u8>)]| {
        all.iter().map(|(name, bytes)| (name.clone(), bytes[8192..].to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(frames(&before), frames(&after));
    error.to_string()
}

/// Makes a copy of all that there is.
fn copied(from: &MemoryDirectory) -> MemoryDirectory {
    let to = MemoryDirectory::new();
    let mut pushing = push(from, Arc::new(to.clone()));
    pushing.bring_up().unwrap();
    pushing.close().unwrap();
    to
}

fn open_copy(to: &MemoryDirectory) -> annals::Database {
    let directory: Arc<dyn Directory> = Arc::new(to.clone());
    options().open_in(directory, COPY, Arc::new(SimulatedClock::new(5))).unwrap()
}

#[test]
fn histories_that_part_are_told_with_the_last_transaction_that_both_have() {
    for segments in [0, 2] {
        let (from, database, _) = split(segments);
        database.hard_checkpoint().unwrap();
        let to = copied(&from);
        let common = database.read().txid();
        let copy = open_copy(&to);
        copy.write(|tx| tx.comment("written to the copy")).unwrap();
        copy.close().unwrap();
        database.close().unwrap();
        let message = refused(&from, &to, ErrorKind::Diverged);
        let ahead = format!(
            "memory:copy: has all that memory:db has, and more: the last transaction that both have is {common},"
        );
        assert!(message.starts_with(&ahead), "{message}");

        let database = open(&from);
        write(&database, 70..73);
        database.hard_checkpoint().unwrap();
        let message = refused(&from, &to, ErrorKind::Diverged);
        let parted = format!(
            "the last transaction that both have is {common}, and memory:copy has transactions up to {}",
            common + 1
        );
        assert!(message.contains(&parted), "{message}");
        // Also where both restarted by themselves.
        let copy = open_copy(&to);
        for database in [&database, &copy] {
            database.restart(Older::Kept, NOW).unwrap();
            write(database, 81..82);
        }
        copy.close().unwrap();
        database.hard_checkpoint().unwrap();
        let message = refused(&from, &to, ErrorKind::Diverged);
        let parted = format!("the last transaction that both have is {common}, and");
        assert!(message.contains(&parted), "{message}");
    }
}

#[test]
fn another_journal_is_no_copy() {
    let (from, _database, _) = split(1);
    let other = MemoryDirectory::new();
    let another = options()
        .open_in(Arc::new(other.clone()), COPY, Arc::new(SimulatedClock::new(99)))
        .unwrap();
    another.write(define).unwrap();
    another.close().unwrap();
    let message = refused(&from, &other, ErrorKind::Diverged);
    assert!(message.contains("is another database than memory:db"), "{message}");
}

#[test]
fn what_was_forgotten_before_it_was_copied_is_told() {
    let (from, database, _) = split(1);
    let to = copied(&from);
    write(&database, 50..52);
    let last = database.read().txid();
    database.restart(Older::Forgotten, NOW).unwrap();
    database.hard_checkpoint().unwrap();
    let message = refused(&from, &to, ErrorKind::NotFound);
    let lacks = format!("transactions from {} on, and it begins with {}", last - 1, last + 1);
    assert!(message.contains(&lacks), "{message}");
}

#[test]
fn damage_of_the_source_isnt_copied() {
    let (from, database, _) = split(0);
    write(&database, 60..70);
    database.close().unwrap();
    let whole = bytes(&from, crate::segments::NAME);
    let file = from.open(crate::segments::NAME, annals::storage::Access::Write).unwrap();
    for at in [20_000, whole.len() - 100] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        file.write_at(0, &bytes).unwrap();
        let to = MemoryDirectory::new();
        let error = push(&from, Arc::new(to.clone())).bring_up().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("doesn't verify at position"), "{error}");
        // What was copied before is a prefix.
        drop(open_copy(&to));
        let error = annals_tools::backup_in(
            &annals::Options::new(),
            Arc::new(from.clone()),
            crate::segments::NAME,
            Arc::new(to.clone()),
            "backup",
            Arc::new(SimulatedClock::new(1)),
        );
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt);
        assert!(!to.list().unwrap().iter().any(|name| name.starts_with("backup")));
    }
}

#[test]
fn a_copy_that_lost_its_end_is_refused() {
    let (from, database, _) = split(1);
    write(&database, 60..70);
    database.hard_checkpoint().unwrap();
    let whole = bytes(&copied(&from), COPY);
    write(&database, 80..82);
    database.close().unwrap();
    let cut = whole[..whole.len() - 8].to_vec();
    let mut flipped = whole.clone();
    flipped[whole.len() - 20] ^= 1;
    let mut zeroed = whole.clone();
    zeroed[whole.len() - 64..].fill(0);
    for damaged in [cut, flipped, zeroed, whole[..16_400].to_vec()] {
        let to = copied(&from);
        to.remove(COPY).unwrap();
        to.create(COPY).unwrap().write_at(0, &damaged).unwrap();
        let message = refused(&from, &to, ErrorKind::Corrupt);
        assert!(message.contains("look at it with `annals check"), "{message}");
        assert!(bytes(&to, COPY) == damaged, "it is as it was");
    }
}

#[test]
fn a_copy_that_loses_its_end_while_it_is_followed_is_refused() {
    let (from, database, _) = split(0);
    write(&database, 60..70);
    database.hard_checkpoint().unwrap();
    let to = MemoryDirectory::new();
    let mut pushing = push(&from, Arc::new(to.clone()));
    pushing.bring_up().unwrap();
    to.open(COPY, annals::storage::Access::Write).unwrap().set_len(16_400).unwrap();
    write(&database, 80..82);
    database.hard_checkpoint().unwrap();
    let error = pushing.bring_up().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let error = pushing.bring_up().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(bytes(&to, COPY).len(), 16_400);
    database.close().unwrap();
}
