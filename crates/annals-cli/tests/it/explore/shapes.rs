//! The schema at a moment, what differs from now, and what each table takes.

use serde_json::json;

use super::{Explored, LEFT, RIGHT};
use crate::program::{run, succeed};

/// A history of a schema in which everything is added, renamed and dropped.
const HISTORY: &str = "create_table author\nadd_field author name string\nadd_field author born int16 null\ncommit\n\
    create_table loan\nadd_field loan who references author\ncommit\n\
    insert author \"Jane Austen\" 1775\ninsert loan 0\ncommit\n\
    rename_field author born year\nadd_field author note string null\ncreate_table book\nadd_field book title string\ncommit\n\
    drop_table loan\nrename_table author person\ndrop_field person year\ncommit\n";

#[test]
fn the_diagram_is_the_schema_of_the_moment() {
    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &["shell", "a.annals"], HISTORY);
    let explored = Explored::start(folder.path(), "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let shapes = || {
        browser.get(
            "[...document.querySelectorAll('[data-shape]')].map(it => \
             [...it.querySelectorAll('text')].map(it => it.textContent.replace(/\\s+/g, ' ').trim()))",
        )
    };
    let arrows = || browser.get("document.querySelectorAll('svg .arrow').length");
    browser.show("#:schema");
    let now = json!([["person", "name string", "note string null"], ["book", "title string"]]);
    assert_eq!((shapes(), arrows()), (now.clone(), json!(0)));
    assert_eq!(browser.get("document.querySelector('[data-added]')"), json!(null));
    // The last step: a table was dropped, another renamed, and a field dropped.
    browser.press(&[], &[LEFT]);
    let author = ["author now person", "name string", "year dropped since", "note string null"];
    let loan = ["loan dropped since", "who → author null"];
    assert_eq!((shapes(), arrows()), (json!([author, loan, ["book", "title string"]]), json!(1)));
    assert_eq!(browser.get("document.querySelectorAll('svg .gone').length"), json!(2));
    let links =
        "[...document.querySelectorAll('[data-shape] a')].map(it => it.getAttribute('href'))";
    assert_eq!(browser.get(links), json!(["#/person?at=txid:4", "#/book?at=txid:4"]));
    browser.press(&[], &[LEFT]);
    let author = ["author now person", "name string", "born dropped since", "+ note added since"];
    assert_eq!((shapes(), arrows()), (json!([author, loan]), json!(1)));
    let added = || browser.text("document.querySelector('[data-added]').innerText");
    assert_eq!(added(), "Tables that were added since: book.");
    browser.show("#:schema?at=txid:1");
    assert_eq!((shapes(), arrows()), (json!([author]), json!(0)));
    assert_eq!(added(), "Tables that were added since: book.", "the other one was dropped");
    browser.press(&[], &[RIGHT]);
    assert_eq!(shapes(), json!([author, loan]));
    browser.show("#:schema");
    assert_eq!(shapes(), now);
    browser.check();
}

#[test]
fn each_table_has_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let long = "x".repeat(50_000);
    let scan = "a scan ".repeat(3_000);
    let mut script = format!(
        "create_table large\nadd_field large text string\ncreate_table film\nadd_field film scan blob null\n\
         create_table gone\nadd_field gone text string\ncommit\n\
         insert large \"{long}\"\nwrite_blob \"{scan}\"\ninsert film blob:1\ninsert gone \"{}\"\ncommit\n\
         update large 0 text \"{long}\"\ninsert film null\ncommit\ndrop_table gone\ncommit\n",
        "y".repeat(10_000)
    );
    (0..30).for_each(|table| {
        script += &format!("create_table small{table}\nadd_field small{table} it int64\ninsert small{table} {table}\n");
    });
    let made = run(dir, &["shell", "a.annals"], script.as_bytes());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.until("explorer.activity.known === explorer.activity.last");
    let tables = browser.get("explorer.activity.tables");
    let tables = tables.as_array().unwrap();
    assert_eq!(tables.len(), 25, "however many there are");
    let of = |name: &str| {
        let table = tables.iter().find(|it| it["table"] == name).unwrap();
        (table["changes"].as_u64().unwrap(), table["bytes"].as_u64().unwrap())
    };
    // So much are the values; a few bytes more are their events.
    for (name, changes, bytes) in
        [("large", 2, 100_000), ("film", 2, 21_000), ("small7", 1, 3), ("", 9, 10_000)]
    {
        let found = of(name);
        assert_eq!(found.0, changes, "{name}");
        assert!((bytes..bytes + 100).contains(&found.1), "{name}: {found:?}");
    }
    assert_eq!(tables[0]["table"], "large");
    assert_eq!(tables[24]["table"], "", "what was dropped, and the smallest");
    browser.show("#:storage");
    browser.until("document.querySelectorAll('[data-taken]').length === 25");
    let first = "document.querySelector('[data-taken=large]').innerText.replace(/\\s+/g, ' ')";
    assert!(browser.text(first).starts_with("large 97.7 KiB 2"), "{}", browser.text(first));
    browser.check();
}
