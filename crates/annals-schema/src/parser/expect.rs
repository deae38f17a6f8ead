//! The required parts of a line, and the errors for missing ones.

use crate::{Diagnostic, Token, shorten};

/// The words of a line, and how the line should read.
#[derive(Clone, Copy)]
pub(super) struct Line<'l> {
    pub(super) tokens: &'l [Token<'l>],
    pub(super) usage: &'static str,
}

impl<'l> Line<'l> {
    pub(super) const fn new(tokens: &'l [Token<'l>], usage: &'static str) -> Self {
        Self { tokens, usage }
    }

    /// Returns the word at a position; `what` names it in the error if it is missing.
    pub(super) fn word(&self, place: usize, what: &str) -> Result<&'l Token<'l>, Diagnostic> {
        self.tokens.get(place).ok_or_else(|| self.missing(what))
    }

    /// Fails if there are more words than these.
    pub(super) fn end(&self, count: usize) -> Result<(), Diagnostic> {
        self.tokens.get(count).map_or(Ok(()), |extra| Err(self.unexpected(extra)))
    }

    pub(super) fn missing(&self, what: &str) -> Diagnostic {
        Diagnostic::missing(self.tokens, what, self.usage)
    }

    pub(super) fn unexpected(&self, token: &Token<'_>) -> Diagnostic {
        Diagnostic::new(token, format!("`{}` doesn't belong here", shorten(&token.text)))
            .hint(format!("write `{}`", self.usage))
    }
}
