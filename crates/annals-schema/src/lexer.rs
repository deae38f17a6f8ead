//! The words of the text language that schema files and the shell share.
//!
//! A line holds one command: words and quoted strings, separated by blanks. `#` or `//` at the
//! start of a token begins a comment that runs to the end of the line.

use std::borrow::Cow;
use std::fmt;

/// A word or a quoted string of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its text: a quoted string without its quotes, and with its escapes resolved.
    pub text: Cow<'a, str>,
    /// Where it begins in its line, in characters, counted from 1.
    pub column: usize,
    /// How many characters it takes in its line, quotes and escapes included.
    pub length: usize,
    /// True if it was written in quotes, and so is a string whatever it says.
    pub quoted: bool,
}

impl Token<'_> {
    /// True if the token is this word, without quotes.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        !self.quoted && self.text == word
    }
}

/// Why a line can't be split into tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexError {
    /// Where the offending text begins in its line, in characters, counted from 1.
    pub column: usize,
    /// How many characters of the line are wrong.
    pub length: usize,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl fmt::Display for LexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}; {}", self.column, self.message, self.hint)
    }
}

impl std::error::Error for LexError {}

/// Splits one line into its tokens; a comment is no token.
///
/// ```
/// let tokens = annals_schema::tokenize(r#"comment "two\nlines" # why"#).unwrap();
/// assert_eq!(tokens.len(), 2);
/// assert_eq!(tokens[1].text, "two\nlines");
/// assert_eq!(tokens[1].column, 9);
/// ```
///
/// # Errors
/// A string without an end, an escape that doesn't exist, bytes that aren't UTF-8, or a quote where
/// a blank belongs.
pub fn tokenize(line: &str) -> Result<Vec<Token<'_>>, LexError> {
    let mut lexer = Lexer { line, place: 0, column: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next_token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    line: &'a str,
    /// The next character, in bytes.
    place: usize,
    /// The next character, counted from 1.
    column: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.line.get(self.place..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.place += c.len_utf8();
        self.column += 1;
        Some(c)
    }

    fn next_token(&mut self) -> Result<Option<Token<'a>>, LexError> {
        while self.peek().is_some_and(is_blank) {
            self.take();
        }
        match self.peek() {
            None | Some('#') => Ok(None),
            Some('/') if self.rest().starts_with("//") => Ok(None),
            Some('"') => self.string().map(Some),
            Some(_) => self.word().map(Some),
        }
    }

    fn word(&mut self) -> Result<Token<'a>, LexError> {
        let (start, column) = (self.place, self.column);
        while let Some(c) = self.peek() {
            let text = self.line.get(start..self.place).unwrap_or("");
            if is_blank(c) || (c == '"' && text == "=") {
                break;
            }
            if c == '"' {
                return Err(LexError {
                    column: self.column,
                    length: 1,
                    message: "a quote in the middle of a word".to_owned(),
                    hint: "put a blank before the string, or quotes around all of it".to_owned(),
                });
            }
            self.take();
        }
        let text = Cow::Borrowed(self.line.get(start..self.place).unwrap_or(""));
        Ok(Token { text, column, length: self.column - column, quoted: false })
    }

    fn string(&mut self) -> Result<Token<'a>, LexError> {
        let column = self.column;
        self.take();
        let mut bytes = Vec::new();
        loop {
            match self.take() {
                None => {
                    return Err(LexError {
                        column,
                        length: self.column - column,
                        message: "this string has no end".to_owned(),
                        hint: "close it with `\"`; write a line feed as `\\n`".to_owned(),
                    });
                }
                Some('"') => break,
                Some('\\') => self.escape(&mut bytes)?,
                Some(c) => push_char(&mut bytes, c),
            }
        }
        if self.peek().is_some_and(|c| !is_blank(c)) {
            return Err(LexError {
                column: self.column,
                length: 1,
                message: "text right behind a string".to_owned(),
                hint: "put a blank behind the closing quote, or write `\\\"` for a quote that is \
                       part of the string"
                    .to_owned(),
            });
        }
        let text = String::from_utf8(bytes).map_err(|_| LexError {
            column,
            length: self.column - column,
            message: "the escapes of this string don't make UTF-8".to_owned(),
            hint: "write a character by its number as `\\u{e9}`; for any bytes there is the type \
                   `bytes`"
                .to_owned(),
        })?;
        Ok(Token { text: Cow::Owned(text), column, length: self.column - column, quoted: true })
    }

    /// Reads the characters after a backslash.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), LexError> {
        let column = self.column - 1;
        let byte = match self.take() {
            Some('n') => Some(b'\n'),
            Some('t') => Some(b'\t'),
            Some('r') => Some(b'\r'),
            // A sign is a token of its own, as in joedb.
            Some(c) if c.is_ascii_punctuation() => u8::try_from(c).ok(),
            Some('x') => self.number(2, 16).and_then(|n| u8::try_from(n).ok()),
            Some(c @ '0'..='3') => {
                let high = c.to_digit(8).unwrap_or(0);
                self.number(2, 8).and_then(|low| u8::try_from(high * 64 + low).ok())
            }
            Some('u') => match self.character() {
                Some(c) => {
                    push_char(bytes, c);
                    return Ok(());
                }
                None => None,
            },
            _ => None,
        };
        let byte = byte.ok_or_else(|| LexError {
            column,
            length: self.column - column,
            message: "there is no such escape".to_owned(),
            hint: "there are `\\n`, `\\t`, `\\r`, `\\ooo` with three octal digits, `\\u{..}`, and `\\` before a sign \
                   for the sign, as in `\\\"`"
                .to_owned(),
        })?;
        bytes.push(byte);
        Ok(())
    }

    /// Reads exactly `digits` digits.
    fn number(&mut self, digits: usize, radix: u32) -> Option<u32> {
        let mut number = 0;
        for _ in 0..digits {
            let digit = self.peek()?.to_digit(radix)?;
            self.take();
            number = number * radix + digit;
        }
        Some(number)
    }

    /// Reads `{HEX}`, one to six digits.
    fn character(&mut self) -> Option<char> {
        if self.take() != Some('{') {
            return None;
        }
        let mut number = 0;
        for place in 0..7 {
            match self.peek()? {
                '}' if place > 0 => {
                    self.take();
                    return char::from_u32(number);
                }
                c => number = number * 16 + c.to_digit(16)?,
            }
            self.take();
        }
        None
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn push_char(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
