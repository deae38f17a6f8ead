//! How fast a journal is pulled, and how long reads of the replica wait meanwhile.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use annals::{Database, FieldNumber, Level, RowId, ValueRef};
use annals_replica::{Connection as _, Replica};
use annals_storage::{Directory as _, MemoryDirectory, Spool};

use super::{ITEM, Load, Running, create};
use crate::engines::Failure;
use crate::figures::Measured;

const VALUE: FieldNumber = FieldNumber(0);
/// The length of each row's bytes.
const ROW: usize = 4000;

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn mib_per_second(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / f64::from(1 << 20) / took.as_secs_f64()
}

/// Measures a socket, the frames of a pull alone, and a replica that begins.
pub(super) fn measure(load: &Load, folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
    let database = create(&folder.join("bytes"))?;
    fill(&database, load.mib)?;
    let len = database.read().point().position;
    let mut add = |who, workload, took| {
        measured.add(who, (workload, "MiB/s"), mib_per_second(len, took));
    };
    add("TCP", "a journal", socket(len)?);

    let running = Running::start(database.clone())?;
    let connection = running.connect()?;
    let mut spool = Spool::new(MemoryDirectory::new().again(), "frames".to_owned(), 0);
    let (begun, mut after) = (Instant::now(), None);
    loop {
        spool.clear();
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
    read_meanwhile(&database, load.mib, folder, measured)
}

/// Commits transactions of rows with 1 MiB together.
fn fill(database: &Database, mib: u64) -> Result<(), Failure> {
    let value = vec![0x5a; ROW];
    let per_transaction = 256;
    for _ in 0..(mib << 20) / (ROW as u64 * per_transaction) {
        let mut tx = database.begin()?;
        tx.set_level(Level::Soft);
        for _ in 0..per_transaction {
            tx.insert(ITEM, &[ValueRef::Bytes(&value)])?;
        }
        tx.commit()?;
    }
    database.hard_checkpoint()?;
    Ok(())
}

/// Measures the longest read of a replica while it pulls. Each read is followed by work of the same length that only
/// computes: its longest time is what the machine costs any thread.
fn read_meanwhile(
    database: &Database,
    mib: u64,
    folder: &Path,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let running = Running::start(database.clone())?;
    let replica = Replica::connect(running.connect()?, folder.join("read-replica"))?;
    let rows = replica.read().table(ITEM)?.len();
    fill(database, mib)?;
    let is_over = AtomicBool::new(false);
    let (mut reads, mut others) = thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let (mut reads, mut others) = (Vec::new(), Vec::new());
            let mut row = 0;
            while !is_over.load(Ordering::Relaxed) {
                row = (row * 6_364_136_223 + 1_442_695_041) % rows;
                let begun = Instant::now();
                let now = replica.read();
                let len = now.table(ITEM)?.get(RowId(row))?.read::<&[u8]>(VALUE).len();
                let read = begun.elapsed();
                let begun = Instant::now();
                while begun.elapsed() < read {
                    std::hint::black_box(len);
                }
                others.push(begun.elapsed() - read);
                reads.push(read);
            }
            Ok::<_, annals::Error>((reads, others))
        });
        let pulled = replica.pull();
        is_over.store(true, Ordering::Relaxed);
        pulled?;
        Ok::<_, Failure>(reading.join().map_err(|_| "a reader panicked")??)
    })?;
    let millis = |times: &mut Vec<Duration>, of: f64| {
        times.sort_unstable();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts are far below 2^52"
        )]
        let place = (times.len() as f64 * of) as usize;
        let time = times.get(place.min(times.len().saturating_sub(1)));
        time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    for (workload, of) in [
        ("a read meanwhile, the longest", 1.0),
        ("of 100,000 reads the longest but one", 0.99999),
        ("a read meanwhile, the median", 0.5),
    ] {
        measured.add("Annals", (workload, "ms"), millis(&mut reads, of));
        if of > 0.5 {
            measured.add("only computing", (workload, "ms"), millis(&mut others, of));
        }
    }
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
