//! Erased values: on every page they are said to be erased. Nothing is blank in their place, and nothing has an older value.

use std::path::Path;

use serde_json::json;

use super::browser::Browser;
use super::{Explored, LEFT};
use crate::program::succeed;

/// Makes a table of which values are erased by transactions 6, 7 and 8: all of row 0, all of row 2, which was deleted, and the
/// name of row 1. Then row 0 gets a note, which is removed again, and fields are renamed.
fn create(dir: &Path) {
    let script = "create_table t\nadd_field t name string\nadd_field t n int64\nadd_field t note string null\n\
        add_field t raw bytes null\ncreate_index t_by_name t name\ncommit\n\
        insert t \"Secret One\" 41 \"hush\" 0x0102\ninsert t \"Secret Bob\" 0 null null\ncommit\n\
        update t 0 name \"Secret Two\"\nupdate t 0 note \"hush more\"\ncommit\n\
        insert t \"Secret Gone\" 43 \"hush\" null\ncommit\n\
        delete_from t 2\nupdate t 1 n 5\ncommit\n";
    succeed(dir, &["shell", "a.annals"], script);
    succeed(dir, &["erase", "a.annals", "t", "0", "--yes"], "");
    succeed(dir, &["erase", "a.annals", "t", "2", "--yes"], "");
    succeed(dir, &["erase", "a.annals", "t", "1", "--field", "name", "--yes"], "");
    let script = "update t 0 note \"again\"\ncommit\nupdate t 0 note null\ncommit\n\
        insert t \"Zoe\" 0 \"\" null\ncommit\nrename_field t note remark\nrename_field t raw bits\ncommit\n";
    succeed(dir, &["shell", "a.annals"], script);
}

/// The text of each cell of a table.
const CELLS: &str = "[...document.querySelectorAll('.grid [role=gridcell]')].filter(it => it.dataset.field !== 'id')\
    .map(it => `${it.closest('[data-row]').dataset.row} ${it.dataset.field}: ${it.innerText}${it.dataset.was ? ` was ${it.dataset.was}` : ''}`)";

/// Shows a page, which nothing erased may be on.
fn show(browser: &Browser, link: &str) {
    browser.show(link);
    check(browser, link);
}

fn check(browser: &Browser, link: &str) {
    let texts = "document.documentElement.outerHTML";
    let text = browser.text(texts);
    for erased in ["Secret", "hush", "0x0102", "41", "43"] {
        assert!(!text.contains(&format!(">{erased}")), "{link}: {erased} is on the page");
    }
    let alert = "document.querySelector('[role=alert]')?.innerText ?? null";
    assert_eq!(browser.get(alert), json!(null), "{link}");
}

#[test]
fn erased_values_are_said_to_be_erased_in_tables() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let explored = Explored::start(folder.path(), "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.until("explorer.activity.known === explorer.activity.last");
    let first = ["0 name: erased", "0 n: erased", "0 remark: erased", "0 bits: erased"];
    let second = ["1 name: erased", "1 n: 5", "1 remark: null", "1 bits: null"];
    let gone = ["2 name: erased", "2 n: erased", "2 remark: erased", "2 bits: erased"];
    let last = ["3 name: Zoe", "3 n: 0", "3 remark: ", "3 bits: null"];
    let mut begun = second;
    begun[1] = "1 n: 0";
    let mut now = first;
    // It was set since, and then to null.
    now[2] = "0 remark: null";
    let (mut with_note, mut without) = (first, first);
    with_note[2] = "0 remark: again was erased";
    without[2] = "0 remark: null was again";
    let mut counted = second;
    counted[1] = "1 n: 5 was 0";
    let mut noted = first;
    noted[2] = "0 remark: again was erased";
    for (link, rows) in [
        ("#/t", [&now, &second, &last].as_slice()),
        ("#/t?order=t_by_name", &[&now, &second, &last]),
        ("#/t?at=txid:8", &[&first, &second]),
        ("#/t?at=txid:5", &[&first, &counted]),
        ("#/t?at=txid:4", &[&first, &begun, &gone]),
        ("#/t?at=txid:2&order=t_by_name", &[&first, &begun]),
        ("#/t?only=changed&at=txid:9", &[&with_note]),
        ("#/t?only=changed&at=txid:10", &[&without]),
        ("#/t?only=changed&at=txid:5", &[&counted, &gone]),
        ("#/t?only=changed&at=txid:9&pin=txid:3", &[&noted, &counted]),
        ("#/t?only=changed&at=txid:9&pin=txid:4", &[&noted, &counted, &gone]),
        ("#/t?filter=0", &[&now, &last]),
        ("#/t?filter=name%3Dnull", &[&now, &second]),
        ("#/t?filter=remark%3Dnull&at=txid:4", &[&first, &begun, &gone]),
    ] {
        show(&browser, link);
        browser.until("document.querySelector('.grid [role=gridcell]') !== null");
        assert_eq!(
            browser.get(CELLS),
            json!(rows.iter().copied().flatten().collect::<Vec<_>>()),
            "{link}"
        );
    }
    // A step applies what it is told, and has nothing of another moment.
    show(&browser, "#/t?at=txid:9");
    for rows in [[first, second], [first, second], [first, second], [first, counted]] {
        browser.press(&[], &[LEFT]);
        assert_eq!(browser.get(CELLS), json!(rows.concat()), "{}", browser.text("location.hash"));
    }
    // By the names of then.
    let renamed = |rows: &[&str]| {
        let renamed = rows.iter().map(|it| it.replace("remark", "note").replace("bits", "raw"));
        renamed.collect::<Vec<_>>()
    };
    show(&browser, "#/t?at=txid:4&schema=then");
    browser.until("document.querySelector('.grid [role=gridcell]') !== null");
    assert_eq!(browser.get(CELLS), json!(renamed(&[first, begun, gone].concat())));
    // It says who did it, and leads there.
    show(&browser, "#/t");
    let mark = "document.querySelector('[data-row=\"1\"] [data-field=name] .mark')";
    let title = browser.text(&format!("{mark}.title"));
    assert!(
        title.contains("removed from all history on 2") && title.ends_with("by transaction 8"),
        "{title}"
    );
    assert_eq!(browser.text(&format!("{mark}.getAttribute('href')")), "#/t?at=txid:8");
    show(&browser, "#/t?at=txid:8");
    assert_eq!(
        browser.text("document.querySelector('.timeline .mark').innerText"),
        "erased: name of row 1 of t"
    );
    browser.check();
}

