//! What messages say to those who ask: nothing of where the files are.

use std::path::Path;

use annals::{Database, Options};
use annals_server::Server;
use serde_json::Value;

use crate::bounded::define;
use crate::running::Running;

/// Returns the statuses and messages of requests that fail.
fn messages(running: &Running) -> Vec<(String, u16, String)> {
    let client = reqwest::blocking::Client::new();
    let url = running.of("library");
    let paths = [
        "/at?moment=txid:99",
        "/at?moment=comment:none",
        "/t/a?at=txid:99",
        "/t/a/0?at=txid:99",
        "/t/a/0?at=txid:2&as_it_was=true",
        "/t/a/0/history",
        "/t/a/0/blame",
        "/diff?from=txid:98&to=txid:99",
        "/compare?from=txid:1&to=txid:99",
        "/log?limit=10000",
        "/log?after=1&fields=changed",
        "/changes?after=99",
        "/frames?after=99:00c0ffee00c0ffee",
        "/segments/7",
        "/image/77",
    ];
    let mut asked: Vec<_> =
        paths.map(|path| (path.to_owned(), client.get(format!("{url}{path}")))).into();
    for sql in ["SELECT * FROM a_at(99)", "SELECT * FROM a_history", "SELECT * FROM annals_changes"]
    {
        let body = serde_json::json!({ "sql": sql }).to_string();
        let request = client.post(format!("{url}/sql")).header("Content-Type", "application/json");
        asked.push((sql.to_owned(), request.body(body)));
    }
    let answered = asked.into_iter().filter_map(|(what, request)| {
        let answer = request.send().unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().unwrap_or_default();
        let refusal: Value = serde_json::from_str(&text).ok()?;
        Some((what, status, refusal["message"].as_str()?.to_owned()))
    });
    answered.collect()
}

fn open(path: &Path) -> Database {
    Options::new().open(path).unwrap()
}

#[test]
fn messages_do_not_say_where_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    let database = open(&path);
    database.write(define).unwrap();
    let text = "x".repeat(300_000);
    for _ in 0..20 {
        let insert = |tx: &mut annals::Transaction<'_>| {
            tx.insert(crate::bounded::TABLE, &[annals::ValueRef::String(&text)]).map(drop)
        };
        database.write(insert).unwrap();
    }
    let server = Server::new().database("library", database).unwrap();
    let running = Running::start(server.file("library", &path).unwrap().open_to_all());
    let mut all = messages(&running);
    // The history is damaged under the server.
    let mut bytes = std::fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..half + 100].fill(7);
    std::fs::write(&path, bytes).unwrap();
    let damaged = messages(&running);
    assert!(damaged.iter().any(|(_, status, _)| *status == 500), "{damaged:?}");
    all.extend(damaged);
    assert!(all.len() > 15, "{all:?}");
    let named = all.iter().filter(|(_, _, message)| message.contains("library.annals")).count();
    assert!(named > 3, "those that are about the file name it: {all:?}");
    let here = folder.path().to_str().unwrap();
    for (what, _, message) in all {
        assert!(!message.contains(here), "{what}: {message}");
    }
}
