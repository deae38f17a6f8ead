//! Messages that don't count, damage, and logs that are something else.

use std::sync::Arc;
use std::time::Duration;

use annals::journal::format::{FRAMES_AT, HEADER_LEN, Header};
use annals::journal::testing::{Around, Frame, encode};
use annals::{Cursor, ErrorKind, Txid};
use annals_storage::{Clock as _, Directory as _, MemoryDirectory, Spool, SystemClock};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::simulated::{Faults, Simulated};
use super::{Member, add, additions, create};
use annals_replica::Connection as _;
use annals_replica::SharedLog;
use annals_replica::shared_log::Log as _;

/// A node with a table and an addition, and its log.
fn begun() -> (Simulated, Member) {
    let log = Simulated::new(5, Faults::default());
    let member = Member::join(Arc::new(log.clone())).expect("a node");
    member.replica.transaction(create).expect("the schema");
    member.replica.transaction(|tx| add(tx, "first")).expect("an addition");
    (log, member)
}

/// A message as `docs/shared-log.md` describes it.
pub(super) struct Raw<'p> {
    pub(super) kind: u8,
    pub(super) sequence: u64,
    pub(super) from: Cursor,
    pub(super) end: Cursor,
    pub(super) part: [u32; 2],
    pub(super) payload: &'p [u8],
}

impl Raw<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let nonce = 7_u64;
        let mut bytes = b"ANLG\x01".to_vec();
        bytes.extend([self.kind, 0, 0]);
        let numbers =
            [self.sequence, self.from.txid.0, self.from.chain, self.end.txid.0, self.end.chain];
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        self.part.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.extend(nonce.to_le_bytes());
        bytes.extend(self.payload);
        let check = xxh3_64_with_seed(&bytes, nonce);
        bytes.extend(check.to_le_bytes());
        bytes
    }
}

/// Returns a frame that follows the end of a node with this payload, and the chain after it.
fn crafted(member: &Member, payload: &[u8], time: i64) -> (Vec<u8>, Cursor) {
    let mut spool = Spool::new(MemoryDirectory::new().again(), "header".to_owned(), 0);
    member.log.pull(None, Duration::ZERO, &mut spool).expect("a header");
    let mut head = [0; HEADER_LEN];
    annals_storage::Storage::read_at(&spool, 0, &mut head).expect("its bytes");
    let header = Header::decode(&head).expect("a header");
    let point = member.replica.read().point();
    let (kind, level, flags, txid) = (2, 1, 0x80, point.txid.0 + 1);
    let length = u32::try_from(payload.len()).expect("a short payload");
    let (position, durable, nonce) = (point.position, None, 99);
    let frame = Frame { kind, level, flags, length, txid, position, durable, nonce, time };
    let around = Around { segment: header.hash(), previous: point.chain, secret: [1; 16] };
    let (bytes, chain) = encode(&frame, payload, around);
    assert!(position > FRAMES_AT);
    (bytes, Cursor { txid: Txid(txid), chain })
}

#[test]
fn poisoned_messages_are_void_for_all_nodes_alike() {
    let (log, member) = begun();
    let here = member.cursor();
    let next = || log.messages().len() as u64 + 1;
    let elsewhere = Cursor { chain: here.chain ^ 1, ..here };
    // A table that isn't there: right in every checksum, and its events don't apply.
    let time = SystemClock.now();
    let (frame, end) = crafted(&member, &[0x02, 9, 1, b'x', 12, 0], time);
    let (ahead, ahead_end) = crafted(&member, &[0x02, 9, 1, b'x', 12, 0], time + 60_000_000);
    let raw = |kind, from, end, part, payload: &[u8]| {
        Raw { kind, sequence: next(), from, end, part, payload }.bytes()
    };
    let mut void = 0;
    let mut poison = |bytes: Vec<u8>| {
        log.poison(bytes);
        void += 1;
        member.replica.pull().expect("it goes on");
        assert_eq!(member.cursor(), here, "it doesn't count");
        assert_eq!(member.log.counts().void, void, "{:?}", member.log.counts());
    };
    poison(b"garbage".to_vec());
    poison(Vec::new());
    poison(raw(1, here, here, [0, 1], b"another beginning"));
    poison(raw(2, elsewhere, end, [0, 1], &frame));
    poison(raw(2, here, elsewhere, [0, 1], &frame));
    poison(raw(2, here, end, [0, 1], &frame[..frame.len() - 8]));
    poison(raw(2, here, end, [0, 1], b"no frames"));
    poison(raw(2, here, end, [0, 1], &frame));
    poison(raw(2, here, ahead_end, [0, 1], &ahead));
    // At another place than it says.
    poison(Raw { kind: 2, sequence: 1, from: here, end, part: [0, 1], payload: &frame }.bytes());
    member.replica.transaction(|tx| add(tx, "second")).expect("the chain goes on");
    // Parts without their end, then a fence of nobody: skipped, not void.
    log.poison(raw(2, member.cursor(), end, [0, 3], b"a part"));
    log.poison(raw(3, member.cursor(), member.cursor(), [0, 1], b""));
    log.poison(raw(2, member.cursor(), end, [0, 3], b"a part"));
    member.replica.transaction(|tx| add(tx, "third")).expect("the chain goes on");
    let other = Member::join(Arc::new(log.clone())).expect("a node that begins now");
    assert_eq!(other.cursor(), member.cursor());
    assert_eq!(other.log.counts().void, void);
    assert!(other.log.counts().skipped >= 3, "{:?}", other.log.counts());
    assert_eq!(additions(&other.replica.read()).1, ["first", "second", "third"]);
}

