//! `annals serve` and its clients: ended at any moment, nothing that was acknowledged is lost, and nothing is there
//! twice.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::program::{annals, run, succeed};

/// A server in a process of its own.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    token: Option<String>,
}

impl Served {
    pub(crate) fn start(dir: &Path, address: &str, options: &[&str]) -> Self {
        Self::of(dir, "a.annals", &[&["--listen", address], options].concat())
    }

    /// Starts a server that follows another one.
    fn follow(dir: &Path, file: &str, url: &str) -> Self {
        Self::of(dir, file, &["--listen", "127.0.0.1:0", "--no-token", "--follow", url])
    }

    pub(crate) fn of(dir: &Path, file: &str, options: &[&str]) -> Self {
        let arguments = [&["serve", file], options].concat();
        Self::begin(dir, file, annals(dir, &arguments))
    }

    /// Starts a server within limits, which a command of the shell sets.
    pub(crate) fn within(dir: &Path, limit: &str, file: &str, options: &[&str]) -> Self {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{limit}; exec \"$@\""), "bash", env!("CARGO_BIN_EXE_annals")]);
        shell.args(["serve", file]).args(options).current_dir(dir);
        Self::begin(dir, file, shell)
    }

    fn begin(dir: &Path, file: &str, mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(dir.join(format!("{file}.log"))).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut token = None;
        let url = loop {
            let line = lines.next().expect("it says where it listens");
            if let Some(url) = line.strip_prefix("listening on ") {
                break format!("{url}/v1/{}", file.trim_end_matches(".annals"));
            }
            token = line.strip_prefix("token: ").map(str::to_owned);
        };
        Self { child, url, token }
    }

    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as an operator does; it must end well.
    pub(crate) fn end(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Served {
    /// Also after a test that failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn create(dir: &Path) {
    let schema =
        "create_table page\nadd_field page title string\ncreate_unique_index by_title page title\n";
    succeed(dir, &["shell", "a.annals"], schema);
}

#[test]
fn tools_take_a_url_where_they_take_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let served = Served::start(dir, "127.0.0.1:0", &[]);
    let url = served.url.as_str();
    let token = served.token.clone().expect("none is stored, so it prints one");
    let with = |arguments: &[&str], script: &str| {
        succeed(dir, &[arguments, &["--token", &token]].concat(), script)
    };
    let refused = run(dir, &["dump", url], b"");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("a token is needed"));

    assert_eq!(
        with(&["clone", url, "b.annals"], ""),
        "b.annals: fetched 1 transaction, up to transaction 1\n"
    );
    let script = "insert page one\ncommit\ninsert page two\n";
    let printed = with(&["shell", "b.annals", "--replica-of", url], script);
    assert_eq!(printed, "committed txid=2 runs=1\ncommitted txid=3 runs=1\n");
    assert_eq!(with(&["dump", url], ""), succeed(dir, &["dump", "b.annals"], ""));
    assert_eq!(with(&["log", url], ""), succeed(dir, &["log", "b.annals"], ""));
    assert!(with(&["history", url, "page", "0"], "").contains("txid 2"));
    let differing = run(dir, &["diff", url, "txid:2", "txid:3", "--token", &token], b"");
    assert_eq!(String::from_utf8_lossy(&differing.stdout), "+ page 1 title: \"two\"\n");
    assert!(with(&["check", url], "").starts_with("ok: 3 transactions"));
    assert_eq!(
        with(&["clone", url, "b.annals"], ""),
        "b.annals: fetched 0 transactions, up to transaction 3\n"
    );

    // A copy that was changed without the server.
    succeed(dir, &["shell", "b.annals"], "insert page three\n");
    with(&["push", "b.annals", url], "");
    assert!(with(&["dump", url, "--format", "json"], "").contains("three"));
    assert!(with(&["push", "b.annals", url], "").contains("pushed 0 transactions"));
    // Both sides have another transaction 5.
    with(&["shell", "c.annals", "--replica-of", url], "insert page four\n");
    succeed(dir, &["shell", "b.annals"], "insert page five\n");
    let refused = run(dir, &["push", "b.annals", url, "--token", &token], b"");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && message.contains("differ after transaction 4"),
        "{message}"
    );
    // What only fetches says how its own transactions come there, too.
    for arguments in [&["clone", url, "b.annals"][..], &["shell", "b.annals", "--replica-of", url]]
    {
        let refused = run(dir, &[arguments, &["--token", &token]].concat(), b"");
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{arguments:?}");
        assert!(message.contains("`annals push FILE URL --rebase`"), "{arguments:?}: {message}");
    }
    served.end();
}

