//! Several processes that write one file in turn, are killed and replaced, and readers all the while.

#![allow(clippy::disallowed_methods, reason = "what other processes do meanwhile takes real time")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::{Database, ErrorKind, Level, Options, Snapshot};
use annals_simulated::Rng;
use annals_tools::inspect;

use super::child::{self, Child};
use super::effort;
use super::killed::StopOnDrop;
use super::ledger::{Said, Seen, audit, schema, write};
use super::work::{self, PATIENCE};

pub(super) fn shared() -> Options {
    Options::new().shared(true).lock_timeout(PATIENCE)
}

/// The writers, and what they said.
pub(super) struct Club {
    pub(super) path: PathBuf,
    said: Mutex<Said>,
    ended: AtomicBool,
}

impl Club {
    pub(super) fn new(folder: &Path) -> Self {
        let path = folder.join("shared.annals");
        shared().open_schema(&path, &schema()).unwrap().close().unwrap();
        Self { path, said: Mutex::default(), ended: AtomicBool::new(false) }
    }

    /// Starts a writer, in a mode as [`work::start`] has it.
    pub(super) fn start(&self, mode: &str, writer: u64, rng: &mut Rng) -> Child {
        let threads = if rng.percent(70) { 1 } else { 3 };
        work::start(&self.path, mode, writer * 10, threads, rng.below(1 << 30))
    }

    /// Hears what a child has said by now.
    pub(super) fn hear(&self, child: &Child) {
        let mut said = self.said.lock().unwrap();
        while let Some(line) = child.line_so_far() {
            said.hear(&line);
        }
    }

    /// Hears what a child said that has ended.
    pub(super) fn hear_out(&self, child: &Child) {
        while let Some(line) = child.next_line() {
            self.said.lock().unwrap().hear(&line);
        }
    }

    /// Returns what all have said.
    pub(super) fn said(&self) -> Said {
        self.said.lock().unwrap().clone()
    }

    /// Follows the writers: nothing acknowledged is missing (unless `all` is false), nothing goes back.
    fn follow(&self, all: bool, mut pull: impl FnMut() -> Snapshot) -> (u64, Seen) {
        let (mut before, mut looks) = (Seen::default(), 0);
        while !self.ended.load(Ordering::Relaxed) {
            let said = self.said.lock().unwrap().clone();
            let snapshot = pull();
            if snapshot.txid() > annals::Txid(before.txid) {
                let seen = audit(&snapshot);
                seen.follows(&before);
                before = seen;
                looks += 1;
            }
            assert_eq!(snapshot.txid(), annals::Txid(before.txid));
            if all {
                said.is_kept_by(&before);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        (looks, before)
    }
}

#[test]
fn writers_in_turn_are_killed_and_nothing_is_lost_or_seen_twice() {
    let folder = tempfile::tempdir().unwrap();
    killed_in_turn(&Club::new(folder.path()), "shared");
}

#[test]
fn writers_that_restart_the_journal_are_killed_and_nothing_is_lost_or_seen_twice() {
    let folder = tempfile::tempdir().unwrap();
    let club = Club::new(folder.path());
    killed_in_turn(&club, "shared restart");
    assert!(
        inspect(&Options::new(), &club.path).unwrap().head.header.segment > 3,
        "they did restart it"
    );
}

#[test]
fn writers_that_restart_the_journal_and_bring_the_image_forward_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let club = Club::new(folder.path());
    killed_in_turn(&club, "shared restart image");
    assert!(
        inspect(&Options::new(), &club.path).unwrap().head.header.segment > 3,
        "they did restart it"
    );
}

/// Kills and replaces writers that work in a mode as [`work::start`] has it.
fn killed_in_turn(club: &Club, mode: &str) {
    let seed = effort(1, u64::from(std::process::id()));
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let reader = Options::new().open_read_only(&club.path).unwrap();
    let hard = Options::new().hard_only(true).open_read_only(&club.path).unwrap();
    let member = shared().open_schema(&club.path, &schema()).unwrap();
    std::thread::scope(|scope| {
        let followers = [
            scope.spawn(|| club.follow(true, || reader.pull().unwrap())),
            scope.spawn(|| club.follow(false, || hard.pull().unwrap())),
            scope.spawn(|| club.follow(true, || member.pull().unwrap())),
        ];
        let stop = StopOnDrop(&club.ended);
        let mut children: Vec<_> =
            (0..3).map(|writer| club.start(mode, writer, &mut rng)).collect();
        for writer in 3..effort(15, 250) {
            std::thread::sleep(Duration::from_millis(rng.below(250)));
            children.iter().for_each(|child| club.hear(child));
            let place = rng.index(children.len());
            children[place].kill();
            club.hear_out(&children[place]);
            children[place] = club.start(mode, writer, &mut rng);
        }
        for mut child in children {
            assert!(child.end().success());
            club.hear_out(&child);
        }
        drop(stop);
        for follower in followers {
            let (looks, _) = follower.join().unwrap();
            assert!(looks > 0, "it followed");
        }
    });
    let said = club.said.lock().unwrap().clone();
    let seen = audit(&reader.pull().unwrap());
    said.is_kept_by(&seen);
    said.explains(&seen);
    assert!(seen.of.len() > 5, "they got somewhere: {seen:?}");
    assert_eq!(audit(&member.pull().unwrap()), seen);
    member.hard_checkpoint().unwrap();
    assert_eq!(audit(&hard.pull().unwrap()), seen);
    member.close().unwrap();
    let inspection = inspect(&Options::new(), &club.path).unwrap();
    assert!(inspection.is_closed() && inspection.damage.is_none(), "{inspection:?}");
    let alone = Database::open(&club.path).unwrap();
    assert!(!alone.recovered().unclean);
    assert_eq!(audit(&alone.read()), seen);
}

/// Opens; when it is told to, takes the turn, and writes the beginning of a long transaction, which it
/// commits when it is told to end.
#[test]
fn child_that_keeps_the_turn() {
    let Some(job) = child::job() else { return };
    let database = shared().open_schema(&job[0], &schema()).unwrap();
    child::say("open");
    child::wait_for_the_parent();
    let mut transaction = database.begin().unwrap();
    write(&mut transaction, 1, 0, 1, 2_500_000).unwrap();
    child::say("writing");
    child::wait_for_the_parent();
    transaction.commit().unwrap();
    database.close().unwrap();
}

fn let_it_open(path: &Path) -> Child {
    let job = [path.to_str().unwrap()];
    let child = Child::start("processes::turns::child_that_keeps_the_turn", &job);
    child.wait_for("open");
    child
}

#[test]
fn who_waits_too_long_is_told_for_whom() {
    let folder = tempfile::tempdir().unwrap();
    let club = Club::new(folder.path());
    let member = shared().lock_timeout(Duration::from_millis(100));
    let member = member.open_schema(&club.path, &schema()).unwrap();
    let mut child = let_it_open(&club.path);
    // This process was the last one to commit, but not the one that it will have to wait for.
    member.write(|tx| write(tx, 2, 0, 1, 0)).unwrap();
    child.go_on();
    child.wait_for("writing");
    let impatient = shared().lock_timeout(Duration::ZERO);
    for error in [
        member.begin().map(drop).unwrap_err(),
        member.hard_checkpoint().map(drop).unwrap_err(),
        impatient.open(&club.path).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("process {}", child.pid())), "{text}");
        assert!(text.contains(club.path.to_str().unwrap()), "{text}");
    }
    // Reading doesn't wait for anybody.
    assert_eq!(member.pull().unwrap().txid(), annals::Txid(2));
    assert!(child.end().success());
    assert_eq!(member.pull().unwrap().txid(), annals::Txid(3));
    drop(member.begin().unwrap());
}

