//! Changes that are made without the server, and pushed or rebased later.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::program::{annals, run, succeed};
use crate::served::{Served, create};

/// Runs the program, which must fail; returns what it printed, and its errors.
fn fail(dir: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(dir, arguments, b"");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_replica_commits_without_the_server_and_pushes_later() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let served = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let (url, address) = (served.url.clone(), served.address().to_owned());
    succeed(dir, &["shell", "b.annals", "--replica-of", &url], "insert page one\n");
    served.end();

    let offline = ["shell", "b.annals", "--replica-of", &url, "--offline"];
    let printed = succeed(dir, &offline, "insert page two\ncomment \"on the train\"\n");
    assert!(printed.starts_with("committed txid=3 position="), "{printed}");
    assert!(succeed(dir, &offline, "table page\n").contains("two"), "reads see both");
    assert!(!succeed(dir, &["dump", "b.annals"], "").contains("two"), "that is the server's");
    assert!(succeed(dir, &["dump", "b.annals-local"], "").contains("two"));
    assert!(succeed(dir, &["log", "b.annals-local"], "").contains("on the train"));
    let (_, error) = fail(dir, &["push", "b.annals", &url]);
    assert!(error.contains("error"), "{error}");

    let served = Served::start(dir, &address, &["--no-token"]);
    let printed = succeed(dir, &["push", "b.annals", &url, "--json"], "");
    assert_eq!(printed, format!("{{\"url\":\"{url}\",\"transactions\":1,\"txid\":3}}\n"));
    assert!(succeed(dir, &["log", &url], "").contains("on the train"));
    assert_eq!(succeed(dir, &["dump", &url], ""), succeed(dir, &["dump", "b.annals"], ""));
    let names = std::fs::read_dir(dir).unwrap().map(|name| name.unwrap().file_name());
    let kept = |name: &String| name.starts_with("b.annals-local.pushed-3-");
    assert_eq!(names.map(|name| name.into_string().unwrap()).filter(kept).count(), 1);
    assert!(!dir.join("b.annals-local").exists());
    served.end();
}

#[test]
fn a_rebase_says_what_was_renumbered_and_what_clashes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let served = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let url = served.url.clone();
    succeed(dir, &["clone", &url, "c.annals"], "");
    let offline = ["shell", "b.annals", "--replica-of", &url, "--offline"];
    let online = ["shell", "d.annals", "--replica-of", &url];
    succeed(dir, &offline, "insert page mine\n");
    succeed(dir, &online, "insert page theirs\ncomment \"from the office\"\n");
    let (_, error) = fail(dir, &["push", "b.annals", &url]);
    for part in ["transaction 2 came first", "from the office", "--rebase"] {
        assert!(error.contains(part), "{part} isn't in {error}");
    }
    let printed = succeed(dir, &["push", "b.annals", &url, "--rebase"], "");
    let expected = format!(
        "{url}: pushed 1 transaction, up to transaction 3\nrow 0 of `page` is row 1 there\n"
    );
    assert_eq!(printed, expected);

    succeed(
        dir,
        &offline,
        "update page 0 title \"x\"\ncommit\ndelete_from page 1\ninsert page taken\n",
    );
    succeed(dir, &online, "update page 0 title \"y\"\ncommit\ninsert page taken\n");
    let before = succeed(dir, &["dump", &url], "");
    let (printed, error) = fail(dir, &["push", "b.annals", &url, "--rebase", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let clashes = report["conflicts"].as_array().unwrap();
    let facts: Vec<_> = clashes
        .iter()
        .map(|it| {
            format!(
                "{} {} {} {} {}",
                it["transaction"], it["table"], it["row"], it["field"], it["by"]
            )
        })
        .collect();
    assert_eq!(facts, ["4 \"page\" 0 \"title\" 4", "5 \"page\" 2 null 5"], "{error}");
    assert_eq!(error.lines().filter(|line| line.contains("came first")).count(), 2, "{error}");
    assert_eq!(succeed(dir, &["dump", &url], ""), before, "nothing was changed");
    assert!(dir.join("b.annals-local").exists());

    // A clone that any program changed.
    succeed(dir, &["shell", "c.annals"], "insert page cloned\n");
    let (_, error) = fail(dir, &["push", "c.annals", &url]);
    assert!(error.contains("differ after transaction 1") && error.contains("--rebase"), "{error}");
    let printed = succeed(dir, &["push", "c.annals", &url, "--rebase", "--json"], "");
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&report["transactions"], &report["txid"]), (&1.into(), &6.into()), "{printed}");
    assert_eq!(report["renumbered"][0]["table"], "page", "{printed}");
    let printed = succeed(dir, &["push", "c.annals", &url, "--rebase"], "");
    assert!(printed.contains("pushed 0 transactions"), "{printed}");
    served.end();
}

