//! Where a session's answers go: how wide it is, whether it has colours, and whether a person looks.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use annals::{Commit, Result};

use crate::output::{Output, say, terminal_width};

/// How many rows a terminal is shown if nothing else is said.
const ROWS: u64 = 50;

/// Standard output, and its properties.
pub(crate) struct Screen {
    /// Where to write.
    pub(crate) output: Output,
    /// How many columns fit on a line; `None` if the output is no terminal.
    pub(crate) width: Option<usize>,
    /// How many rows to show by default; `None` for all.
    pub(crate) rows: Option<u64>,
    /// True if it shows colours.
    colours: bool,
    /// True if a person types the lines.
    is_interactive: bool,
}

/// The kind of a text, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A heading or label.
    Heading,
    /// Less important text.
    Aside,
    /// An error.
    Error,
    /// Where to type.
    Prompt,
    /// Where to type, while a transaction is open.
    Pending,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Heading => "1",
            Self::Aside => "2",
            Self::Error => "1;31",
            Self::Prompt => "32",
            Self::Pending => "33",
        }
    }

    /// Colours a text.
    pub(crate) fn paint(self, text: &str) -> String {
        format!("\x1b[{}m{text}\x1b[0m", self.code())
    }
}

impl Screen {
    /// Takes standard output.
    pub(crate) fn new(is_interactive: bool) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        Self {
            output: Output::new(),
            width: is_terminal.then(terminal_width),
            rows: is_terminal.then_some(ROWS),
            colours: is_terminal && colours(),
            is_interactive,
        }
    }

    /// Writes elsewhere, where no person looks.
    pub(crate) fn to(writer: impl Write + 'static) -> Self {
        let output = Output::to(writer);
        Self { output, width: None, rows: None, colours: false, is_interactive: false }
    }

    /// Reads the present width of the terminal, which may have changed.
    pub(crate) fn measure(&mut self) {
        self.width = self.width.map(|_| terminal_width());
    }

    /// Colours a text, if there are colours.
    pub(crate) fn paint<'t>(&self, style: Style, text: &'t str) -> Cow<'t, str> {
        if self.colours { Cow::Owned(style.paint(text)) } else { Cow::Borrowed(text) }
    }

    /// Prints a note for people; if the output is a file, on standard error.
    pub(crate) fn remark(&mut self, text: &str) -> Result<()> {
        match (self.is_interactive, self.width) {
            (true, Some(_)) => self.output.line(text)?,
            (true, None) => say(text),
            (false, _) => {}
        }
        Ok(())
    }

    /// Reports a commit, at once.
    pub(crate) fn tell(&mut self, commit: Commit) -> Result<()> {
        let (txid, position) = (commit.txid, commit.position);
        let level = commit.level.name();
        let line = format!("committed txid={txid} position={position} level={level}");
        let line = self.paint(Style::Aside, &line).into_owned();
        self.output.line(&line)?;
        self.output.flush()
    }
}

/// True if colours are wanted where there could be some.
pub(crate) fn colours() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !is_set("NO_COLOR") && !is_dumb
}
