//! Nodes over real servers, which are killed, stopped and damaged meanwhile.

#![allow(clippy::print_stderr, reason = "a run with faults says what it met")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::ErrorKind;
use annals_replica::shared_log::jetstream::{Access, JetStream};
use annals_replica::shared_log::testing::Cluster;
use annals_replica::shared_log::{Appended, Log as _, Source};
use annals_simulated::Rng;
use annals_storage::{Clock as _, SystemClock};
use bytes::Bytes;

use super::linear::{Told, What, is_linearizable};
use super::{Member, add, additions, create, full};

const STREAM: &str = "orders";

fn stream(cluster: &Cluster) -> Arc<JetStream> {
    Arc::new(JetStream::new(&cluster.url(STREAM), cluster.access()).expect("a URL"))
}

#[test]
fn settings_that_lose_transactions_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = match Cluster::start(folder.path(), "\"2m0s\"") {
        Ok(cluster) => cluster,
        Err(needs) => return annals_untested::untested(needs),
    };
    let url = cluster.url(STREAM);
    let refused = JetStream::new(&url, cluster.access()).expect("a URL").create(1);
    let refused = refused.expect_err("one replica").to_string();
    assert!(
        refused.contains("num_replicas is 1") && refused.contains("--trust-server"),
        "{refused}"
    );
    let trusted = Access { trust_server: true, ..Access::default() };
    JetStream::new(&url, trusted.clone()).expect("a URL").create(1).expect("a stream");
    let again = JetStream::new(&url, trusted.clone()).expect("a URL").create(1);
    assert_eq!(again.expect_err("it is there").kind(), ErrorKind::InUse);

    let refused = Member::join(stream(&cluster)).err().expect("its settings").to_string();
    for name in ["num_replicas is 1", "sync_interval of server n", "is 120 s"] {
        assert!(refused.contains(name), "{name}: {refused}");
    }
    let blind = JetStream::new(&url, Access::default()).expect("a URL");
    let refused = Member::join(Arc::new(blind)).err().expect("no monitors").to_string();
    assert!(refused.contains("isn't known") && refused.contains("--monitor"), "{refused}");
    // Many messages are sent in their order, or the stream wouldn't take them.
    let many = JetStream::new(&cluster.url("many"), trusted.clone()).expect("a URL");
    many.create(1).expect("a stream");
    for round in 0..3 {
        append_all(&many, round * 1000, &vec![vec![0x5a; 64].into(); 1000]);
    }
    let member = Member::join(Arc::new(JetStream::new(&url, trusted).expect("a URL")));
    let member = member.expect("whoever insists may use it");
    member.replica.transaction(create).expect("a transaction");

    let absent = JetStream::new(&cluster.url("absent"), cluster.access()).expect("a URL");
    let refused = Member::join(Arc::new(absent)).err().expect("there is no such stream");
    assert!(refused.kind() == ErrorKind::NotFound, "{refused}");
    assert!(refused.to_string().contains("annals log create"), "{refused}");
}

/// Appends messages. Servers that are busy with other tests may elect a leader meanwhile: then again, unless all are there.
fn append_all(stream: &JetStream, after: u64, messages: &[Bytes]) {
    let (begun, all) = (SystemClock.elapsed(), after + messages.len() as u64);
    loop {
        match stream.append(after, messages.to_vec()).expect("an answer") {
            Appended::Committed(Some(_)) => return,
            Appended::Unknown(error) if error.kind() == ErrorKind::Unreachable => {}
            other => assert!(stream.extent().is_ok_and(|it| it.last == all), "{other:?}"),
        }
        if stream.extent().is_ok_and(|it| it.last == all) {
            return;
        }
        assert!(SystemClock.elapsed() - begun < Duration::from_secs(60), "no leader");
        SystemClock.pause(Duration::from_millis(200));
    }
}

