//! What the explorer asks for beside rows and history: deleted rows, what differs between moments, the log of a table.

use annals::{Command, Database, FieldNumber, RowId, TableNumber, Type, ValueRef};
use annals_server::Server;
use serde_json::{Value, json};

use crate::running::Running;

const LONG: TableNumber = TableNumber(0);
const SHORT: TableNumber = TableNumber(1);
/// It has no history index.
const PLAIN: TableNumber = TableNumber(2);
const ROWS: u64 = 300;
/// These rows are deleted, ten in a transaction, from the third one on.
const DELETED: std::ops::Range<u64> = 20..270;

fn database() -> Database {
    let database = Database::in_memory().unwrap();
    let insert = |tx: &mut annals::Transaction<'_>, table, text: &str| {
        tx.insert(table, &[ValueRef::String(text)]).map(drop)
    };
    let made = database.write(|tx| {
        for (table, name) in [(LONG, "long"), (SHORT, "short"), (PLAIN, "plain")] {
            tx.apply_command(&Command::CreateTable { name: name.to_owned() })?;
            let (name, ty) = ("text".to_owned(), Type::String);
            tx.apply_command(&Command::AddField {
                table,
                name,
                ty,
                nullable: false,
                default: None,
            })?;
        }
        tx.apply_command(&Command::SetHistoryIndex { table: PLAIN, indexed: false })?;
        (0..ROWS).try_for_each(|id| insert(tx, LONG, &format!("row {id}")))
    });
    made.unwrap();
    database.write(|tx| insert(tx, SHORT, "row of the short one")).unwrap();
    for first in DELETED.step_by(10) {
        database
            .write(|tx| (first..first + 10).try_for_each(|id| tx.delete(LONG, RowId(id))))
            .unwrap();
    }
    let text = |text| ValueRef::String(text);
    database.write(|tx| tx.update(SHORT, RowId(0), FieldNumber(0), text("changed"))).unwrap();
    // It leaves nothing changed.
    database
        .write(|tx| {
            tx.update(SHORT, RowId(0), FieldNumber(0), text("other"))?;
            tx.update(SHORT, RowId(0), FieldNumber(0), text("changed"))?;
            tx.update(LONG, RowId(0), FieldNumber(0), text("row 0, changed"))
        })
        .unwrap();
    // A row of a short life, after all that.
    database.write(|tx| insert(tx, LONG, "row 300")).unwrap();
    database.write(|tx| tx.delete(LONG, RowId(ROWS))).unwrap();
    database
}

/// A server with that database.
struct Explored(Running);

impl Explored {
    fn start() -> Self {
        Self(Running::start(Server::new().database("a", database()).unwrap().open_to_all()))
    }

    fn get(&self, rest: &str) -> Value {
        let answer = reqwest::blocking::get(format!("{}{rest}", self.0.of("a"))).unwrap();
        serde_json::from_str(&answer.text().unwrap()).unwrap()
    }

    /// Searches to the end; returns the ids in the order of the answers, and when each was deleted.
    fn search(&self, rest: &str) -> Vec<(u64, Option<u64>)> {
        let (mut found, mut place) = (Vec::new(), String::new());
        loop {
            let answer = self.get(&format!("/search?text=row&{rest}{place}"));
            let hits = answer["found"].as_array().unwrap();
            assert!(hits.len() <= 100);
            found.extend(hits.iter().filter(|hit| hit["table"] == "long").map(|hit| {
                let id = hit["id"].as_u64().unwrap();
                assert_eq!(
                    hit["row"]["text"].as_str().unwrap().split(',').next(),
                    Some(&*format!("row {id}"))
                );
                (id, hit["deleted"]["txid"].as_u64())
            }));
            let next = &answer["next"];
            if next.is_null() {
                return found;
            }
            place = format!("&table={}&from={}", next["table"].as_str().unwrap(), next["id"]);
        }
    }
}

#[test]
fn deleted_rows_are_found_with_their_last_values() {
    let explored = Explored::start();
    let deleted_by = |id: u64| DELETED.contains(&id).then(|| 3 + (id - DELETED.start) / 10);
    let all: Vec<_> = (0..ROWS).map(|id| (id, deleted_by(id))).collect();
    let last = (ROWS, Some(31));
    assert_eq!(explored.search("deleted=true"), [&all[..], &[last]].concat());
    let there: Vec<_> = all.iter().filter(|(_, by)| by.is_none()).copied().collect();
    assert_eq!(explored.search(""), there);
    assert_eq!(explored.get("/search?text=nothing&deleted=true")["left_out"], json!(["plain"]));
    assert_eq!(explored.get("/search?text=nothing")["left_out"], json!([]));
    // As of a moment: what is deleted later is there, and what is inserted and deleted later is neither.
    let then = |txid: u64| all.iter().map(move |(id, by)| (*id, by.filter(|by| *by <= txid)));
    for txid in [2, 4, 27] {
        let found = explored.search(&format!("deleted=true&at=txid:{txid}"));
        assert_eq!(found, then(txid).collect::<Vec<_>>(), "transaction {txid}");
    }
}

