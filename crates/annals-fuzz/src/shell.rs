//! Scripts of the shell.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use annals::Recovery;
use annals::storage::MemoryDirectory;
use annals_schema::tokenize;

use crate::content::content;
use crate::file::{NAME, open};

/// Takes the bytes for a script, whose lines after an error run as a script of their own.
///
/// # Panics
/// If the database can't be closed and reopened unchanged, if its log or its dump doesn't run, or doesn't make the
/// same database.
pub fn shell(input: &[u8]) {
    if !input.split(|&byte| byte == b'\n').all(is_tame) {
        return;
    }
    let directory = run_all(input);
    let database = reopen(&directory);
    let before = content(&database.read());
    let dump = run(&database, b"dump");
    drop(database);

    let log = log_of(&directory);
    let copy = make(&log);
    assert_eq!(text(&log_of(&copy)), text(&log), "the log of the log differs");
    let database = reopen(&copy);
    assert_eq!(content(&database.read()), before, "the log makes something else:\n{}", text(&log));

    let copy = make(&dump);
    let again = run(&reopen(&copy), b"dump");
    assert_eq!(text(&again), text(&dump), "the dump makes something else");
}

/// True if a line can run: it reads no file of this machine, and makes no million of rows.
fn is_tame(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return true };
    let Ok(tokens) = tokenize(line.trim_start_matches('\u{feff}')) else { return true };
    let is_long = |text: &str| text.len() > 3;
    match tokens.first().map(|token| token.text.as_ref()) {
        Some("write_blob_file") => false,
        Some("insert_vector") => !tokens.last().is_some_and(|count| is_long(&count.text)),
        _ => true,
    }
}

/// Runs a whole script, errors or not, and closes.
fn run_all(mut script: &[u8]) -> Arc<MemoryDirectory> {
    let directory = Arc::new(MemoryDirectory::new());
    let database = open(&directory, Recovery::Refuse).expect("a new database can be made");
    while !script.is_empty() {
        let before = script.len();
        let ran = annals_cli::run_script(&database, &mut script, io::sink());
        assert!(script.len() < before, "it reads nothing: {ran:?}");
    }
    let checked = database.read().check();
    assert!(checked.is_ok(), "what the script made contradicts itself: {checked:?}");
    let before = content(&database.read());
    let closed = database.close();
    assert!(closed.is_ok(), "it can't be closed: {closed:?}");
    assert_eq!(content(&reopen(&directory).read()), before);
    directory
}

/// Runs a script that must run, in a new database.
fn make(script: &[u8]) -> Arc<MemoryDirectory> {
    let directory = Arc::new(MemoryDirectory::new());
    let database = open(&directory, Recovery::Refuse).expect("a new database can be made");
    run(&database, script);
    let closed = database.close();
    assert!(closed.is_ok(), "it can't be closed: {closed:?}");
    directory
}

pub(crate) fn reopen(directory: &Arc<MemoryDirectory>) -> annals::Database {
    let database = open(directory, Recovery::Refuse).expect("it was closed");
    let checked = database.read().check();
    assert!(checked.is_ok(), "{NAME} contradicts itself: {checked:?}");
    database
}

/// Runs a script that must run; returns what it shows.
fn run(database: &annals::Database, script: &[u8]) -> Vec<u8> {
    let (mut input, output) = (script, Shared::default());
    let ran = annals_cli::run_script(database, &mut input, output.clone());
    assert!(ran.is_ok(), "{ran:?} in\n{}", text(script));
    output.0.take()
}

pub(crate) fn log_of(directory: &MemoryDirectory) -> Vec<u8> {
    let output = Shared::default();
    let printed = annals_cli::print_log(directory, NAME, output.clone());
    assert!(printed.is_ok(), "{printed:?}");
    output.0.take()
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Bytes that one writes and another takes.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
