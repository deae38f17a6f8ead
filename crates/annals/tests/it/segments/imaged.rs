//! Segments and the image: opening continues from an older segment's root, and backfills restart the journal.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use annals::reports::{BackfillOutcome, Older, Restarting};
use annals::storage::{Directory, MemoryDirectory};
use annals::{BackfillMode, Database, ErrorKind, Options, Reader, Retention, Txid};
use annals_simulated::{Rng, SimulatedClock};

use super::{NAME, NOW, content, define, history, open, options, split, try_replay, write};

const IMAGE: &str = "db-image";

fn backfill(
    database: &Database,
    mode: BackfillMode,
    forget_history: bool,
) -> annals::Result<annals::Backfilled> {
    let how = Restarting { timeout: NOW, forget_history };
    database.backfill_with(mode, how, &mut |_| ControlFlow::Continue(()))
}

/// What opening gives is the same with the image and without.
fn is_as_replayed(directory: &MemoryDirectory) -> String {
    let with_image = content(&Reader::open(directory, NAME).unwrap().read());
    let copy = directory.clone();
    let examined = annals_tools::examine_in(&Options::new(), &copy, NAME).unwrap();
    assert_eq!(examined.problem, None);
    assert_eq!(content(&examined.snapshot), with_image);
    let shared: Arc<dyn Directory> = Arc::new(copy);
    let compared =
        annals_tools::compare_image_in(&Options::new(), &shared, NAME, &examined.snapshot).unwrap();
    assert_eq!(compared.and_then(|compared| compared.difference), None);
    with_image
}

#[test]
fn the_journal_goes_on_in_a_new_segment_with_an_image_over_it() {
    let (many, database, one) = split(1);
    let expected = content(&database.read());
    let done = backfill(&database, BackfillMode::Restart, false).unwrap();
    let restarted = done.restarted.unwrap();
    assert_eq!((done.mode, done.outcome), (BackfillMode::Restart, BackfillOutcome::Advanced));
    assert!(!restarted.is_new, "nothing was committed since");
    write(&database, 4..5);
    let done = backfill(&database, BackfillMode::Restart, false).unwrap();
    let restarted = done.restarted.unwrap();
    assert_eq!((restarted.segment, restarted.is_new, restarted.forgotten), (2, true, None));
    assert_eq!((done.segment, done.position, done.txid), (2, 16_384, database.read().txid()));
    drop(database);
    let one = open(&one);
    write(&one, 4..5);
    assert_eq!(is_as_replayed(&many), content(&one.read()));
    assert_ne!(is_as_replayed(&many), expected);
    // Opening needs nothing of the older segments but the bytes of blobs.
    let database = open(&many);
    assert_eq!(database.recovered().findings, [""; 0]);
    let inspected = annals_tools::inspect_in(&Options::new(), &many, NAME).unwrap();
    let root = inspected.image.unwrap().newest.unwrap();
    assert_eq!((root.segment, root.tail), (2, 0));
}

