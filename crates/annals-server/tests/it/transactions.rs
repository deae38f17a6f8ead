//! Transactions as JSON, and procedures.

use std::sync::atomic::{AtomicU64, Ordering};

use annals::{Abort, ErrorKind};
use annals_replica::Http;
use annals_server::Server;
use reqwest::blocking::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::running::Running;

annals::schema!("tests/it/bank.schema");
use bank::{account, transfer};

#[derive(Deserialize, Serialize)]
struct Transfer {
    source: u64,
    target: u64,
    cents: i64,
}

#[derive(Debug)]
struct TooPoor;

impl std::fmt::Display for TooPoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the account hasn't so much")
    }
}

impl std::error::Error for TooPoor {}

/// Moves money; returns what is left.
fn run_transfer(tx: &mut bank::Transaction<'_>, args: Transfer) -> Result<i64, Abort> {
    let (source, target) = (account::Id::from(args.source), account::Id::from(args.target));
    let cents = args.cents;
    let left = tx.account().require(source)?.cents() - cents;
    let more = tx.account().require(target)?.cents() + cents;
    tx.edit(source)?.set_cents(left)?;
    tx.edit(target)?.set_cents(more)?;
    tx.insert(transfer::New { source, target, cents })?;
    if left < 0 { Err(TooPoor)? } else { Ok(left) }
}

fn open(path: &std::path::Path) -> bank::Database {
    bank::Database::open(path).unwrap()
}

fn serve(db: &bank::Database) -> Running {
    let server = Server::new().database("bank", annals::Database::clone(db)).unwrap();
    Running::start(server.procedure("bank", "transfer", run_transfer).unwrap().open_to_all())
}

struct Asking {
    client: Client,
    url: String,
}

impl Asking {
    fn of(running: &Running) -> Self {
        Self { client: Client::new(), url: running.of("bank") }
    }

    fn post(&self, body: &Value, key: Option<&str>) -> (u16, Value) {
        let request = self.client.post(format!("{}/transactions", self.url));
        let mut request = request.header("Content-Type", "application/json").body(body.to_string());
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let response = request.send().unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().unwrap()).unwrap())
    }

    fn get(&self, rest: &str) -> Value {
        let answer = self.client.get(format!("{}{rest}", self.url)).send().unwrap();
        serde_json::from_str(&answer.text().unwrap()).unwrap()
    }
}

fn insert(owner: &str, cents: i64) -> Value {
    json!({ "op": "insert", "table": "account", "fields": { "owner": owner, "cents": cents } })
}

#[test]
fn changes_apply_wholly_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("bank.annals"));
    let running = serve(&db);
    let asking = Asking::of(&running);
    let (status, done) = asking.post(
        &json!({
            "comment": "two accounts",
            "changes": [
                { "op": "insert", "table": "account", "as": "ada", "fields": {
                    "owner": "Ada", "cents": i64::MAX, "opened": "2024-02-29",
                    "terms": { "rate": 1.50 }, "mark": "0x00ff" } },
                insert("Bob", -5),
                { "op": "insert", "table": "transfer", "fields": { "source": "ada", "target": 1, "cents": 1 } },
                { "op": "update", "table": "account", "id": "ada", "fields": { "owner": "Ada L." } },
            ],
        }),
        None,
    );
    assert_eq!((status, &done["ids"]), (200, &json!([0, 1, 0, 0])), "{done}");
    let row = json!({ "id": 0, "owner": "Ada L.", "cents": i64::MAX, "opened": "2024-02-29",
        "terms": "{\"rate\":1.5}", "mark": "0x00ff" });
    assert_eq!(asking.get("/t/account/0"), row);
    let cursor = asking.get("");
    assert_eq!((&cursor["txid"], &cursor["chain"]), (&done["txid"], &done["chain"]));
    assert_eq!(cursor["procedures"], json!(["transfer"]));
    assert_eq!(asking.get("/t/account/0/history")[0]["comment"], "two accounts");
}

#[test]
fn a_change_names_a_row_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let running = serve(&open(&folder.path().join("bank.annals")));
    let asking = Asking::of(&running);
    let update = |id: Value| json!({ "op": "update", "table": "account", "id": id, "fields": {} });
    for (id, status, part) in [
        (json!(9), 404, "change 2: table `account` has no row 9"),
        (json!(1.5), 400, "a row's number"),
    ] {
        let body = json!({ "changes": [insert("Cy", 1), update(id)] });
        let (found, answer) = asking.post(&body, None);
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(found == status && message.contains(part), "{body}: {found} {answer}");
    }
    let body = json!({ "changes": [insert("Cy", 1), update(json!(0))] });
    assert_eq!(asking.post(&body, None).0, 200, "the row of the insert, which nothing is set of");
}

