//! What each page shows, beside what the program prints.

use serde_json::{Value, json};

use super::{DOWN, END, ENTER, ESCAPE, Explored, HOME, LEFT, RIGHT, SHIFT, UP, library};
use crate::program::succeed;

/// The rows that are shown, by their ids.
const ROWS: &str = "[...document.querySelectorAll('.grid [data-row]')].map(row => [Number(row.dataset.row), \
     Object.fromEntries([...row.querySelectorAll('[data-field]')].map(it => [it.dataset.field, it.innerText.trim()]))])";

fn titles(rows: &Value) -> Vec<(u64, String)> {
    let list = rows.as_array().unwrap().iter();
    list.map(|row| {
        (row[0].as_u64().unwrap(), row[1]["title"].as_str().unwrap_or_default().to_owned())
    })
    .collect()
}

#[test]
fn each_moment_shows_what_dump_prints() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    let explored = Explored::start(dir, "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    assert_eq!(browser.text("location.href"), explored.page(), "the token has left the address");
    let step = |txid: u64, keys: &[char]| {
        browser.press(&[], keys);
        assert_eq!(browser.text("document.body.dataset.txid"), txid.to_string());
        assert_eq!(browser.text("document.body.dataset.table"), "book");
        let at = format!("txid:{txid}");
        let dump = succeed(dir, &["dump", "library.annals", "--format", "json", "--at", &at], "");
        let dump: Value = serde_json::from_str(&dump).unwrap();
        let of_row =
            |row: &Value| (row["id"].as_u64().unwrap(), row["title"].as_str().unwrap().to_owned());
        let expected: Vec<_> = dump["book"].as_array().unwrap().iter().map(of_row).collect();
        let shown = titles(&browser.get(ROWS));
        assert_eq!(shown, expected[..shown.len()], "transaction {txid}");
        assert!(shown.len() == expected.len() || shown.len() > 15);
    };
    browser.show("#/book");
    assert_eq!(browser.text("document.body.dataset.txid"), "11");
    for txid in (1..11).rev() {
        step(txid, &[LEFT]);
    }
    for txid in 2..=11 {
        step(txid, &[RIGHT]);
    }
    step(1, &[HOME]);
    step(11, &[END]);
    browser.check();
}

#[test]
fn a_step_asks_for_its_transaction_only() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book?at=txid:5");
    browser.until("explorer.countsOf === explorer.txid");
    let asked = |keys: &[char]| {
        browser.run("globalThis.mark = performance.getEntriesByType('resource').length");
        browser.press(&[], keys);
        let names = "performance.getEntriesByType('resource').slice(mark).map(it => it.name.split('/v1/')[1])";
        browser.get(names)
    };
    assert_eq!(asked(&[RIGHT]), json!(["library/log?after=5&limit=1&rows=2000&fields=changed"]));
    assert_eq!(asked(&[LEFT]), json!(["library/log?after=4&limit=1&rows=2000&fields=changed"]));
    assert_eq!(asked(&[LEFT]), json!(["library/log?after=3&limit=1&rows=2000&fields=changed"]));
    // The numbers of rows follow without being asked for.
    assert_eq!(browser.text("document.querySelector('[data-count]').dataset.count"), "30");
    browser.check();
}

#[test]
fn changed_cells_and_a_pinned_moment_are_coloured() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let coloured = "[...document.querySelectorAll('.grid .changed')].map(it => it.parentNode.dataset.row + '.' + it.dataset.field)";
    browser.show("#/book?at=txid:9");
    assert_eq!(browser.get(coloured), json!(["5.title", "5.shelf"]));
    assert!(
        browser
            .text("document.querySelector('.removed').innerText")
            .contains("1 row of this table was deleted: 3")
    );
    browser.show("#/book?at=txid:10");
    assert_eq!(browser.get(coloured), json!([]));
    browser.show("#/book?at=txid:10&pin=txid:8");
    assert_eq!(browser.get(coloured), json!(["5.title", "5.shelf"]));
    browser.show("#/book?at=txid:3");
    assert_eq!(browser.get("document.querySelectorAll('.row.insert').length > 0"), json!(true));
    // Another table at the same moments has its own differences.
    browser.show("#/author?at=txid:9&pin=txid:7");
    assert_eq!(browser.get(coloured), json!(["1.born"]));
    browser.show("#/book?at=txid:9&pin=txid:7");
    assert_eq!(browser.get(coloured), json!(["5.title", "5.shelf"]));
    browser.check();
}

