//! A leader that was replaced refuses what its successor stores: no transaction is there twice, and none is lost. What is said
//! not to be there never is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::internals::Origin;
use annals::{
    Cursor, Error, ErrorKind, FieldNumber, Result, Snapshot, Transaction, Txid, ValueRef,
};
use annals_replica::frames::transaction_ends;
use annals_replica::{Connection, Description, Granted, Node, Patience, Pulled, Pushed, SharedLog};
use annals_simulated::Rng;
use annals_storage::{Clock as _, Directory as _, MemoryDirectory, Spool, SystemClock};

use super::poison::Raw;
use super::simulated::{Faults, Simulated};
use super::{ITEM, Member, each, full};

/// Creates a table in which a row may be twice.
fn create(tx: &mut Transaction<'_>) -> Result<()> {
    let (name, ty) = ("tag".to_owned(), annals::Type::String);
    tx.apply_command(&annals::Command::CreateTable { name: "item".to_owned() })?;
    tx.apply_command(&annals::Command::AddField {
        table: ITEM,
        name,
        ty,
        nullable: false,
        default: None,
    })
}

/// Returns how often each tag is there.
fn counts(state: &Snapshot) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for row in state.table(ITEM).expect("the table").rows() {
        let tag = row.expect("a row").read::<&str>(FieldNumber(0)).to_owned();
        *counts.entry(tag).or_default() += 1;
    }
    counts
}

/// Inserts rows as two nodes, one of which has several threads; returns the tags that were acknowledged, and those of which
/// nothing is known.
fn insert(log: &Simulated, large: &str) -> (Vec<String>, Vec<String>) {
    let join = |name: &str| {
        let member = Member::join(Arc::new(log.clone())).unwrap_or_else(|e| panic!("{name}: {e}"));
        Node::new(member.replica)
    };
    let (one, two) = (join("one"), join("two"));
    let work = |node: &Node, name: &str| {
        let (mut there, mut unknown) = (Vec::new(), Vec::new());
        for number in 0..12 {
            let tag = format!("{name} {number} {}", if number % 4 == 0 { large } else { "" });
            let row = tag.clone();
            let done = node.commit(move |mut tx| {
                tx.insert(ITEM, &[ValueRef::String(&row)])?;
                Ok::<_, annals::Error>(((), tx))
            });
            match done {
                Ok(_) => there.push(tag),
                Err(error) if error.kind() == ErrorKind::UnknownOutcome => unknown.push(tag),
                Err(error) => panic!("{name} {number}: {error}"),
            }
        }
        (there, unknown)
    };
    std::thread::scope(|scope| {
        let threads = [(&one, "a"), (&two, "b"), (&two, "c")];
        let threads = threads.map(|(node, name)| scope.spawn(move || work(node, name)));
        let (mut there, mut unknown) = (Vec::new(), Vec::new());
        for thread in threads {
            let (a, b) = thread.join().expect("no panic");
            there.extend(a);
            unknown.extend(b);
        }
        (there, unknown)
    })
}

#[test]
fn what_a_stale_leader_refuses_is_there_once_or_never() {
    let large = "x".repeat(20 << 10);
    each(if full() { 2000 } else { 60 }, |seed| {
        let log = Simulated::new(seed, Faults::default());
        let first = Member::join(Arc::new(log.clone())).expect("a node");
        first.replica.transaction(create).expect("the schema");
        let stale = 10 + seed % 5 * 15;
        log.set_faults(Faults { stale, lost: seed % 3 * 10, ..Faults::default() });
        let (there, unknown) = insert(&log, &large);
        log.set_faults(Faults::default());
        first.replica.pull().expect("a pull");
        let counts = counts(&first.replica.read());
        for tag in &there {
            assert_eq!(counts.get(tag), Some(&1), "seed {seed}: {:.9}", tag);
        }
        for tag in &unknown {
            assert!(counts.get(tag).is_none_or(|count| *count == 1), "seed {seed}: {:.9}", tag);
        }
        assert!(counts.len() <= there.len() + unknown.len(), "seed {seed}");
        assert_eq!(first.log.counts().void, 0, "seed {seed}: {:?}", first.log.counts().reasons);
    });
}