#[test]
fn wrong_changes_say_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("bank.annals"));
    let running = serve(&db);
    let asking = Asking::of(&running);
    let transfer =
        json!({ "op": "insert", "table": "transfer", "fields": { "source": 0, "target": 1 } });
    asking.post(&json!({ "changes": [insert("Ada", 1), insert("Bob", 2), transfer] }), None);
    let cursor = asking.get("");
    let wrong = [
        (json!({ "changes": [insert("Cy", 1), insert("Bob", 1)] }), 422, "Bob"),
        (
            json!({ "changes": [insert("Cy", 1), { "op": "delete", "table": "account", "id": 0 }] }),
            422,
            "transfer",
        ),
        (
            json!({ "changes": [insert("Cy", 1), { "op": "delete", "table": "account", "id": 9 }] }),
            404,
            "change 2",
        ),
        (json!({ "changes": [{ "op": "insert", "table": "acount" }] }), 404, "account"),
        (
            json!({ "changes": [{ "op": "insert", "table": "account", "fields": { "ownr": "" } }] }),
            400,
            "owner",
        ),
        (
            json!({ "changes": [{ "op": "insert", "table": "account", "fields": { "cents": 1.5 } }] }),
            400,
            "1.5",
        ),
        (
            json!({ "changes": [{ "op": "insert", "table": "account", "fields": { "mark": "ff" } }] }),
            400,
            "bytes",
        ),
        (
            json!({ "changes": [{ "op": "insert", "table": "account", "fields": { "opened": "2023-02-29" } }] }),
            400,
            "date",
        ),
        (
            json!({ "changes": [{ "op": "insert", "table": "transfer", "fields": { "source": "ada" } }] }),
            400,
            "as",
        ),
        (
            json!({ "changes": [{ "op": "insert", "table": "transfer", "fields": { "cents": 1 } }] }),
            400,
            "source",
        ),
        (
            json!({ "changes": [{ "op": "update", "table": "account", "fields": {} }] }),
            400,
            "which row",
        ),
        (json!({ "changes": [{ "op": "drop", "table": "account" }] }), 400, "insert"),
        (json!({ "change": [] }), 400, "changes"),
        (json!({}), 400, "procedure"),
        (json!([]), 400, "transaction"),
    ];
    for (body, status, part) in wrong {
        let (found, answer) = asking.post(&body, None);
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(found == status && message.contains(part), "{body}: {found} {answer}");
    }
    assert_eq!(asking.get(""), cursor, "nothing was applied");
    assert_eq!(asking.post(&json!({ "changes": [] }), None).0, 200);
    assert_eq!(asking.get(""), cursor, "nothing to write");
}

#[test]
fn what_was_read_must_not_have_changed() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("bank.annals"));
    let running = serve(&db);
    let asking = Asking::of(&running);
    asking.post(&json!({ "changes": [insert("Ada", 1), insert("Bob", 2)] }), None);
    let base = asking.get("");
    let base = format!("{}:{}", base["txid"], base["chain"].as_str().unwrap());
    let add = |read: u64, id: u64, cents: i64| {
        let changes =
            json!([{ "op": "update", "table": "account", "id": id, "fields": { "cents": cents } }]);
        let read = json!([{ "table": "account", "id": read }]);
        asking.post(&json!({ "base": base, "read": read, "changes": changes }), None)
    };
    assert_eq!(add(0, 0, 10).0, 200);
    assert_eq!(add(1, 1, 20).0, 200, "another row");
    let (status, late) = add(0, 1, 30);
    assert_eq!((status, &late["error"]), (412, &json!("conflict")), "{late}");
    assert_eq!(add(7, 1, 40).0, 200, "it wasn't there, and isn't");
    let wrong = json!({ "base": "1:0000000000000000", "changes": [] });
    assert_eq!(asking.post(&wrong, None).0, 409);
    assert_eq!(asking.get("/t/account/1")["cents"], 40);
    let plain =
        asking.client.post(format!("{}/transactions", asking.url)).body("{}").send().unwrap();
    assert_eq!(plain.status().as_u16(), 415);
}

#[test]
fn a_procedure_runs_in_its_types_and_its_error_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("bank.annals"));
    let running = serve(&db);
    let asking = Asking::of(&running);
    asking.post(&json!({ "changes": [insert("Ada", 100), insert("Bob", 0)] }), None);
    let connection = Http::new(&running.of("bank"), None).unwrap();
    let call =
        |cents| connection.call::<i64>("transfer", &Transfer { source: 0, target: 1, cents });
    let called = call(30).unwrap();
    assert_eq!((called.answer, called.is_repeated), (70, false));
    assert_eq!(db.read().txid(), called.txid);
    let refused = call(71).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().ends_with("the account hasn't so much"), "{refused}");
    assert_eq!(db.read().account().by_owner().require("Bob").unwrap().cents(), 30);

    let other = |body: &Value| asking.post(body, None);
    assert_eq!(other(&json!({ "procedure": "pay" })).0, 404);
    let (status, answer) = other(&json!({ "procedure": "transfer", "args": { "source": 1 } }));
    assert!(status == 400 && answer["message"].as_str().unwrap().starts_with("args: "), "{answer}");
    let missing = connection.call::<i64>("pay", &()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);

    let again = Server::new().database("bank", annals::Database::clone(&db)).unwrap();
    let again = again.procedure("bank", "transfer", run_transfer).unwrap();
    let twice = again.procedure("bank", "transfer", run_transfer).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InUse);
    let none = Server::new().procedure("bank", "transfer", run_transfer).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
    let empty = annals::Options::new().open(folder.path().join("empty")).unwrap();
    let empty = Server::new().database("bank", empty).unwrap();
    let other = empty.procedure("bank", "transfer", run_transfer).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::SchemaMismatch);
}