#[test]
fn a_comparison_says_what_to_do_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let said = || browser.text("document.querySelector('output').innerText");
    let places = "['play', 'pin', 'follow', 'changes', 'print'].map(it => document.querySelector(`[data-do=${it}]`).getBoundingClientRect()).map(it => [it.x, it.y, it.width])";
    let was = "[...document.querySelectorAll('[data-was]')].map(it => [it.dataset.field, it.dataset.was, it.innerText])";
    let expected = json!([["title", "Book 5", "Germinal"], ["shelf", "low", "high"]]);
    browser.show("#/book?at=txid:8");
    let before = browser.get(places);
    browser.press(&[], &['m']);
    assert!(said().contains("now move to another moment"), "{}", said());
    browser.press(&[], &[RIGHT]);
    browser.press(&[], &[RIGHT]);
    assert!(!said().contains("move"), "{}", said());
    let button = browser.text("document.querySelector('[data-do=pin]').innerText");
    assert!(button.starts_with("comparing with 20") && button.contains('-'), "{button}");
    assert_eq!(browser.get(places), before, "nothing moved");
    assert_eq!(browser.get(was), expected);
    let differ = "[...document.querySelectorAll('[data-differs]')].map(it => [it.parentNode.querySelector('a').innerText.trim(), it.innerText])";
    assert_eq!(browser.get(differ), json!([["book", "≠ 2"]]));
    // It stays in the row, and in the table again.
    browser.run(
        "document.body.dataset.ready = '0'; document.querySelector('[data-row=\"5\"] a').click()",
    );
    browser.ready();
    assert_eq!(browser.text("location.hash"), "#/book/5?at=txid:10&pin=txid:8");
    assert_eq!(browser.get(was), expected);
    browser.run("history.back()");
    browser.until("document.querySelector('.grid [data-was]') !== null");
    assert_eq!(browser.text("location.hash"), "#/book?at=txid:10&pin=txid:8");
    // The log has what is between the moments.
    browser.press(&[], &['l']);
    let transactions = "[...document.querySelectorAll('[data-transaction]')].map(it => Number(it.dataset.transaction))";
    assert_eq!(browser.get(transactions), json!([10, 9]));
    browser.check();
}

#[test]
fn a_row_has_its_versions_and_since_when_its_values_are_there() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/author/1");
    let versions = "[...document.querySelectorAll('[data-version]')].map(it => it.dataset.version)";
    assert_eq!(browser.get(versions), json!(["8", "1"]));
    let field = |name: &str| {
        browser.text(&format!("document.querySelector('.fields [data-field={name}]').innerText"))
    };
    let since = "[...document.querySelectorAll('.since a')].map(it => it.innerText)";
    assert_eq!((field("name"), field("born")), ("Émile Zola".to_owned(), "1840".to_owned()));
    assert_eq!(browser.get(since), json!(["1", "8", "1"]));
    assert!(
        browser.text("document.querySelector('.versions').innerText").contains("a date was found")
    );
    browser.show("#/author/1?at=txid:3");
    assert_eq!(field("born"), "null");
    // The version that is shown is marked, and one of the future isn't taken for the present.
    let marked = |class: &str| {
        browser.get(&format!("document.querySelector('.version.{class}').dataset.version"))
    };
    assert_eq!((marked("shown"), marked("later")), (json!("1"), json!("8")));
    let later = browser.text("document.querySelector('.version.later').innerText");
    assert!(later.contains("later than the moment shown"), "{later}");
    browser.run("document.querySelector('[data-do=referrers]').click()");
    browser.until("document.querySelector('.referrers') !== null");
    assert!(
        browser
            .text("document.querySelector('.referrers').innerText")
            .starts_with("book.by: 1 3 5")
    );
    browser.show("#/book/3");
    assert!(
        browser
            .text("document.querySelector('.none').innerText")
            .contains("no such row at this moment")
    );
    assert_eq!(browser.get(versions), json!(["9", "2"]), "its past is there all the same");
    // A reference is a link to its row, at the same moment.
    browser.show("#/book/5?at=txid:4");
    browser.run("document.querySelector('[data-field=by] a').click()");
    browser
        .until("location.hash === '#/author/1?at=txid:4' && document.body.dataset.ready === '1'");
    browser.run("history.back()");
    browser.until("document.querySelector('.of-row h2').innerText === 'book 5'");
    browser.check();
}

