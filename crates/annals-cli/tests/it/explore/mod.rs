//! `annals explore`, in a real browser. Without one these tests say that they are skipped.

mod accessible;
mod address;
mod browser;
mod erased;
mod exact;
mod features;
mod jumps;
mod large;
mod live;
mod lost;
mod pages;
mod pictures;
mod refused;
mod safe;
mod shapes;
mod sql;
mod values;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use self::browser::Browser;
use crate::program::{annals, succeed};

/// The keys of WebDriver.
const LEFT: char = '\u{e012}';
const UP: char = '\u{e013}';
const RIGHT: char = '\u{e014}';
const DOWN: char = '\u{e015}';
const TAB: char = '\u{e004}';
const CONTROL: char = '\u{e009}';
const ENTER: char = '\u{e007}';
const HOME: char = '\u{e011}';
const END: char = '\u{e010}';
const SHIFT: char = '\u{e008}';
const ESCAPE: char = '\u{e00c}';

/// An explorer in a process of its own.
struct Explored {
    child: Child,
    /// The link that it prints.
    link: String,
}

impl Explored {
    fn start(dir: &Path, file: &str, options: &[&str]) -> Self {
        let arguments =
            [&["explore", file, "--listen", "127.0.0.1:0", "--no-open"], options].concat();
        let mut child = annals(dir, &arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let link = lines.next().expect("it prints the link").unwrap();
        Self { child, link }
    }

    /// Returns the address of the page, without the token.
    fn page(&self) -> String {
        format!("{}/", self.link.split('?').next().unwrap())
    }

    fn origin(&self) -> String {
        self.link.split("/explore/").next().unwrap().to_owned()
    }

    fn token(&self) -> &str {
        self.link.split("token=").nth(1).unwrap()
    }

    /// Returns the header that a browser sends which has entered.
    fn cookie(&self) -> String {
        let origin = self.origin();
        let port = origin.rsplit(':').next().unwrap();
        format!("Cookie: annals-{port}={}", self.token())
    }

    /// Returns how much memory it has for itself, in KiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Returns how much memory it had at most, with the pages of files, in KiB.
    fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Opens a browser on the page.
    fn browse(&self) -> Option<Browser> {
        let browser = Browser::start(1200, 800)?;
        browser.go(&self.link);
        browser.ready();
        Some(browser)
    }
}

impl Drop for Explored {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a database of authors and books, whose history has inserts, updates, deletes, comments and a change of the schema.
fn library(dir: &Path) {
    let mut script = String::from(
        "create_table author\nadd_field author name string\nadd_field author born int16 null\n\
         create_unique_index author_by_name author name\ncreate_table book\nadd_field book title string\n\
         add_field book by references author\nadd_field book shelf enum(high,low) null\nadd_field book price decimal(2) null\n\
         insert author \"Jane Austen\" 1775\ninsert author \"Émile Zola\" null\ncomment \"the first two\"\ncommit\n",
    );
    for book in 0..60 {
        script += &format!("insert book \"Book {book}\" {} low {book}.50\n", book % 2);
        script += if book % 10 == 9 { "commit\n" } else { "" };
    }
    script += "update author 1 born 1840\ncomment \"a date was found\"\ncommit\n\
               delete_from book 3\nupdate book 5 title \"Germinal\"\nupdate book 5 shelf high\ncommit\n\
               add_field author note string null\ncommit\ninsert book \"La Terre\" 1 high null\ncommit\n";
    succeed(dir, &["shell", "library.annals"], &script);
}
