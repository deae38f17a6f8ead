//! Databases that are written, restored, forgotten and erased.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::browser::Browser;
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

/// Stands before a server, as a proxy does, and refuses to follow changes.
struct Gate {
    address: SocketAddr,
    /// How often it will.
    refusals: Arc<AtomicU32>,
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl Gate {
    fn start(server: SocketAddr, refusals: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (refusals, clients) = (Arc::new(AtomicU32::new(refusals)), Arc::default());
        let gate = Self { address, refusals, clients };
        let (refusals, clients) = (Arc::clone(&gate.refusals), Arc::clone(&gate.clients));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                clients.lock().unwrap().extend(client.try_clone());
                let refusals = Arc::clone(&refusals);
                std::thread::spawn(move || Self::pass(client, server, &refusals));
            }
        });
        gate
    }

    fn pass(mut client: TcpStream, server: SocketAddr, refusals: &AtomicU32) -> Result<()> {
        let mut server = TcpStream::connect(server)?;
        let (mut answers, mut to) = (server.try_clone()?, client.try_clone()?);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut answers, &mut to);
            to.shutdown(Shutdown::Both)
        });
        let mut bytes = vec![0; 1 << 16];
        loop {
            let count = client.read(&mut bytes)?;
            if count == 0 {
                return server.shutdown(Shutdown::Both);
            }
            let is_asked = bytes.starts_with(b"GET /v1/library/changes?");
            let fewer = |left: u32| left.checked_sub(1);
            let order = Ordering::SeqCst;
            if is_asked && refusals.fetch_update(order, order, fewer).is_ok() {
                client
                    .write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")?;
            } else {
                server.write_all(&bytes[..count])?;
            }
        }
    }

    /// Cuts off all that is open.
    fn cut(&self) {
        for client in self.clients.lock().unwrap().drain(..) {
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    fn is_passed(&self) -> bool {
        self.refusals.load(Ordering::SeqCst) == 0
    }
}

#[test]
fn what_is_followed_is_asked_for_again_after_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    let explored = Explored::start(dir, "library.annals", &[]);
    let server = explored.origin().trim_start_matches("http://").parse().unwrap();
    let gate = Gate::start(server, 2);
    let Some(browser) = Browser::start(1200, 800) else { return };
    browser.go(&explored.link.replace(&explored.origin(), &format!("http://{}", gate.address)));
    browser.ready();
    browser.show("#/author?follow=1");
    let commit = |name: &str| {
        let script = format!("insert author \"{name}\" 1873 null\ncommit\n");
        succeed(dir, &["shell", "library.annals"], &script);
    };
    let shown = |txid: u64, name: &str| {
        browser.until(&format!(
            "document.body.dataset.txid === '{txid}' && document.querySelector('main').innerText.includes('{name}')"
        ));
    };
    commit("Colette");
    shown(12, "Colette");
    assert!(gate.is_passed());
    // Again after a cut: what was committed meanwhile is shown.
    gate.refusals.store(1, Ordering::SeqCst);
    gate.cut();
    commit("George Sand");
    // Another answer has it first.
    browser.run("explorer.loadActivity()");
    browser.until("explorer.last === 13");
    shown(13, "George Sand");
    assert!(gate.is_passed());
    commit("Marguerite Duras");
    shown(14, "Marguerite Duras");
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
