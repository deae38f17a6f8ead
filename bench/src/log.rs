//! A node of a shared log, beside bare appends of the same bytes to the same servers.
//!
//! Three servers on loopback flush what they acknowledge. The bare append has the expected last sequence, as a node's
//! has. Pipelined, the bare appends are on their way together; the commits are those of many threads, which share
//! messages.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use annals::{Command, Error, Level, TableNumber, Type, ValueRef};
use annals_replica::shared_log::jetstream::JetStream;
use annals_replica::shared_log::testing::Cluster;
use annals_replica::shared_log::{Appended, Log};
use annals_replica::{Node, Replica, SharedLog};

use crate::engines::Failure;
use crate::figures::{Figure, Measured};

const ITEM: TableNumber = TableNumber(0);
/// About the bytes of a message with one transaction that inserts a short row.
const MESSAGE: usize = 64 + 80 + 8;

/// How long six threads commit.
const LASTING: Duration = Duration::from_secs(8);

/// What goes through the log.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// Transactions, one after the other.
    #[arg(long, default_value_t = 500)]
    pub(crate) transactions: u64,
    /// Threads that commit at the same time.
    #[arg(long, default_value_t = 256)]
    threads: u64,
    /// Bare appends that are on their way at the same time.
    #[arg(long, default_value_t = 1024)]
    window: u64,
}

/// Runs the turns.
pub(crate) fn run(load: &Load, turns: usize) -> Result<Vec<Figure>, Failure> {
    let mut measured = Measured::default();
    for _ in 0..turns {
        let folder = tempfile::tempdir()?;
        let servers = folder.path().join("servers");
        std::fs::create_dir(&servers)?;
        let mut cluster = Cluster::start_direct(&servers, "\"always\"")?;
        turn(load, folder.path(), &mut cluster, &mut measured)?;
    }
    Ok(measured.medians())
}

fn stream(cluster: &Cluster, name: &str) -> Result<JetStream, Failure> {
    Ok(JetStream::new(&cluster.url(name), cluster.access())?)
}

fn join(cluster: &Cluster, path: &Path) -> Result<Replica, Failure> {
    let log = SharedLog::with(&cluster.url("journal"), cluster.access())?;
    Ok(Replica::connect(Arc::new(log), path)?)
}

fn turn(
    load: &Load,
    folder: &Path,
    cluster: &mut Cluster,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let raw = stream(cluster, "raw")?;
    raw.create(3)?;
    let count = load.transactions;
    let mut last = 0;
    let mut append = |at_once: u64, batches: u64| {
        let begun = Instant::now();
        for _ in 0..batches {
            let messages = (0..at_once).map(|_| vec![0x5a; MESSAGE].into()).collect();
            match raw.append(last, messages)? {
                Appended::Committed(_) => last += at_once,
                other => return Err(Failure::from(format!("{other:?}"))),
            }
        }
        Ok(begun.elapsed())
    };
    measured.add("bare append", ("one at a time", "us"), micros(append(1, count)?, count));
    let batches = 1 + 20_000 / load.window;
    let took = append(load.window, batches)?;
    measured.add("bare append", ("many at a time", "/s"), per_second(took, batches * load.window));

    stream(cluster, "journal")?.create(3)?;
    let replica = join(cluster, &folder.join("one"))?;
    replica.transaction(|tx| {
        tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
        let (name, ty, nullable, default) = ("value".to_owned(), Type::Bytes, false, None);
        tx.apply_command(&Command::AddField { table: ITEM, name, ty, nullable, default })
    })?;
    let insert =
        |replica: &Replica| replica.transaction(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"row")]));
    let begun = Instant::now();
    for _ in 0..count {
        insert(&replica)?;
    }
    measured.add("Annals", ("one at a time", "us"), micros(begun.elapsed(), count));
    measured.add("Annals", ("a commit at a follower", "us"), follower(&replica, cluster, folder)?);

    let node = Node::new(replica);
    let took = many(&node, load)?;
    measured.add("Annals", ("many at a time", "/s"), per_second(took, count * load.threads));
    let others = [join(cluster, &folder.join("two"))?, join(cluster, &folder.join("three"))?];
    let others = others.map(Node::new);
    six(&[&node])?.add_to(
        measured,
        [
            ("six threads at one node", "/s"),
            ("six threads at one node, least to most", "%"),
            ("six threads at one node, longest", "ms"),
        ],
    );
    six(&[&node, &others[0], &others[1]])?.add_to(
        measured,
        [
            ("six threads at three nodes", "/s"),
            ("six threads at three nodes, least to most", "%"),
            ("six threads at three nodes, longest", "ms"),
        ],
    );
    cluster.kill(cluster.leader("journal"));
    let begun = Instant::now();
    while insert(node.replica()).is_err() {}
    measured.add(
        "Annals",
        ("a commit after the leader was killed", "s"),
        begun.elapsed().as_secs_f64(),
    );
    Ok(())
}

