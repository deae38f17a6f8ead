//! The help for commands, from their table.

use annals::Result;

use super::catalog;
use super::command::{Command, Kind};
use super::commands::COMMANDS;
use super::screen::{Screen, Style};
use super::words::Words;

/// Where the helps begin, in characters.
const COLUMN: usize = 40;

/// `help [COMMAND]`
pub(crate) fn help(words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    match words.arguments() {
        [] => {
            for (place, kind) in Kind::ALL.into_iter().enumerate() {
                if place > 0 {
                    screen.output.line("")?;
                }
                let heading = screen.paint(Style::Heading, kind.heading()).into_owned();
                screen.output.line(&heading)?;
                screen.output.write(&lines_of(kind))?;
            }
            Ok(())
        }
        [name] => {
            let command = catalog::find(&name.text).ok_or_else(|| catalog::unknown(&name.text))?;
            let usage = screen.paint(Style::Heading, &command.usage()).into_owned();
            screen.output.line(&usage)?;
            screen.output.line(&format!("  {}", command.help))?;
            if command.more.is_empty() {
                return Ok(());
            }
            screen.output.write(&wrapped(command.more, screen.width))
        }
        _ => Err(words.misused()),
    }
}

/// Returns all commands by kind, for `annals shell --help`.
pub(crate) fn overview() -> String {
    let of_kind = |kind: Kind| format!("{}:\n{}", kind.heading(), lines_of(kind));
    Kind::ALL.map(of_kind).join("\n")
}

fn lines_of(kind: Kind) -> String {
    COMMANDS.iter().filter(|command| command.kind == kind).map(line_of).collect()
}

/// Returns form and help, on one line if they fit.
fn line_of(command: &Command) -> String {
    let form = format!("  {}", command.usage());
    let gap = if form.len() + 2 > COLUMN { "\n" } else { "" };
    let blanks = if gap.is_empty() { COLUMN - form.len() } else { COLUMN };
    format!("{form}{gap}{:blanks$}{}\n", "", command.help)
}

/// Breaks a text into lines of at most `width` columns. The text has plain letters only.
fn wrapped(text: &str, width: Option<usize>) -> String {
    /// Longer lines are hard to read.
    const WIDEST: usize = 90;
    let width = width.unwrap_or(WIDEST).clamp(20, WIDEST);
    let mut lines = String::new();
    let mut column = width;
    for word in text.split_whitespace() {
        if column + 1 + word.len() > width {
            lines.push_str(if lines.is_empty() { "  " } else { "\n  " });
            column = 2 + word.len();
        } else {
            lines.push(' ');
            column += 1 + word.len();
        }
        lines.push_str(word);
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_the_overview_and_no_line_is_wide() {
        let overview = overview();
        for command in &COMMANDS {
            assert!(overview.contains(&format!("\n  {}", command.usage())), "{}", command.name);
        }
        assert_eq!(overview.lines().find(|line| line.len() > COLUMN + 49), None);
    }

    #[test]
    fn sentences_are_broken_between_words() {
        assert_eq!(wrapped("one two three four five", Some(20)), "  one two three four\n  five\n");
    }
}