#[test]
fn log_schema_search_and_storage_show_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let main = || browser.text("document.querySelector('main').innerText");
    browser.show("#:log?at=txid:9");
    assert!(main().contains("delete book 3"), "{}", main());
    assert!(main().contains("title: Book 5 Germinal"), "{}", main());
    browser.show("#:log?of=author");
    let transactions = "[...document.querySelectorAll('[data-transaction]')].map(it => Number(it.dataset.transaction))";
    assert_eq!(browser.get(transactions), json!([8, 1]));
    assert!(main().contains("There are no earlier ones, of author."), "{}", main());
    browser.show("#:schema");
    assert_eq!(browser.get("document.querySelectorAll('svg .arrow').length"), json!(1));
    browser.until("document.querySelector('.history').innerText.includes('add_field author note')");
    browser.show("#:search?text=germ");
    browser.until("document.querySelector('main').innerText.includes('book 5 · title: Germinal')");
    assert!(main().contains("All rows were searched: 1 found."));
    // A row that was deleted has a link to the moment before.
    browser.show("#:search?text=title%3DBook+3");
    browser.until(
        "document.querySelector('main').innerText.includes('All rows were searched: 0 found.')",
    );
    browser.run("document.querySelector('[name=deleted]').click()");
    browser.until(
        "document.querySelectorAll('.gone').length === 1 && document.body.dataset.ready === '1'",
    );
    assert_eq!(browser.text("location.hash"), "#:search?text=title%3DBook+3&deleted=1");
    let gone = browser.text("document.querySelector('.gone').innerText");
    assert!(gone.contains("book 3 deleted 20") && gone.contains("title: Book 3"), "{gone}");
    browser.run("document.querySelector('.gone a').click()");
    browser.until("document.querySelector('.of-row [data-field=title]')?.innerText === 'Book 3'");
    assert_eq!(browser.text("location.hash"), "#/book/3?at=txid:8");
    browser.show("#:search?text=date%20was");
    browser.until("document.querySelector('main').innerText.includes('comment: a date was found')");
    browser.show("#/book?filter=terre");
    browser.until("document.querySelectorAll('[data-row]').length === 1");
    assert_eq!(titles(&browser.get(ROWS)), [(60, "La Terre".to_owned())]);
    browser.show("#/author?order=author_by_name");
    assert_eq!(browser.get(ROWS)[0][1]["name"], "Jane Austen");
    browser.show("#:storage");
    browser.run("document.querySelector('[data-do=check]').click()");
    browser.until("document.querySelector('[data-check]')?.dataset.check === 'ok'");
    browser.check();
}

#[test]
fn a_keyboard_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book?at=txid:6");
    browser.press(&[], &['m']);
    assert!(browser.text("location.hash").contains("pin=txid:6"));
    browser.press(&[], &[RIGHT]);
    assert_eq!(browser.text("document.body.dataset.txid"), "7");
    browser.press(&[SHIFT], &[RIGHT]);
    assert_eq!(browser.text("document.body.dataset.txid"), "11", "all of it was one day");
    browser.press(&[], &['m']);
    // Into the table, three rows down, one up, and in.
    browser.run("document.querySelector('.grid').focus()");
    browser.type_keys(&[], &[DOWN, DOWN, DOWN, UP]);
    browser.press(&[], &[ENTER]);
    assert_eq!(browser.text("location.hash"), "#/book/2");
    browser.press(&[], &[ESCAPE]);
    assert_eq!(browser.text("location.hash").split('?').next(), Some("#/book"));
    browser.press(&[], &['l']);
    assert_eq!(browser.text("location.hash"), "#:log");
    browser.press(&[], &['/']);
    browser.until("document.activeElement.name === 'text'");
    browser.type_keys(&[], &['Z', 'o', 'l', 'a']);
    browser.press(&[], &[ENTER]);
    browser
        .until("document.querySelector('main').innerText.includes('author 1 · name: Émile Zola')");
    browser.run("document.activeElement.blur()");
    browser.type_keys(&[], &['?']);
    browser.until("document.querySelector('.help') !== null");
    browser.check();
}