#[test]
fn a_poisoned_message_among_many_voids_only_itself() {
    let (log, member) = begun();
    let (frame, end) = crafted(&member, &[0x02, 9, 1, b'x', 12, 0], SystemClock.now());
    let (sequence, from) = (log.messages().len() as u64 + 1, member.cursor());
    log.poison(Raw { kind: 2, sequence, from, end, part: [0, 1], payload: &frame }.bytes());
    for number in 0..50 {
        member.replica.transaction(|tx| add(tx, &format!("{number}"))).expect("an addition");
    }
    let other = Member::join(Arc::new(log)).expect("a node");
    assert_eq!((other.cursor(), other.log.counts().void), (member.cursor(), 1));
}

#[test]
fn damage_of_one_replica_is_found_and_repaired_from_others() {
    let (log, member) = begun();
    // Messages that don't count are judged alike, too: garbage, and one that follows another history.
    let void = |log: &Simulated| {
        let (here, sequence) = (member.cursor(), log.messages().len() as u64 + 1);
        let from = Cursor { chain: here.chain ^ 1, ..here };
        let payload = b"no frames".as_slice();
        log.poison(Raw { kind: 2, sequence, from, end: here, part: [0, 1], payload }.bytes());
        log.poison(b"garbage".to_vec());
    };
    for number in 0..100 {
        member.replica.transaction(|tx| add(tx, &format!("{number}"))).expect("an addition");
        if number % 10 == 0 {
            void(&log);
        }
    }
    for (replica, leader) in (0..9).map(|number| (number / 3, number % 3)) {
        for percent in [30, 100] {
            log.damage(replica, percent);
            log.elect(leader);
            let other = Member::join(Arc::new(log.clone())).expect("a node");
            assert_eq!(other.cursor(), member.cursor(), "replica {replica}, leader {leader}");
            assert_eq!(other.log.counts().void, 20, "{:?}", other.log.counts());
        }
    }
}

#[test]
fn what_one_replica_alone_has_is_never_void() {
    let (log, member) = begun();
    let void = log.poison(b"garbage".to_vec());
    member.replica.transaction(|tx| add(tx, "second")).expect("the chain goes on");
    for whole in 0..3 {
        log.lose(void);
        log.mend(whole);
        log.elect(whole);
        let refused = Member::join(Arc::new(log.clone())).err().expect("nothing is certain");
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
        assert!(refused.to_string().contains(&format!("message {void} ")), "{refused}");
        log.mend((whole + 1) % 3);
        assert_eq!(join(&log).cursor(), member.cursor());
    }
}

#[test]
fn a_beginning_that_was_lost_on_the_way_is_appended_again() {
    let (mut behind_fences, fence) = (0, 3);
    for seed in 0..40 {
        let log = Simulated::new(seed, Faults { lost: 50, ..Faults::default() });
        let member = Member::join(Arc::new(log.clone())).expect("a node");
        log.set_faults(Faults::default());
        member.replica.transaction(create).expect("the schema");
        let other = Member::join(Arc::new(log.clone())).expect("a node");
        assert_eq!(other.cursor(), member.cursor(), "seed {seed}");
        behind_fences += usize::from(log.messages()[0].bytes[5] == fence);
    }
    assert!(behind_fences > 3, "{behind_fences}");
}

