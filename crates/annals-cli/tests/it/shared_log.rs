//! `annals log create`, and `annals shell` and `annals serve` as nodes, over three servers of NATS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use annals_replica::shared_log::testing::Cluster;

use crate::program::{run, succeed};
use crate::served::Served;

/// Sends a transaction to a node; returns the answer.
fn post(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/carol/transactions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn nodes_share_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, servers) = (folder.path(), folder.path().join("servers"));
    std::fs::create_dir(&servers).unwrap();
    let cluster = match Cluster::start(&servers, "\"always\"") {
        Ok(cluster) => cluster,
        Err(needs) => return annals_untested::untested(needs),
    };
    let (url, access) = (cluster.url("orders"), cluster.access());
    let monitors = access.monitors.iter().flat_map(|url| ["--monitor", url]);
    let monitors: Vec<&str> = monitors.collect();
    let refused = run(dir, &["log", "create", &url, "--replicas", "3"], b"");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("sync_interval"), "{said}");
    assert!(said.contains("--monitor") && said.contains("--trust-server"), "{said}");
    let made =
        succeed(dir, &[&["log", "create", &url, "--replicas", "3"], &monitors[..]].concat(), "");
    assert_eq!(made, format!("created {url} with 3 replicas\n"));

    let shell = |file, script: &str| {
        succeed(dir, &[&["shell", file, "--log", &url], &monitors[..]].concat(), script)
    };
    let script = "create_table item\nadd_field item name string\ncommit\ninsert item bread\n";
    assert_eq!(shell("ann.annals", script), "committed txid=1 runs=1\ncommitted txid=2 runs=1\n");
    assert_eq!(shell("bob.annals", "insert item butter\n"), "committed txid=3 runs=1\n");

    let options = ["--listen", "127.0.0.1:0", "--no-token", "--log", &url];
    let mut served = Served::of(dir, "carol.annals", &[&options[..], &monitors].concat());
    let address = served.address();
    let insert = r#"{"changes":[{"op":"insert","table":"item","fields":{"name":"jam"}}]}"#;
    let answer = post(address, insert);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"txid\":4"), "{answer}");
    let refused = post(address, &insert.replace("jam\"", "jam\",\"price\":1"));
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    let printed =
        succeed(dir, &["shell", "dan.annals", "--replica-of", &served.url], "insert item tea\n");
    assert_eq!(printed, "committed txid=5 runs=1\n");
    // By the log, not by the node. What others wrote is there before it is run, or makes it run again.
    let printed = shell("ann.annals", "insert item milk\n");
    assert!(printed.starts_with("committed txid=6 runs="), "{printed}");
    served.kill();
    shell("bob.annals", "");
    shell("carol.annals", "");
    let dump = succeed(dir, &["dump", "ann.annals"], "");
    for name in ["bread", "butter", "jam", "tea", "milk"] {
        assert!(dump.contains(name), "{name}: {dump}");
    }
    for other in ["bob.annals", "carol.annals"] {
        assert_eq!(succeed(dir, &["dump", other], ""), dump, "{other}");
    }
    let refused = run(dir, &["shell", "ann.annals"], b"insert item alone\n");
    assert!(refused.status.success(), "a file without its log is a file like any other");
    let refused = run(dir, &[&["shell", "ann.annals", "--log", &url], &monitors[..]].concat(), b"");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("doesn't have transaction 7"), "{said}");
}