#[test]
fn what_was_committed_is_there_after_the_server_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let rounds = if full { 200 } else { 8 };
    let mut served = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let address = served.address().to_owned();
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let script: String =
            (0..200).map(|n| format!("insert page \"{round} {n}\"\ncommit\n")).collect();
        let url = served.url.clone();
        let writing = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                run(dir, &["shell", "replica.annals", "--replica-of", &url], script.as_bytes())
            });
            std::thread::sleep(Duration::from_millis(100 + 37 * (round % 7)));
            served.kill();
            std::thread::sleep(Duration::from_millis(20));
            served = Served::start(dir, &address, &["--no-token"]);
            writing.join().unwrap()
        });
        let printed = String::from_utf8(writing.stdout).unwrap();
        let count = printed.lines().filter(|line| line.starts_with("committed ")).count();
        acknowledged.extend((0..count).map(|n| format!("{round} {n}")));
        if writing.status.success() {
            assert_eq!(count, 200, "it asked the new server, and went on");
        }
        let now = succeed(dir, &["dump", &served.url, "--format", "json"], "");
        let now: serde_json::Value = serde_json::from_str(&now).unwrap();
        let rows = now["page"].as_array().unwrap();
        let titles: Vec<_> = rows.iter().map(|row| row["title"].as_str().unwrap()).collect();
        for title in &acknowledged {
            assert_eq!(titles.iter().filter(|it| *it == title).count(), 1, "{title}");
        }
    }
    assert!(acknowledged.len() > 8);
    served.end();
    assert!(succeed(dir, &["check", "a.annals", "--replay"], "").starts_with("ok"));
    assert!(succeed(dir, &["check", "replica.annals", "--replay"], "").starts_with("ok"));
}

#[test]
fn a_server_follows_another_one_and_serves_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let mut first = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let (address, url) = (first.address().to_owned(), first.url.clone());
    let second = Served::follow(dir, "second.annals", &url);
    let third = Served::follow(dir, "third.annals", &second.url);
    let write = |title: &str| {
        let script = format!("insert page {title}\n");
        succeed(dir, &["shell", "writer.annals", "--replica-of", &url], &script)
    };
    // The end of the tree waits for a transaction at its root.
    let news = |after: &str| {
        let mut log = annals(dir, &["log", &third.url, "--follow", "--from", after]);
        log.stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut following = news("txid:1");
    assert_eq!(write("one"), "committed txid=2 runs=1\n");
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("one")));

    let refused =
        run(dir, &["shell", "other.annals", "--replica-of", &second.url], b"insert page x\n");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && message.contains(&format!("it follows {url}")),
        "{message}"
    );

    // What follows goes on when it can, and serves what it has meanwhile.
    first.kill();
    assert!(succeed(dir, &["dump", &third.url], "").contains("one"));
    first = Served::start(dir, &address, &["--no-token"]);
    assert_eq!(write("two"), "committed txid=3 runs=1\n");
    assert!(lines.any(|line| line.contains("two")));
    following.kill().unwrap();
    following.wait().unwrap();
    for served in [third, second, first] {
        served.end();
    }
    let all = succeed(dir, &["dump", "a.annals"], "");
    assert_eq!(all, succeed(dir, &["dump", "third.annals"], ""));
    assert!(succeed(dir, &["check", "third.annals", "--replay"], "").starts_with("ok"));
}