#[test]
fn a_message_that_no_replica_has_stops_the_node_and_is_named() {
    let (log, member) = begun();
    let lost = log.messages().len() as u64;
    member.replica.transaction(|tx| add(tx, "second")).expect("an addition");
    log.lose(lost);
    let refused = Member::join(Arc::new(log.clone())).err().expect("a message is lost");
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    assert!(refused.to_string().contains(&format!("message {lost} ")), "{refused}");
    // It says what an operator does, and where that is written.
    let runbook = include_str!("../../../../../docs/guide/src/runbook.md");
    let refused = refused.to_string();
    let section = refused.split('"').nth(1).expect("a section of the runbook");
    let steps = runbook.split("\n## ").find(|it| it.starts_with(section)).expect("it is there");
    for step in ["store_dir", "--log-archive"] {
        assert!(refused.contains(step) && steps.contains(step), "{step}: {refused}");
    }
}

#[test]
fn a_log_that_was_created_again_is_no_continuation() {
    let (log, member) = begun();
    log.recreate();
    let refused = member.replica.pull().expect_err("it lacks what was there");
    assert_eq!(refused.kind(), ErrorKind::Diverged, "{refused}");
    let other = Member::join(Arc::new(log.clone())).expect("a new journal");
    other.replica.transaction(create).expect("the schema");
    other.replica.transaction(|tx| add(tx, "other")).expect("an addition");
    let refused = member.crash(Arc::new(log)).err().expect("it is another journal");
    assert_eq!(refused.kind(), ErrorKind::Diverged, "{refused}");
}

#[test]
fn a_leader_that_was_cut_off_and_lacks_messages_ends_no_node() {
    let (log, member) = begun();
    for number in 0..5 {
        member.replica.transaction(|tx| add(tx, &format!("{number}"))).expect("an addition");
    }
    let last = log.messages().len() as u64;
    for lacks in [1, 3] {
        log.set_stale(Some(last - lacks));
        // What it lacks was read before; and by one that opens its file now, it isn't found.
        let refused = member.replica.pull().expect_err("nothing is certain");
        assert_eq!(refused.kind(), ErrorKind::Unreachable, "{lacks}: {refused}");
        let fresh = SharedLog::over(Arc::new(log.clone()));
        let found = fresh.pull(Some(member.cursor()), Duration::ZERO, &mut spool());
        let refused = found.expect_err("nothing is certain");
        assert_eq!(refused.kind(), ErrorKind::Unreachable, "{lacks}: {refused}");
        log.set_stale(None);
        assert_eq!(member.replica.pull().expect("a leader"), 0);
    }
    member.replica.transaction(|tx| add(tx, "after")).expect("it goes on");
}

#[test]
fn whoever_comes_during_an_election_waits_for_its_end() {
    let (log, member) = begun();
    let nobody = Faults { leaderless: 100, silent: 100, ..Faults::default() };
    let during = |work: &dyn Fn()| {
        log.set_faults(nobody);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                SystemClock.pause(Duration::from_millis(400));
                log.set_faults(Faults::default());
            });
            work();
        });
    };
    let shared = || SharedLog::over(Arc::new(log.clone()));
    // A new node; one that knows no place in the log; facts; filling a log, which finds that it isn't empty.
    during(&|| assert_eq!(join(&log).cursor(), member.cursor()));
    during(&|| assert_eq!(shared().describe().expect("facts").end, member.cursor()));
    let kind =
        || shared().begin_with(std::path::Path::new("none")).expect_err("it is there").kind();
    during(&|| assert_eq!(kind(), ErrorKind::InUse));
    during(&|| {
        member.replica.transaction(|tx| add(tx, "during")).expect("it waits");
    });
    let directory = join(&log).directory.clone();
    during(&|| {
        let again = Member::open(directory.clone(), Arc::new(log.clone())).expect("its file");
        again.replica.transaction(|tx| add(tx, "opened")).expect("it waits");
    });
}

fn join(log: &Simulated) -> Member {
    Member::join(Arc::new(log.clone())).expect("a node")
}

fn spool() -> Spool {
    Spool::new(MemoryDirectory::new().again(), "pulled".to_owned(), 0)
}

