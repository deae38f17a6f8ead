//! A push brings a copy up to a journal that is written, restarted and forgotten meanwhile.

use std::sync::Arc;

use annals::reports::Older;
use annals::storage::{Directory, MemoryDirectory};
use annals::{Level, Reader};

use super::{COPY, assert_same, push, segments};
use crate::segments::{NOW, content, define, open, split, write};

#[test]
fn a_copy_is_made_with_all_segments_and_brought_forward() {
    let (from, database, _) = split(3);
    let to = MemoryDirectory::new();
    let mut pushing = push(&from, Arc::new(to.clone()));
    let first = pushing.bring_up().unwrap();
    assert_eq!((first.is_new, first.segment, first.transactions), (true, 3, 13));
    assert_eq!(segments(&to, COPY).len(), 4);
    for number in 20..30 {
        write(&database, number..number + 1);
        if number % 4 == 0 {
            let older = if number == 24 { Older::NotNeeded } else { Older::Kept };
            assert!(database.restart(older, NOW).unwrap().is_new);
        }
        database.hard_checkpoint().unwrap();
        let copied = pushing.bring_up().unwrap();
        assert_eq!((copied.is_new, copied.transactions, copied.soft), (false, 1, 0));
        assert_eq!(copied.end, database.read().point(), "{number}");
        assert_eq!(content(&Reader::open(&to, COPY).unwrap().read()), content(&database.read()));
    }
    assert_eq!(pushing.bring_up().unwrap().transactions, 0);
    pushing.close().unwrap();
    database.close().unwrap();
    assert_same(&from, &to);
}

#[test]
fn who_follows_tells_that_the_copy_is_gone() {
    let (from, database, _) = split(1);
    let to = MemoryDirectory::new();
    let mut pushing = push(&from, Arc::new(to.clone()));
    pushing.bring_up().unwrap();
    let names = to.list().unwrap();
    names.iter().for_each(|name| to.remove(name).unwrap());
    write(&database, 20..21);
    database.hard_checkpoint().unwrap();
    let error = pushing.bring_up().unwrap_err();
    assert_eq!(error.kind(), annals::ErrorKind::NotFound, "{error}");
    // Whoever asks again gets a new one.
    assert!(pushing.bring_up().unwrap().is_new);
    pushing.close().unwrap();
    database.close().unwrap();
    assert_same(&from, &to);
}

#[test]
fn what_isnt_known_to_be_hard_stays_behind() {
    let (from, to) = (MemoryDirectory::new(), MemoryDirectory::new());
    let database = open(&from);
    database.write(define).unwrap();
    write(&database, 0..3);
    database.hard_checkpoint().unwrap();
    let hard = content(&database.read());
    for number in 0..2 {
        let written = database.write(|tx| {
            tx.set_level(Level::Soft);
            tx.comment(&format!("soft {number}"))
        });
        written.unwrap();
    }
    let mut pushing = push(&from, Arc::new(to.clone()));
    let copied = pushing.bring_up().unwrap();
    assert_eq!((copied.transactions, copied.soft, copied.end.txid.0), (4, 2, 4));
    assert_eq!(content(&Reader::open(&to, COPY).unwrap().read()), hard);
    database.hard_checkpoint().unwrap();
    let copied = pushing.bring_up().unwrap();
    assert_eq!((copied.transactions, copied.soft, copied.end.txid.0), (2, 0, 6));
    pushing.close().unwrap();
    database.close().unwrap();
    assert_same(&from, &to);
}

#[test]
fn who_follows_reads_a_segment_to_its_end_that_is_forgotten_meanwhile() {
    let (from, database, _) = split(1);
    let to = MemoryDirectory::new();
    let mut pushing = push(&from, Arc::new(to.clone()));
    pushing.bring_up().unwrap();
    write(&database, 30..33);
    assert!(database.restart(Older::Forgotten, NOW).unwrap().forgotten.is_some());
    write(&database, 33..34);
    database.hard_checkpoint().unwrap();
    assert_eq!(segments(&from, crate::segments::NAME).len(), 1, "all that was before is forgotten");
    let copied = pushing.bring_up().unwrap();
    assert_eq!((copied.transactions, copied.segment), (4, 2));
    assert_eq!(segments(&to, COPY).len(), 3, "the copy keeps what the original has forgotten");
    let reader = Reader::open(&to, COPY).unwrap();
    assert_eq!(content(&reader.read()), content(&database.read()));
    // A new copy begins with the state.
    let new = MemoryDirectory::new();
    let mut again = push(&from, Arc::new(new.clone()));
    let copied = again.bring_up().unwrap();
    assert_eq!((copied.is_new, copied.transactions, copied.segment), (true, 1, 2));
    again.close().unwrap();
    database.close().unwrap();
    assert_same(&from, &new);
}

#[test]
fn a_copy_is_read_while_it_is_brought_forward_and_written_behind_that() {
    let (from, database, _) = split(1);
    let to = MemoryDirectory::new();
    let mut pushing = push(&from, Arc::new(to.clone()));
    pushing.bring_up().unwrap();
    let reader = Reader::open(&to, COPY).unwrap();
    for number in 40..46 {
        write(&database, number..number + 1);
        if number == 43 {
            database.restart(Older::Kept, NOW).unwrap();
        }
        database.hard_checkpoint().unwrap();
        pushing.bring_up().unwrap();
        assert_eq!(content(&reader.pull().unwrap()), content(&database.read()));
    }
    let options = annals::Options::new().background(false);
    let clock = || Arc::new(annals_simulated::SimulatedClock::new(3));
    let directory: Arc<dyn Directory> = Arc::new(to.clone());
    let busy = options.open_in(Arc::clone(&directory), COPY, clock()).unwrap_err();
    assert_eq!(busy.kind(), annals::ErrorKind::Busy);
    pushing.close().unwrap();
    let copy = options.open_in(directory, COPY, clock()).unwrap();
    assert!(!copy.recovered().unclean);
    copy.write(|tx| tx.comment("it is a database like any other")).unwrap();
    copy.close().unwrap();
}
