//! `annals serve --stdio`: HTTP on standard input and output.

use crate::program::annals;
use crate::served::create;

#[test]
fn standard_output_carries_nothing_but_answers() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let request = "GET /v1/a/t/page/0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let output =
        crate::program::feed(annals(dir, &["serve", "a.annals", "--stdio"]), request.as_bytes());
    assert!(output.status.success());
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.ends_with('}'), "{answer}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
