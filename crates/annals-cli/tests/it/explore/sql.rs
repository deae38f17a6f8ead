//! The page for SQL.

use serde_json::json;

use super::browser::Browser;
use super::{CONTROL, DOWN, ENTER, Explored, LEFT, TAB, library};

const ANSWER: &str = "[...document.querySelectorAll('.answer tr')].map(row => [...row.children].map(it => it.innerText))";

fn editor(browser: &Browser) -> String {
    browser.text("document.querySelector('.sql textarea').value")
}

#[test]
fn a_query_is_asked_at_the_moment_of_the_slider() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let sql = "SELECT a.name, count(*) AS books, a.born, '' AS \"1\" FROM book_at(:moment) b JOIN author_at(:moment) a ON a.id = b.by GROUP BY a.id";
    let link = format!("#:sql?at=txid:2&sql={}", sql.replace(' ', "+"));
    browser.show(&link);
    let expected = |books: [&str; 2], born: &str| {
        json!([
            ["name", "books", "born", "1"],
            ["Jane Austen", books[0], "1775", ""],
            ["Émile Zola", books[1], born, ""]
        ])
    };
    assert_eq!(browser.get(ANSWER), expected(["5", "5"], "null"));
    assert_eq!(editor(&browser), sql);
    // The slider moves, and the query is asked again; the link has both.
    browser.run("document.activeElement.blur()");
    browser.press(&[], &[super::END]);
    assert_eq!(browser.get(ANSWER), expected(["30", "30"], "1840"));
    browser.press(&[], &[LEFT]);
    assert_eq!(browser.get(ANSWER), expected(["30", "29"], "1840"));
    let here = browser.text("location.href");
    assert!(here.contains("at=txid:10") && here.contains("GROUP+BY"), "{here}");
    browser.go("about:blank");
    browser.go(&here);
    browser.ready();
    assert_eq!(browser.get(ANSWER), expected(["30", "29"], "1840"));
    // Without `:moment` it is asked about now, and not again.
    browser.show("#:sql?at=txid:9&sql=SELECT+count(*)+n+FROM+book");
    browser.run("globalThis.mark = performance.getEntriesByType('resource').length");
    browser.press(&[], &[LEFT]);
    assert_eq!(browser.get(ANSWER), json!([["n"], ["60"]]));
    let asked = "performance.getEntriesByType('resource').slice(mark).filter(it => it.name.endsWith('/sql')).length";
    assert_eq!(browser.get(asked), json!(0));
    browser.check();
}

#[test]
fn names_are_completed_with_the_keyboard_alone() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.press(&[], &['q']);
    browser.until("document.activeElement.tagName === 'TEXTAREA'");
    let offered = "[...document.querySelectorAll('#completions [role=option]')].map(it => it.innerText.trim())";
    let text = |text: &str| browser.type_keys(&[], &text.chars().collect::<Vec<_>>());
    text("select b.ti");
    browser.until("document.querySelector('#completions') === null");
    text(" from bo");
    browser.until(&format!("{offered}.includes('book table')"));
    browser.type_keys(&[], &[TAB]);
    assert_eq!(editor(&browser), "select b.ti from book");
    text("_h");
    browser.until(&format!("{offered}.includes('book_history table')"));
    browser.type_keys(&[], &[TAB]);
    text(" b where b.");
    browser.until(&format!("{offered}.includes('old_shelf column')"));
    text("new");
    browser.until(&format!("{offered}[0] === 'new_title column'"));
    browser.type_keys(&[], &[DOWN, TAB]);
    assert_eq!(editor(&browser), "select b.ti from book_history b where b.new_by");
    text(" and b.ne");
    browser.until(&format!("{offered}.length > 0"));
    // What SQLite complains about is marked, and the caret stands there; nothing lies over it.
    browser.press(&[CONTROL], &[ENTER]);
    assert_eq!(browser.text("document.querySelector('.error mark').innerText"), "b");
    browser.until("document.querySelector('#completions') === null");
    let said = browser.text("document.querySelector('.error').innerText");
    assert!(said.contains("no such column: b.ti (line 1, column 8)"), "{said}");
    browser.until("document.activeElement.selectionStart === 7");
    browser.run("document.querySelector('textarea').select()");
    text("select id, new_title from book_history(5)");
    browser.press(&[CONTROL], &[ENTER]);
    assert_eq!(
        browser.get(ANSWER),
        json!([["id", "new_title"], ["5", "Book 5"], ["5", "Germinal"]])
    );
    for (sql, message) in [
        ("DELETE FROM book", "SQL only reads here"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n", "100000"),
    ] {
        browser.show(&format!("#:sql?sql={}", sql.replace('+', "%2B").replace(' ', "+")));
        let said = browser.text("document.querySelector('.error').innerText");
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn an_answer_is_drawn_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#:sql?sql=SELECT+txid,+changes,+comment+FROM+annals_log+ORDER+BY+txid&chart=bars,txid,changes");
    assert_eq!(browser.get("document.querySelectorAll('svg.chart .bar').length"), json!(11));
    browser.run("const it = document.querySelector('.sql select'); it.value = 'line'; it.dispatchEvent(new Event('change', { bubbles: true }))");
    browser.until("document.querySelector('svg.chart polyline')?.points.length === 11");
    assert!(browser.text("location.hash").contains("chart=line,txid,changes"));
    // Copies and files, without the system's clipboard and downloads.
    browser.run("navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }");
    browser.run(
        "URL.createObjectURL = (blob) => { globalThis.saved = blob; return '#'; }; \
         HTMLAnchorElement.prototype.click = function () { globalThis.named = this.download; }",
    );
    browser.show("#:sql?sql=SELECT+1+AS+a,+null+AS+b,+''+AS+c,+'x,\"y\"|<b>'+AS+d,+18446744073709551615.5+AS+e");
    let copied = |format: &str| {
        browser.run(&format!(
            "globalThis.copied = null; [...document.querySelectorAll('.copies button')].find(it => it.innerText === '{format}').click()"
        ));
        browser.until("copied !== null");
        browser.text("copied")
    };
    assert_eq!(copied("CSV"), "a,b,c,d,e\n1,,\"\",\"x,\"\"y\"\"|<b>\",1.8446744073709552e19\n");
    assert_eq!(
        copied("Markdown"),
        "| a | b | c | d | e |\n| --- | --- | --- | --- | --- |\n| 1 |  |  | x,\"y\"\\|&lt;b> | 1.8446744073709552e19 |\n"
    );
    let copied: serde_json::Value = serde_json::from_str(&copied("JSON")).unwrap();
    assert_eq!(copied[0]["d"], "x,\"y\"|<b>");
    assert_eq!(copied[0]["b"], json!(null));
    browser.run("document.querySelector('[aria-label=\"save CSV\"]').click()");
    assert_eq!(browser.get("named"), "answer.csv");
    let saved = browser.get("saved.text()");
    assert!(saved.as_str().unwrap_or_default().starts_with("a,b,c"), "{saved}");
}