fn insert_row(tx: &mut Transaction<'_>, tag: &str) -> Result<()> {
    tx.insert(ITEM, &[ValueRef::String(tag)]).map(drop)
}

fn spool() -> Spool {
    Spool::new(MemoryDirectory::new().again(), "frames".to_owned(), 0)
}

/// Joins a node that gives up after so many milliseconds.
fn hasty(log: &Simulated, deadline: u64) -> (Arc<Noted>, Member) {
    let patience =
        Patience { deadline: Duration::from_millis(deadline), pause: Duration::from_millis(1) };
    let shared = Arc::new(SharedLog::over(Arc::new(log.clone())).patience(patience));
    let noted = Arc::new(Noted { log: Arc::clone(&shared), said: Mutex::default() });
    let connection = Arc::clone(&noted) as _;
    let member = Member::follow(MemoryDirectory::new(), connection, shared, patience);
    (noted, member.expect("a node"))
}

/// A log that notes what it said of each push.
#[derive(Debug)]
struct Noted {
    log: Arc<SharedLog>,
    /// The cursor after the frames, and why they weren't sent, if it said that.
    said: Mutex<Vec<(Cursor, Option<ErrorKind>)>>,
}

impl Connection for Noted {
    fn name(&self) -> String {
        self.log.name()
    }

    fn describe(&self) -> Result<Description> {
        self.log.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        self.log.pull(after, wait, into)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        let ends = transaction_ends(frames, frames.begin())?.expect("whole transactions");
        let chain = ends.last().expect("one").chain;
        let end = Cursor { txid: from.txid + ends.len() as u64, chain };
        let pushed = self.log.push(from, frames, lease);
        let not_sent = match &pushed {
            Ok(Pushed::NotSent(error)) => Some(error.kind()),
            _ => None,
        };
        self.said.lock().expect("no panic").push((end, not_sent));
        pushed
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.log.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.log.unlock(ticket)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.log.chains(txids)
    }

    fn origin(&self) -> Origin {
        self.log.origin()
    }

    fn refused(&self, after: Cursor, next: Cursor, error: &Error) -> Result<bool> {
        self.log.refused(after, next, error)
    }

    fn yield_to_others(&self, at: Cursor) -> bool {
        self.log.yield_to_others(at)
    }
}

/// Returns the frames of one transaction after those of a log, of two, and so on; the log gets none of them.
fn frames<const N: usize>(log: &Simulated) -> [Spool; N] {
    let fork = Member::join(Arc::new(Simulated::of(log.messages()))).expect("a node");
    let here = fork.cursor();
    std::array::from_fn(|number| {
        fork.replica.transaction(|tx| insert_row(tx, &format!("{number}"))).expect("a row");
        let mut frames = spool();
        fork.log.pull(Some(here), Duration::ZERO, &mut frames).expect("frames");
        frames
    })
}

/// Lets another node reserve the next turn, and a node read that.
fn reserve(log: &Simulated, member: &Member, here: Cursor) {
    let sequence = log.messages().len() as u64 + 1;
    let (kind, part, payload) = (3, [0, 1], b"".as_slice());
    log.poison(Raw { kind, sequence, from: here, end: here, part, payload }.bytes());
    let mut nothing = spool();
    member.log.pull(Some(here), Duration::ZERO, &mut nothing).expect("a pull");
    assert_eq!(nothing.begin(), nothing.end());
}

/// A turn lasts so long.
const TURN: Duration = Duration::from_millis(250);

