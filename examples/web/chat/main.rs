//! A chat: a server, two replicas that write through it, and a page that follows.
//!
//! `cargo run --release -p annals-examples-web --example chat` runs a conversation and ends. With `--serve` it stays, for a browser.
#![allow(clippy::print_stdout, reason = "an example prints what it does")]
#![allow(clippy::disallowed_methods, reason = "the time of a message is the clock's")]

use std::error::Error;
use std::time::Duration;

use annals::{Timestamp, Txid};
use annals_server::Server;
use axum::response::Html;
use axum::routing::get;

annals_replica::schema!("chat/chat.schema");
use chat::{Replica, message};

type Anything = Box<dyn Error + Send + Sync>;

const LINES: [(&str, &str); 4] = [
    ("Ann", "Is the archive done?"),
    ("Bob", "Since this morning."),
    ("Ann", "And who changed the schema?"),
    ("Bob", "Ask the log: it never forgets."),
];

/// Says something: it is on the server's disk when this returns. If somebody else was first, it runs again after that.
fn say(replica: &Replica, author: &str, text: &str) -> annals::Result<u32> {
    let (_, accepted) = replica.transaction(|tx| {
        tx.insert(message::New { author, text, sent: Timestamp::now() })?;
        Ok(())
    })?;
    Ok(accepted.runs)
}

fn main() -> Result<(), Anything> {
    let folder = tempfile::tempdir()?;
    let db = chat::Database::open(folder.path().join("chat.annals"))?;
    let server = Server::new().database("chat", annals::Database::clone(&db))?.open_to_all();
    let router = server.router().route("/", get(|| async { Html(include_str!("page.html")) }));

    let runtime = tokio::runtime::Runtime::new()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let serving = runtime.spawn(async move { axum::serve(listener, router).await });
    println!("http://{address}/");

    // The page would follow by `/changes`; here a third program does, in this process.
    let feed = (*db).subscribe_from(Txid(2))?;
    let reader = std::thread::spawn(move || {
        feed.filter_map(Result::ok).take(LINES.len()).map(|it| it.rows.len()).sum::<usize>()
    });

    let url = format!("http://{address}/v1/chat");
    let connect = |name: &str| Replica::connect(&url, folder.path().join(name));
    let (ann, bob) = (connect("ann.annals")?, connect("bob.annals")?);
    for (author, text) in LINES {
        let replica = if author == "Ann" { &ann } else { &bob };
        let runs = say(replica, author, text)?;
        println!("{author}: {text} ({runs} run{})", if runs == 1 { "" } else { "s" });
    }
    ann.pull()?;
    let (theirs, ours) = (ann.read(), db.read());
    println!(
        "Ann's copy has {} messages, the server {}",
        theirs.message().len(),
        ours.message().len()
    );
    println!("{} were seen live", reader.join().map_err(|_| "the reader failed")?);

    if std::env::args().any(|argument| argument == "--serve") {
        runtime.block_on(async { tokio::signal::ctrl_c().await })?;
    }
    serving.abort();
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(db.close()?)
}
