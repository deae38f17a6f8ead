//! Questions to a lazy replica, over a link of a given rate: how long each takes, how much it fetches of the database,
//! and in how many requests. Each is the first question of a replica that has nothing yet: its opening is included.
//!
//! The link is a proxy on loopback. Its rate is measured, too.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use annals::Options;
use annals_replica::lazy::testing::{QUESTIONS, create};
use annals_replica::{Fetching, Http, Lazy, Ranges as _};
use annals_server::Server;
use tokio::sync::oneshot;

use crate::engines::Failure;
use crate::figures::{Figure, Measured};

/// How many bytes of journal and image a row of the database takes, about.
const ROW: u64 = 226;
/// How much is fetched to measure the link.
const PROBE: u64 = 64 << 20;

/// The database and the link.
#[derive(clap::Args)]
pub(crate) struct Link {
    /// MiB of the database: its journal and its image.
    #[arg(long, default_value_t = 1024)]
    pub(crate) mib: u64,
    /// MB a second of the link.
    #[arg(long, default_value_t = 50)]
    pub(crate) rate: u64,
    /// Milliseconds that each request is held back.
    #[arg(long, default_value_t = 0)]
    delay: u64,
}

/// Runs the turns.
pub(crate) fn run(link: &Link, turns: usize) -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.annals");
    let database = create(&path, (link.mib << 20) / ROW);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = Server::new().database("a", database)?.open_to_all();
    let listening = runtime.block_on(server.listen("127.0.0.1:0"))?;
    let address = throttle(listening.address(), link)?;
    let (end, ended) = oneshot::channel::<()>();
    let running = thread::spawn(move || {
        drop(runtime.block_on(listening.run(async { drop(ended.await) })));
    });
    let url = format!("http://{address}/v1/a");
    let mut measured = Measured::default();
    let asked = (0..turns).try_for_each(|_| ask(&url, &mut measured));
    drop(end);
    running.join().map_err(|_| "the server panicked")?;
    asked.map(|()| measured.medians())
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn ask(url: &str, measured: &mut Measured) -> Result<(), Failure> {
    let server = Arc::new(Http::new(url, None)?);
    let newest = server.look()?.newest;
    let (begun, len) = (Instant::now(), PROBE.min(newest.len));
    server.read(&newest, 0..len)?;
    let rate = len as f64 / 1e6 / begun.elapsed().as_secs_f64();
    measured.add("the link", ("a range of the journal", "MB/s"), rate);
    for (name, ask) in QUESTIONS {
        let begun = Instant::now();
        let server = Arc::new(Http::new(url, None)?);
        let lazy = Lazy::in_memory(server, &Options::new(), Fetching::default())?;
        ask(&lazy.reader())?;
        let took = begun.elapsed();
        let fetched = lazy.fetched();
        measured.add("Annals", (name, "ms"), took.as_secs_f64() * 1e3);
        measured.add("Annals", (name, "requests"), fetched.requests as f64);
        measured.add("Annals", (name, "KiB"), fetched.bytes as f64 / 1024.0);
        let share = fetched.bytes as f64 * 100.0 / lazy.size() as f64;
        measured.add("Annals", (name, "% of the database"), share);
    }
    Ok(())
}

/// When the link is free again.
type Free = Arc<Mutex<Instant>>;

/// Starts a proxy of a server that passes on so many bytes a second, of all connections together.
fn throttle(server: SocketAddr, link: &Link) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (free, rate) = (Arc::new(Mutex::new(Instant::now())), link.rate * 1_000_000);
    let delay = Duration::from_millis(link.delay);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else { continue };
            let is_prompt = client.set_nodelay(true).and(server.set_nodelay(true));
            let copies = (client.try_clone(), server.try_clone());
            if is_prompt.is_err() {
                continue;
            }
            let (Ok(to_client), Ok(to_server)) = copies else { continue };
            thread::spawn(move || pass(client, to_server, || thread::sleep(delay)));
            let free = Arc::clone(&free);
            thread::spawn(move || pass_at(rate, server, to_client, &free));
        }
    });
    Ok(address)
}

fn pass_at(rate: u64, mut from: TcpStream, mut to: TcpStream, free: &Free) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        let until = {
            let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
            *free = (*free).max(Instant::now())
                + Duration::from_nanos(read as u64 * 1_000_000_000 / rate);
            *free
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn pass(mut from: TcpStream, mut to: TcpStream, before: impl Fn()) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        before();
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