#[test]
fn the_log_of_a_table_is_a_part_of_the_log() {
    let explored = Explored::start();
    let log = |rest: &str| {
        let (mut found, mut upto) = (Vec::new(), String::new());
        loop {
            let answer = explored.get(&format!("{rest}{upto}"));
            let page = answer["transactions"].as_array().unwrap().clone();
            found.extend(page.iter().map(|it| it["txid"].as_u64().unwrap()));
            assert!(
                page.iter()
                    .flat_map(|it| it["changes"].as_array().unwrap())
                    .all(|it| rest.contains(it["table"].as_str().unwrap()))
            );
            let Some(next) = answer["next"].as_u64() else { return found };
            upto = format!("&upto={next}");
        }
    };
    let of_long: Vec<u64> = [31, 30, 29].into_iter().chain((3..=27).rev()).chain([1]).collect();
    for limit in [1, 7, 50] {
        assert_eq!(log(&format!("/t/long/log?limit={limit}")), of_long, "{limit} at once");
        assert_eq!(log(&format!("/t/short/log?limit={limit}")), [28, 2], "{limit} at once");
    }
    assert_eq!(log("/t/long/log?after=20&limit=2"), [31, 30, 29, 27, 26, 25, 24, 23, 22, 21]);
    let part = explored.get("/t/long/log?upto=1&rows=7");
    assert_eq!(
        (&part["transactions"][0]["left_out"], &part["next"]),
        (&json!(ROWS - 7), &json!(null))
    );
    assert_eq!(part["transactions"][0]["changes"].as_array().unwrap().len(), 7);
    assert_eq!(explored.get("/t/nothing/log")["error"], "not_found");
    assert_eq!(explored.get("/t/long/log?limit=0")["error"], "bad_request");
}

#[test]
fn a_comparison_counts_the_rows_of_each_table() {
    let explored = Explored::start();
    let compared = explored.get("/compare?from=txid:2&to=txid:29&table=long&limit=3");
    assert_eq!(compared["tables"], json!({ "long": 251, "short": 1 }));
    let ids: Vec<_> =
        compared["rows"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, [0, 20, 21]);
    // From a place on, the rest.
    let rest = explored.get("/compare?from=txid:2&to=txid:29&table=long&start=long/30");
    assert_eq!(rest["tables"], json!({ "long": 240, "short": 1 }));
    assert_eq!((&rest["rows"][0]["id"], &rest["next"]), (&json!(30), &json!(null)));
    for wrong in ["long", "long/x", "x/1"] {
        let answer = explored.get(&format!("/compare?from=txid:2&to=txid:29&start={wrong}"));
        assert!(answer["message"].is_string(), "{answer}");
    }
    let back = explored.get("/compare?from=txid:29&to=txid:2&table=short");
    assert_eq!(back["rows"][0]["before"], json!({ "text": "changed" }));
    assert_eq!(
        explored.get("/compare?from=txid:9&to=txid:9"),
        json!({ "tables": {}, "rows": [], "next": null })
    );
}

/// Returns an answer as it is.
fn text(explored: &Explored, rest: &str) -> (u16, String) {
    let answer = reqwest::blocking::get(format!("{}{rest}", explored.0.of("a"))).unwrap();
    (answer.status().as_u16(), answer.text().unwrap())
}

#[test]
fn differences_are_all_or_an_error() {
    let explored = Explored::start();
    let all: Value =
        serde_json::from_str(&text(&explored, "/diff?from=txid:1&to=txid:29").1).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 252);
    let none = text(&explored, "/diff?from=txid:9&to=txid:9");
    assert_eq!((none.0, none.1.trim()), (200, "[]"));
    for (limit, status) in [(251, 422), (252, 200), (1_000_000, 200)] {
        let found = text(&explored, &format!("/diff?from=txid:1&to=txid:29&limit={limit}"));
        assert_eq!(found.0, status, "{limit}");
        assert!(status != 200 || serde_json::from_str::<Value>(&found.1).unwrap() == all);
    }
}

#[test]
fn all_rows_are_a_file() {
    let explored = Explored::start();
    for at in ["", "&at=txid:9", "&at=txid:9&as_it_was=true"] {
        let page = explored.get(&format!("/t/long?limit=10000{at}"));
        let rows = page["rows"].as_array().unwrap();
        let (_, lines) = text(&explored, &format!("/t/long?file=ndjson{at}"));
        let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(&lines, rows);
        let (_, csv) = text(&explored, &format!("/t/long?file=csv{at}"));
        let cell = |row: &Value| match row["text"].as_str().unwrap() {
            text if text.contains(',') => format!("\"{text}\""),
            text => text.to_owned(),
        };
        let expected: String =
            rows.iter().map(|row| format!("{},{}\n", row["id"], cell(row))).collect();
        assert_eq!(csv, format!("id,text\n{expected}"));
    }
    assert_eq!(text(&explored, "/t/short?file=csv&at=txid:1").1, "id,text\n");
    for (wrong, status) in
        [("/t/long?file=csv&limit=3", 400), ("/t/long?file=xml", 400), ("/t/x?file=csv", 404)]
    {
        assert_eq!(text(&explored, wrong).0, status, "{wrong}");
    }
}