/// Asks a server for a path; returns the whole answer.
pub(crate) fn answer_to(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asks a server whether it is ready, until it answers so.
pub(crate) fn wait_until_ready(address: &str, status: &str) -> String {
    for _ in 0..600 {
        let answer = answer_to(address, "/ready");
        if answer.contains(status) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{address} doesn't answer {status}")
}

#[test]
fn a_follower_whose_source_has_another_history_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    succeed(dir, &["shell", "a.annals"], "insert page one\n");
    let mut first = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let address = first.address().to_owned();
    let second = Served::follow(dir, "second.annals", &first.url);
    wait_until_ready(second.address(), " 200 ");
    // Another database is put in its place.
    first.kill();
    let said = wait_until_ready(second.address(), " 503 ");
    assert!(said.contains("what others have committed may be missing here"), "{said}");
    std::fs::rename(dir.join("a.annals"), dir.join("kept.annals")).unwrap();
    let _ = std::fs::rename(dir.join("a.annals-image"), dir.join("kept.annals-image"));
    create(dir);
    succeed(dir, &["shell", "a.annals"], "insert page two\ncommit\ninsert page three\n");
    let mut other = Served::start(dir, &address, &["--no-token"]);
    for _ in 0..100 {
        let said = wait_until_ready(second.address(), " 503 ");
        if said.contains("differ") {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let said = wait_until_ready(second.address(), " 503 ");
    assert!(said.contains("differ") && said.contains("not_ready"), "{said}");
    assert!(succeed(dir, &["dump", &second.url], "").contains("one"), "it is read all the same");
    other.kill();
    for file in ["a.annals", "a.annals-image"] {
        let _ = std::fs::remove_file(dir.join(file));
        let _ = std::fs::rename(dir.join(file.replace("a.annals", "kept.annals")), dir.join(file));
    }
    let first = Served::start(dir, &address, &["--no-token"]);
    wait_until_ready(second.address(), " 200 ");
    for served in [second, first] {
        served.end();
    }
}

#[test]
fn passwords_in_urls_are_refused_and_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let http = "http://ann:secret@127.0.0.1:9/v1/a";
    let token = "http://secret@127.0.0.1:9/v1/a";
    let web = "https://ann:secret@127.0.0.1:9/a.annals";
    let archive = "s3://key:secret@backups/a";
    let nats = "nats://ann:secret@127.0.0.1:9/a.b";
    for (arguments, said) in [
        (&["clone", http, "b.annals"][..], "ANNALS_TOKEN"),
        (&["clone", token, "b.annals"], "ANNALS_TOKEN"),
        (&["clone", web, "b.annals"], "ANNALS_TOKEN"),
        (&["clone", web, "b.annals", "--lazy"], "ANNALS_TOKEN"),
        (&["clone", archive, "b.annals"], "AWS_ACCESS_KEY_ID"),
        (&["dump", http], "ANNALS_TOKEN"),
        (&["history", http, "page", "0"], "ANNALS_TOKEN"),
        (&["sql", http, "SELECT 1"], "ANNALS_TOKEN"),
        (&["shell", http], "http://127.0.0.1:9"),
        (&["shell", "b.annals", "--replica-of", http], "ANNALS_TOKEN"),
        (&["push", "a.annals", http], "ANNALS_TOKEN"),
        (&["serve", "b.annals", "--follow", http], "ANNALS_TOKEN"),
        (&["serve", "a.annals", "--backup", http, "--no-token"], "ANNALS_TOKEN"),
        (&["archive", "a.annals", archive], "AWS_ACCESS_KEY_ID"),
        (&["restore", archive, "b.annals"], "AWS_ACCESS_KEY_ID"),
        (&["check", archive], "AWS_ACCESS_KEY_ID"),
        (&["serve", "b.annals", "--log", nats], "nats://HOST:PORT/STREAM"),
        (&["shell", "b.annals", "--log", nats], "nats://HOST:PORT/STREAM"),
        (&["log", "create", nats], "nats://HOST:PORT/STREAM"),
        (&["log", "create", "nats://ann:secret@127.0.0.1:9"], "nats://HOST:PORT/STREAM"),
        (&["clone", "ftp://ann:secret@127.0.0.1/a", "b.annals"], "isn't a URL"),
        (&["clone", "ssh://ann:secret@127.0.0.1/a.annals", "b.annals"], "ssh asks"),
        (&["check", "http://ann:sec/secret@127.0.0.1:9/v1/a"], "isn't the URL"),
    ] {
        let output = run(dir, arguments, b"");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        assert!(!output.status.success() && printed.contains(said), "{arguments:?}: {printed}");
        assert!(!printed.contains("secret"), "{arguments:?}: {printed}");
    }
    let mut archive = annals(dir, &["archive", "a.annals", "s3://backups/a"]);
    archive.env("AWS_ENDPOINT_URL", "http://ann:secret@127.0.0.1:9");
    let output = crate::program::feed(archive, b"");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("AWS_ENDPOINT_URL") && !printed.contains("secret"), "{printed}");
}

#[test]
fn requests_are_logged_without_what_is_secret() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let options = ["--log-level", "info", "--log-format", "json"];
    let served = Served::start(dir, "127.0.0.1:0", &options);
    let token = served.token.clone().unwrap();
    succeed(dir, &["dump", &served.url, "--token", &token], "");
    let wrong = run(dir, &["history", &served.url, "nothing", "0", "--token", "annals_wrong"], b"");
    assert!(!wrong.status.success());
    served.end();
    let log = std::fs::read_to_string(dir.join("a.annals.log")).unwrap();
    assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{log}");
    let has =
        |parts: [&str; 3]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(["\"path\":\"/v1/a/files\"", "\"status\":200", "\"micros\":"]), "{log}");
    assert!(has(["\"status\":401", "unauthenticated", "refused"]), "{log}");
    assert!(
        !log.contains(&token) && !log.contains("annals_wrong") && !log.contains("after="),
        "{log}"
    );
}

