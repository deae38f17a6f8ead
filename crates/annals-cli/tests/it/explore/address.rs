//! What the address says, however often the moment changes.

use serde_json::json;

use super::{Explored, library};

#[test]
fn a_long_drag_leaves_the_address_right_and_links_alive() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let explored = Explored::start(folder.path(), "library.annals", &[]);
    let Some(browser) = explored.browse() else { return };
    browser.show("#/book");
    // More often than browsers let a page write its address.
    browser.run(
        "const slider = document.querySelector('[type=range]');
         for (let i = 0; i <= 600; i += 1) {
           slider.value = 1 + i % 10;
           slider.dispatchEvent(new Event('input', { bubbles: true }));
         }",
    );
    browser.until("document.body.dataset.txid === '1' && document.body.dataset.ready === '1'");
    browser.until("location.hash === '#/book?at=txid:1'");
    browser.show("#/author/1");
    assert_eq!(browser.text("document.querySelector('.of-row h2').innerText"), "author 1");
    browser.run("history.back()");
    browser.until("document.body.dataset.table === 'book' && document.body.dataset.txid === '1'");
    // A link that is followed before the address was written: back leads to what was shown.
    let hashes = browser.run(
        "const slider = document.querySelector('[type=range]');
         for (let i = 0; i <= 30; i += 1) {
           slider.value = 1 + i % 10;
           slider.dispatchEvent(new Event('input', { bubbles: true }));
         }
         slider.value = 7;
         slider.dispatchEvent(new Event('input', { bubbles: true }));
         const before = location.hash;
         document.querySelector('.tables a').click();
         return [before !== '#/book?at=txid:7', location.hash.startsWith('#/author')];",
    );
    assert_eq!(hashes, json!([true, true]));
    browser.until("document.body.dataset.table === 'author'");
    browser.run("history.back()");
    browser.until("location.hash === '#/book?at=txid:7' && document.body.dataset.txid === '7'");
    browser.check();
}
