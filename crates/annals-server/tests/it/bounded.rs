//! Answers that would take memory in proportion to the data: they end, and say how to go on.

use annals::{Command, Database, FieldNumber, RowId, TableNumber, Type, ValueRef};
use annals_server::{Limits, Server};
use serde_json::{Value, json};

use crate::running::Running;

pub(super) const TABLE: TableNumber = TableNumber(0);
/// An answer ends after about so many bytes, and the row that passes them.
const ANSWER: usize = 10 << 20;

/// Creates a table of texts, `a`.
pub(super) fn define(tx: &mut annals::Transaction<'_>) -> annals::Result<()> {
    tx.apply_command(&Command::CreateTable { name: "a".to_owned() })?;
    tx.apply_command(&Command::AddField {
        table: TABLE,
        name: "t".to_owned(),
        ty: Type::String,
        nullable: false,
        default: None,
    })
}

/// Creates a row with so many versions, each a text of so many bytes and a number.
pub(super) fn database(versions: u64, bytes: usize) -> Database {
    let database = Database::in_memory().unwrap();
    database
        .write(|tx| {
            define(tx)?;
            tx.insert(TABLE, &[ValueRef::String("x")]).map(drop)
        })
        .unwrap();
    for version in 0..versions {
        let text = format!("{version}{}", "y".repeat(bytes));
        let text = ValueRef::String(&text);
        database.write(|tx| tx.update(TABLE, RowId(0), FieldNumber(0), text)).unwrap();
    }
    database
}

fn get(url: &str) -> (u16, String) {
    let answer = reqwest::blocking::get(url).unwrap();
    (answer.status().as_u16(), answer.text().unwrap())
}

#[test]
fn a_long_history_comes_in_parts() {
    let running =
        Running::start(Server::new().database("a", database(30, 1_000_000)).unwrap().open_to_all());
    let url = format!("{}/t/a/0/history?limit=10000", running.of("a"));
    let (mut txids, mut before) = (Vec::new(), String::new());
    loop {
        let (status, text) = get(&format!("{url}{before}"));
        assert!(status == 200 && text.len() < ANSWER, "{status}: {} bytes", text.len());
        let versions: Vec<Value> = serde_json::from_str(&text).unwrap();
        let mut part: Vec<_> = versions.iter().map(|it| it["txid"].as_u64().unwrap()).collect();
        let Some(first) = part.first() else { break };
        before = format!("&before={first}");
        part.append(&mut txids);
        txids = part;
    }
    assert_eq!(txids, (1..=31).collect::<Vec<_>>(), "all, in order, each once");
    let (status, text) = get(&format!("{}/t/a/9/history", running.of("a")));
    assert_eq!(status, 404, "{text}");
}

#[test]
fn what_needs_more_memory_than_there_is_for_one_is_refused() {
    // Those who read have three eighths of it.
    let limits = Limits { memory: 6 << 20, ..Limits::default() };
    let server =
        Server::new().database("a", database(8, 1_000_000)).unwrap().open_to_all().limits(limits);
    let running = Running::start(server);
    for path in ["/t/a/0/history", "/log?after=1"] {
        let (status, text) = get(&format!("{}{path}", running.of("a")));
        let refusal: Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(
            (status, &refusal["error"]),
            (422, &json!("memory_limit")),
            "{path}: {text:.200}"
        );
        assert!(refusal["message"].as_str().unwrap().contains("--memory"), "{refusal}");
    }
    // What asks for less is answered, and nothing is held any more.
    for path in ["/t/a/0/history?limit=1", "/t/a/0", "/log?limit=1"] {
        for _ in 0..5 {
            let (status, text) = get(&format!("{}{path}", running.of("a")));
            assert_eq!(status, 200, "{path}: {text:.200}");
        }
    }
}
