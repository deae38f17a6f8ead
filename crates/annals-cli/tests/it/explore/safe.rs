//! Who may look, and values that would like to be code.

use serde_json::json;

use super::{Explored, library};
use crate::program::{run, succeed};

#[test]
fn values_are_text_whatever_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let script = r#"create_table note
add_field note text string
add_field note more json null
add_field note raw bytes null
insert note "<script>document.title='taken'</script>" "{\"a\":\"<img src=x onerror=alert(1)>\"}" 0x89504e470d0a1a0a
insert note "</td></tr></table><b>bold</b>" null null
insert note "javascript:alert(1) ${1+1} \u{202e}abc" null null
comment "<script>document.title='taken'</script>"
"#;
    succeed(dir, &["shell", "a.annals"], script);
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    for link in
        ["#/note", "#/note/0", "#/note/1", "#:log", "#:search?text=script", "#/note?filter=script"]
    {
        browser.show(link);
        assert_eq!(
            browser.get("document.querySelectorAll('body script, main b').length"),
            json!(0),
            "{link}"
        );
        assert!(!browser.text("document.title").contains("taken"), "{link}");
    }
    browser.show("#/note");
    let cell = "document.querySelector('[data-row=\"0\"] [data-field=text]').innerText";
    assert_eq!(browser.text(cell), "<script>document.title='taken'</script>");
    browser.check();
    // A link that isn't one of ours is no page.
    browser.show("#/%3Cscript%3E");
    assert!(
        browser
            .text("document.querySelector('[role=alert]').innerText")
            .contains("there is no table")
    );
}

#[test]
fn names_and_values_at_the_edge_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let long = "x".repeat(300_000);
    let script = format!(
        "create_table constructor\nadd_field constructor toString float64 null\nadd_field constructor valueOf string null\n\
         add_field constructor id int64 null\ninsert constructor nan \"a\" -9223372036854775808\n\
         insert constructor -inf \"{long}\" 9223372036854775807\ncommit\nupdate constructor 0 toString 0.1\ncommit\n"
    );
    succeed(dir, &["shell", "a.annals"], &script);
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let cell = |id: u64, field: &str| {
        let cell = format!("[data-row='{id}'] [data-field='{field}']");
        browser.text(&format!("document.querySelector({}).innerText", json!(cell)))
    };
    browser.show("#/constructor");
    let cut = "[...document.querySelectorAll('.head > div')].filter(it => it.scrollWidth > it.clientWidth).length";
    assert_eq!(browser.get(cut), json!(0), "headings are whole");
    assert_eq!(cell(0, "constructor.id"), "-9223372036854775808");
    assert_eq!(cell(1, "constructor.id"), "9223372036854775807");
    assert_eq!(
        (cell(0, "toString"), cell(1, "toString")),
        ("0.1".to_owned(), "-Infinity".to_owned())
    );
    // Of a long value a cell has the beginning, and a sign that there is more.
    let long = cell(1, "valueOf");
    assert!(long.chars().count() == 301 && long.ends_with('…'), "{long}");
    browser.press(&[], &[super::LEFT]);
    assert_eq!(cell(0, "toString"), "NaN");
    for link in [
        "#/constructor/1",
        "#:log",
        "#:schema",
        "#:storage",
        "#:search?text=xx",
        "#/constructor?filter=xx",
        "#/constructor?pin=txid:1&only=changed",
        "#:sql?sql=SELECT+*+FROM+constructor",
    ] {
        browser.show(link);
        assert_eq!(
            browser.get("document.querySelector('.error')?.innerText ?? null"),
            json!(null),
            "{link}"
        );
        assert!(browser.get("document.body.innerText.length < 60000").as_bool().unwrap(), "{link}");
    }
    // A long value is broken, and no name.
    browser.show("#/constructor/1");
    let lines = "[...document.querySelectorAll('.fields th[scope=row]')].map(it => { const all = document.createRange(); all.selectNodeContents(it); return all.getClientRects().length; })";
    assert_eq!(browser.get(lines), json!([1, 1, 1]));
    assert!(browser.get("document.documentElement.scrollWidth <= 1200").as_bool().unwrap());
    browser.show("#:sql?sql=SELECT+*+FROM+constructor");
    browser.run("document.querySelector('textarea').select()");
    browser.type_keys(&[], &"select constructor.".chars().collect::<Vec<_>>());
    browser.check();
}

/// Asks for a path; returns the status line and the headers.
fn ask(explored: &Explored, path: &str, headers: &[&str]) -> String {
    let url = format!("{}{path}", explored.origin());
    let mut arguments = vec!["-s", "-o", "/dev/null", "-D", "-"];
    headers.iter().for_each(|header| arguments.extend(["-H", header]));
    arguments.push(&url);
    let answer = std::process::Command::new("curl").args(arguments).output().unwrap();
    String::from_utf8(answer.stdout).unwrap()
}

#[test]
fn only_the_link_opens_the_page() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let status = |path: &str, headers: &[&str]| {
        let answer = ask(&explored, path, headers);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status("/explore/library/", &[]), "401");
    assert_eq!(status("/explore/other/", &[]), "401", "nothing is said of what is there");
    assert_eq!(status("/v1/library/t/author", &[]), "401");
    assert_eq!(status("/explore/library?token=wrong", &[]), "401");
    let entered = ask(&explored, &format!("/explore/library?token={}", explored.token()), &[]);
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    let lower = entered.to_lowercase();
    assert!(lower.contains("location: /explore/library/\r\n"), "{entered}");
    assert!(lower.contains("httponly; samesite=strict"), "{entered}");
    let cookie = explored.cookie();
    assert_eq!(status("/explore/library/", &[&cookie]), "200");
    assert_eq!(status("/v1/library/t/author", &[&cookie]), "200");
    assert_eq!(status("/v1/library/t/author", &[&cookie, "Host: evil.example"]), "403");
    assert_eq!(status("/v1/library/t/author", &[&cookie, "Origin: http://evil.example"]), "403");
    let page = ask(&explored, "/explore/library/", &[&cookie]).to_lowercase();
    assert!(page.contains("content-security-policy: default-src 'none'"), "{page}");
    assert_eq!(status("/explore/library/..%2fCargo.toml", &[&cookie]), "404");
}

#[test]
fn it_listens_on_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let arguments = ["explore", "library.annals", "--no-open", "--listen", "0.0.0.0:0"];
    let refused = run(folder.path(), &arguments, b"");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("127.0.0.1"));
    let missing = run(folder.path(), &["explore", "missing.annals", "--no-open"], b"");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no such file"));
}
