//! Playing, sorting, finding by an id, checking, tips; and servers, to which only those come who may read.

use serde_json::json;

use super::browser::Browser;
use super::{Explored, library};
use crate::program::succeed;
use crate::served::Served;

#[test]
fn it_plays_up_to_now_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book?at=txid:9");
    browser.run("globalThis.seen = new Set(); new MutationObserver(() => seen.add(document.body.dataset.txid)).observe(document.body, { attributes: true })");
    browser.type_keys(&[], &['p']);
    browser.until("document.querySelector('[data-do=play]').ariaPressed === 'true'");
    browser.until("document.body.dataset.txid === '11'");
    browser.until("document.querySelector('[data-do=play]').ariaPressed === 'false'");
    assert_eq!(browser.get("seen.has('10')"), json!(true), "each transaction is shown");
    // It can be stopped on the way.
    browser.show("#/book?at=txid:2");
    browser.type_keys(&[], &['p', 'p']);
    browser.until("document.querySelector('[data-do=play]').ariaPressed === 'false'");
    assert_ne!(browser.text("document.body.dataset.txid"), "11");
    browser.check();
}

#[test]
fn headings_sort_and_ids_are_found() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/author");
    // A heading says the type.
    assert_eq!(
        browser.text("document.querySelectorAll('.head button')[1].title"),
        "name: string · sort by author_by_name"
    );
    let head = "[...document.querySelectorAll('.head button')].find(it => it.innerText.startsWith('name'))";
    browser.run(&format!("{head}.click()"));
    browser.until(
        "location.hash.includes('order=author_by_name') && document.body.dataset.ready === '1'",
    );
    assert_eq!(browser.text(&format!("{head}.innerText")), "name ↑");
    browser.run("document.querySelector('.head button').click()");
    browser.until("!location.hash.includes('order=')");
    browser.show("#:search?text=57");
    browser.until("document.querySelector('main').innerText.includes('book 57')");
    // A field's value, as people write it.
    browser.show("#/book?filter=shelf%3Dhigh");
    browser.until("document.querySelector('[data-found]')?.dataset.found === '2'");
    let ids = "[...document.querySelectorAll('.grid [data-row]')].map(it => it.dataset.row)";
    assert_eq!(browser.get(ids), json!(["5", "60"]));
    // Rows and transactions of an answer are links.
    browser.show("#:sql?sql=SELECT+txid,+id+FROM+book_history(5)+ORDER+BY+txid+DESC");
    let links = "[...document.querySelectorAll('.answer a')].map(it => it.hash)";
    let expected = ["#:log?at=txid:9", "#/book/5", "#:log?at=txid:2", "#/book/5"];
    assert_eq!(browser.get(links), json!(expected));
    // A place of the plot says what happened there.
    browser.run("const it = document.querySelector('.plot'); const { left, top } = it.getBoundingClientRect(); \
         it.dispatchEvent(new PointerEvent('pointermove', { clientX: left + 1, clientY: top + 9, bubbles: true }))");
    browser.until("document.querySelector('.tip')?.innerText.includes('author: 2 changes')");
    assert!(browser.text("document.querySelector('.tip').innerText").contains("the first two"));
    // It is whole, below the plot, and what is under it can be clicked.
    for share in ["0.001", "0.5", "0.999"] {
        browser.run(&format!("const it = document.querySelector('.plot'); const {{ left, top, width }} = it.getBoundingClientRect(); \
             it.dispatchEvent(new PointerEvent('pointermove', {{ clientX: left + width * {share}, clientY: top + 9, bubbles: true }}))"));
        let place = "(() => { const it = document.querySelector('.tip').getBoundingClientRect(); \
             const plot = document.querySelector('.plot').getBoundingClientRect(); \
             return it.left >= 0 && it.right <= innerWidth && it.top >= plot.bottom && it.bottom <= innerHeight \
             && !document.elementFromPoint(it.left + it.width / 2, it.top + it.height / 2).closest('.tip'); })()";
        browser.until(place);
    }
    browser.check();
}

