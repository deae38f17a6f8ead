//! What somebody sees who may not look.

use std::process::Command;

use serde_json::{Value, json};

use super::browser::Browser;
use super::{Explored, library};

/// How a browser asks for a page.
const PAGE: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8";

/// Asks for a path; returns the status, the headers in lower case, and the body.
fn ask(explored: &Explored, path: &str, headers: &[&str]) -> (u16, String, String) {
    let mut arguments = vec!["-s", "-i"];
    headers.iter().for_each(|header| arguments.extend(["-H", header]));
    let url = format!("{}{path}", explored.origin());
    let answer = Command::new("curl").args(arguments).arg(url).output().unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

#[test]
fn people_are_told_what_to_do_and_programs_get_json() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let cookie = explored.cookie();
    for path in ["/explore/library/", "/explore/library?token=wrong", "/explore/other/"] {
        let (status, head, page) = ask(&explored, path, &[PAGE]);
        assert_eq!(status, 401, "{path}");
        assert!(head.contains("content-type: text/html"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'; style-src 'self'"));
        assert!(!head.contains("script-src") && !page.contains("<script"), "{page}");
        assert!(head.contains("www-authenticate: bearer"), "{head}");
        assert!(page.contains("Open the link that it printed last"), "{page}");
        assert!(!page.contains("library") && !page.contains("author"), "it says nothing: {page}");
        let (status, head, body) = ask(&explored, path, &[]);
        assert_eq!(status, 401, "{path}");
        assert!(head.contains("content-type: application/json"), "{head}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["error"], "unauthenticated");
    }
    let (status, _, page) =
        ask(&explored, "/explore/library/", &[PAGE, &cookie, "Host: a\"<b>.example"]);
    assert_eq!(status, 403);
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
    let (status, _, page) = ask(&explored, "/explore/other/", &[PAGE, &cookie]);
    assert_eq!(status, 404);
    assert!(page.contains("no database is served as /v1/other"), "{page}");
    // Only pages are for people.
    let (status, head, _) = ask(&explored, "/v1/library/t/author", &[PAGE]);
    assert!(status == 401 && head.contains("application/json"), "{head}");
}

#[test]
fn the_page_for_the_refused_is_readable() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = Browser::start(360, 640) else { return };
    browser.go(&format!("{}/explore/library?token=wrong", explored.origin()));
    assert_eq!(
        browser.text("document.querySelector('h1').innerText"),
        "The explorer needs its whole link"
    );
    assert_eq!(browser.get("document.styleSheets.length"), json!(1), "its style is loaded");
    assert_eq!(browser.get("getComputedStyle(document.querySelector('h1')).fontSize"), "22px");
    assert_eq!(browser.get("document.documentElement.scrollWidth <= 360"), json!(true));
    let elsewhere = "performance.getEntriesByType('resource').filter(it => !it.name.startsWith(location.origin)).length";
    assert_eq!(browser.get(elsewhere), json!(0));
    let complaints = browser.console();
    assert!(!complaints.iter().any(|it| it.contains("Content Security Policy")), "{complaints:?}");
}
