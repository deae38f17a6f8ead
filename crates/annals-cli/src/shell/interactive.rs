//! The shell at a terminal: a person types lines, and errors don't end the session.

use std::rc::Rc;

use annals::storage::Interrupts;
use annals::{Error, ErrorKind, Level, Result};

use super::editor::{Editor, Typed};
use super::history;
use super::screen::{Screen, Style, colours};
use super::session::{Answer, Base, Commits, Session};
use crate::output::{count, plain, say};

/// The choice of a person for uncommitted changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    Commit,
    RollBack,
    Stay,
}

/// Runs lines until the person leaves.
pub(crate) fn run(base: Base<'_>, level: Level, remember: bool) -> Result<()> {
    let mut screen = Screen::new(true);
    let history = if remember { history::file() } else { None };
    let mut editor = Editor::new(history)?;
    let rule = match &base {
        Base::Database(_) => "Each line commits by itself, but for those after `begin`.",
        Base::ReadOnly(_) => {
            "The file is open read-only, as it is now; `pull` brings in what is committed later."
        }
    };
    screen.remark(&format!("{rule} `help` tells more."))?;
    let mut session = Session::new(base, level, Commits::EachLine);
    let interrupts = Rc::new(Interrupts::catch());
    loop {
        screen.output.flush()?;
        let leaves = match editor.read(session.schema(), session.is_open())? {
            Typed::Lines(lines) => run_lines(&mut session, &lines, &mut screen, &interrupts)?,
            Typed::Cleared => false,
            Typed::End => true,
        };
        if !leaves {
            continue;
        }
        let how = if session.has_changes() { ask(&mut editor)? } else { Leave::Commit };
        match how {
            Leave::Stay => {}
            Leave::Commit => {
                let answer = session.end()?;
                return answer.tell(&mut screen);
            }
            Leave::RollBack => {
                session.rollback()?;
                screen.remark("rolled back")?;
                return screen.output.flush();
            }
        }
    }
}

/// The result of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
    Leave,
}

/// Runs the input: one line, or several pasted ones, up to the first with an error. True if a line
/// ends the session.
fn run_lines(
    session: &mut Session<'_>,
    lines: &str,
    screen: &mut Screen,
    interrupts: &Rc<Interrupts>,
) -> Result<bool> {
    let mut lines = lines.split(['\n', '\r']).filter(|line| !line.trim().is_empty());
    while let Some(line) = lines.next() {
        match run_line(session, line, screen, interrupts)? {
            Next::GoOn => {}
            Next::Leave => return Ok(true),
            Next::Stop => {
                let left = lines.count();
                if left > 0 {
                    let were = if left == 1 { "was" } else { "were" };
                    let left = count(left, "line");
                    screen.remark(&format!("{left} behind it {were} not run"))?;
                }
                return Ok(false);
            }
        }
    }
    Ok(false)
}

/// Runs one line, and shows its output or error.
fn run_line(
    session: &mut Session<'_>,
    line: &str,
    screen: &mut Screen,
    interrupts: &Rc<Interrupts>,
) -> Result<Next> {
    let was_open = session.is_open();
    screen.measure();
    // An interrupt without a running command is ignored.
    let _ = interrupts.take();
    screen.output.end_at(Some(interrupts));
    let ran = session.run(line, screen);
    screen.output.end_at(None);
    let error = match ran {
        Ok(Answer::Quit) => return Ok(Next::Leave),
        Ok(answer) => return answer.tell(screen).map(|()| Next::GoOn),
        Err(error) => error,
    };
    // If the output can't be written, there is no dialog.
    screen.output.flush()?;
    show(&error);
    let is_gone = was_open && !session.is_open();
    if is_gone && error.kind() != ErrorKind::UnknownOutcome {
        screen.remark("the transaction is rolled back")?;
    }
    Ok(Next::Stop)
}

fn show(error: &Error) {
    let heading = if colours() { Style::Error.paint("error:") } else { "error:".to_owned() };
    say(&format!("{heading} {}", plain(&error.to_string())));
}

/// Asks what to do with uncommitted changes. Without an answer they are rolled back.
fn ask(editor: &mut Editor) -> Result<Leave> {
    loop {
        match editor.ask("Commit the pending changes? [yes, no: roll back, stay] ")? {
            Typed::End => return Ok(Leave::RollBack),
            Typed::Cleared => return Ok(Leave::Stay),
            Typed::Lines(answer) => match answer.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Leave::Commit),
                "n" | "no" => return Ok(Leave::RollBack),
                "s" | "stay" => return Ok(Leave::Stay),
                _ => {}
            },
        }
    }
}