#[test]
fn headers_that_a_message_brings_along_are_not_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = match Cluster::start(folder.path(), "\"always\"") {
        Ok(cluster) => cluster,
        Err(needs) => return annals_untested::untested(needs),
    };
    let stream = stream(&cluster);
    stream.create(3).expect("a stream");
    let url = cluster.url_of(0, STREAM);
    let host = url.trim_start_matches("nats://").split('/').next().expect("a host");
    let mut client = TcpStream::connect(host).expect("a server");
    let headers = "NATS/1.0\r\nNats-Sequence: 7\r\nNats-Time-Stamp: 2099-01-01T00:00:00Z\r\n\r\n";
    let (body, len) = ("garbage", headers.len());
    write!(
        client,
        "CONNECT {{\"headers\":true,\"verbose\":false}}\r\nHPUB annals.{STREAM} {len} {}\r\n{headers}{body}\r\nPING\r\n",
        len + body.len()
    )
    .expect("it is sent");
    let mut from_leader = None;
    for _ in 0..100 {
        from_leader = stream.get(1, Source::Leader).expect("an answer");
        if from_leader.is_some() {
            break;
        }
        SystemClock.pause(Duration::from_millis(50));
    }
    let from_leader = from_leader.expect("it is there");
    assert_eq!(stream.get(1, Source::Any).expect("an answer"), Some(from_leader.clone()));
    assert_eq!(stream.read(1, 1 << 20).expect("an answer"), [from_leader]);
}

/// Writers that go on until they are told to end, each as a node that crashes now and then.
struct Writers {
    told: Told,
    ends: AtomicBool,
}

impl Writers {
    fn work(&self, node: usize, cluster: &Mutex<Cluster>) {
        let (mut rng, mut number) = (Rng::new(node as u64), 0);
        let log = || stream(&cluster.lock().unwrap());
        let mut member = Self::insist(|| Member::join(log()));
        while !self.ends.load(Ordering::SeqCst) {
            let tag = format!("{node} {number}");
            number += 1;
            let call = self.told.call();
            match member.replica.transaction(|tx| add(tx, &tag)) {
                Ok((before, _)) => {
                    self.told.note(call, What::Add(before));
                    self.told.acknowledged.lock().unwrap().insert(tag);
                }
                Err(error) => {
                    assert!(is_passing(&error), "{error}");
                    eprintln!("node {node}: {error}");
                    if error.kind() == ErrorKind::UnknownOutcome {
                        self.told.note(call, What::AddUnknown);
                    }
                }
            }
            if rng.below(10) == 0 {
                let call = self.told.call();
                if member.replica.pull().is_ok() {
                    self.told.note(call, What::Read(additions(&member.replica.read()).0));
                }
            }
            if rng.below(300) == 0 {
                let directory = member.directory.clone();
                drop(member);
                member = Self::insist(|| Member::open(directory.clone(), log()));
            }
        }
    }

    fn insist<T>(mut work: impl FnMut() -> annals::Result<T>) -> T {
        loop {
            match work() {
                Ok(done) => return done,
                Err(error) => {
                    assert!(is_passing(&error), "{error}");
                    eprintln!("again: {error}");
                }
            }
            SystemClock.pause(Duration::from_millis(50));
        }
    }
}

fn is_passing(error: &annals::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unreachable
            | ErrorKind::Conflict
            | ErrorKind::UnknownOutcome
            | ErrorKind::Corrupt
    )
}

/// Hurts the servers once.
fn hurt(cluster: &Mutex<Cluster>, fault: u64, rng: &mut Rng) {
    let pause = |millis| SystemClock.pause(Duration::from_millis(millis));
    let lock = || cluster.lock().unwrap();
    let leader = lock().leader(STREAM);
    let follower = (leader + 1 + rng.index(2)) % 3;
    match fault % 20 {
        0 => {
            lock().kill(leader);
            pause(500);
            lock().restart(leader);
        }
        5 => {
            lock().signal(leader, "STOP");
            pause(3000);
            lock().signal(leader, "CONT");
        }
        // It believes that it leads, and clients reach it, or don't.
        10 | 15 => {
            lock().cut_servers(leader, true);
            lock().cut_clients(leader, fault % 20 == 15);
            pause(3000);
            lock().cut_servers(leader, false);
            lock().cut_clients(leader, false);
        }
        17 => {
            (0..3).for_each(|number| lock().kill(number));
            pause(300);
            (0..3).for_each(|number| lock().restart(number));
        }
        2 | 12 => {
            lock().signal(follower, "STOP");
            pause(400);
            lock().signal(follower, "CONT");
        }
        4 | 14 => {
            lock().cut_servers(follower, true);
            pause(400);
            lock().cut_servers(follower, false);
        }
        8 | 18 => {
            lock().cut_clients(leader, true);
            pause(400);
            lock().cut_clients(leader, false);
        }
        _ => {
            lock().kill(follower);
            pause(300);
            lock().restart(follower);
        }
    }
    pause(200);
}