#[test]
fn a_filter_applies_while_it_is_typed_and_a_click_opens_a_row() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book");
    let places = "[...document.querySelectorAll('.tools > *')].map(it => it.getBoundingClientRect()).map(it => [it.x, it.y, it.width])";
    let before = browser.get(places);
    browser.run("globalThis.mark = performance.getEntriesByType('resource').length; document.querySelector('[aria-label=filter]').focus()");
    browser.type_keys(&[], &"shelf=high".chars().collect::<Vec<_>>());
    browser.until("document.querySelector('[data-found]')?.dataset.found === '2'");
    assert_eq!(browser.text("document.querySelector('.about').innerText.split('rows')[0].replace(/\\s+/g, ' ').trim()"), "book 2 of 60");
    assert_eq!(browser.get(places), before, "nothing moved");
    let asked = "performance.getEntriesByType('resource').slice(mark).filter(it => it.name.includes('/search')).length";
    assert!(browser.get(asked).as_u64().unwrap() <= 3, "not one for each key");
    assert_eq!(browser.text("document.activeElement.value"), "shelf=high");
    browser.ready();
    // Dragging over a text selects it; a click opens the row.
    let mouse = |kind: &str, x: f64, y: f64| {
        let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
        browser.devtools("Input.dispatchMouseEvent", &event);
    };
    let place = browser.get("(it => [it.left + 11, it.top + 14])(document.querySelector('[data-row=\"5\"] [data-field=title]').getBoundingClientRect())");
    let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    for (kind, x) in [("mousePressed", x), ("mouseMoved", x + 90.0), ("mouseReleased", x + 90.0)] {
        mouse(kind, x, y);
    }
    assert_eq!(browser.text("getSelection().toString().trim()"), "Germinal");
    assert_eq!(
        browser.text("document.body.dataset.table + location.hash"),
        "book#/book?filter=shelf%3Dhigh"
    );
    mouse("mousePressed", x + 90.0, y);
    mouse("mouseReleased", x + 90.0, y);
    browser.until("document.querySelector('.of-row h2')?.innerText === 'book 5'");
    // What was typed is one step back.
    browser.run("history.back()");
    browser.until("document.querySelector('[data-found]')?.dataset.found === '2'");
    browser.run("history.back()");
    browser.until(
        "location.hash === '#/book' && document.querySelectorAll('.grid [data-row]').length > 10",
    );
    browser.check();
}

#[test]
fn a_check_says_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    let check = |browser: &Browser| {
        browser.show("#:storage");
        browser.until("document.querySelectorAll('.segments tbody tr').length === 1");
        browser.run("document.querySelector('[data-do=check]').click()");
        browser.until("document.querySelector('[data-check]') !== null");
    };
    {
        let explored = Explored::start(dir, "library.annals", &[]);
        let Some(browser) = explored.browse() else { return };
        browser.run("globalThis.lines = []; import('./net.js').then(it => it.each('/storage', { check: true }, (line) => lines.push(line)))");
        browser.until("lines.at(-1)?.check?.damage === null");
        assert!(
            browser
                .get("lines[0].total > 4096 && lines[0].done <= lines[0].total")
                .as_bool()
                .unwrap()
        );
        check(&browser);
        assert_eq!(browser.text("document.querySelector('[data-check]').dataset.check"), "ok");
        // A first answer that is late leaves what the check has found.
        browser.show("#:schema");
        browser.run(
            "const send = fetch; globalThis.late = null; globalThis.fetch = (...asked) => /storage$/.test(asked[0]) \
             ? new Promise((done) => { globalThis.late = () => done(send(...asked)); }) : send(...asked); location.hash = '#:storage'",
        );
        browser.until("late !== null && document.querySelector('[data-do=check]') !== null");
        browser.run("document.querySelector('[data-do=check]').click()");
        browser.until("document.querySelector('[data-check]')?.dataset.check === 'ok'");
        browser.run("document.body.dataset.ready = '0'; late()");
        browser.ready();
        assert_eq!(browser.text("document.querySelector('[data-check]').dataset.check"), "ok");
        browser.check();
    }
    // A changed byte in the middle is found.
    let file = dir.join("library.annals");
    let mut bytes = std::fs::read(&file).unwrap();
    let place = bytes.windows(8).position(|it| it == b"Germinal").unwrap();
    let explored = Explored::start(dir, "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    bytes[place] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    check(&browser);
    assert_eq!(browser.text("document.querySelector('[data-check]').dataset.check"), "damaged");
}

#[test]
fn a_server_shows_it_to_those_who_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    library(dir);
    let token = succeed(dir, &["token", "add", "library.annals", "--role", "read"], "");
    let token = token
        .lines()
        .find_map(|line| line.split_whitespace().find(|it| it.starts_with("annals_")))
        .unwrap()
        .to_owned();
    let served = Served::of(dir, "library.annals", &["--listen", "127.0.0.1:0"]);
    let page = format!("http://{}/explore/library", served.address());
    let Some(browser) = Browser::start(1200, 800) else { return };
    browser.go(&format!("{page}?token=annals_wrong"));
    assert!(browser.text("document.body.innerText").contains("needs its whole link"));
    browser.go(&format!("{page}/"));
    assert!(browser.get("document.body.dataset.ready === undefined").as_bool().unwrap());
    browser.go(&format!("{page}?token={token}"));
    browser.ready();
    assert_eq!(browser.text("location.href"), format!("{page}/"));
    browser.show("#/author/1?at=txid:8");
    assert_eq!(
        browser.get("document.querySelector('[data-do=restore]')"),
        json!(null),
        "it may only read"
    );
    // A copy of the same database, in a program of its own.
    let explored = Explored::start(dir, &served.url, &["--token", &token]);
    let copy = explored.browse().unwrap();
    copy.show("#/author/1");
    assert_eq!(copy.text("document.querySelector('.fields [data-field=born]').innerText"), "1840");
    assert_eq!(copy.text("document.body.dataset.txid"), "11");
    copy.check();
    served.end();
}
