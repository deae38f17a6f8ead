//! Following a database: from another process whose writers are killed, and from threads of its own.

use std::path::Path;
use std::time::Duration;

use annals::reports::Older;
use annals::{
    BackfillMode, Changed, Database, ErrorKind, Level, Options, Reader, Subscription, Txid,
};
use annals_simulated::Rng;

use super::{effort, work};

/// Returns all changes there are.
fn all(path: &Path) -> Vec<Changed> {
    let reader = Options::new().open_read_only(path).unwrap();
    reader.changes(..).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A reader that follows a file, and what it heard.
struct Follower {
    reader: Reader,
    feed: Subscription,
    heard: Vec<Changed>,
    /// How often something was forgotten before it was read.
    gaps: u32,
}

impl Follower {
    fn new(path: &Path) -> Self {
        let reader = Options::new().open_read_only(path).unwrap();
        let feed = reader.subscribe_from(reader.read().txid() + 1).unwrap();
        Self { reader, feed, heard: Vec::new(), gaps: 0 }
    }

    /// Hears the next transaction; begins again where the history still is, if what comes next was forgotten.
    fn hear(&mut self, timeout: Duration) {
        match self.feed.next_timeout(timeout) {
            Ok(changed) => self.heard.extend(changed),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                assert!(error.to_string().contains("was forgotten"), "{error}");
                self.gaps += 1;
                self.feed = self.reader.subscribe();
            }
        }
    }
}

/// Lets writers commit and be killed; returns what a reader heard of it.
fn follow_killed(path: &Path, mode: &str, seed: u64) -> Follower {
    let mut rng = Rng::new(seed);
    let mut following = None;
    for generation in 0..effort(6, 60) {
        let mut child = work::start(path, mode, generation * 10, 2, rng.below(1 << 30));
        for _ in 0..20 + rng.below(60) {
            child.next_line().expect("the writer goes on");
            let follower = following.get_or_insert_with(|| Follower::new(path));
            if rng.percent(30) {
                follower.hear(Duration::ZERO);
            }
        }
        child.kill();
    }
    // What a killed writer left counts once somebody has taken it over.
    let database = Options::new().shared(mode.starts_with("shared")).open(path).unwrap();
    let last = database.read().txid();
    database.close().unwrap();
    let mut follower = following.unwrap();
    while follower.feed.txid() < last {
        follower.hear(Duration::from_secs(100));
    }
    assert!(follower.feed.try_next().unwrap().is_none() && !follower.feed.is_over());
    assert_eq!(follower.reader.read().txid(), last);
    follower
}

#[test]
fn a_reader_hears_all_that_writers_commit_who_are_killed() {
    for mode in ["alone", "shared", "shared restart image"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("followed.annals");
        let seed = effort(7, u64::from(std::process::id()));
        let Follower { reader, mut feed, heard, gaps } = follow_killed(&path, mode, seed);
        drop(reader);
        assert!(feed.next().is_none() && feed.is_over());
        assert!(heard.len() > 30, "{}", heard.len());
        assert!(heard.is_sorted_by(|a, b| a.txid < b.txid));
        let breaks = heard.windows(2).filter(|two| two[0].txid + 1 != two[1].txid).count();
        assert!(breaks as u64 <= u64::from(gaps), "{mode}: only what was forgotten is missing");
        // The first one may be the state, where what was before it was forgotten.
        let all = all(&path);
        let first = all[0].txid.max(heard[0].txid - 1);
        let of = |changes: &[Changed]| {
            let late = changes.iter().filter(|changed| changed.txid > first);
            late.map(|changed| (changed.txid, changed.clone())).collect::<Vec<_>>()
        };
        let known: Vec<u64> = heard.iter().map(|changed| changed.txid.0).collect();
        let mut expected = of(&all);
        expected.retain(|(txid, _)| known.contains(&txid.0));
        assert!(of(&heard) == expected, "{mode}");
    }
}

/// Lets a transaction insert some rows.
fn write(database: &Database, rows: u64) -> annals::Result<()> {
    database.write(|tx| {
        tx.set_level(Level::Soft);
        for row in 0..rows {
            let text = format!("{row}");
            tx.insert(annals::TableNumber(0), &[annals::ValueRef::String(&text)])?;
        }
        Ok(())
    })
}

fn define(database: &Database) {
    database
        .write(|tx| {
            for command in ["create_table t", "add_field t x string"] {
                tx.apply_command(&command_of(tx.view().schema(), command))?;
            }
            Ok(())
        })
        .unwrap();
}

fn command_of(schema: &annals::Schema, text: &str) -> annals::Command {
    annals_schema::parse_command(schema, &annals_schema::tokenize(text).unwrap()).unwrap().unwrap()
}

#[test]
fn threads_hear_all_however_slow_they_are_and_end_with_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.annals");
    let database = Database::open(&path).unwrap();
    let feeds: Vec<Subscription> = (0..3).map(|_| database.subscribe()).collect();
    define(&database);
    let threads: Vec<_> = feeds
        .into_iter()
        .enumerate()
        .map(|(place, feed)| {
            std::thread::spawn(move || {
                let mut heard = Vec::new();
                for changed in feed {
                    heard.push(changed.unwrap());
                    if place == 1 && heard.len() % 40 == 1 {
                        std::thread::yield_now();
                    }
                }
                heard
            })
        })
        .collect();
    let mut slow = database.subscribe_from(annals::Txid(1)).unwrap();
    for round in 0..300 {
        write(&database, 1 + round % 7).unwrap();
        match round % 100 {
            // Twice, so that it gives up the state that it has.
            30 | 60 => drop(database.backfill(BackfillMode::Full).unwrap()),
            90 => drop(database.restart(Older::Kept, Duration::from_secs(1))),
            _ => {}
        }
    }
    assert_eq!(slow.try_next().unwrap().unwrap().txid, annals::Txid(1));
    database.close().unwrap();
    let expected = all(&path);
    assert_eq!(expected.len(), 301);
    for thread in threads {
        assert!(thread.join().unwrap() == expected);
    }
    let rest: Vec<Changed> = slow.map(Result::unwrap).collect();
    assert!(rest == expected[1..], "it was closed before this one had read anything");
}

#[test]
fn a_subscription_says_when_what_it_needs_was_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forgotten.annals");
    let database = Options::new().background(false).open(&path).unwrap();
    define(&database);
    let mut late = database.subscribe();
    for _ in 0..5 {
        write(&database, 3).unwrap();
        database.restart(Older::NotNeeded, Duration::from_secs(1)).unwrap();
    }
    database.restart(Older::Forgotten, Duration::from_secs(1)).unwrap();
    write(&database, 3).unwrap();
    let error = late.try_next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let from: u64 = error.to_string().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(late.is_over() && late.next().is_none());
    assert_eq!(database.changes(Txid(2)..).unwrap_err().kind(), ErrorKind::NotFound);
    let rest = database.changes(Txid(from)..).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(rest.len() as u64, 8 - from);
    let first = database.changes(..).unwrap().next().unwrap().unwrap();
    assert_eq!(
        first.txid,
        annals::Txid(from - 1),
        "the state as it was then is what it begins with"
    );
    assert_eq!(first.rows.len() as u64, 3 * (from - 2));
    let future = database.subscribe_from(annals::Txid(100)).unwrap_err();
    assert_eq!(future.kind(), ErrorKind::Invalid);
}
