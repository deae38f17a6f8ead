//! The pictures of README and guide: drawn when `ANNALS_PICTURES` names a folder, as `docs/guide/src`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::browser::Browser;

/// What each shows: a link of the airports' explorer.
const PICTURES: [(&str, &str); 3] = [
    ("explorer.png", "#/runways?at=txid:1000&pin=txid:500&only=changed"),
    ("explorer-row.png", "#/runways/259959?at=txid:700"),
    (
        "explorer-sql.png",
        "#:sql?sql=SELECT+lighted,+count(*)+AS+runways,+avg(length_ft)+AS+feet%0AFROM+runways_at(:moment)+GROUP+BY+lighted&at=txid:700&chart=bars,lighted,feet",
    ),
];

/// The example, which ends with this.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn pictures_are_drawn_where_that_is_asked_for() {
    let Some(folder) = std::env::var_os("ANNALS_PICTURES") else {
        return; // they are drawn when that is asked for
    };
    let Some(browser) = Browser::start(1200, 640) else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "-p", "annals-examples-web", "--example", "explore"]).current_dir(&root);
    assert!(build.status().unwrap().success());
    let program = std::env::current_exe().unwrap();
    let program = program.parent().unwrap().with_file_name("examples").join("explore");
    let mut example =
        Command::new(program).arg("--no-open").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(example.stdout.take().unwrap()).lines().map_while(Result::ok);
    let link = lines.find(|line| line.starts_with("http")).expect("it prints a link");
    let _example = Example(example);
    browser.go(&link);
    browser.ready();
    browser.until("explorer.activity.known === explorer.activity.last");
    for (name, link) in PICTURES {
        browser.show(link);
        browser.until("explorer.countsOf === explorer.txid");
        std::fs::write(root.join(&folder).join(name), browser.picture()).unwrap();
    }
    browser.check();
}
