//! Values by their types, times in a zone, marks, paper.

use serde_json::json;

use super::{END, Explored, library};
use crate::program::{run, succeed};

/// A picture of one red pixel.
const PICTURE: &str = "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000\
     000c49444154789c6338a1a1010002d4011905508fa40000000049454e44ae426082";

#[test]
fn values_are_shown_by_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let script = format!(
        "create_table thing\nadd_field thing seen timestamp null\nadd_field thing more json null\n\
         add_field thing picture bytes null\nadd_field thing words bytes null\nadd_field thing scan blob null\n\
         add_field thing size uint64 null\nadd_field thing flag bool\nwrite_blob \"a scan's text\"\n\
         insert thing 2024-02-29T12:00:00.25Z \"{{\\\"a\\\":[1,2]}}\" 0x{PICTURE} 0x{} blob:1 18446744073709551615 true\n",
        "68656c6c6f"
    );
    let made = run(dir, &["shell", "a.annals"], script.as_bytes());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/thing/0");
    let field = |name: &str| {
        browser.text(&format!("document.querySelector('.fields [data-field={name}]').innerText"))
    };
    let drawn = "[...document.images].map(it => it.naturalWidth)";
    browser.until(&format!("{drawn}.length === 2 && {drawn}.every(it => it === 1)"));
    assert!(field("more").contains("{\"a\":[1,2]}"), "{}", field("more"));
    assert!(field("words").starts_with("hello"), "{}", field("words"));
    assert_eq!(field("size"), "18446744073709551615");
    assert_eq!(field("seen"), "2024-02-29 12:00:00.25");
    browser.run("document.querySelector('.fields [data-field=scan] [data-do=load]').click()");
    browser.until(
        "document.querySelector('.fields [data-field=scan]').innerText.startsWith(\"a scan's text\")",
    );
    // Another zone; the link has it.
    browser.run("const it = document.querySelector('.zone select'); it.value = 'Asia/Tokyo'; it.dispatchEvent(new Event('change', { bubbles: true }))");
    browser.until("location.hash.includes('zone=Asia')");
    browser.ready();
    assert_eq!(field("seen"), "2024-02-29 21:00:00.25");
    browser.show("#/thing?zone=Nowhere");
    let cell = "document.querySelector('[data-row=\"0\"] [data-field=seen]').innerText";
    assert_eq!(browser.text(cell), "2024-02-29 12:00:00.25");
    browser.until("document.querySelector('.grid img').naturalWidth === 1");
    // Copies and files have what the rows have.
    browser.run("navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }");
    browser.run("document.querySelector('.copies button').click()");
    browser.until("globalThis.copied !== undefined");
    let expected = format!(
        "id,seen,more,picture,words,scan,size,flag\n0,2024-02-29T12:00:00.25Z,\"{{\"\"a\"\":[1,2]}}\",0x{PICTURE},0x68656c6c6f,blob:1,18446744073709551615,true\n"
    );
    assert_eq!(browser.text("copied"), expected);
    // People read the same words everywhere.
    for link in ["#:log", "#:search?text=flag%3Dyes"] {
        browser.show(link);
        browser.until("document.querySelector('main').innerText.includes('flag: yes')");
    }
    browser.check();
}

#[test]
fn marks_are_reached_with_the_keyboard() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    succeed(dir, &["shell", "library.annals"], "valid_data\ncommit\n");
    let explored = Explored::start(dir, "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.until("explorer.activity.known === explorer.activity.last");
    browser.press(&[], &[END]);
    let said = || browser.text("document.querySelector('output').innerText");
    assert!(said().contains("valid data"), "{}", said());
    for (txid, text) in
        [("10", "schema: add_field author note"), ("8", "a date was found"), ("1", "the first two")]
    {
        browser.press(&[], &['[']);
        assert_eq!(browser.text("document.body.dataset.txid"), txid);
        assert!(said().contains(text), "{}", said());
    }
    browser.press(&[], &[']']);
    assert_eq!(browser.text("document.body.dataset.txid"), "8");
    browser.check();
}

#[test]
fn paper_has_the_rows_and_the_moment() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book?at=txid:9");
    browser.run(
        "globalThis.print = () => { globalThis.printed = document.querySelectorAll('[data-row]').length; }",
    );
    browser.run("document.querySelector('[data-do=print]').click()");
    browser.until("globalThis.printed === 59");
    browser.until("document.querySelectorAll('[data-row]').length < 59");
    browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    let shown =
        |what: &str| browser.get(&format!("document.querySelector('{what}').checkVisibility()"));
    assert_eq!(shown(".plot"), json!(false));
    assert_eq!(shown(".tables"), json!(false));
    assert_eq!(shown("output"), json!(true));
    // The place for further rows doesn't become empty paper.
    assert!(browser.get("document.querySelector('.space').clientHeight < 1500").as_bool().unwrap());
    browser.check();
}

#[test]
fn the_first_table_that_has_rows_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "create_table empty\ncreate_table full\ninsert full\ncreate_table other\ninsert other\ncommit\n";
    succeed(folder.path(), &["shell", "a.annals"], schema);
    let explored = Explored::start(folder.path(), "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    assert_eq!(browser.text("document.querySelector('main h2').innerText"), "full");
}

#[test]
fn only_what_changed_is_listed_and_a_day_is_gone_to() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let rows = "[...document.querySelectorAll('[data-row]')].map(it => [Number(it.dataset.row), it.classList.contains('delete')])";
    browser.show("#/book?at=txid:9");
    browser.press(&[], &['c']);
    assert_eq!(browser.text("location.hash"), "#/book?at=txid:9&only=changed");
    assert_eq!(browser.get(rows), json!([[3, true], [5, false]]));
    browser.press(&[], &[super::RIGHT]);
    assert_eq!(browser.get(rows), json!([]));
    browser.show("#/book?at=txid:11&pin=txid:8&only=changed");
    assert_eq!(browser.get(rows), json!([[3, true], [5, false], [60, false]]));
    browser.press(&[], &['c']);
    assert!(browser.get(&format!("{rows}.length > 10")).as_bool().unwrap());
    // Days before all, and after all. The page says which state of a day is meant.
    assert!(browser.text("document.querySelector('.day').innerText").starts_with("end of"));
    let day = |day: &str| {
        browser.run(&format!(
            "document.body.dataset.ready = '0'; const it = document.querySelector('[type=date]'); \
             it.value = '{day}'; it.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        ));
        browser.ready();
        browser.text("document.body.dataset.txid")
    };
    assert_eq!(day("2001-01-01"), "1");
    assert_eq!(day("2999-01-01"), "11");
    let ends = "import('./moment.js').then(it => [it.endOfDay('2024-06-30', 'UTC'), it.endOfDay('2024-06-30', 'Asia/Tokyo')])";
    assert_eq!(browser.get(ends), json!(["2024-06-30T23:59:59.999Z", "2024-06-30T14:59:59.999Z"]));
    browser.check();
}
