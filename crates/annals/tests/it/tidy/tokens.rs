//! Rust source as tokens: enough of the language to see which paths a file names. Comments are gone.

/// A token, and the line on which it begins, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a keyword, or a number.
    Word(String),
    /// A string literal, as it stands between its quotes.
    Text(String),
    /// `::`
    Path,
    /// Any other character, except white space.
    Mark(char),
}

/// Splits source into tokens.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut rest = Rest { chars: source.chars().collect(), at: 0, line: 1 };
    let mut found = Vec::new();
    loop {
        rest.skip_blanks_and_comments();
        let line = rest.line;
        let Some(kind) = rest.next() else { return found };
        found.extend(kind.map(|kind| Token { kind, line }));
    }
}

struct Rest {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

impl Rest {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn step(&mut self) -> Option<char> {
        let found = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(found == '\n');
        Some(found)
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, expected)| self.peek(ahead) == Some(expected))
    }

    fn skip_blanks_and_comments(&mut self) {
        loop {
            if self.peek(0).is_some_and(char::is_whitespace) {
                self.step();
            } else if self.starts_with("//") {
                while self.peek(0).is_some_and(|next| next != '\n') {
                    self.step();
                }
            } else if self.starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    /// Skips a comment in which others may be nested.
    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        loop {
            if self.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if self.starts_with("*/") {
                depth -= 1;
                self.at += 2;
            } else if self.step().is_none() {
                return;
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Returns the next token; the inner `None` stands for a lifetime or a character, which name nothing.
    fn next(&mut self) -> Option<Option<Kind>> {
        let first = self.peek(0)?;
        if let Some((hashes, from)) = self.raw_string() {
            self.at += from;
            return Some(Some(self.text(hashes)));
        }
        if first == '"' {
            self.step();
            return Some(Some(self.text(None)));
        }
        if first == '\'' {
            self.skip_quote();
            return Some(None);
        }
        if first.is_alphanumeric() || first == '_' {
            let mut word = String::new();
            while let Some(next) =
                self.peek(0).filter(|next| next.is_alphanumeric() || *next == '_')
            {
                word.push(next);
                self.step();
            }
            return Some(Some(Kind::Word(word)));
        }
        if self.starts_with("::") {
            self.at += 2;
            return Some(Some(Kind::Path));
        }
        self.step();
        Some(Some(Kind::Mark(first)))
    }

    /// Returns how many `#` a raw string that begins here has, and where its content begins. For a string with a
    /// prefix alone (`b".."`, `c".."`) there is no number.
    fn raw_string(&self) -> Option<(Option<usize>, usize)> {
        let prefix =
            ["br", "cr", "b", "c", "r"].into_iter().find(|prefix| self.starts_with(prefix))?;
        let hashes = (prefix.len()..).take_while(|at| self.peek(*at) == Some('#')).count();
        let is_raw = prefix.ends_with('r');
        let is_string = self.peek(prefix.len() + hashes) == Some('"');
        (is_string && (is_raw || hashes == 0))
            .then_some((is_raw.then_some(hashes), prefix.len() + hashes + 1))
    }

    /// Reads up to the end of a string, whose beginning was read.
    fn text(&mut self, hashes: Option<usize>) -> Kind {
        let end = format!("\"{}", "#".repeat(hashes.unwrap_or(0)));
        let mut text = String::new();
        while !self.starts_with(&end) {
            let Some(next) = self.step() else { break };
            text.push(next);
            if next == '\\' && hashes.is_none() {
                text.extend(self.step());
            }
        }
        self.at += end.len();
        Kind::Text(text)
    }

    /// Skips a lifetime, or a character.
    fn skip_quote(&mut self) {
        self.step();
        let is_lifetime = self.peek(0).is_some_and(|next| next.is_alphabetic() || next == '_')
            && self.peek(1) != Some('\'');
        if is_lifetime {
            while self.peek(0).is_some_and(|next| next.is_alphanumeric() || next == '_') {
                self.step();
            }
            return;
        }
        while let Some(next) = self.step().filter(|next| *next != '\'') {
            if next == '\\' {
                self.step();
            }
        }
    }
}