#[test]
fn what_comes_in_the_turn_of_another_is_not_sent() {
    let log = Simulated::new(1, Faults::default());
    let (_, member) = hasty(&log, 100);
    member.replica.transaction(create).expect("the schema");
    let [frames] = frames(&log);
    let here = member.cursor();
    let begun = SystemClock.elapsed();
    let is_late = || SystemClock.elapsed() >= begun + TURN;
    reserve(&log, &member, here);
    let before = log.messages().len();
    match member.log.push(here, &frames, None).expect("it is judged") {
        Pushed::NotSent(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            assert_eq!(log.messages().len(), before, "nothing was sent");
        }
        // On a machine that stood still meanwhile.
        pushed => assert!(is_late() && matches!(pushed, Pushed::Committed), "{pushed:?}"),
    }
    member.replica.pull().expect("a pull");
    let begun = SystemClock.elapsed();
    let is_late = || SystemClock.elapsed() >= begun + TURN;
    let here = member.cursor();
    let before = log.messages().len();
    let mut fences = 0;
    let done = member.replica.transaction(|tx| {
        reserve(&log, &member, here);
        fences += 1;
        insert_row(tx, "late")
    });
    match done {
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "it is certain: {error}");
            assert_eq!(log.messages().len(), before + fences, "nothing was sent");
        }
        Ok(_) => assert!(is_late()),
    }
}

#[test]
fn an_append_that_is_not_settled_lets_nothing_else_be_sent() {
    for seed in 0..20 {
        let log = Simulated::new(seed, Faults::default());
        let (_, member) = hasty(&log, 30);
        member.replica.transaction(create).expect("the schema");
        let ([one, two], [other], here) = (frames(&log), frames(&log), member.cursor());
        let push = |frames: &Spool| member.log.push(here, frames, None).expect("it is judged");
        log.set_faults(Faults { lost: 100, silent: 100, ..Faults::default() });
        for same in [&one, &one, &two] {
            let pushed = push(same);
            assert!(matches!(pushed, Pushed::Unknown(_)), "seed {seed}: {pushed:?}");
        }
        match push(&other) {
            Pushed::NotSent(error) => assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}"),
            pushed => panic!("seed {seed}: {pushed:?}"),
        }
        let refused = member.replica.transaction(|tx| insert_row(tx, "another"));
        let refused = refused.expect_err("what was sent before isn't settled");
        assert_eq!(refused.kind(), ErrorKind::Unreachable, "seed {seed}: {refused}");
        log.set_faults(Faults::default());
        log.deliver_all();
        let is_there = matches!(push(&other), Pushed::Committed);
        member.replica.pull().expect("a pull");
        let chain =
            |spool: &Spool| transaction_ends(spool, 0).expect("ends").expect("some")[0].chain;
        let expected = if is_there { &other } else { &one };
        assert_eq!(member.cursor().chain, chain(expected), "seed {seed}");
        assert_eq!(counts(&member.replica.read()).len(), 1, "seed {seed}");
    }
}

/// What writers were told.
#[derive(Default)]
struct Claims {
    there: BTreeSet<String>,
    unknown: BTreeSet<String>,
    not_there: BTreeSet<String>,
    /// Pushes of which it was said that nothing was sent, and why.
    not_sent: Vec<(Cursor, ErrorKind)>,
}

/// Writes as three nodes that follow the log meanwhile, one of which has long transactions.
fn contend(log: &Simulated, seed: u64, faults: Faults) -> Claims {
    let nodes: Vec<_> = (0..3).map(|_| hasty(log, 20 + seed % 4 * 40)).collect();
    nodes.iter().for_each(|(_, it)| assert!(it.replica.pull().is_ok()));
    log.set_faults(faults);
    let (claims, ends) = (Mutex::new(Claims::default()), AtomicBool::new(false));
    let work = |node: usize, member: &Member| {
        let mut rng = Rng::new(seed ^ (node as u64) << 32);
        for number in 0..10 {
            let tag = format!("{node} {number}");
            let pause = if node == 0 { rng.below(4) } else { 0 };
            let done = member.replica.transaction(|tx| {
                SystemClock.pause(Duration::from_millis(pause));
                insert_row(tx, &tag)
            });
            let mut claims = claims.lock().expect("no panic");
            match done {
                Ok(_) => claims.there.insert(tag),
                Err(error) if error.kind() == ErrorKind::UnknownOutcome => {
                    claims.unknown.insert(tag)
                }
                Err(_) => claims.not_there.insert(tag),
            };
        }
    };
    std::thread::scope(|scope| {
        for (_, it) in &nodes {
            let ends = &ends;
            scope.spawn(move || {
                while !ends.load(Ordering::SeqCst) {
                    let _ = it.replica.pull_for(Duration::from_millis(5));
                }
            });
        }
        let writers = nodes.iter().enumerate();
        let writers: Vec<_> =
            writers.map(|(node, (_, it))| scope.spawn(move || work(node, it))).collect();
        let worked: Vec<_> = writers.into_iter().map(|it| it.join()).collect();
        ends.store(true, Ordering::SeqCst);
        worked.into_iter().for_each(|it| it.expect("no panic"));
    });
    let mut claims = claims.into_inner().expect("no panic");
    let said = nodes.iter().flat_map(|(it, _)| it.said.lock().expect("no panic").clone());
    let (not_sent, others): (Vec<_>, Vec<_>) = said.partition(|it| it.1.is_some());
    // The same frames may have been sent before, or after.
    let is_never = |end: &Cursor| others.iter().all(|other| other.0 != *end);
    claims.not_sent =
        not_sent.into_iter().filter(|it| is_never(&it.0)).map(|it| (it.0, it.1.unwrap())).collect();
    claims
}