/// The pages of rows, now and at moments.
fn check_rows(browser: &Browser) {
    let fields = "[...document.querySelectorAll('.fields [data-field]')].map(it => `${it.dataset.field}: ${it.innerText}${it.dataset.was ? ` was ${it.dataset.was}` : ''}`)";
    for (link, expected) in [
        ("#/t/0", ["name: erased", "n: erased", "remark: null", "bits: erased"]),
        (
            "#/t/0?at=txid:9",
            ["name: erased", "n: erased", "remark: again was erased", "bits: erased"],
        ),
        ("#/t/0?at=txid:2", ["name: erased", "n: erased", "remark: erased", "bits: erased"]),
        (
            "#/t/0?at=txid:10&pin=txid:3",
            ["name: erased", "n: erased", "remark: null", "bits: erased"],
        ),
        ("#/t/1?at=txid:5", ["name: erased", "n: 5 was 0", "remark: null", "bits: null"]),
        ("#/t/2?at=txid:4", ["name: erased", "n: erased", "remark: erased", "bits: erased"]),
        (
            "#/t/0?at=txid:3&schema=then",
            ["name: erased", "n: erased", "note: erased", "raw: erased"],
        ),
        ("#/t/3", ["name: Zoe", "n: 0", "remark: ", "bits: null"]),
    ] {
        show(browser, link);
        browser.until("document.querySelectorAll('.versions > li').length > 0");
        assert_eq!(browser.get(fields), json!(expected), "{link}");
    }
}

/// Versions: the values before, and after.
fn check_versions(browser: &Browser) {
    let versions = "[...document.querySelectorAll('.version')].map(it => `${it.dataset.version}: ` + \
        [...it.querySelectorAll('tr')].map(it => [...it.children].map(it => it.innerText).join(' ')).join(', '))";
    for (row, expected) in [
        (
            0,
            json!([
                "10: remark again null",
                "9: remark erased again",
                "2: name  erased, n  erased, remark  erased, bits  erased",
            ]),
        ),
        (1, json!(["5: n 0 5", "2: name  erased, n  0, remark  null, bits  null"])),
        (
            2,
            json!([
                "5: name erased , n erased , remark erased , bits erased ",
                "4: name  erased, n  erased, remark  erased, bits  erased",
            ]),
        ),
    ] {
        show(browser, &format!("#/t/{row}"));
        browser.until("document.querySelectorAll('.versions > li').length > 0");
        assert_eq!(browser.get(versions), expected, "row {row}");
    }
}

/// The log, of all tables and of one.
fn check_logs(browser: &Browser) {
    for link in ["#:log", "#:log?of=t"] {
        show(browser, link);
        browser.until("document.querySelector('[data-transaction=\"2\"] li') !== null");
        let changes = |txid: u64| {
            browser.get(&format!("[...document.querySelectorAll('[data-transaction=\"{txid}\"] li')].map(it => it.innerText)"))
        };
        assert_eq!(
            changes(2),
            json!([
                "insert t 0 name: erased n: erased remark: erased bits: erased",
                "insert t 1 name: erased n: 0"
            ])
        );
        assert_eq!(
            changes(4),
            json!(["insert t 2 name: erased n: erased remark: erased bits: erased"])
        );
        let deletion = "delete t 2 name: erased n: erased remark: erased bits: erased";
        assert_eq!(changes(5), json!([deletion, "update t 1 n: 0 5"]));
        assert_eq!(
            (changes(9), changes(10)),
            (json!(["update t 0 remark: erased again"]), json!(["update t 0 remark: again null"]))
        );
    }
}

