//! Commands that read a part of a database elsewhere: from a server, and from files on an ordinary web server.

use std::path::Path;

use axum::Router;
use tower_http::services::ServeDir;

use crate::program::{run, succeed};
use crate::served::Served;

/// Serves a folder until the test's process ends.
fn serve_folder(folder: &Path) -> String {
    let routes = Router::new().fallback_service(ServeDir::new(folder));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        runtime.block_on(std::future::IntoFuture::into_future(axum::serve(listener, routes)))
    });
    url
}

/// Makes a database of some MiB, with a row that has a history, and an image.
fn create(dir: &Path) {
    let mut script = "create_table page\nadd_field page title string\nadd_field page text string\n\
        create_unique_index by_title page title\n"
        .to_owned();
    for number in 0..20_000 {
        script.push_str(&format!("insert page \"page {number}\" \"{}\"\n", "text ".repeat(30)));
    }
    script.push_str("commit\n");
    for number in 0..20 {
        script.push_str(&format!("update page 7 title \"version {number}\"\ncommit\n"));
    }
    succeed(dir, &["shell", "a.annals"], &script);
    succeed(dir, &["backfill", "a.annals"], "");
    succeed(dir, &["shell", "a.annals"], "update page 8 title last\n");
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap().trim_end();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Runs commands on a file, and on something else that must give the same output.
fn compare(dir: &Path, elsewhere: &str) {
    for arguments in [
        &["history", "page", "7"][..],
        &["history", "page", "7", "--limit", "2", "--format", "json"],
        &["blame", "page", "7"],
        &["diff", "txid:10", "txid:12"],
        &["dump", "--format", "json"],
        &["dump", "--at", "txid:5"],
        &["shell", "--read-only"],
    ] {
        let script: &[u8] = b"record page 7\npull\ntable page 20 5 3\n";
        let of = |file| {
            let all = [&arguments[..1], &[file], &arguments[1..]].concat();
            let ran = run(dir, &all, script);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
        };
        let (here, there) = (of("a.annals"), of(elsewhere));
        assert_eq!(there, here, "{arguments:?}");
        assert!(!here.1.is_empty(), "{arguments:?}: {}", here.2);
    }
}

#[test]
fn a_clone_that_is_lazy_becomes_whole() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    std::fs::create_dir(dir.join("served")).unwrap();
    for name in ["a.annals", "a.annals-image"] {
        std::fs::copy(dir.join(name), dir.join("served").join(name)).unwrap();
    }
    let served = Served::start(&dir.join("served"), "127.0.0.1:0", &["--no-token"]);
    let web = format!("{}/a.annals", serve_folder(dir));
    for (place, name) in [(served.url.as_str(), "b.annals"), (web.as_str(), "c.annals")] {
        compare(dir, place);
        let said = succeed(dir, &["clone", place, name, "--lazy"], "");
        let begin = format!("{name}.partial: transactions up to 22 can be read; fetched ");
        assert!(said.starts_with(&begin), "{said}");
        let (fetched, all) = (number_before(&said, " of "), number_before(&said, " bytes"));
        assert!(fetched * 20 < all, "{said}");
        assert!(!dir.join(name).exists());
        compare(dir, name);
        // All of it is needed.
        for command in ["check", "log", "info"] {
            let refused = run(dir, &[command, name], b"");
            let message = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(
                !refused.status.success()
                    && message.contains(&format!("annals clone {place} {name}")),
                "{message}"
            );
        }
        let refused = run(dir, &["shell", name], b"insert page x y\n");
        assert!(!refused.status.success() && !dir.join(name).exists());

        let said = succeed(dir, &["clone", place, name], "");
        assert_eq!(said, format!("{name}: fetched 22 transactions, up to transaction 22\n"));
        assert!(!dir.join(format!("{name}.partial")).exists());
        assert!(succeed(dir, &["check", name], "").starts_with("ok: 22 transactions"));
        assert_eq!(succeed(dir, &["dump", name], ""), succeed(dir, &["dump", "a.annals"], ""));
        let refused = run(dir, &["clone", place, name, "--lazy"], b"");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("is there already"));
        let again = succeed(dir, &["clone", place, name], "");
        assert_eq!(again, format!("{name}: fetched 0 transactions, up to transaction 22\n"));
    }
    assert!(succeed(dir, &["check", &web], "").starts_with("ok: 22 transactions"));
    // What is new comes, too.
    succeed(dir, &["shell", "a.annals"], "update page 9 title new\ncommit\n");
    let again = succeed(dir, &["clone", &web, "c.annals"], "");
    assert_eq!(again, "c.annals: fetched 1 transaction, up to transaction 23\n");
    let refused = run(dir, &["shell", &web], b"insert page x y\n");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("--read-only"), "{message}");
    served.end();
}
