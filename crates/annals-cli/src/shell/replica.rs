//! Runs a script as transactions of a replica: the other side must accept each.
//!
//! The lines of a transaction run again when another one came first, so their output is kept until it is accepted.

use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::rc::Rc;

use annals::{Error, Result, Transaction};
use annals_replica::Replica;

use super::command::Run;
use super::screen::Screen;
use super::words::Words;
use super::{catalog, help};
use crate::files::read_line;
use crate::notes;
use crate::present::Present;

/// A line of the script, with its number.
struct Line {
    number: u64,
    text: String,
}

/// Output that is kept.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a script to its end, or to its first error: `commit` ends each transaction, and so does the end.
pub(crate) fn run(replica: &Replica, input: &mut dyn BufRead, screen: &mut Screen) -> Result<()> {
    let (mut pending, mut bytes, mut number) = (Vec::new(), Vec::new(), 0);
    let unreadable = |error| Error::io("cannot read the script from standard input", error);
    while read_line(input, &mut bytes).map_err(unreadable)? {
        number += 1;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let at = error.valid_up_to() + 1;
            Error::invalid(format!("line {number}: invalid UTF-8 at byte {at} of the line"))
        })?;
        let line = Line { number, text: text.strip_prefix('\u{feff}').unwrap_or(text).to_owned() };
        match what(&line).map_err(|error| at_line(&line, error))? {
            None => {}
            Some(Run::Begin) => {}
            Some(Run::Commit | Run::Checkpoint | Run::HardCheckpoint) => {
                commit(replica, &std::mem::take(&mut pending), screen)?;
            }
            Some(Run::Rollback) => pending.clear(),
            Some(Run::Pull) => {
                let pulled = replica.pull().map_err(|error| at_line(&line, error))?;
                let txid = replica.cursor().txid;
                screen.output.line(&format!("pulled {pulled}, up to txid={txid}"))?;
                screen.output.flush()?;
            }
            Some(Run::Quit) => break,
            Some(Run::Abort) => {
                let error = Error::invalid("aborted: what was pending was rolled back");
                return Err(at_line(&line, error));
            }
            Some(Run::Change(_) | Run::Look(_) | Run::Help) => pending.push(line),
            Some(_) => {
                let message =
                    "a replica has no such command: the server decides when its history is durable";
                return Err(at_line(&line, Error::invalid(message)));
            }
        }
    }
    commit(replica, &pending, screen)
}

/// Returns what a line does; `None` for an empty one.
fn what(line: &Line) -> Result<Option<Run>> {
    let tokens = tokens(line)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    Ok(Some(catalog::command_of(&tokens)?.run))
}

fn tokens(line: &Line) -> Result<Vec<annals_schema::Token<'_>>> {
    annals_schema::tokenize(&line.text).map_err(|error| Error::invalid(error.to_string()))
}

/// Runs lines in a transaction that the other side accepts.
fn commit(replica: &Replica, lines: &[Line], screen: &mut Screen) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let before = replica.cursor().txid;
    let (printed, accepted) = replica.transaction(|tx| {
        let kept = Kept::default();
        let mut output = Screen::to(kept.clone());
        for line in lines {
            run_line(tx, line, &mut output).map_err(|error| at_line(line, error))?;
        }
        output.output.flush()?;
        Ok(kept.0.take())
    })?;
    screen.output.write(&String::from_utf8_lossy(&printed))?;
    if accepted.txid > before {
        screen.output.line(&format!("committed txid={} runs={}", accepted.txid, accepted.runs))?;
    }
    if let Some(behind) = replica.behind().filter(|_| replica.cursor().txid < accepted.txid) {
        notes::note(&behind);
    }
    screen.output.flush()
}

fn run_line(tx: &mut Transaction<'_>, line: &Line, screen: &mut Screen) -> Result<()> {
    let tokens = tokens(line)?;
    let command = catalog::command_of(&tokens)?;
    let words = Words { usage: command.words(), line: &line.text, tokens: &tokens };
    match command.run {
        Run::Change(change) => change(tx, &words, screen),
        Run::Look(look) => look(&Present::Pending(tx), &words, screen),
        _ => help::help(&words, screen),
    }
}

fn at_line(line: &Line, error: Error) -> Error {
    error.within(format_args!("line {}", line.number))
}
