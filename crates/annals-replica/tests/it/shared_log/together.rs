//! Several nodes that write at the same time: none waits for long, none is left behind, and together they aren't slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use annals::{Error, Result, ValueRef};
use annals_replica::shared_log::Log;
use annals_replica::shared_log::jetstream::JetStream;
use annals_replica::shared_log::testing::Cluster;
use annals_replica::{Node, SharedLog};
use annals_storage::{Clock as _, SystemClock};

use super::simulated::{Faults, Simulated};
use super::{ITEM, Member, create};

/// The longest that a transaction may take, on a machine that is busy with other tests, too.
const STALL: Duration = Duration::from_secs(5);

/// A node that is followed on a thread of its own, as a server does.
struct Followed {
    node: Node,
    log: Arc<SharedLog>,
}

impl Followed {
    fn join(log: Arc<dyn Log>) -> Result<Self> {
        let member = Member::join(log)?;
        Ok(Self { node: Node::new(member.replica), log: member.log })
    }
}

/// What writers did.
struct Written {
    /// The transactions of each.
    counts: Vec<u64>,
    longest: Duration,
}

impl Written {
    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Lets so many threads write at each node for a while.
fn write(nodes: &[Followed], threads: usize, lasting: Duration, text: &str) -> Written {
    let (ends, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let work = |node: &Node| {
        let mut count = 0;
        while !ends.load(Ordering::SeqCst) {
            let (begun, text) = (SystemClock.elapsed(), text.to_owned());
            let done = node.commit(move |mut tx| {
                tx.insert(ITEM, &[ValueRef::Int64(1), ValueRef::String(&text)])?;
                Ok::<_, Error>(((), tx))
            });
            done.expect("a transaction");
            let took = SystemClock.elapsed().saturating_sub(begun).as_millis();
            longest.fetch_max(u64::try_from(took).expect("not that long"), Ordering::SeqCst);
            count += 1;
        }
        count
    };
    let counts = std::thread::scope(|scope| {
        for it in nodes {
            scope.spawn(|| {
                while !ends.load(Ordering::SeqCst) {
                    it.node.replica().pull_for(Duration::from_millis(500)).expect("a pull");
                }
            });
        }
        let writers: Vec<_> = nodes
            .iter()
            .flat_map(|it| (0..threads).map(move |_| it))
            .map(|it| scope.spawn(|| work(&it.node)))
            .collect();
        SystemClock.pause(lasting);
        ends.store(true, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
    });
    Written { counts, longest: Duration::from_millis(longest.into_inner()) }
}

/// Makes the table, without the unique index, which the rows of a measurement would break; all nodes have it then.
fn prepare<'n>(node: &Followed, others: impl IntoIterator<Item = &'n Followed>) {
    let replica = node.node.replica();
    replica.transaction(create).expect("the schema");
    let drop_index = annals::Command::DropIndex { index: annals::IndexNumber(0) };
    replica.transaction(|tx| tx.apply_command(&drop_index)).expect("no index");
    for other in others {
        other.node.replica().pull().expect("the schema");
    }
}

fn check(written: &Written, what: &str) {
    let Written { counts, longest } = written;
    let (least, most) = (counts.iter().min().expect("one"), counts.iter().max().expect("one"));
    assert!(*longest < STALL, "{what}: a transaction took {longest:?}: {counts:?}");
    assert!(least * 4 >= *most, "{what}: somebody was left behind: {counts:?}");
}

/// Compares six writers on three nodes with six on one, and with two on one: an append carries transactions of one node. Returns how
/// many transactions each made.
fn compare(join: &dyn Fn() -> Followed, lasting: Duration) -> [u64; 3] {
    let nodes = [join(), join(), join()];
    prepare(&nodes[0], &nodes[1..]);
    let alone = write(&nodes[..1], 6, lasting, "row");
    let pair = write(&nodes[..1], 2, lasting, "row");
    let together = write(&nodes, 2, lasting, "row");
    check(&together, "six writers on three nodes");
    for it in &nodes {
        it.node.replica().pull().expect("a pull");
        let len = it.node.replica().read().table(ITEM).expect("the table").len();
        let all = alone.total() + pair.total() + together.total();
        assert_eq!(len, 1 + all, "each is there once");
    }
    [together, alone, pair].map(|written| written.total())
}

#[test]
fn three_nodes_of_a_log_write_at_once() {
    let log = Simulated::new(1, Faults::default());
    log.set_round_trip(Duration::from_millis(3));
    let join = || Followed::join(Arc::new(log.clone())).expect("a node");
    let [together, alone, pair] = compare(&join, Duration::from_secs(2));
    assert!(together * 4 > alone && together * 2 > pair, "{together} {alone} {pair}");
}

#[test]
fn large_transactions_of_several_nodes_leave_nothing_behind() {
    let log = Simulated::new(2, Faults::default());
    log.set_round_trip(Duration::from_millis(1));
    let join = || Followed::join(Arc::new(log.clone())).expect("a node");
    let nodes = [join(), join(), join()];
    prepare(&nodes[0], &nodes[1..]);
    let before = log.messages().len();
    let written = write(&nodes, 1, Duration::from_secs(2), &"x".repeat(30 << 10));
    check(&written, "large transactions");
    for it in &nodes {
        let counts = it.log.counts();
        assert_eq!(counts.void, 0, "{:?}", counts.reasons);
    }
    let (messages, parts) = ((log.messages().len() - before) as u64, 8);
    assert!(messages <= 3 * parts * written.total(), "{messages} for {}", written.total());
}

#[test]
fn a_long_transaction_has_its_turn_among_short_ones() {
    let log = Simulated::new(3, Faults::default());
    log.set_round_trip(Duration::from_millis(1));
    let join = || Followed::join(Arc::new(log.clone())).expect("a node");
    let (short, long) = ([join(), join()], join());
    prepare(&long, &short);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| write(&short, 2, Duration::from_secs(3), "row"));
        SystemClock.pause(Duration::from_millis(500));
        let begun = SystemClock.elapsed();
        let done = long.node.commit(|mut tx| {
            tx.insert(ITEM, &[ValueRef::Int64(1), ValueRef::String("long")])?;
            SystemClock.pause(Duration::from_millis(60));
            Ok::<_, Error>(((), tx))
        });
        done.expect("a transaction");
        let took = SystemClock.elapsed().saturating_sub(begun);
        check(&writing.join().expect("no panic"), "the short ones");
        assert!(took < Duration::from_secs(2), "{took:?}");
    });
}

#[test]
fn three_nodes_of_a_stream_write_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = match Cluster::start_direct(folder.path(), "\"always\"") {
        Ok(cluster) => cluster,
        Err(needs) => return annals_untested::untested(needs),
    };
    let stream =
        || Arc::new(JetStream::new(&cluster.url("orders"), cluster.access()).expect("a URL"));
    stream().create(3).expect("a stream");
    let join = || Followed::join(stream()).expect("a node");
    let [together, _, pair] = compare(&join, Duration::from_secs(3));
    // More than half on a machine without much to do; here other tests run, too.
    assert!(together * 4 > pair, "{together} {pair}");
}
