//! What the page shows when something can't be read: that, and nothing of another moment.

use serde_json::json;

use super::{Explored, LEFT, library};

#[test]
fn nothing_of_another_moment_stays_after_an_error() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.run("globalThis.answered = globalThis.fetch");
    let break_all = |what: &str| {
        browser.run(&format!(
            "globalThis.fetch = async (path, options) => {what}.test(path) \
             ? new Response('{{\"error\":\"io\",\"message\":\"the disk is gone\"}}', {{ status: 500 }}) : answered(path, options)"
        ));
    };
    let main = || browser.text("document.querySelector('main').innerText");
    // Each with what it asks for beside the transaction of a step.
    for (view, shown, asks) in [
        ("#/book", "Book 1", ""),
        ("#/author?order=author_by_name", "Zola", ""),
        ("#/book?filter=Book", "Book 1", "search"),
        ("#/book?only=changed", "Germinal", ""),
        ("#/book?pin=txid:7", "Book 1", "compare"),
        ("#/book/5", "Germinal", "t"),
        ("#:log", "transaction 9", "log\\?.*limit=8"),
        ("#:search?text=Book", "Book 1", "search"),
        ("#:schema", "title", "schema\\/"),
        ("#:sql?sql=SELECT+title+FROM+book_at(:moment)", "Book 1", "sql"),
    ] {
        let at = if view.contains('?') { "&at=txid:9" } else { "?at=txid:9" };
        browser.show(&format!("{view}{at}"));
        browser.until(&format!("document.querySelector('main').innerText.includes('{shown}')"));
        // Everything fails; then only what a page asks for itself.
        let own = format!("/\\/{asks}\\b/");
        let all = ["/./", "/\\/(t|compare|search|schema|sql|log)\\b/", &own];
        for what in &all[..if asks.is_empty() { 2 } else { 3 }] {
            break_all(what);
            browser.press(&[], &[LEFT]);
            browser.until("document.querySelector('[role=alert]') !== null");
            let said = browser.text("document.querySelector('[role=alert]').innerText");
            assert!(said.contains("the disk is gone"), "{view}: {said}");
            assert!(!main().contains(shown), "{view}, {what}: {}", main());
            assert_eq!(browser.get("document.querySelectorAll('main [data-row], main [data-version], main td').length"), json!(0), "{view}, {what}");
            let counts = browser.text("[...document.querySelectorAll('.tables small')].filter(it => it.checkVisibility({ visibilityProperty: true })).map(it => it.innerText).join('')");
            // Those of the step, if something else failed: two authors, and the 60 books of before one was deleted.
            let are_of_the_step = **what == own && counts == "260";
            assert!(counts.is_empty() || are_of_the_step, "{view}, {what}: {counts}");
            // It is there again when it can be read.
            browser.run("globalThis.fetch = answered");
            browser.show(&format!("{view}{at}"));
            browser.until(&format!("document.querySelector('main').innerText.includes('{shown}')"));
        }
    }
    break_all("/./");
    browser.show("#/book?at=txid:9");
    browser.press(&[], &[LEFT]);
    browser.run("globalThis.fetch = answered; document.body.dataset.ready = '0'; document.querySelector('[data-do=again]').click()");
    browser.ready();
    assert_eq!(browser.text("document.body.dataset.txid"), "8");
    assert!(main().contains("Book 5") && !main().contains("Germinal"), "{}", main());
}

#[test]
fn a_link_that_is_wrong_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    let said = || {
        browser
            .text("[...document.querySelectorAll('[role=alert]')].map(it => it.innerText).join()")
    };
    for (link, reason) in [
        ("#/book?at=txid:99", "transaction 99: the last one is 11"),
        ("#/book?pin=txid:99", "transaction 99: the last one is 11"),
        ("#/book?at=yesterday", "yesterday"),
        ("#/book?pin=yesterday", "pin=\"yesterday\""),
        ("#/boook", "there is no table \"boook\""),
        ("#/book?order=nothing", "no index \"nothing\""),
        ("#/book?from=x", "from=\"x\""),
        ("#/book?only=some", "only=\"some\""),
        ("#/book?zone=Nowhere", "zone=\"Nowhere\""),
        ("#/book?wher=1", "\"wher\" isn't a part of links"),
        ("#/book/five", "\"five\" isn't the id of a row"),
        ("#/book/%E0", "isn't the id of a row"),
        ("#/%E0", "there is no table"),
        ("#:lgo", "there is no page \"lgo\""),
        ("#book", "neither a table, as /TABLE, nor a page, as :log"),
        ("#:log?of=boook", "there is no table \"boook\""),
    ] {
        browser.show(link);
        browser.until("document.querySelector('[role=alert]') !== null");
        assert!(said().contains(reason), "{link}: {}", said());
        browser.show("#/book?at=txid:9");
        assert_eq!(said(), "", "after {link}");
    }
}

#[test]
fn the_focus_stays_in_what_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book");
    browser.run("document.querySelector('.grid').focus()");
    browser.type_keys(&[], &[super::DOWN, super::DOWN]);
    browser.press(&[], &[super::ENTER]);
    browser.until("document.activeElement.tagName === 'H2'");
    browser.run("history.back()");
    browser.until("document.activeElement.className === 'grid'");
    browser.until("document.querySelector('.row.selected')?.dataset.row === '2'");
    browser.check();
}
