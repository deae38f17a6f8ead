//! Large databases: what is sent and what is in the page stays bounded.

use std::time::Duration;

use annals::{FieldNumber, Level, Options, RowId, TableNumber, ValueRef};
use serde_json::json;

use super::Explored;
use super::browser::Browser;
use crate::program::succeed;

fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

/// Scrolls a table to its end and to its middle.
fn scroll(rows: u64) -> Option<(Explored, Browser, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let numbers: Vec<_> = (0..rows).map(|number| (number * 7919 % rows).to_string()).collect();
    std::fs::write(dir.join("number.csv"), format!("value\n{}\n", numbers.join("\n"))).unwrap();
    succeed(
        dir,
        &["shell", "a.annals"],
        "create_table number\nadd_field number value int64\ncreate_index by_value number value\n",
    );
    succeed(dir, &["import", "csv", "a.annals", "number=number.csv"], "");
    let explored = Explored::start(dir, "a.annals", &[]);
    let browser = explored.browse()?;
    let row = |id: u64| {
        format!("document.querySelector('[data-row=\"{id}\"] [data-field=value]')?.innerText")
    };
    browser.show("#/number");
    browser.run("globalThis.before = performance.getEntriesByType('resource').length");
    browser.run("document.querySelector('.grid').scrollTop = 1e9");
    browser.until(&format!("{} === '{}'", row(rows - 1), (rows - 1) * 7919 % rows));
    browser.run("document.querySelector('.grid').scrollTop /= 2");
    browser.until(&format!("[...document.querySelectorAll('.grid [data-row]')].some(it => Math.abs(it.dataset.row - {}) < 100)", rows / 2));
    let requests = browser.get("performance.getEntriesByType('resource').length - before");
    assert!(requests.as_u64().unwrap() <= 4, "{requests}");
    assert!(browser.get("document.querySelectorAll('[data-row]').length < 60").as_bool().unwrap());
    Some((explored, browser, folder))
}

#[test]
fn a_long_table_is_scrolled_to_its_end() {
    let Some((_explored, browser, _folder)) = scroll(50_000) else { return };
    // By rank in an index, also in the middle.
    browser.show("#/number?order=by_value");
    browser.run("document.querySelector('.grid').scrollTop = 28 * 20000");
    browser.until(
        "document.querySelector('.grid [data-row] [data-field=value]')?.innerText === '20000'",
    );
    browser.check();
}

/// The page has a part of the rows; the links of "all rows as a file" have all, of the moment that is shown.
#[test]
fn all_rows_are_a_file_in_the_order_and_of_the_moment_that_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let numbers: Vec<_> = (0..5000).map(|number| (number * 7919 % 5000).to_string()).collect();
    std::fs::write(dir.join("number.csv"), format!("value\n{}\n", numbers.join("\n"))).unwrap();
    let schema = "create_table number\nadd_field number value int64\ncreate_index by_value number value\ncommit\n";
    succeed(dir, &["shell", "a.annals"], schema);
    succeed(dir, &["import", "csv", "a.annals", "number=number.csv"], "");
    succeed(
        dir,
        &["shell", "a.annals"],
        "delete_from number 0\nupdate number 1 value -1\ncommit\n",
    );
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let file = |format: &str| {
        let link = format!("document.querySelector('.copies [data-file=\"{format}\"]')");
        assert_eq!(browser.get(&format!("{link}.hasAttribute('download')")), json!(true));
        browser.run(&format!(
            "globalThis.file = null; fetch({link}.href).then(it => it.text()).then(it => {{ file = it; }})"
        ));
        browser.until("file !== null");
        browser.text("file").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (link, count, second) in [
        ("#/number", 4999, "1,-1"),
        ("#/number?at=txid:2", 5000, "0,0"),
        ("#/number?order=by_value", 4999, "1,-1"),
        ("#/number?at=txid:2&order=by_value", 5000, "0,0"),
    ] {
        browser.show(link);
        assert!(browser.get("explorer.rows.rows.length < 4999").as_bool().unwrap(), "a part");
        // Copies and paper have that part, and say so.
        browser.run("navigator.clipboard.writeText = async () => {}; navigator.clipboard.write = async () => {}");
        browser.run("document.querySelector('.copies button').click()");
        let loaded = browser.get("explorer.rows.rows.length");
        let part = format!("{loaded} of {},{:03} rows", count / 1000, count % 1000);
        browser.until(&format!(
            "document.querySelector('.tools [role=status]').innerText === '{part} copied: those that are loaded'"
        ));
        let paper = browser.text("document.querySelector('.tools .paper').textContent");
        assert!(paper.starts_with(&format!("These are {part}")), "{paper}");
        let (csv, lines) = (file("CSV"), file("JSON, a row a line"));
        assert_eq!((csv.len(), lines.len()), (count + 1, count), "{link}");
        assert_eq!((csv[0].as_str(), csv[1].as_str()), ("id,value", second), "{link}");
        let by_value = link.contains("order");
        let values: Vec<i64> =
            csv[1..].iter().map(|line| line.split_once(',').unwrap().1.parse().unwrap()).collect();
        assert_eq!(values.is_sorted(), by_value, "{link}");
        let (id, value) = second.split_once(',').unwrap();
        assert_eq!(lines[0], format!("{{\"id\":{id},\"value\":{value}}}"), "{link}");
    }
    browser.check();
}