#[test]
fn history_is_forgotten_only_if_that_is_said() {
    let (many, database, one) = split(2);
    for mode in [BackfillMode::Passive, BackfillMode::Full, BackfillMode::Restart] {
        let error = backfill(&database, mode, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    write(&database, 8..12);
    let (expected, txid) = (content(&database.read()), database.read().txid());
    let kept = backfill(&database, BackfillMode::Truncate, false).unwrap().restarted.unwrap();
    assert_eq!((kept.segment, kept.forgotten), (3, None));
    let one = open(&one);
    write(&one, 8..12);
    assert_eq!(history(&many), {
        drop(one);
        history_of_one(12)
    });
    write(&database, 12..13);
    let grown = content(&database.read());
    assert_ne!(grown, expected);
    let done = backfill(&database, BackfillMode::Truncate, true).unwrap();
    let gone = done.restarted.unwrap();
    let forgotten = gone.forgotten.unwrap();
    assert_eq!((gone.segment, gone.pinned), (4, None));
    assert_eq!((forgotten.segments, forgotten.transactions), (4, (Txid(1), txid + 1)));
    assert_eq!(many.list().unwrap(), [NAME, IMAGE]);
    assert_eq!(content(&database.read()), grown);
    drop(database);
    assert_eq!(is_as_replayed(&many), grown);
    let database = open(&many);
    assert_eq!(database.recovered().findings, [""; 0]);
    assert_eq!(content(&database.read()), grown);
    drop(database);
    assert_eq!(content(&try_replay(&many).unwrap().read()), grown);
}

fn history_of_one(numbers: u64) -> String {
    let one = MemoryDirectory::new();
    let database = open(&one);
    database.write(define).unwrap();
    write(&database, 0..numbers);
    drop(database);
    history(&one)
}

#[test]
fn who_reads_an_older_root_is_waited_for_and_named() {
    let (many, database, _) = split(0);
    write(&database, 0..4);
    database.backfill(BackfillMode::Full).unwrap();
    let old = database.read();
    write(&database, 4..8);
    let error = backfill(&database, BackfillMode::Restart, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
    assert_eq!(
        annals_tools::inspect_in(&Options::new(), &many, NAME).unwrap().head.header.segment,
        0,
        "nothing was restarted"
    );
    drop(old);
    let reader = Reader::open(&many, NAME).unwrap();
    write(&database, 8..9);
    let error = backfill(&database, BackfillMode::Truncate, true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    drop(reader);
    assert!(backfill(&database, BackfillMode::Truncate, true).unwrap().restarted.unwrap().is_new);
}

#[test]
fn an_image_of_forgotten_history_is_of_no_use_and_no_damage() {
    let (many, database, _) = split(0);
    write(&database, 0..4);
    database.backfill(BackfillMode::Full).unwrap();
    database.restart(Older::Forgotten, NOW).unwrap();
    let expected = content(&database.read());
    // As when the process is killed: closing would bring the image forward.
    let killed = MemoryDirectory::new();
    for name in many.list().unwrap() {
        super::opening::put(&killed, &name, &super::opening::bytes(&many, &name));
    }
    drop(database);
    let reader = Reader::open(&killed, NAME).unwrap();
    assert_eq!((content(&reader.read()), reader.findings()), (expected.clone(), &[][..]));
    let database = open(&killed);
    assert_eq!((content(&database.read()), &*database.recovered().findings), (expected, &[][..]));
    assert!(!killed.list().unwrap().contains(&"db-image-damaged".to_owned()));
}

#[test]
fn blobs_are_where_the_state_is_repeated() {
    let (many, database, _) = split(0);
    write(&database, 0..6);
    database.backfill(BackfillMode::Full).unwrap();
    let restarted = database.restart(Older::NotNeeded, NOW).unwrap();
    let expected = content(&database.read());
    let killed = MemoryDirectory::new();
    for name in many.list().unwrap() {
        super::opening::put(&killed, &name, &super::opening::bytes(&many, &name));
    }
    // It continues from the image, whose blobs are in the old segment.
    let database = open(&killed);
    assert_eq!(content(&database.read()), expected);
    database.backfill(BackfillMode::Full).unwrap();
    let (forgotten, _) = database.forget_before(restarted.segment).unwrap();
    assert_eq!(forgotten.unwrap().segments, 1);
    assert_eq!(content(&database.read()), expected);
    drop(database);
    assert_eq!(content(&open(&killed).read()), expected);
}

#[test]
fn others_go_on_when_one_restarts_behind_a_backfill() {
    let directory = MemoryDirectory::new();
    let open = |seed| {
        let clock = Arc::new(SimulatedClock::new(seed));
        let options = options().shared(true).lock_timeout(Duration::from_millis(5));
        options.open_in(Arc::new(directory.clone()), NAME, clock).unwrap()
    };
    let (one, two) = (open(1), open(2));
    one.write(define).unwrap();
    for round in 0..4 {
        write(&two, round * 4..round * 4 + 2);
        let forget = round % 2 == 1;
        let mode = BackfillMode::ALL[2 + usize::from(forget)];
        let done = backfill(&one, mode, forget).unwrap();
        let restarted = done.restarted.unwrap();
        assert_eq!((restarted.is_new, restarted.forgotten.is_some()), (true, forget), "{round}");
        write(&two, round * 4 + 2..round * 4 + 4);
        assert_eq!(content(&one.pull().unwrap()), content(&two.read()));
        assert_eq!((one.image_error(), two.image_error()), (None, None));
    }
    let expected = content(&two.read());
    drop((one, two));
    assert_eq!(is_as_replayed(&directory), expected);
}

#[test]
fn rules_of_retention_bound_the_journal() {
    let (many, mut database, _) = split(0);
    let one = open(&MemoryDirectory::new());
    one.write(define).unwrap();
    let rules = Retention { transactions: Some(6), ..Retention::default() };
    assert_eq!(database.retain(&Retention::default(), NOW).unwrap(), None);
    let (mut written, mut forgotten, mut most) = (0, 0, 0);
    for round in 0..60 {
        for database in [&one, &database] {
            // Of the rows only the last ones stay.
            write(database, round * 2..round * 2 + 2);
            let now = database.read();
            let rows = now.table(super::TABLE).unwrap().rows();
            let rows: Vec<_> = rows.map(|row| row.unwrap().id()).collect();
            drop(now);
            let old = &rows[..rows.len().saturating_sub(3)];
            database
                .write(|tx| old.iter().try_for_each(|&id| tx.delete(super::TABLE, id)))
                .unwrap();
        }
        let gone = database.retain(&rules, NOW).unwrap();
        forgotten += gone.map_or(0, |gone| gone.bytes);
        let segments = database.segments().unwrap();
        let newest = segments.last().unwrap();
        let (first, last) = (segments[0].first_txid.0, newest.last_txid.0);
        assert!(last + 1 - first >= 6 || first == 1);
        written = forgotten + segments.iter().map(|facts| facts.bytes).sum::<u64>();
        most = most.max(written - forgotten);
        if round % 7 == 6 {
            drop(database);
            database = open(&many);
        }
        assert_eq!(content(&database.read()), content(&one.read()), "round {round}");
    }
    assert!(forgotten > 0 && most < written / 2, "{forgotten} of {written}, {most} at once");
}

/// Random histories of commits, backfills, restarts and reopenings agree with one file that is only written.
#[test]
fn random_restarts_and_backfills_change_nothing() {
    let effort =
        if std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|it| it == "full") { 200 } else { 20 };
    for seed in 0..effort {
        let mut rng = Rng::new(seed);
        let (many, one) = (MemoryDirectory::new(), MemoryDirectory::new());
        let (mut parted, whole) = (open(&many), open(&one));
        parted.write(define).unwrap();
        whole.write(define).unwrap();
        let mut number = 0;
        for step in 0..30 {
            match rng.below(10) {
                0 => drop(parted.restart(Older::Kept, NOW).unwrap()),
                1 => drop(parted.restart(Older::NotNeeded, NOW).unwrap()),
                2 => drop(parted.restart(Older::Forgotten, NOW).unwrap()),
                3 | 4 => {
                    let mode = BackfillMode::ALL[rng.index(4)];
                    let forget = mode == BackfillMode::Truncate && rng.percent(50);
                    backfill(&parted, mode, forget).unwrap();
                }
                5 => {
                    drop(parted);
                    if rng.percent(30) {
                        let _ = many.remove(IMAGE);
                    }
                    parted = open(&many);
                    assert_eq!(parted.recovered().findings, [""; 0], "seed {seed}, step {step}");
                }
                6 => {
                    let now = parted.read();
                    let reader = Reader::open(&many, NAME).unwrap();
                    assert_eq!(content(&reader.read()), content(&now), "seed {seed}, step {step}");
                }
                _ => {
                    let count = 1 + rng.below(3);
                    write(&parted, number..number + count);
                    write(&whole, number..number + count);
                    number += count;
                }
            }
            let told = (content(&parted.read()), content(&whole.read()));
            assert!(told.0 == told.1, "seed {seed}, step {step}: {}\n{}", told.0, told.1);
        }
        let expected = content(&whole.read());
        drop(parted);
        assert_eq!(is_as_replayed(&many), expected, "seed {seed}");
    }
}