#[test]
fn who_is_killed_in_its_turn_leaves_it_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let club = Club::new(folder.path());
    let member = shared().open_schema(&club.path, &schema()).unwrap();
    for number in 0..effort(3, 30) {
        let mut child = let_it_open(&club.path);
        child.go_on();
        child.wait_for("writing");
        child.kill();
        assert_eq!(audit(&member.pull().unwrap()).of(2), number);
        member.write(|tx| write(tx, 2, number, 1, 0)).unwrap();
        let seen = audit(&member.read());
        assert_eq!((seen.of(1), seen.of(2)), (0, number + 1));
        let recoveries = member.recoveries();
        assert_eq!(recoveries.len() as u64, number + 1);
        let cut = recoveries.last().unwrap().cut.as_ref().unwrap();
        assert!(cut.uncommitted_frames >= 2 && !cut.may_have_been_acknowledged, "{cut:?}");
    }
}

#[test]
fn alone_and_shared_exclude_each_other_among_processes() {
    let folder = tempfile::tempdir().unwrap();
    let club = Club::new(folder.path());
    for (number, first, second) in [(1, "shared", "alone"), (2, "alone", "shared")] {
        let child = work::start(&club.path, first, number * 10, 1, 1);
        while !child.next_line().unwrap().starts_with("acknowledged") {}
        let options = Options::new().shared(second == "shared").lock_timeout(PATIENCE);
        let error = options.open(&club.path).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(error.to_string().contains(&format!("process {}", child.pid())), "{error}");
        drop(child);
        // What was killed is in nobody's way.
        options.open(&club.path).unwrap().close().unwrap();
    }
}

/// Commits as fast as it can, says each, and never lets others go first.
#[test]
fn child_in_a_hurry() {
    let Some(job) = child::job() else { return };
    let database = shared().level(Level::Soft).open_schema(&job[0], &schema()).unwrap();
    let writer = job[1].parse().unwrap();
    for number in 0.. {
        database.write(|tx| write(tx, writer, number, 1, 0)).unwrap();
        child::say(&format!("acknowledged {writer} {number}"));
    }
}

#[test]
fn two_in_a_hurry_both_get_their_share() {
    let folder = tempfile::tempdir().unwrap();
    let club = Club::new(folder.path());
    let path = club.path.to_str().unwrap();
    let [one, two] = ["1", "2"]
        .map(|writer| Child::start("processes::turns::child_in_a_hurry", &[path, writer]));
    // Both are at it; counted from here on, until the slower one has come far enough.
    let reader = Options::new().open_read_only(&club.path).unwrap();
    let counts = || {
        club.hear(&one);
        club.hear(&two);
        std::thread::sleep(Duration::from_millis(1));
        let seen = audit(&reader.pull().unwrap());
        [1, 2].map(|writer| seen.of(writer))
    };
    let wait_for = |least: u64, [a, b]: [u64; 2]| loop {
        let [one, two] = counts();
        if (one - a).min(two - b) >= least {
            return [one - a, two - b];
        }
        assert!(one.max(two) < 200_000, "one of them starves: {one} and {two}");
    };
    let begun = wait_for(1, [0, 0]);
    let [one, two] = wait_for(effort(400, 3000), begun);
    assert!(one.min(two) * 10 >= one + two, "{one} and {two}");
}
