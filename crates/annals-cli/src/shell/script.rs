//! Runs a script.

use std::io::BufRead;

use annals::{Error, Level, Result};

use super::screen::Screen;
use super::session::{Answer, Base, Commits, Session};
use crate::files::read_line;

/// Runs the lines one by one: the output of a line is flushed before the next one is read.
pub(crate) fn run(
    base: Base<'_>,
    level: Level,
    input: &mut dyn BufRead,
    screen: &mut Screen,
) -> Result<()> {
    let done = run_lines(base, level, input, screen);
    // Output before an error is flushed.
    done.and(screen.output.flush())
}

fn run_lines(
    base: Base<'_>,
    level: Level,
    input: &mut dyn BufRead,
    screen: &mut Screen,
) -> Result<()> {
    let mut session = Session::new(base, level, Commits::WhenSaid);
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        let more = read_line(input, &mut line)
            .map_err(|error| Error::io("cannot read the script from standard input", error))?;
        if !more {
            break;
        }
        number += 1;
        let answer =
            run_line(&mut session, &line, screen).map_err(|error| at_line(number, error))?;
        if answer == Answer::Quit {
            break;
        }
        answer.tell(screen)?;
        screen.output.flush()?;
    }
    let answer = session.end().map_err(|error| at_line(number, error))?;
    answer.tell(screen)
}

fn run_line(session: &mut Session<'_>, line: &[u8], screen: &mut Screen) -> Result<Answer> {
    let line = std::str::from_utf8(line).map_err(|error| {
        Error::invalid(format!("invalid UTF-8 at byte {} of the line", error.valid_up_to() + 1))
    })?;
    // Some editors begin a file with a byte order mark.
    session.run(line.strip_prefix('\u{feff}').unwrap_or(line), screen)
}

fn at_line(number: u64, error: Error) -> Error {
    error.within(format_args!("line {number}"))
}