#[test]
fn nothing_is_lost_while_servers_and_nodes_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = match Cluster::start(folder.path(), "\"always\"") {
        Ok(cluster) => cluster,
        Err(needs) => return annals_untested::untested(needs),
    };
    stream(&cluster).create(3).expect("a stream");
    let first = Member::join(stream(&cluster)).expect("a node");
    first.replica.transaction(create).expect("the schema");
    let faults = if full() { 200 } else { 20 };
    let cluster = Mutex::new(cluster);
    let writers = Writers { told: Told::default(), ends: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let (writers, cluster) = (&writers, &cluster);
        let nodes: Vec<_> =
            (0..3).map(|node| scope.spawn(move || writers.work(node, cluster))).collect();
        let hurting = scope.spawn(move || {
            let mut rng = Rng::new(1);
            (0..faults).for_each(|fault| hurt(cluster, fault, &mut rng));
        });
        let hurt = hurting.join();
        writers.ends.store(true, Ordering::SeqCst);
        nodes.into_iter().for_each(|node| node.join().expect("no panic"));
        hurt.expect("no panic");
    });
    Writers::insist(|| first.replica.pull());
    let late = Writers::insist(|| Member::join(stream(&cluster.lock().unwrap())));
    Writers::insist(|| first.replica.pull());
    assert_eq!(first.cursor(), late.cursor());
    let (count, tags) = additions(&late.replica.read());
    let there: BTreeSet<_> = tags.iter().cloned().collect();
    let acknowledged = writers.told.acknowledged.into_inner().unwrap();
    assert_eq!((count, there.len()), (tags.len() as u64, tags.len()), "nothing is there twice");
    let lost: Vec<_> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let operations = writers.told.operations.into_inner().unwrap();
    assert!(is_linearizable(&operations), "{operations:?}");
    let status = late.log.status().expect("a status");
    eprintln!("{faults} faults, {} additions, {status:?}", acknowledged.len());
    assert!(acknowledged.len() > 20 && status.lag() == 0 && status.void == 0, "{status:?}");
}

#[test]
fn a_damaged_replica_that_leads_hides_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cluster = match Cluster::start(folder.path(), "\"always\"") {
        Ok(cluster) => cluster,
        Err(needs) => return annals_untested::untested(needs),
    };
    stream(&cluster).create(3).expect("a stream");
    let member = Member::join(stream(&cluster)).expect("a node");
    member.replica.transaction(create).expect("the schema");
    for number in 0..200 {
        let tag = format!("{number} {}", "x".repeat(300));
        member.replica.transaction(|tx| add(tx, &tag)).expect("an addition");
    }
    let leader = cluster.leader(STREAM);
    let damaged = (leader + 1) % 3;
    cluster.kill(damaged);
    let path = cluster.blocks(damaged, STREAM);
    let mut bytes = std::fs::read(&path).expect("its messages");
    for part in 1..8 {
        let at = bytes.len() * part / 8;
        bytes[at] ^= 1;
    }
    std::fs::write(&path, bytes).expect("its messages");
    cluster.restart(damaged);
    // It can lead once the others are gone, one after the other.
    SystemClock.pause(Duration::from_secs(2));
    for other in (0..3).filter(|number| *number != damaged) {
        cluster.kill(other);
        SystemClock.pause(Duration::from_millis(300));
        cluster.restart(other);
        let _ = cluster.leader(STREAM);
    }
    let url = cluster.url_of(damaged, STREAM);
    let near = || Arc::new(JetStream::new(&url, cluster.access()).expect("a URL"));
    let other = Writers::insist(|| Member::join(near()));
    assert_eq!(other.cursor(), member.cursor());
    assert_eq!(additions(&other.replica.read()), additions(&member.replica.read()));
    let status = other.log.status().expect("a status");
    eprintln!("leader {}, damaged {damaged}, {status:?}", cluster.leader(STREAM));
    assert_eq!(status.void, 0, "{status:?}");
    Writers::insist(|| other.replica.transaction(|tx| add(tx, "after")).map(drop));
    Writers::insist(|| member.replica.pull());
    assert_eq!(other.cursor(), member.cursor());
}
