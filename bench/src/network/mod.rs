//! A server and its replicas over loopback, beside the bare socket.
//!
//! The raw figures are of the same machine in the same turn: bytes through a TCP connection, and the round trip of an
//! echo. A pull fetches, verifies, applies and writes a journal. Transactions of replicas are flushed by the server.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

mod bytes;
mod clients;
mod idle;

use std::path::Path;
use std::sync::Arc;
use std::thread;

use annals::{Abort, Database, TableNumber};
use annals_replica::Http;
use annals_server::Server;
use tokio::sync::oneshot;

use crate::engines::Failure;
use crate::figures::{Figure, Measured};

annals::schema!("network.schema");

const ITEM: TableNumber = TableNumber(0);

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
    /// Subscribers that wait for news.
    #[arg(long, default_value_t = 1000)]
    subscribers: u64,
    /// Only one part.
    #[arg(long)]
    only: Option<Only>,
}

/// A part of it.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    Bytes,
    Clients,
    Idle,
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
        let is_wanted = |part| load.only.is_none_or(|only| only == part);
        if is_wanted(Only::Bytes) {
            bytes::measure(load, folder.path(), &mut measured)?;
        }
        if is_wanted(Only::Clients) {
            clients::measure(load, folder.path(), &mut measured)?;
        }
        if is_wanted(Only::Idle) {
            idle::measure(load, folder.path(), &mut measured)?;
        }
    }
    Ok(measured.medians())
}

fn create(path: &Path) -> Result<Database, Failure> {
    Ok((*network::Database::open(path)?).clone())
}