#[test]
fn erased_values_are_said_to_be_erased_on_other_pages() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let explored = Explored::start(folder.path(), "a.annals", &["--write"]);
    let Some(browser) = explored.browse() else { return };
    browser.until("explorer.activity.known === explorer.activity.last");
    check_rows(&browser);
    check_versions(&browser);
    check_logs(&browser);
    let main = || browser.text("document.querySelector('main').innerText");
    // Search: rows that are there, and those that aren't.
    show(&browser, "#:search?text=0");
    browser.until("document.querySelector('.search li') !== null");
    assert!(main().contains("t 0 name: erased · n: erased · bits: erased"), "{}", main());
    show(&browser, "#:search?text=2&deleted=1");
    browser.until("document.querySelector('.search li') !== null");
    assert!(main().contains("name: erased · n: erased · remark: erased"), "{}", main());
    show(&browser, "#:search?text=name%3Dnull");
    browser.until("document.querySelectorAll('.search li').length === 2");
    assert!(main().contains("t 1 · name: erased"), "{}", main());
    show(&browser, "#:search?text=row");
    browser.until("document.querySelector('.search h3') !== null");
    assert!(main().contains("erasure: row 2 of t"), "{}", main());
    // In SQL they are null, as everywhere in SQL.
    show(&browser, "#:sql?sql=SELECT+name,+n+FROM+t+WHERE+id+=+0&chart=bars,name,n");
    assert_eq!(
        browser.get("[...document.querySelectorAll('.answer td')].map(it => it.innerText)"),
        json!(["null", "null"])
    );
    for link in ["#:schema?at=txid:3", "#:storage"] {
        show(&browser, link);
    }
    // A version can't be restored without them, which is said.
    show(&browser, "#/t/2");
    browser.run("globalThis.prompt = () => 'back'");
    browser.run("document.querySelector('[data-version=\"4\"] [data-do=restore]').click()");
    browser.until("document.querySelector('[role=alert]')?.innerText.includes('erased')");
    assert_eq!(browser.get("explorer.last"), json!(12), "nothing was changed");
}

#[test]
fn copies_and_files_say_what_was_erased() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let explored = Explored::start(folder.path(), "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.until("explorer.activity.known === explorer.activity.last");
    browser.run("navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }");
    show(&browser, "#/t");
    browser.until("document.querySelectorAll('.grid [role=gridcell]').length > 0");
    let copy = |format: &str| {
        browser.run("globalThis.copied = undefined");
        browser.run(&format!("[...document.querySelectorAll('.copies button')].find(it => it.textContent === '{format}').click()"));
        browser.until("globalThis.copied !== undefined");
        browser.until(&format!(
            "document.querySelector('.about [role=status]').innerText.includes('{format}')"
        ));
        (
            browser.text("copied"),
            browser.text("document.querySelector('.about [role=status]').innerText"),
        )
    };
    let (text, said) = copy("Markdown");
    assert!(
        text.contains("| 0 | *erased* | *erased* |  | *erased* |\n| 1 | *erased* | 5 |  |  |"),
        "{text}"
    );
    assert_eq!(said, "3 rows copied as Markdown");
    let (text, said) = copy("CSV");
    assert!(text.contains("\n0,,,,\n1,,5,,\n3,Zoe,0,\"\",\n"), "{text}");
    assert_eq!(said, "3 rows copied as CSV; 4 erased values as null");
    let (text, said) = copy("JSON");
    assert!(text.contains("\"name\": null"), "{text}");
    assert_eq!(said, "3 rows copied as JSON; 4 erased values as null");
    assert!(
        browser
            .text("document.querySelector('.copies').textContent")
            .contains("all rows as a file, erased values as null")
    );
    for file in ["CSV", "JSON, a row a line"] {
        let href = format!("document.querySelector('[data-file=\"{file}\"]').href");
        let text = browser.text(&format!("fetch({href}).then(it => it.text())"));
        assert!(text.contains("Zoe") && !text.contains("Secret"), "{text}");
    }
    browser.check();
}

#[test]
fn what_only_an_erasure_leaves_is_said_without_its_mark() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    succeed(dir, &["backfill", "a.annals", "--mode", "truncate", "--forget-history"], "");
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.until("explorer.activity.known === explorer.activity.last");
    show(&browser, "#/t");
    browser.until("document.querySelector('.grid [role=gridcell]') !== null");
    let cells = browser.get(CELLS);
    let first = ["0 name: erased", "0 n: erased", "0 remark: null", "0 bits: null"];
    assert_eq!(json!(cells.as_array().unwrap()[..4]), json!(first));
    let mark = "document.querySelector('.grid .mark')";
    assert_eq!(browser.text(&format!("{mark}.title")), "its value was removed from all history");
    browser.check();
}
