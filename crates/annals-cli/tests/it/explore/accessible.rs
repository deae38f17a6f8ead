//! For everyone: widths from a phone on, and what axe finds (<https://github.com/dequelabs/axe-core>).

use serde_json::{Value, json};

use super::browser::Browser;
use super::{Explored, library};

/// Every page.
const LINKS: [&str; 11] = [
    "#/book?at=txid:9&pin=txid:3",
    "#/book/5?at=txid:9",
    "#:schema",
    "#:log",
    "#:log?of=book&pin=txid:3",
    "#:search?text=germ",
    "#:search?text=book+3&deleted=1",
    "#:storage",
    "#:sql",
    "#:sql?sql=SELECT+txid,+changes+FROM+annals_log&chart=bars,txid,changes",
    "#/book?filter=terre",
];

#[test]
fn pages_fit_each_width() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    for width in [360, 1600] {
        let Some(browser) = Browser::start(width, 800) else { return };
        browser.go(&explored.link);
        browser.ready();
        assert_eq!(browser.get("innerWidth"), json!(width));
        for link in LINKS {
            browser.show(link);
            let wide = browser.get("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{link} is {wide} wide");
        }
        browser.check();
    }
}

/// What stands above the rows is the same on all pages: on a phone it leaves them two thirds.
#[test]
fn a_phone_shows_more_than_the_header() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = Browser::start(390, 844) else { return };
    browser.go(&explored.link);
    browser.ready();
    assert_eq!(browser.get("[innerWidth, innerHeight]"), json!([390, 844]));
    for link in LINKS {
        browser.show(link);
        let top = browser.get("document.querySelector('.body').getBoundingClientRect().top");
        assert!(top.as_f64().unwrap() <= 844.0 / 3.0, "{link}: {top} of 844 are header");
    }
    browser.check();
}

#[test]
fn axe_finds_nothing() {
    let axe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/axe/axe.min.js");
    let axe = std::fs::read_to_string(axe).unwrap();
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.run(&axe);
    for theme in ["light", "dark"] {
        browser.run(&format!("document.documentElement.dataset.theme = '{theme}'"));
        for link in LINKS {
            browser.show(link);
            let found = browser.get(
                "axe.run(document).then(it => it.violations.map(it => [it.id, it.help, it.nodes.slice(0, 3).map(it => it.html)]))",
            );
            assert_eq!(found, Value::Array(Vec::new()), "{theme}: {link}");
        }
    }
}