#[test]
fn a_clock_far_ahead_of_the_log_is_refused_and_others_go_on() {
    let (log, member) = begun();
    log.set_ahead(-60_000_000);
    let refused = member.replica.transaction(|tx| add(tx, "ahead")).expect_err("a minute ahead");
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains("clock"), "{refused}");
    log.set_ahead(0);
    member.replica.transaction(|tx| add(tx, "second")).expect("an addition");
    let other = Member::join(Arc::new(log)).expect("a node");
    assert_eq!(additions(&other.replica.read()).1, ["first", "second"]);
}

#[test]
fn large_transactions_travel_in_parts() {
    let (log, member) = begun();
    let long = "x".repeat(100 << 10);
    let before = log.messages().len();
    member.replica.transaction(|tx| add(tx, &long)).expect("a large transaction");
    assert!(log.messages().len() > before + 20);
    let other = Member::join(Arc::new(log.clone())).expect("a node");
    assert_eq!(other.cursor(), member.cursor());
    assert!(log.messages().iter().all(|it| it.bytes.len() <= log.most().expect("a limit")));
}

#[test]
fn parts_that_come_after_a_look_are_put_together() {
    let (log, member) = begun();
    let before = log.messages().len();
    let long = "x".repeat(20 << 10);
    member.replica.transaction(|tx| add(tx, &long)).expect("a large transaction");
    member.replica.transaction(|tx| add(tx, "next")).expect("an addition");
    let messages = log.messages();
    let slow = Simulated::new(5, Faults::default());
    for message in &messages[..before] {
        slow.poison(message.bytes.clone());
    }
    let other = Member::join(Arc::new(slow.clone())).expect("a node");
    for message in &messages[before..] {
        slow.poison(message.bytes.clone());
        other.replica.pull().expect("perhaps a part");
    }
    assert_eq!(other.cursor(), member.cursor());
    assert_eq!((other.log.counts().void, other.log.counts().skipped), (0, 0));
}

#[test]
fn parts_of_a_transaction_that_came_second_are_nobodys_mistake() {
    let (log, member) = begun();
    let before = log.messages().len();
    let long = "x".repeat(40 << 10);
    member.replica.transaction(|tx| add(tx, &long)).expect("a large transaction");
    let parts = log.messages()[before..].to_vec();
    // The parts were all on their way at once when a message of another node took the place of one of them.
    for taken in 1..parts.len() {
        let slow = Simulated::of(log.messages()[..before].to_vec());
        let other = Member::join(Arc::new(slow.clone())).expect("a node");
        for part in &parts[..taken] {
            slow.poison(part.bytes.clone());
        }
        let tag = format!("first {taken}");
        let mut node = Member::join(Arc::new(slow.clone())).expect("a node");
        node.replica.transaction(|tx| add(tx, &tag)).expect("it comes first");
        for part in &parts[taken + 1..] {
            slow.poison(part.bytes.clone());
        }
        node.replica.transaction(|tx| add(tx, "after")).expect("it goes on");
        for reader in [&other, &node] {
            reader.replica.pull().expect("nothing is wrong");
            assert_eq!(reader.cursor(), node.cursor());
            let status = reader.log.counts();
            assert_eq!((status.void, &status.reasons[..]), (0, &[][..]), "{taken}: {status:?}");
        }
        node = Member::join(Arc::new(slow)).expect("a node that begins now");
        let status = node.log.counts();
        assert_eq!((status.void, status.skipped), (0, parts.len() as u64 - 1), "{status:?}");
    }
}

#[test]
fn a_log_is_filled_with_the_history_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old");
    let old = annals::Options::new().open(&path).expect("a database");
    old.write(create).expect("the schema");
    for number in 0..20 {
        old.write(|tx| add(tx, &format!("{number}")).map(drop)).expect("an addition");
    }
    let end = Cursor::from(old.read().point());
    old.close().expect("closing");
    let log = Simulated::new(5, Faults::default());
    let shared = annals_replica::SharedLog::over(Arc::new(log.clone()));
    assert_eq!(shared.begin_with(&path).expect("it is appended").end, end);
    assert_eq!(shared.begin_with(&path).expect_err("it is there").kind(), ErrorKind::InUse);
    let member = Member::join(Arc::new(log)).expect("a node");
    assert_eq!(member.cursor(), end);
    member.replica.transaction(|tx| add(tx, "more")).expect("an addition");
    assert_eq!(shared.describe().expect("facts").end, member.cursor());
}
