//! Values as they are, character for character.

use std::path::Path;

use serde_json::json;

use super::{Explored, LEFT};
use crate::program::{run, succeed};

const JSON: &str = r#"{"id": 9007199254740993, "big": 1e400, "price": 1.10, "a": 1, "a": 2, "10": "x", "9": "y", "neg": -0.0, "e": "\u00e9\ud83d"}"#;

/// Values of two rows of transaction 3, as they are shown.
const ROWS: [[&str; 7]; 2] = [
    [
        JSON,
        "9007199254740993",
        "18446744073709551615",
        "1e300",
        "0.1",
        "12345678901234.5000",
        "2024-02-29 12:00:00.123456",
    ],
    [
        "[1.0, -0, 1E5]",
        "-9223372036854775808",
        "9007199254740993",
        "-0.0",
        "16777216.0",
        "-0.1000",
        "0001-01-01T00:00:00Z",
    ],
];

fn create(dir: &Path) {
    let quoted = JSON.replace('\\', "\\\\").replace('"', "\\\"");
    let script = format!(
        "create_table t\nadd_field t j json null\nadd_field t i int64 null\nadd_field t u uint64 null\nadd_field t f float64 null\n\
         add_field t s float32 null\nadd_field t d decimal(4) null\nadd_field t w timestamp null\nadd_field t x string null\ncommit\n\
         insert t \"{quoted}\" 9007199254740993 18446744073709551615 1e300 0.1 12345678901234.5000 2024-02-29T12:00:00.123456Z \"\"\ncommit\n\
         insert t \"[1.0, -0, 1E5]\" -9223372036854775808 9007199254740993 -0.0 16777216 -0.1000 0001-01-01T00:00:00Z \"   \"\ncommit\n\
         update t 0 i 9007199254740995\ncommit\n"
    );
    let made = run(dir, &["shell", "a.annals"], script.as_bytes());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn json_and_numbers_are_the_text_that_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    for (id, row) in ROWS.iter().enumerate() {
        for link in [
            "#/t?at=txid:3",
            "#/t?filter=9007199254740993&at=txid:3",
            &format!("#/t/{id}?at=txid:3"),
        ] {
            browser.show(link);
            for (field, expected) in ["j", "i", "u", "f", "s", "d", "w"].iter().zip(row) {
                let place = match link.starts_with("#/t/") {
                    true => format!(
                        "document.querySelector('.fields [data-field={field}] :is(pre, span)')"
                    ),
                    false => format!(
                        "document.querySelector('[data-row=\"{id}\"] [data-field={field}] span')"
                    ),
                };
                browser.until(&format!("{place} !== null"));
                assert_eq!(
                    browser.text(&format!("{place}.textContent")),
                    *expected,
                    "{link}, {field}"
                );
            }
        }
    }
    // A step doesn't change them, nor what was there before.
    browser.show("#/t");
    let cell = "document.querySelector('[data-row=\"0\"] [data-field=i]')";
    assert_eq!(browser.text(&format!("{cell}.innerText")), "9007199254740995");
    assert_eq!(browser.text(&format!("{cell}.dataset.was")), "9007199254740993");
    browser.press(&[], &[LEFT]);
    assert_eq!(browser.text(&format!("{cell}.innerText")), "9007199254740993");
    // Copies have the numbers, too.
    browser.run("navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }");
    browser.run("[...document.querySelectorAll('.copies button')].find(it => it.innerText === 'JSON' || it.textContent === 'JSON').click()");
    browser.until("globalThis.copied !== undefined");
    let copied = browser.text("copied");
    for part in [
        "\"i\": 9007199254740993",
        "\"u\": 18446744073709551615",
        "\"f\": -0.0",
        "\"s\": 16777216.0",
    ] {
        assert!(copied.contains(part), "{part}: {copied}");
    }
    browser.show(
        "#:sql?sql=SELECT+9007199254740993+AS+x,+i*1.0+AS+y,+f,+j+FROM+t+WHERE+id=1&chart=bars,x,y",
    );
    let answer =
        browser.get("[...document.querySelectorAll('.answer td')].map(it => it.innerText)");
    assert_eq!(
        answer,
        json!(["9007199254740993", "-9.223372036854776e18", "-0.0", "[1.0, -0, 1E5]"])
    );
    // Empty texts, blanks and null look different.
    browser.show("#/t?at=txid:3");
    let seen = |id: u32| {
        browser.text(&format!(
            "document.querySelector('[data-row=\"{id}\"] [data-field=x] span').dataset.said"
        ))
    };
    assert_eq!((seen(0), seen(1)), ("empty text".to_owned(), "3 blanks".to_owned()));
    browser.check();
}

#[test]
fn columns_become_wider_by_drag_and_by_keys() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let long = "a long text ".repeat(40);
    succeed(
        dir,
        &["shell", "a.annals"],
        &format!(
            "create_table t\nadd_field t i int64\nadd_field t x string\ninsert t 9223372036854775807 \"{long}\"\ncommit\n"
        ),
    );
    let explored = Explored::start(dir, "a.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/t");
    let is_whole = "(it => it.scrollWidth <= it.clientWidth)(document.querySelector('[data-row=\"0\"] [data-field=i]'))";
    assert_eq!(browser.get(is_whole), json!(true));
    let width = || {
        browser
            .get("document.querySelector('[data-row=\"0\"] [data-field=x]').offsetWidth")
            .as_u64()
            .unwrap()
    };
    let before = width();
    browser.run("document.querySelector('[aria-label=\"width of x\"]').focus()");
    browser.type_keys(&[], &[super::RIGHT, super::RIGHT]);
    assert_eq!(width(), before + 32);
    assert_eq!(browser.text("document.body.dataset.txid"), "1", "the moment stays");
    let place = browser.get("(it => [it.right - 4, it.top + 20])(document.querySelector('[aria-label=\"width of x\"]').getBoundingClientRect())");
    let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    for (kind, x) in [("mousePressed", x), ("mouseMoved", x + 100.0), ("mouseReleased", x + 100.0)]
    {
        let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
        browser.devtools("Input.dispatchMouseEvent", &event);
    }
    browser.until(&format!(
        "document.querySelector('[data-row=\"0\"] [data-field=x]').offsetWidth === {}",
        before + 132
    ));
    // All of a value is in its tip.
    let tip = browser.text("document.querySelector('[data-row=\"0\"] [data-field=x] span').title");
    assert_eq!(tip, long);
    browser.check();
}
