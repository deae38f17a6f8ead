//! Four years of the world's runways in the browser: builds the history of the airports, and opens the explorer on it.
//!
//! `cargo run --release -p annals-examples-web --example explore [--no-open]`; Ctrl-C ends it. With `--once` it ends when the page answers.
#![allow(clippy::print_stdout, reason = "an example prints what it does")]

#[path = "../../airports/load.rs"]
mod load;
#[path = "../../airports/source.rs"]
mod source;
#[path = "../../airports/tables.rs"]
#[allow(dead_code, reason = "the example that it belongs to compares rows, too")]
mod tables;

use std::error::Error;
use std::process::Command;

use annals_server::{NewToken, Role, Server};

annals::schema!("../airports/airports.schema");

/// Any error: of the database, of the data, of the disk.
type Anything = Box<dyn Error + Send + Sync>;

const FIRST_DAY: &str = "2021-11-02";

fn main() -> Result<(), Anything> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("airports.annals");
    let db = airports::Database::open(&path)?;
    load::first_day(&db)?;
    load::changes(&db)?;

    let new = NewToken::random(Role::Write, None);
    let server = Server::new().database("airports", annals::Database::clone(&db))?;
    let server = server.file("airports", &path)?.session(new.stored);
    let runtime = tokio::runtime::Runtime::new()?;
    let listening = runtime.block_on(server.listen("127.0.0.1:0"))?;
    let link = format!("{}/explore/airports?token={}", listening.url(), new.token);
    println!("{link}");
    let has = |option: &str| std::env::args().any(|argument| argument == option);
    if has("--once") {
        return Ok(db.close()?);
    }
    if !has("--no-open") && Command::new("xdg-open").arg(&link).spawn().is_err() {
        println!("open the link above");
    }
    runtime.block_on(listening.run(async { drop(tokio::signal::ctrl_c().await) }))?;
    Ok(db.close()?)
}