/// How often what was claimed.
type Claimed = BTreeMap<String, usize>;

fn nothing_is_there_of_what_is_said_not_to_be(seed: u64, claimed: &Mutex<Claimed>) {
    let log = Simulated::new(seed, Faults::default());
    let first = Member::join(Arc::new(log.clone())).expect("a node");
    first.replica.transaction(create).expect("the schema");
    let (lost, stale) = (seed % 3 * 15, seed / 3 % 3 * 15);
    let (silent, leaderless) = (seed / 9 % 3 * 15, seed / 27 % 3 * 15);
    log.set_round_trip(Duration::from_micros(seed % 5 * 300));
    let claims = contend(&log, seed, Faults { lost, stale, silent, leaderless, late: 10 });
    log.set_faults(Faults::default());
    log.deliver_all();
    first.replica.pull().expect("a pull");
    let counts = counts(&first.replica.read());
    let count = |tag: &str| counts.get(tag).copied().unwrap_or_default();
    let wrong = |tags: &BTreeSet<String>, is_right: fn(u32) -> bool| {
        tags.iter().filter(|tag| !is_right(count(tag))).cloned().collect::<Vec<_>>()
    };
    let none: [String; 0] = [];
    assert_eq!(wrong(&claims.not_there, |it| it == 0), none, "seed {seed}: there all the same");
    assert_eq!(wrong(&claims.there, |it| it == 1), none, "seed {seed}: lost, or twice");
    assert_eq!(wrong(&claims.unknown, |it| it <= 1), none, "seed {seed}: twice");
    let txids: Vec<_> = claims.not_sent.iter().map(|it| it.0.txid).collect();
    let chains = first.log.chains(&txids).expect("chains");
    for ((end, why), chain) in claims.not_sent.iter().zip(chains) {
        assert_ne!(chain, Some(end.chain), "seed {seed}: {end} is there, and {why:?}");
    }
    let mut claimed = claimed.lock().expect("no panic");
    let mut add = |what: &str, count| *claimed.entry(what.to_owned()).or_default() += count;
    add("there", claims.there.len());
    add("unknown", claims.unknown.len());
    add("not there", claims.not_there.len());
    claims.not_sent.iter().for_each(|it| add(&format!("not sent, {:?}", it.1), 1));
}

#[test]
fn what_is_said_not_to_be_there_never_is() {
    let (seeds, claimed) = (if full() { 2000 } else { 81 }, Mutex::default());
    let next = AtomicU64::new(0);
    // They wait more than they work.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds {
                        return;
                    }
                    nothing_is_there_of_what_is_said_not_to_be(seed, &claimed);
                }
            });
        }
    });
    let claimed: Claimed = claimed.into_inner().expect("no panic");
    // Each kind was met, or nothing was shown.
    for what in ["there", "unknown", "not there"] {
        assert!(claimed.contains_key(what), "{what}: {claimed:?}");
    }
}
