//! Jumps over a large transaction: what they cost the server, and that the state after them is right.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use annals::{FieldNumber, Options, RowId, TableNumber, ValueRef};
use serde_json::json;

use super::{END, Explored, HOME, LEFT};
use crate::program::succeed;

const TABLE: TableNumber = TableNumber(0);
const FIELDS: u32 = 16;
const ROWS: u64 = 300_000;
/// The most memory that the guide says a server takes.
const MOST: u64 = 256 << 10;

/// Makes a table of numbers with one large transaction, the second one, and three small ones.
fn create(dir: &Path) {
    let fields: String = (0..FIELDS).map(|it| format!("add_field t f{it} float64\n")).collect();
    succeed(dir, &["shell", "big.annals"], &format!("create_table t\n{fields}commit\n"));
    let database = Options::new().open(dir.join("big.annals")).unwrap();
    let value =
        |row: u64| ValueRef::Float64(f64::from(u32::try_from(row).unwrap()) + 0.123_456_789);
    let load = |tx: &mut annals::Transaction<'_>| {
        (0..ROWS).try_for_each(|row| tx.insert(TABLE, &[value(row); FIELDS as usize]).map(drop))
    };
    database.write(load).unwrap();
    for row in 0..3 {
        database
            .write(|tx| tx.update(TABLE, RowId(row), FieldNumber(0), value(100 + row)))
            .unwrap();
    }
    database.close().unwrap();
}

#[test]
fn whatever_is_asked_about_a_large_transaction_is_answered_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let explored = Explored::start(folder.path(), "big.annals", &[]);
    let ask = |path: &str| {
        let url = format!("{}/v1/big{path}", explored.origin());
        let token = format!("Authorization: Bearer {}", explored.token());
        let mut curl = Command::new("curl");
        curl.args(["-sf", "-H", &token, &url]).stdout(Stdio::piped());
        let mut child = curl.spawn().unwrap();
        let answer =
            std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
        assert!(child.wait().unwrap().success(), "{path}");
        println!("{path}: {answer} bytes; {} KiB at most up to now", explored.most_memory());
        answer
    };
    let line = 16 * 10;
    assert!(ask("/diff?from=txid:1&to=txid:5&table=t") > ROWS * line);
    assert!(ask("/diff?from=txid:5&to=txid:1") > ROWS * line);
    for path in [
        "/compare?from=txid:1&to=txid:5&table=t",
        "/compare?from=txid:5&to=txid:1&limit=10000",
        "/log",
        "/log?limit=10000&rows=1",
        "/log?fields=changed",
        "/log?after=1&limit=1&rows=2000&fields=changed",
        "/t/t/log",
        "/t/t?at=txid:3&limit=10000",
        "/t/t?at=txid:3&as_it_was=true&limit=10000",
        "/search?text=nothing&at=txid:3",
        "/schema?at=txid:1",
        "/activity",
    ] {
        ask(path);
    }
    for file in ["csv", "ndjson"] {
        assert!(ask(&format!("/t/t?at=txid:4&file={file}")) > ROWS * line);
    }
    assert!(explored.most_memory() < MOST, "{} KiB", explored.most_memory());
}

#[test]
fn the_state_after_a_jump_is_that_of_the_moment() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let explored = Explored::start(folder.path(), "big.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let check = |txid: u64| {
        assert_eq!(browser.get("Number(document.body.dataset.txid)"), json!(txid));
        browser.run(&format!(
            "globalThis.then = null; fetch('/v1/big/t/t?at=txid:{txid}&limit=200').then(it => it.json()).then(it => {{ then = it.rows; }})"
        ));
        browser.until("then !== null");
        let is_same = "JSON.stringify(then) === JSON.stringify(explorer.rows.rows)";
        assert_eq!(browser.get(is_same), json!(true), "transaction {txid}");
        let first =
            browser.text("document.querySelector('[data-row=\"0\"] [data-field=f0]')?.innerText");
        let expected =
            ["", "", "0.123456789", "100.123456789"][usize::try_from(txid.min(3)).unwrap()];
        assert_eq!(first, expected, "transaction {txid}");
    };
    browser.show("#/t");
    check(5);
    for (key, txid) in [(HOME, 1), (END, 5), (LEFT, 4), (LEFT, 3), (LEFT, 2), (LEFT, 1), (END, 5)] {
        browser.press(&[], &[key]);
        check(txid);
    }
    // Compared with the moment before all of that, answer after answer.
    browser.show("#/t?pin=txid:1");
    // Other tests may run beside it.
    let all = "document.querySelector('[data-differs]')?.dataset.differs === '300000' && explorer.pinned.next === null";
    browser.until_within(Duration::from_secs(120), all);
    assert!(browser.get("explorer.pinned.changes.length <= 5000").as_bool().unwrap());
    assert!(explored.most_memory() < MOST, "{} KiB", explored.most_memory());
    browser.check();
}
