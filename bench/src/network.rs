//! A server and its replicas over loopback, beside the bare socket.
//!
//! The raw figures are of the same machine in the same turn: bytes through a TCP connection, and the round trip of an
//! echo. A pull fetches, verifies, applies and writes a journal. Transactions of replicas are flushed by the server.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use annals::{Abort, Database, Level, TableNumber, ValueRef};
use annals_replica::{Connection as _, Http, Replica};
use annals_server::Server;
use annals_storage::{Directory as _, MemoryDirectory, Spool};
use tokio::sync::oneshot;

use crate::engines::Failure;
use crate::figures::{Figure, Measured};

annals::schema!("network.schema");

const ITEM: TableNumber = TableNumber(0);
/// The length of each row's bytes.
const ROW: usize = 4000;

/// What goes through the connection.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// MiB of journal that a replica pulls.
    #[arg(long, default_value_t = 256)]
    pub(crate) mib: u64,
    /// Transactions of each client.
    #[arg(long, default_value_t = 1000)]
    pub(crate) transactions: u64,
    /// Clients that write at the same time.
    #[arg(long, default_value_t = 16)]
    clients: u64,
}

/// A server in a thread.
struct Running {
    url: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
    fn start(database: Database) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let server = Server::new().database("origin", database)?.open_to_all();
        let server = server.procedure("origin", "insert", insert)?;
        let listening = runtime.block_on(server.listen("127.0.0.1:0"))?;
        let url = format!("{}/v1/origin", listening.url());
        let (end, ended) = oneshot::channel();
        let run = move || drop(runtime.block_on(listening.run(async { drop(ended.await) })));
        Ok(Self { url, end: Some(end), thread: Some(thread::spawn(run)) })
    }

    fn connect(&self) -> Result<Arc<Http>, Failure> {
        Ok(Arc::new(Http::new(&self.url, None)?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// The procedure: it inserts a row.
fn insert(tx: &mut network::Transaction<'_>, value: String) -> Result<u64, Abort> {
    Ok(tx.insert(network::item::New { value: value.as_bytes() })?.as_u64())
}

/// Runs the turns.
pub(crate) fn run(load: &Load, turns: usize) -> Result<Vec<Figure>, Failure> {
    let mut measured = Measured::default();
    for _ in 0..turns {
        let folder = tempfile::tempdir()?;
        bytes(load, folder.path(), &mut measured)?;
        transactions(load, folder.path(), &mut measured)?;
    }
    Ok(measured.medians())
}

fn create(path: &Path) -> Result<Database, Failure> {
    Ok(network::Database::open(path)?.as_dynamic().clone())
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn mib_per_second(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / f64::from(1 << 20) / took.as_secs_f64()
}

/// Measures a socket, the frames of a pull alone, and a replica that begins.
fn bytes(load: &Load, folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
    let database = create(&folder.join("bytes"))?;
    let value = vec![0x5a; ROW];
    let per_transaction = 256;
    let count = (load.mib << 20) / (ROW as u64 * per_transaction);
    for _ in 0..count {
        let mut tx = database.begin()?;
        tx.set_level(Level::Soft);
        for _ in 0..per_transaction {
            tx.insert(ITEM, &[ValueRef::Bytes(&value)])?;
        }
        tx.commit()?;
    }
    database.hard_checkpoint()?;
    let len = database.read().point().position;
    let mut add = |who, workload, took| {
        measured.add(who, (workload, "MiB/s"), mib_per_second(len, took));
    };
    add("TCP", "a journal", socket(len)?);

    let running = Running::start(database)?;
    let connection = running.connect()?;
    let (begun, mut after) = (Instant::now(), None);
    loop {
        let mut spool = Spool::new(MemoryDirectory::new().again(), "frames".to_owned(), 0);
        let pulled = connection.pull(after, Duration::ZERO, &mut spool)?;
        if after == Some(pulled.next) {
            break;
        }
        after = Some(pulled.next);
    }
    add("Annals", "a journal", begun.elapsed());
    let begun = Instant::now();
    let replica = Replica::connect(connection, folder.join("bytes-replica"))?;
    add("Annals", "a replica: verified, applied, written", begun.elapsed());
    replica.close()?;
    Ok(())
}

/// Sends bytes through a connection; returns how long that takes.
fn socket(len: u64) -> Result<Duration, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let sending = thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let piece = vec![0x5a; 256 << 10];
        let mut left = len;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(piece.len()).min(piece.len());
            stream.write_all(&piece[..count])?;
            left -= count as u64;
        }
        Ok::<_, std::io::Error>(())
    });
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    let mut piece = vec![0; 256 << 10];
    while stream.read(&mut piece)? > 0 {}
    let took = begun.elapsed();
    sending.join().map_err(|_| "the sender panicked")??;
    Ok(took)
}

