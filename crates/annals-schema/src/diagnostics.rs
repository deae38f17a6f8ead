//! Mistakes in a schema's text: the place, the problem, and the remedy.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::{LexError, Token};

/// A mistake in a schema's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file's name; empty if only one was read, whose name the caller knows.
    pub file: Box<str>,
    /// The line, counted from 1; 0 until [`at`](Self::at) says it.
    pub line: usize,
    /// Where the offending text begins in its line, in characters, counted from 1.
    pub column: usize,
    /// How many characters of the line are wrong.
    pub length: usize,
    /// The offending text, or its beginning; empty where something is missing.
    pub text: Box<str>,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The whole line; empty until [`at`](Self::at) says it.
    pub source: Box<str>,
}

impl Diagnostic {
    /// Makes the error that a token is wrong.
    pub(crate) fn new(token: &Token<'_>, message: impl Into<String>) -> Self {
        Self {
            file: Box::default(),
            line: 0,
            column: token.column,
            length: token.length,
            text: shorten(&token.text).into(),
            message: message.into(),
            hint: None,
            source: Box::default(),
        }
    }

    /// Makes the error that something is missing after the last of these tokens.
    pub(crate) fn missing(tokens: &[Token<'_>], what: &str, usage: &str) -> Self {
        let column = tokens.last().map_or(1, |last| last.column + last.length + 1);
        Self {
            file: Box::default(),
            line: 0,
            column,
            length: 1,
            text: Box::default(),
            message: format!("{what} is missing"),
            hint: Some(format!("write `{usage}`")),
            source: Box::default(),
        }
    }

    pub(crate) fn lexical(error: LexError, line: &str) -> Self {
        let length = error.length.min(SHOWN);
        let text: String = line.chars().skip(error.column - 1).take(length).collect();
        Self {
            file: Box::default(),
            line: 0,
            column: error.column,
            length: error.length,
            text: text.into(),
            message: error.message,
            hint: Some(error.hint),
            source: Box::default(),
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the line of the mistake, by number and text.
    #[must_use]
    pub fn at(mut self, line: usize, source: &str) -> Self {
        self.line = line;
        self.source = source.trim_end().into();
        self
    }

    /// Sets the file of the mistake.
    pub(crate) fn of(mut self, file: &str) -> Self {
        self.file = file.into();
        self
    }

    /// Draws the mistake as the Rust compiler does: message, place, line, caret and help. `file` is the file's name
    /// if the mistake has none.
    #[must_use]
    pub fn render(&self, file: &str) -> String {
        let file = if self.file.is_empty() { file } else { &self.file };
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let (source, before) = self.excerpt();
        // Tabs stay tabs, so that the caret is below its text at any tab width.
        let blank = |c| if c == '\t' { '\t' } else { ' ' };
        let blanks = source.chars().map(blank).chain(std::iter::repeat(' '));
        let indent: String = blanks.take(before).collect();
        let mut text = format!(
            "error: {}\n{margin}--> {file}:{number}:{}\n{margin} |\n{number} | {}\n{margin} | {indent}{}",
            self.message,
            self.column,
            source,
            "^".repeat(self.length.clamp(1, SHOWN)),
        );
        if let Some(hint) = &self.hint {
            let _infallible = write!(text, "\n{margin} = help: {hint}");
        }
        text
    }

    /// Returns the line, or the part of a long one around the offending text, and the number of its characters before
    /// that text.
    fn excerpt(&self) -> (String, usize) {
        let before = self.column.saturating_sub(1);
        let start = if before <= 2 * SHOWN { 0 } else { before - SHOWN };
        let mut rest = self.source.chars().skip(start);
        let mut shown: String = if start > 0 { ".. ".to_owned() } else { String::new() };
        let indent = shown.len() + before - start;
        shown.extend(rest.by_ref().take(4 * SHOWN));
        if rest.next().is_some() {
            shown += " ..";
        }
        (shown, indent)
    }
}

impl fmt::Display for Diagnostic {
    /// Writes one line: place, message and hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        if self.line > 0 {
            write!(f, "line {}, ", self.line)?;
        }
        write!(f, "column {}: {}", self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// Draws all mistakes, one below the other. `file` is the file's name for mistakes that have none.
#[must_use]
pub fn render_all(diagnostics: &[Diagnostic], file: &str) -> String {
    diagnostics.iter().map(|diagnostic| diagnostic.render(file)).collect::<Vec<_>>().join("\n\n")
}

/// Suggests the name nearest to a wrong one, or lists those there are.
pub(crate) fn suggest<'n>(
    wrong: &str,
    what: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> String {
    if let Some(near) = nearest(wrong, names.clone()) {
        return format!("did you mean `{near}`?");
    }
    let mut names = names;
    let list: Vec<_> = names.by_ref().take(LISTED).map(|name| format!("`{name}`")).collect();
    if list.is_empty() {
        return format!("there is no {what} yet");
    }
    let more = if names.next().is_some() { ", .." } else { "" };
    format!("there is {}{more}", list.join(", "))
}

/// How many names a hint lists at most.
const LISTED: usize = 30;

/// How many characters of a user's text a message repeats at most.
const SHOWN: usize = 60;

/// Returns a text that a message is about, or its beginning if it is long.
///
/// ```
/// assert_eq!(annals_schema::shorten("frobnicate"), "frobnicate");
/// assert_eq!(annals_schema::shorten(&"a".repeat(1_000_000)), "a".repeat(60) + "..");
/// ```
#[must_use]
pub fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start}..").into(),
        None => text.into(),
    }
}

/// The most characters of a word that may be a slip for another one.
const LONGEST_SLIP: usize = 64;

/// Finds the name with the smallest edit distance, if that is small enough to be a slip. A word of
/// more than 64 characters is none.
///
/// ```
/// let names = ["create_table", "drop_table"];
/// assert_eq!(annals_schema::nearest("create_tabel", names.into_iter()), Some("create_table"));
/// ```
#[must_use]
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = wrong.chars().take(LONGEST_SLIP + 1).count();
    if length > LONGEST_SLIP {
        return None;
    }
    let (limit, wrong) = ((length / 3).max(1), wrong.to_lowercase());
    names
        .filter(|name| name.chars().count().abs_diff(length) <= limit)
        .map(|name| (edit_distance(&wrong, &name.to_lowercase()), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Counts the characters to insert, delete, replace or swap with their neighbour (the optimal
/// string alignment distance).
fn edit_distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let cell = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX);
            let replaced = cell(&row, j) + usize::from(a != b);
            let mut best = replaced.min(cell(&row, j + 1) + 1).min(cell(&next, j) + 1);
            let swapped = i > 0 && j > 0 && from.get(i - 1) == Some(b) && to.get(j - 1) == Some(a);
            if swapped {
                best = best.min(cell(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}