#[test]
fn a_table_of_more_rows_than_a_box_has_space_for_is_scrolled_to_its_end() {
    let rows = if is_full() { 1_000_000 } else { 400_000 };
    let Some((_explored, browser, _folder)) = scroll(rows) else { return };
    browser.show("#/number?order=by_value");
    browser.run("document.querySelector('.grid').scrollTop = 1e9");
    browser.until(&format!(
        "[...document.querySelectorAll('.grid [data-field=value]')].some(it => it.innerText === '{}')",
        rows - 1
    ));
    browser.check();
}

#[test]
fn many_tables_and_transactions_are_shown_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let (tables, transactions) = if is_full() { (10_000, 200_000) } else { (1_000, 5_000) };
    let mut script = String::new();
    for table in 0..tables {
        script += &format!("create_table t{table}\nadd_field t{table} value int64\n");
    }
    script += "commit soft\n";
    for txid in 0..transactions {
        script +=
            &format!("insert t{} {txid}\ncomment \"number {txid}\"\ncommit soft\n", txid % tables);
    }
    let out = crate::program::run(dir, &["shell", "a.annals"], script.as_bytes());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.until("explorer.activity.known === explorer.activity.last");
    assert!(
        browser
            .get(
                "explorer.activity.buckets.length <= 600 && explorer.activity.marks.length <= 4096"
            )
            .as_bool()
            .unwrap()
    );
    assert!(browser.get("document.querySelectorAll('.tables li').length").as_u64().unwrap() <= 200);
    browser.run("const it = document.querySelector('.tables input'); it.value = 't999'; it.dispatchEvent(new Event('input', { bubbles: true }))");
    browser.until("document.querySelector('.tables a').innerText === 't999'");
    browser.show(&format!("#/t999?at=txid:{}", transactions / 2));
    assert_eq!(browser.get("Number(document.body.dataset.txid)"), json!(transactions / 2));
    browser.show("#:schema");
    assert!(browser.get("document.querySelectorAll('svg g').length").as_u64().unwrap() <= 60);
    browser.check();
}

#[test]
fn a_long_history_is_dragged() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let transactions: u64 = if is_full() { 10_000_000 } else { 30_000 };
    succeed(dir, &["shell", "a.annals"], "create_table number\nadd_field number value int64\n");
    let options = Options::new().level(Level::Soft);
    let database = options.open(dir.join("a.annals")).unwrap();
    let first = database.read().txid().0;
    let table = TableNumber(0);
    for change in 0..transactions {
        let value = ValueRef::Int64(i64::try_from(change).unwrap());
        let write = |tx: &mut annals::Transaction<'_>| match change {
            0..100 => tx.insert(table, &[value]).map(drop),
            _ => tx.update(table, RowId(change % 100), FieldNumber(0), value),
        };
        database.write(write).unwrap();
    }
    database.close().unwrap();
    let begun = std::time::Instant::now();
    let explored = Explored::start(dir, "a.annals", &[]);
    let opened = begun.elapsed();
    let Some(browser) = explored.browse() else { return };
    let known = "explorer.activity.known === explorer.activity.last";
    browser.until_within(Duration::from_secs(600), known);
    let (memory, read) = (explored.memory(), begun.elapsed());
    println!(
        "{transactions} transactions: opened in {opened:?}, read for the plot after {read:?}; {memory} KiB in memory"
    );
    // Buckets and marks, whatever the number of transactions is.
    assert!(memory < 32 << 10, "{memory} KiB in memory");
    assert!(browser.get("explorer.activity.buckets.length <= 600").as_bool().unwrap());
    browser.run("globalThis.before = performance.getEntriesByType('resource').length");
    for place in [5, 1, 7] {
        let change = transactions / 8 * place;
        let txid = first + change + 1;
        browser.run(&format!(
            "document.body.dataset.ready = '0'; const it = document.querySelector('[type=range]'); \
             it.value = {txid}; it.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        ));
        browser.ready();
        assert_eq!(browser.get("Number(document.body.dataset.txid)"), json!(txid));
        let id = change % 100;
        let value = format!("(explorer.rows.rows.find(it => it.id === {id}) ?? {{}}).value");
        assert_eq!(browser.get(&value), json!(change));
    }
    // A transaction and a page of rows each, and the numbers of rows when nothing else is wanted.
    let requests = browser.get("performance.getEntriesByType('resource').length - before");
    assert!(requests.as_u64().unwrap() <= 9, "{requests}");
    browser.check();
}