#[test]
fn wrong_arguments_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let refused = |arguments: &[&str], why: &str| {
        let output = run(dir, arguments, b"");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(why), "{arguments:?}: {message}");
    };
    refused(&["serve", "a.annals", "--listen", "0.0.0.0:0"], "needs TLS");
    refused(&["serve", "a.annals", "--listen", "nowhere"], "cannot listen at nowhere");
    refused(&["serve", "a.annals", "a.annals"], "a.annals");
    refused(
        &["serve", "typo.annals", "--no-token"],
        "typo.annals: there is no such file; --create",
    );
    refused(&["serve", "typo.annals", "--stdio"], "typo.annals: there is no such file; --create");
    assert!(!dir.join("typo.annals").exists());
    let new = Served::of(dir, "new.annals", &["--create", "--listen", "127.0.0.1:0", "--no-token"]);
    assert!(dir.join("new.annals").exists());
    drop(new);
    refused(&["clone", "http://127.0.0.1:9/v1/a", "b.annals"], "127.0.0.1:9");
    refused(&["clone", "http://127.0.0.1:9/a", "b.annals"], "/v1/NAME");
    refused(&["clone", "a.annals", "b.annals"], "annals backup");
    refused(&["token", "add", "nothing.annals", "--role", "read"], "no such database");
    refused(&["token", "revoke", "a.annals", "x"], "has no token");
    refused(&["token", "add", "a.annals", "--role", "king"], "read, write or admin");
    assert!(!dir.join("b.annals").exists());
}

#[test]
#[cfg(feature = "sqlite")]
fn a_server_is_asked_with_sql() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let served = Served::start(dir, "127.0.0.1:0", &["--no-token"]);
    let url = served.url.as_str();
    succeed(
        dir,
        &["shell", "--replica-of", url, "b.annals"],
        "insert page \"one, two\"\ninsert page \"\"\n",
    );
    let query =
        ["sql", url, "SELECT id, title, NULL AS empty FROM page WHERE id < ?", "--param", "9"];
    for format in ["table", "line", "csv", "json", "ndjson"] {
        let here = [&query[..1], &["b.annals"], &query[2..], &["--format", format]].concat();
        let there = [&query, &["--format", format][..]].concat();
        // The server's numbers are texts in a table: they begin at the left.
        let plain = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let empty = |text: String| text.replace("NULL", "");
        let [here, there] =
            [here, there].map(|arguments| plain(empty(succeed(dir, &arguments, ""))));
        assert_eq!(here, there, "{format}");
    }
    let two = "SELECT 1 AS one; SELECT 'a;b' AS two -- last";
    for format in ["table", "csv", "json"] {
        let [here, there] = ["b.annals", url]
            .map(|of| succeed(dir, &["sql", of, two, "--format", format], "").replace(' ', ""));
        assert_eq!(here, there, "{format}");
    }
    #[cfg(feature = "arrow")]
    for (format, name) in [("parquet", "a.parquet"), ("arrow", "a.arrows")] {
        let answer = |of: &str, out: &str| {
            let arguments = [&["sql", of], &query[2..], &["--format", format, "-o", out]].concat();
            succeed(dir, &arguments, "");
            std::fs::read(dir.join(out)).unwrap()
        };
        assert_eq!(answer(url, name), answer("b.annals", name), "{format}");
    }
    let refused = run(dir, &["sql", url, "DELETE FROM page"], b"");
    assert_ne!(refused.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("SQL only reads"), "{refused:?}");
    served.end();
}
