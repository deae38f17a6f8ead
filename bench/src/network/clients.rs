//! Transactions of one client and of many, and when a follower has one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use annals::{Database, ValueRef};
use annals_replica::Replica;

use super::{ITEM, Load, Running, create};
use crate::engines::Failure;
use crate::figures::Measured;

/// Measures single transactions of one client and of many, and when a follower has one.
pub(super) fn measure(load: &Load, folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
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
    let many = at_once(load.clients, |number| {
        one_client(&running, &folder.join(format!("client-{number}")), load.transactions)
    })?;
    let slowest = many.iter().max().copied().unwrap_or_default();
    let mean = many.iter().sum::<Duration>() / u32::try_from(many.len().max(1))?;
    let count = load.transactions * load.clients;
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
