//! Databases that are written, restored, forgotten and erased.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use super::{Explored, library};
use crate::program::{annals, succeed};

#[test]
fn what_another_program_commits_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    let mut writer = annals(dir, &["shell", "library.annals"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut script = writer.stdin.take().unwrap();
    let explored = Explored::start(dir, "library.annals", &[]);
    let Some(browser) = explored.browse() else {
        drop(script);
        writer.wait().unwrap();
        return;
    };
    browser.show("#/author?follow=1");
    writeln!(script, "insert author \"Colette\" 1873 null\ncommit").unwrap();
    browser.until("document.body.dataset.txid === '12' && document.body.dataset.ready === '1'");
    browser.until(
        "document.querySelector('[data-row=\"2\"] [data-field=name]')?.innerText === 'Colette'",
    );
    // The past stays where it is.
    browser.show("#/author?at=txid:11");
    writeln!(script, "insert author \"George Sand\" 1804 null\ncommit").unwrap();
    drop(script);
    writer.wait().unwrap();
    browser.press(&[], &[super::RIGHT]);
    assert_eq!(browser.text("document.body.dataset.txid"), "12");
    browser.check();
}

#[test]
fn a_row_is_restored_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    {
        let explored = Explored::start(dir, "library.annals", &[]);
        let Some(browser) = explored.browse() else { return };
        browser.show("#/book/5");
        assert_eq!(browser.get("document.querySelector('[data-do=restore]')"), json!(null));
        let body = json!({ "moment": "txid:2", "comment": "no" }).to_string();
        let answer = browser.get(&format!(
            "fetch('/v1/library/t/book/5/restore', {{ method: 'POST', headers: {{ 'Content-Type': 'application/json' }}, \
             body: {} }}).then(it => it.status)",
            json!(body)
        ));
        assert_eq!(answer, json!(403));
    }
    let explored = Explored::start(dir, "library.annals", &["--write"]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book/5");
    browser.run("globalThis.prompt = (text) => { globalThis.question = text; return 'back to its old title'; }");
    browser.run("document.querySelector('[data-version=\"2\"] [data-do=restore]').click()");
    browser.until("document.body.dataset.txid === '12' && document.querySelectorAll('[data-version]').length === 3");
    assert!(
        browser.text("question").contains("Restore row 5 of book as it was after transaction 2?")
    );
    let log = succeed(dir, &["history", "library.annals", "book", "5", "--format", "json"], "");
    assert!(log.contains("back to its old title"), "{log}");
    browser.check();
}

#[test]
fn a_past_that_was_forgotten_or_erased_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    succeed(dir, &["backfill", "library.annals", "--mode", "truncate", "--forget-history"], "");
    succeed(
        dir,
        &["shell", "library.annals"],
        "update author 0 born 1776\ncommit\nupdate author 0 born 1775\n",
    );
    succeed(dir, &["erase", "library.annals", "author", "0", "--field", "born", "--yes"], "");
    let explored = Explored::start(dir, "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/author");
    let last = browser.text("document.body.dataset.txid");
    browser.press(&[], &[super::HOME]);
    assert!(
        browser.get("Number(document.querySelector('[type=range]').min) > 1").as_bool().unwrap()
    );
    browser.show("#/author?at=txid:2");
    assert!(!browser.text("document.querySelector('[role=alert]')?.innerText ?? ''").is_empty());
    browser.show("#/author");
    assert_eq!(browser.text("document.body.dataset.txid"), last);
    browser.until("explorer.activity.marks.some(it => it.kind === 'erasure')");
}