/// What six threads committed in a while.
struct Committed {
    /// At each node.
    counts: Vec<u64>,
    /// The longest that a thread waited for one.
    longest: Duration,
}

impl Committed {
    fn add_to(&self, measured: &mut Measured, threads: [(&'static str, &'static str); 3]) {
        let [rate, share, longest] = threads;
        let (least, most) = (self.counts.iter().min(), self.counts.iter().max());
        let total = self.counts.iter().sum();
        measured.add("Annals", rate, per_second(LASTING, total));
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
        let share_of_least = least.zip(most).map_or(0.0, |(least, most)| percent(*least, *most));
        measured.add("Annals", share, share_of_least);
        measured.add("Annals", longest, self.longest.as_secs_f64() * 1e3);
    }
}

/// Commits on six threads, which share some nodes; each of these is followed, too.
fn six(nodes: &[&Node]) -> Result<Committed, Failure> {
    let ends = AtomicBool::new(false);
    let commit = |node: &Node| {
        let (mut count, mut longest) = (0, Duration::ZERO);
        while !ends.load(Ordering::Relaxed) {
            let begun = Instant::now();
            node.commit(|mut tx| {
                tx.insert(ITEM, &[ValueRef::Bytes(b"row")])?;
                Ok::<_, Error>(((), tx))
            })?;
            count += 1;
            longest = longest.max(begun.elapsed());
        }
        Ok::<_, Error>((count, longest))
    };
    thread::scope(|scope| {
        for node in nodes {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    // The transactions say what is wrong.
                    let _ = node.replica().pull_for(Duration::from_millis(200));
                }
            });
        }
        let threads: Vec<_> = (0..6)
            .map(|number| number % nodes.len())
            .map(|place| (place, scope.spawn(move || commit(nodes[place]))))
            .collect();
        thread::sleep(LASTING);
        ends.store(true, Ordering::Relaxed);
        let mut all = Committed { counts: vec![0; nodes.len()], longest: Duration::ZERO };
        for (place, thread) in threads {
            let joined = thread.join().map_err(|_| Failure::from("a thread panicked"))?;
            let (count, longest) = joined?;
            all.counts[place] += count;
            all.longest = all.longest.max(longest);
        }
        Ok(all)
    })
}

/// Commits on many threads.
fn many(node: &Node, load: &Load) -> Result<Duration, Failure> {
    let begun = Instant::now();
    thread::scope(|scope| {
        let commit = || {
            for _ in 0..load.transactions {
                node.commit(|mut tx| {
                    tx.set_level(Level::Checksummed);
                    Ok::<_, Error>((tx.insert(ITEM, &[ValueRef::Bytes(b"row")])?, tx))
                })?;
            }
            Ok::<_, Error>(())
        };
        let threads: Vec<_> = (0..load.threads).map(|_| scope.spawn(commit)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| Failure::from("a thread panicked"))?.map_err(Failure::from)
        })
    })?;
    Ok(begun.elapsed())
}

/// Returns the median time from the end of a commit until a follower shows it, in microseconds.
fn follower(replica: &Replica, cluster: &Cluster, folder: &Path) -> Result<f64, Failure> {
    let following = join(cluster, &folder.join("follower"))?;
    let mut took = Vec::new();
    for _ in 0..100 {
        let seen = thread::scope(|scope| {
            let pulling =
                scope.spawn(|| following.pull_for(Duration::from_secs(10)).map(|_| Instant::now()));
            // So that it waits.
            thread::sleep(Duration::from_millis(5));
            replica.transaction(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"row")]))?;
            let committed = Instant::now();
            let shown = pulling.join().map_err(|_| Failure::from("a follower panicked"))??;
            Ok::<_, Failure>(shown.saturating_duration_since(committed))
        })?;
        took.push(seen);
    }
    took.sort_unstable();
    Ok(took.get(took.len() / 2).map_or(0.0, |median| median.as_secs_f64() * 1e6))
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn micros(took: Duration, count: u64) -> f64 {
    took.as_secs_f64() * 1e6 / count.max(1) as f64
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn per_second(took: Duration, count: u64) -> f64 {
    count as f64 / took.as_secs_f64()
}