#[test]
fn a_request_with_a_key_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bank.annals");
    let db = open(&path);
    db.write(|tx| {
        tx.insert(account::New { owner: "Ada", cents: 1000, ..Default::default() })?;
        tx.insert(account::New { owner: "Bob", ..Default::default() })?;
        Ok(())
    })
    .unwrap();
    let body = json!({ "procedure": "transfer", "args": { "source": 0, "target": 1, "cents": 1 } });
    let running = serve(&db);
    let asking = Asking::of(&running);
    let new = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (asking, body, new) = (&asking, &body, &new);
            scope.spawn(move || {
                for turn in 0..20 {
                    // Each key is sent by all threads, in other orders.
                    let key = format!("key-{}", (turn + thread) % 20);
                    let (status, answer) = asking.post(body, Some(&key));
                    assert_eq!(status, 200, "{answer}");
                    new.fetch_add(u64::from(answer["repeated"].is_null()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(new.load(Ordering::Relaxed), 20);
    assert_eq!(db.read().transfer().len(), 20);
    let before = asking.post(&body, Some("key-7")).1;
    drop((asking, running));
    db.close().unwrap();

    // The key is in the journal: another server knows it.
    let db = open(&path);
    let running = serve(&db);
    let asking = Asking::of(&running);
    assert_eq!(asking.post(&body, Some("key-7")), (200, before));
    let (status, other) = asking.post(&json!({ "changes": [] }), Some("key-7"));
    assert_eq!((status, &other["error"]), (422, &json!("key_reused")), "{other}");
    assert_eq!(asking.post(&body, Some("with space")).0, 400);
    // What failed may be sent again with its key.
    let dear =
        json!({ "procedure": "transfer", "args": { "source": 0, "target": 1, "cents": 5000 } });
    assert_eq!(asking.post(&dear, Some("dear")).1["error"], "aborted");
    let (_, rich) = asking.post(
        &json!({ "changes": [
        { "op": "update", "table": "account", "id": 0, "fields": { "cents": 5000 } }] }),
        None,
    );
    assert!(rich["ids"].is_array());
    assert_eq!(asking.post(&dear, Some("dear")).1["answer"], 0);
    assert_eq!(db.read().transfer().len(), 21);
}

#[test]
fn a_comment_of_somebody_else_takes_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("bank.annals"));
    let running = serve(&db);
    let asking = Asking::of(&running);
    let comments = ["request free", "answer 0123456789abcdef {\"ids\":[7]}"];
    // Before the request with a key, also in the form of one, and after it.
    for comment in comments {
        let body = json!({ "comment": comment, "changes": [insert(comment, 1)] });
        assert_eq!(asking.post(&body, None).0, 200);
    }
    for key in ["free", "done"] {
        let body = json!({ "comment": "mine", "changes": [insert(&format!("Ada {key}"), 1)] });
        let (status, done) = asking.post(&body, Some(key));
        assert_eq!((status, &done["repeated"]), (200, &Value::Null), "{key}: {done}");
        let forged = json!({ "comment": format!("request {key}"), "changes": [insert(&format!("Eve {key}"), 1)] });
        assert_eq!(asking.post(&forged, None).0, 200);
        let (status, again) = asking.post(&body, Some(key));
        assert_eq!((status, &again["repeated"]), (200, &json!(true)), "{key}: {again}");
        assert_eq!((&again["txid"], &again["ids"]), (&done["txid"], &done["ids"]), "{key}");
    }
    let now = db.read();
    let owners = now.account().into_iter().map(|row| row.unwrap().owner().to_owned());
    assert_eq!(owners.filter(|owner| owner.starts_with("Ada")).count(), 2);
}

#[test]
fn requests_at_the_same_time_share_flushes() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("bank.annals"));
    let running = serve(&db);
    let asking = Asking::of(&running);
    let (threads, turns) = (16, 20);
    let before = db.stats();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let asking = &asking;
            scope.spawn(move || {
                for turn in 0..turns {
                    let insert = insert(&format!("{thread}-{turn}"), 1);
                    assert_eq!(asking.post(&json!({ "changes": [insert] }), None).0, 200);
                }
            });
        }
    });
    let after = db.stats();
    assert_eq!(db.read().account().len(), threads * turns);
    assert_eq!(after.commits - before.commits, threads * turns);
    let flushes = after.flushes.count() - before.flushes.count();
    assert!(flushes < threads * turns, "{flushes} flushes");
}
