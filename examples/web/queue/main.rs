//! A queue of jobs over HTTP, with priorities, leases, attempts, and the history of each job.
//!
//! Run `cargo run --release -p annals-examples-web --example queue` for a demonstration, or serve a file with
//! `cargo run --release -p annals-examples-web --example queue -- jobs.annals 127.0.0.1:8080`.

#![allow(clippy::print_stdout, reason = "a program that shows what it does")]
#![allow(clippy::disallowed_methods, reason = "leases need the time")]

mod client;
mod http;
mod jobs;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::net::TcpListener;

annals::schema!(mod db = "queue/queue.schema");

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const JOBS: u64 = 200;
const CLIENTS: u64 = 4;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [file, address] => {
            let listener = TcpListener::bind(address).await?;
            serve(Path::new(file), listener).await
        }
        [] => {
            let folder = tempfile::tempdir()?;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let server = listener.local_addr()?;
            let file = folder.path().join("queue.annals");
            let serving = tokio::spawn(async move { serve(&file, listener).await });
            tokio::task::spawn_blocking(move || demonstrate(server)).await??;
            serving.abort();
            Ok(())
        }
        _ => Err("usage: queue [FILE ADDRESS]".into()),
    }
}

async fn serve(file: &Path, listener: TcpListener) -> Result<()> {
    let queue = jobs::Queue::new(db::Database::open(file)?);
    Ok(axum::serve(listener, http::router(queue)).await?)
}

/// Clients add jobs, and work on them until none is left.
fn demonstrate(server: SocketAddr) -> Result<()> {
    let start = Instant::now();
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|client| scope.spawn(move || work(server, client))).collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client panicked"))
    })?;
    println!("{JOBS} jobs by {CLIENTS} clients in {:?}", start.elapsed());
    println!("{}", get(server, "/stats")?);
    println!("what happened to job 7:");
    for version in get(server, "/jobs/7/history")?.as_array().into_iter().flatten() {
        println!("  {version}");
    }
    Ok(())
}

fn work(server: SocketAddr, client: u64) -> Result<()> {
    for number in 0..JOBS / CLIENTS {
        let job =
            json!({ "priority": number % 3, "payload": { "to": format!("customer {number}") } });
        post(server, "/jobs", &job)?;
    }
    let me = json!({ "worker": format!("client {client}"), "lease_ms": 30_000 });
    loop {
        let job = post(server, "/claim", &me)?;
        let (Some(id), attempt) = (job["id"].as_u64(), &job["attempt"]) else { return Ok(()) };
        if id % 10 == 7 && attempt == 1 {
            let outcome = json!({ "attempt": attempt, "reason": "the printer is out of paper" });
            post(server, &format!("/jobs/{id}/fail"), &outcome)?;
        } else {
            post(server, &format!("/jobs/{id}/finish"), &json!({ "attempt": attempt }))?;
        }
    }
}

fn post(server: SocketAddr, path: &str, body: &Value) -> Result<Value> {
    match client::request(server, "POST", path, body)? {
        (200, answer) => Ok(answer),
        (status, answer) => Err(format!("POST {path}: {status} {answer}").into()),
    }
}

fn get(server: SocketAddr, path: &str) -> Result<Value> {
    Ok(client::request(server, "GET", path, &Value::Null)?.1)
}
