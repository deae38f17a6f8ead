//! The line that a person edits: its prompt, colours, completion, hints and history.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::PathBuf;
#[cfg(feature = "sqlite")]
use std::rc::Rc;
use std::sync::Arc;

use annals::{Error, Result, Schema};
use rustyline::completion::{Completer, Pair};
use rustyline::config::{Behavior, BellStyle, ColorMode, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Helper};

use super::completion::{Completion, complete, hint};
use super::screen::{Style, colours};
use crate::output::say;

/// How many lines are remembered.
const REMEMBERED: usize = 10_000;

/// The action of a person at the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Ended a line; where text was pasted, they can be several.
    Lines(String),
    /// Took it back: Ctrl-C.
    Cleared,
    /// Wants to leave: Ctrl-D.
    End,
}

/// The reader of lines from a terminal.
pub(crate) struct Editor {
    editor: rustyline::Editor<Guide, DefaultHistory>,
    history: Option<PathBuf>,
}

impl Editor {
    /// Takes the terminal; lines are remembered in the file, if there is one.
    pub(crate) fn new(history: Option<PathBuf>) -> Result<Self> {
        let color = if colours() { ColorMode::Enabled } else { ColorMode::Disabled };
        // If the output is a file, typed text is still echoed.
        let to_terminal = std::io::stdout().is_terminal();
        let behavior = if to_terminal { Behavior::Stdio } else { Behavior::PreferTerm };
        let config = Config::builder()
            .max_history_size(REMEMBERED)
            .map_err(cannot_read)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .bell_style(BellStyle::None)
            .color_mode(color)
            .behavior(behavior)
            .build();
        let mut editor = rustyline::Editor::with_config(config).map_err(cannot_read)?;
        editor.set_helper(Some(Guide::default()));
        let mut editor = Self { editor, history };
        editor.remember(|editor, path| match editor.load_history(path) {
            // The first session has none yet.
            Err(ReadlineError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            read => read,
        });
        Ok(editor)
    }

    /// Reads a line. Completions come from the schema; the prompt shows an open transaction.
    pub(crate) fn read(&mut self, schema: Arc<Schema>, is_pending: bool) -> Result<Typed> {
        if let Some(guide) = self.editor.helper_mut() {
            *guide = Guide { known: Known::Schema(schema), is_pending };
        }
        self.read_line(if is_pending { "annals*> " } else { "annals> " })
    }

    /// Reads a line. Completions are words of a list, in any case.
    #[cfg(feature = "sqlite")]
    pub(crate) fn read_words(&mut self, prompt: &str, words: &Rc<[String]>) -> Result<Typed> {
        if let Some(guide) = self.editor.helper_mut() {
            *guide = Guide { known: Known::Words(Rc::clone(words)), is_pending: false };
        }
        self.read_line(prompt)
    }

    fn read_line(&mut self, prompt: &str) -> Result<Typed> {
        let typed = self.prompt(prompt)?;
        if let Typed::Lines(line) = &typed {
            let is_new = self.editor.add_history_entry(line.as_str()).map_err(cannot_read)?;
            if is_new {
                self.remember(|editor, path| editor.append_history(path));
            }
        }
        Ok(typed)
    }

    /// Asks a question, whose answer is no command and not remembered.
    pub(crate) fn ask(&mut self, question: &str) -> Result<Typed> {
        if let Some(guide) = self.editor.helper_mut() {
            guide.known = Known::Nothing;
        }
        self.prompt(question)
    }

    fn prompt(&mut self, prompt: &str) -> Result<Typed> {
        let (mut prompt, mut is_spoilt) = (prompt, false);
        loop {
            match self.editor.readline(prompt) {
                // The text after such a byte must not be run as a separate line.
                Err(ReadlineError::Io(error))
                    if error.kind() == std::io::ErrorKind::InvalidData =>
                {
                    if !is_spoilt {
                        say("note: a byte that isn't UTF-8: this line isn't run; press Enter");
                    }
                    (prompt, is_spoilt) = ("not run> ", true);
                }
                Ok(_) if is_spoilt => return Ok(Typed::Cleared),
                Ok(line) => return Ok(Typed::Lines(line)),
                Err(ReadlineError::Interrupted) => return Ok(Typed::Cleared),
                Err(ReadlineError::Eof) => return Ok(Typed::End),
                Err(error) => return Err(cannot_read(error)),
            }
        }
    }

    /// Uses the file of the history. Where that fails, says so once, and continues without.
    fn remember(
        &mut self,
        how: impl FnOnce(
            &mut rustyline::Editor<Guide, DefaultHistory>,
            &PathBuf,
        ) -> rustyline::Result<()>,
    ) {
        let Some(path) = self.history.take() else { return };
        match how(&mut self.editor, &path) {
            Ok(()) => self.history = Some(path),
            Err(error) => {
                let path = path.display();
                say(&format!("note: what you type is not remembered: {path}: {error}"));
            }
        }
    }
}

fn cannot_read(error: ReadlineError) -> Error {
    match error {
        ReadlineError::Io(error) => Error::io("cannot read from the terminal", error),
        error => Error::invalid(format!("cannot read from the terminal: {error}")),
    }
}

/// Provides completions and hints for a line.
#[derive(Default)]
struct Guide {
    known: Known,
    is_pending: bool,
}

/// What completions are made of.
#[derive(Default)]
enum Known {
    /// The line is no command.
    #[default]
    Nothing,
    Schema(Arc<Schema>),
    #[cfg(feature = "sqlite")]
    Words(Rc<[String]>),
}

impl Known {
    fn complete(&self, line: &str) -> Completion {
        match self {
            Self::Nothing => Completion::default(),
            Self::Schema(schema) => complete(schema, line),
            #[cfg(feature = "sqlite")]
            Self::Words(words) => {
                let is_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
                let begun = line.rsplit(|c| !is_of_word(c)).next().unwrap_or_default();
                // After `T.` any column may follow.
                let begun = match begun.rsplit_once('.') {
                    Some((table, column)) if !table.is_empty() => column,
                    _ => begun,
                };
                let is_it = |word: &&String| {
                    let start = word.get(..begun.len());
                    !begun.is_empty() && start.is_some_and(|it| it.eq_ignore_ascii_case(begun))
                };
                let words = words.iter().filter(is_it).cloned().collect();
                Completion { start: line.len() - begun.len(), words, ends_word: false }
            }
        }
    }
}

impl Helper for Guide {}
impl Validator for Guide {}

impl Completer for Guide {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some(line) = line.get(..cursor) else { return Ok((cursor, Vec::new())) };
        let found = self.known.complete(line);
        let blank = if found.ends_word { " " } else { "" };
        let pair = |word: String| Pair { replacement: format!("{word}{blank}"), display: word };
        Ok((found.start, found.words.into_iter().map(pair).collect()))
    }
}

/// A hint is shown and never becomes part of the line.
struct Shown(String);

impl Hint for Shown {
    fn display(&self) -> &str {
        &self.0
    }
    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Guide {
    type Hint = Shown;

    fn hint(&self, line: &str, cursor: usize, _context: &Context<'_>) -> Option<Shown> {
        match &self.known {
            Known::Schema(schema) if colours() && cursor == line.len() => {
                hint(schema, line).map(Shown)
            }
            _ => None,
        }
    }
}

impl Highlighter for Guide {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _default: bool,
    ) -> Cow<'b, str> {
        let style = if self.is_pending { Style::Pending } else { Style::Prompt };
        Cow::Owned(style.paint(prompt))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(Style::Aside.paint(hint))
    }
}