/// Measures single transactions of one client and of many, and when a follower has one.
fn transactions(load: &Load, folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
    let database = create(&folder.join("transactions"))?;
    measured.add(
        "TCP",
        ("a round trip", "us"),
        micros(echo(load.transactions)?, load.transactions),
    );
    let begun = Instant::now();
    for _ in 0..load.transactions {
        database.write(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"row")]))?;
    }
    let direct = micros(begun.elapsed(), load.transactions);
    measured.add("Annals, in the process", ("a transaction", "us"), direct);

    let running = Running::start(database.clone())?;
    let one = one_client(&running, &folder.join("one"), load.transactions)?;
    measured.add("Annals", ("a transaction", "us"), micros(one, load.transactions));
    let each = load.transactions / load.clients;
    let many = at_once(load.clients, |number| {
        one_client(&running, &folder.join(format!("client-{number}")), each)
    })?;
    let slowest = many.iter().max().copied().unwrap_or_default();
    let mean = many.iter().sum::<Duration>() / u32::try_from(many.len().max(1))?;
    let count = load.transactions / load.clients * load.clients;
    measured.add("Annals", ("a transaction, of many clients", "us"), micros(slowest, count));
    let ratio = slowest.as_secs_f64() / mean.as_secs_f64();
    measured.add("Annals", ("the slowest client / the mean", "x"), ratio);
    let called = call(&running, load.transactions)?;
    measured.add("Annals", ("a call", "us"), micros(called, load.transactions));
    let many = at_once(load.clients, |_| call(&running, load.transactions))?;
    let slowest = many.iter().max().copied().unwrap_or_default();
    let called = micros(slowest, load.transactions * load.clients);
    measured.add("Annals", ("a call, of many clients", "us"), called);
    measured.add(
        "Annals",
        ("a commit at a follower", "us"),
        follower(&database, &running, folder)?,
    );
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn micros(took: Duration, count: u64) -> f64 {
    took.as_secs_f64() * 1e6 / count.max(1) as f64
}

/// Runs clients at the same time; returns how long each took.
fn at_once(
    clients: u64,
    client: impl Fn(u64) -> Result<Duration, Failure> + Sync,
) -> Result<Vec<Duration>, Failure> {
    let client = &client;
    let all = thread::scope(|scope| {
        let run = |number| scope.spawn(move || client(number).map_err(|error| error.to_string()));
        let all: Vec<_> = (0..clients).map(run).collect();
        let join = |client: thread::ScopedJoinHandle<'_, Result<Duration, String>>| {
            client.join().map_err(|_| "a client panicked".to_owned())?
        };
        all.into_iter().map(join).collect::<Result<_, String>>()
    });
    Ok(all?)
}

/// Calls the procedure.
fn call(running: &Running, count: u64) -> Result<Duration, Failure> {
    let connection = running.connect()?;
    let begun = Instant::now();
    for _ in 0..count {
        connection.call::<u64>("insert", &"row")?;
    }
    Ok(begun.elapsed())
}

fn one_client(running: &Running, path: &Path, count: u64) -> Result<Duration, Failure> {
    let replica = Replica::connect(running.connect()?, path)?;
    let begun = Instant::now();
    for _ in 0..count {
        replica.transaction(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"row")]))?;
    }
    let took = begun.elapsed();
    replica.close()?;
    Ok(took)
}

/// Measures the round trips of single bytes.
fn echo(count: u64) -> Result<Duration, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _ = stream.set_nodelay(true);
        let mut byte = [0];
        while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let begun = Instant::now();
    for _ in 0..count {
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
    }
    Ok(begun.elapsed())
}

/// Returns the median time from the end of a commit until a follower shows it, in microseconds.
fn follower(database: &Database, running: &Running, folder: &Path) -> Result<f64, Failure> {
    let replica = Replica::connect(running.connect()?, folder.join("follower"))?;
    let mut took = Vec::new();
    for _ in 0..100 {
        let seen = thread::scope(|scope| {
            let following =
                scope.spawn(|| replica.pull_for(Duration::from_secs(10)).map(|_| Instant::now()));
            // So that it waits.
            thread::sleep(Duration::from_millis(5));
            database.write(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"row")]))?;
            let committed = Instant::now();
            let shown = following.join().map_err(|_| Failure::from("a follower panicked"))??;
            Ok::<_, Failure>(shown.saturating_duration_since(committed))
        })?;
        took.push(seen);
    }
    took.sort_unstable();
    replica.close()?;
    Ok(took.get(took.len() / 2).map_or(0.0, |median| median.as_secs_f64() * 1e6))
}