/// Answers what is asked as the server does, until something is pushed.
fn answer_until_a_push(listener: &TcpListener, server: &str) {
    for client in listener.incoming() {
        let (mut client, mut server) = (client.unwrap(), TcpStream::connect(server).unwrap());
        let (mut to_client, mut from_server) =
            (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = client.read(&mut piece) {
            if piece.starts_with(b"POST") {
                return;
            }
            server.write_all(&piece[..read]).unwrap();
        }
    }
}

#[test]
fn what_a_killed_rebase_left_goes_when_the_clone_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let served = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let url = served.url.clone();
    succeed(dir, &["clone", &url, "c.annals"], "");
    succeed(dir, &["shell", "c.annals"], "insert page mine\n");
    succeed(dir, &["shell", "d.annals", "--replica-of", &url], "insert page theirs\n");
    let left = || {
        let names = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| name.contains(".rebase-")).collect::<Vec<_>>()
    };

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let through = url.replace(served.address(), &listener.local_addr().unwrap().to_string());
    let mut rebase = annals(dir, &["push", "c.annals", &through, "--rebase"]).spawn().unwrap();
    answer_until_a_push(&listener, served.address());
    rebase.kill().unwrap();
    rebase.wait().unwrap();
    assert_eq!(left().len(), 1);
    // Another program's file stays.
    let other = "c.annals.rebase-0123456789abcdef";
    std::fs::write(dir.join(other), "notes").unwrap();
    let dump = succeed(dir, &["shell", "c.annals"], "table page\n");
    assert!(dump.contains("mine"), "{dump}");
    assert_eq!(left(), [other]);
    let printed = succeed(dir, &["push", "c.annals", &url, "--rebase"], "");
    assert!(printed.contains("pushed 1 transaction"), "{printed}");
    assert_eq!(left(), [other]);
    served.end();
}

#[test]
fn a_server_of_an_older_backup_gets_what_a_replica_has_and_its_offline_changes() {
    for others in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        create(dir);
        succeed(dir, &["backup", "a.annals", "old"], "");
        let served = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
        let of = |url: &str, how: &[&str], lines: &str| {
            let shell = ["shell", "b.annals", "--replica-of", url];
            succeed(dir, &[&shell[..], how].concat(), lines);
        };
        of(&served.url, &[], "insert page later\n");
        of(&served.url, &["--offline"], "insert page offline\n");
        served.end();
        for name in ["a.annals", "a.annals-image"] {
            let _ = std::fs::remove_file(dir.join(name));
        }
        std::fs::rename(dir.join("old"), dir.join("a.annals")).unwrap();
        let served = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
        let url = served.url.clone();
        let mut wanted = vec!["later", "offline"];
        let options: &[&str] = match others {
            false => &[],
            true => {
                succeed(dir, &["shell", "c.annals", "--replica-of", &url], "insert page theirs\n");
                wanted.push("theirs");
                &["--rebase"]
            }
        };
        let (_, error) = fail(dir, &["clone", &url, "b.annals"]);
        let (advice, refusal) = match others {
            false => ("`annals push FILE URL` sends them again", None),
            true => ("`annals push FILE URL --rebase`", Some("with --rebase they are made again")),
        };
        assert!(error.contains(advice), "{error}");
        if let Some(refusal) = refusal {
            let (_, error) = fail(dir, &["push", "b.annals", &url]);
            assert!(error.contains(refusal), "{error}");
        }
        let push = [&["push", "b.annals", &url][..], options].concat();
        let printed = succeed(dir, &push, "");
        assert!(printed.contains("pushed 2 transactions"), "{printed}");
        assert!(!dir.join("b.annals-local").exists());
        let printed = succeed(dir, &push, "");
        assert!(printed.contains("pushed 0 transactions"), "{printed}");
        let select = "SELECT title FROM page ORDER BY title";
        let titles = succeed(dir, &["sql", &url, select, "--format", "list"], "");
        assert_eq!(titles.lines().skip(1).collect::<Vec<_>>(), wanted);
        served.end();
    }
}
