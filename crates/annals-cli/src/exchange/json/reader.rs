//! JSON, read piece by piece: it may be larger than memory, numbers keep their digits, and errors name their line.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use annals::{Error, Result};

use crate::files::{self, LONGEST_TEXT};

/// The limit on nested arrays and objects.
const DEEPEST: u32 = 128;

/// The limit on the characters of a number.
const LONGEST_NUMBER: usize = 4096;

/// A value that is no array and no object. A number or a string is in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Null,
    Bool(bool),
    Number,
    String,
}

/// Reads JSON.
pub(crate) struct Reader {
    input: Box<dyn BufRead>,
    path: PathBuf,
    line: u64,
    /// The most bytes of a text.
    longest: usize,
}

impl Reader {
    /// Begins to read a file; `path` is its name in errors.
    pub(crate) fn new(input: Box<dyn BufRead>, path: &Path) -> Self {
        Self { input, path: path.to_owned(), line: 1, longest: LONGEST_TEXT }
    }

    /// Makes an error for this position.
    pub(crate) fn wrong(&self, what: impl std::fmt::Display) -> Error {
        self.at(Error::invalid(what.to_string()))
    }

    /// Adds the position to an error.
    pub(crate) fn at(&self, error: Error) -> Error {
        error.within(format_args!("{}: line {}", self.path.display(), self.line))
    }

    fn byte(&mut self) -> Result<Option<u8>> {
        match self.input.fill_buf() {
            Ok(bytes) => Ok(bytes.first().copied()),
            Err(error) => Err(files::cannot("read", &self.path, error)),
        }
    }

    fn pass(&mut self, byte: u8) {
        self.line += u64::from(byte == b'\n');
        self.input.consume(1);
    }

    /// Returns the next byte after white space, without consuming it; `None` at the end.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>> {
        while let Some(byte) = self.byte()? {
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.pass(byte);
        }
        Ok(None)
    }

    /// Skips the byte order mark that some programs write before UTF-8.
    pub(super) fn skip_mark(&mut self) -> Result<()> {
        for byte in *b"\xef\xbb\xbf" {
            if self.byte()? != Some(byte) {
                break;
            }
            self.pass(byte);
        }
        Ok(())
    }

    /// Takes a byte that must be next.
    pub(super) fn expect(&mut self, byte: u8) -> Result<()> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.pass(byte);
                Ok(())
            }
            found => Err(self.unexpected(found, &format!("`{}`", char::from(byte)))),
        }
    }

    /// Returns the error for unexpected input.
    pub(super) fn unexpected(&self, found: Option<u8>, wanted: &str) -> Error {
        match found {
            None => self.wrong(format_args!("the file ends where {wanted} should be")),
            Some(byte) if byte.is_ascii_graphic() => {
                self.wrong(format_args!("`{}` stands where {wanted} should be", char::from(byte)))
            }
            Some(byte) => {
                self.wrong(format_args!("the byte {byte} stands where {wanted} should be"))
            }
        }
    }

    /// Begins an array or object with `[` or `{`.
    pub(crate) fn open(&mut self, bracket: u8) -> Result<Items> {
        self.expect(bracket)?;
        Ok(Items { end: if bracket == b'[' { b']' } else { b'}' }, is_first: true })
    }

    /// Moves to the next item; returns true if there is one.
    pub(super) fn next(&mut self, items: &mut Items) -> Result<bool> {
        let found = self.peek()?;
        if found == Some(items.end) {
            self.pass(items.end);
            return Ok(false);
        }
        if !items.is_first {
            self.expect(b',')?;
        }
        items.is_first = false;
        Ok(true)
    }

    /// Moves to the next item of an object and reads its key; returns true if there is one.
    pub(crate) fn next_key(&mut self, items: &mut Items, key: &mut String) -> Result<bool> {
        if !self.next(items)? {
            return Ok(false);
        }
        self.string(key)?;
        self.expect(b':').map(|()| true)
    }

    /// Reads a string.
    pub(crate) fn string(&mut self, text: &mut String) -> Result<()> {
        match self.scalar(text)? {
            Token::String => Ok(()),
            _ => Err(self.wrong("a string in quotes should be here")),
        }
    }

    /// Reads a value other than an array or object; a number or a string is written to `text`.
    pub(crate) fn scalar(&mut self, text: &mut String) -> Result<Token> {
        text.clear();
        match self.peek()? {
            Some(b'"') => {
                self.pass(b'"');
                self.quoted(text).map(|()| Token::String)
            }
            Some(b'-' | b'0'..=b'9') => self.number(text).map(|()| Token::Number),
            Some(b'a'..=b'z') => {
                self.run(text, |byte| byte.is_ascii_alphanumeric())?;
                match text.as_str() {
                    "null" => Ok(Token::Null),
                    "true" => Ok(Token::Bool(true)),
                    "false" => Ok(Token::Bool(false)),
                    word => Err(self.wrong(format_args!("`{word}` is no value of JSON"))),
                }
            }
            found => Err(self.unexpected(found, "a value")),
        }
    }

    /// Takes bytes as long as they are such.
    fn run(&mut self, text: &mut String, such: impl Fn(u8) -> bool) -> Result<()> {
        while let Some(byte) = self.byte()?.filter(|&byte| such(byte)) {
            if text.len() == LONGEST_NUMBER {
                let start = annals_schema::shorten(text);
                return Err(
                    self.wrong(format_args!("`{start}` is too long for a number or a word"))
                );
            }
            text.push(char::from(byte));
            self.pass(byte);
        }
        Ok(())
    }

    fn number(&mut self, text: &mut String) -> Result<()> {
        self.run(text, |byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))?;
        if is_number(text) {
            return Ok(());
        }
        Err(self.wrong(format_args!("`{text}` is no number of JSON")))
    }

    /// Reads a string after its opening quote.
    fn quoted(&mut self, text: &mut String) -> Result<()> {
        let mut bytes = std::mem::take(text).into_bytes();
        loop {
            let run = match self.input.fill_buf() {
                Ok(run) => run,
                Err(error) => return Err(files::cannot("read", &self.path, error)),
            };
            let plain =
                run.iter().take_while(|&&byte| byte >= b' ' && byte != b'"' && byte != b'\\');
            let plain = plain.count();
            if plain > self.longest - bytes.len() {
                return Err(self.too_long());
            }
            bytes.extend_from_slice(run.get(..plain).unwrap_or_default());
            let next = run.get(plain).copied();
            let was_empty = run.is_empty();
            self.input.consume(plain);
            match next {
                Some(b'"') => break self.pass(b'"'),
                Some(b'\\') => {
                    self.pass(b'\\');
                    let c = self.escaped()?;
                    if c.len_utf8() > self.longest - bytes.len() {
                        return Err(self.too_long());
                    }
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(_) => return Err(self.wrong("a control character stands in a string")),
                None if was_empty => return Err(self.wrong("the file ends in a string")),
                None => {}
            }
        }
        *text = String::from_utf8(bytes).map_err(|_| self.wrong("a string is invalid UTF-8"))?;
        Ok(())
    }

    fn too_long(&self) -> Error {
        self.wrong(format_args!("a text has more than {} bytes, which is the most", self.longest))
    }

    /// Reads the characters after a backslash.
    fn escaped(&mut self) -> Result<char> {
        let byte = self.byte()?;
        byte.into_iter().for_each(|byte| self.pass(byte));
        let c = match byte {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.unit()?;
                let low = if (0xd800..0xdc00).contains(&high) {
                    for wanted in *b"\\u" {
                        match self.byte()? {
                            Some(byte) if byte == wanted => self.pass(byte),
                            _ => return Err(self.wrong("half of a surrogate pair is missing")),
                        }
                    }
                    Some(self.unit()?)
                } else {
                    None
                };
                let units = std::iter::once(high).chain(low);
                let mut decoded = char::decode_utf16(units);
                let c = decoded.next().and_then(Result::ok);
                c.ok_or_else(|| self.wrong("half of a surrogate pair is missing"))?
            }
            _ => return Err(self.wrong("a backslash is followed by what it can't escape")),
        };
        Ok(c)
    }

    fn unit(&mut self) -> Result<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.byte()?;
            let digit = byte.and_then(|byte| char::from(byte).to_digit(16));
            let Some((byte, digit)) = byte.zip(digit) else {
                return Err(self.wrong("`\\u` is not followed by four hexadecimal digits"));
            };
            self.pass(byte);
            unit = unit << 4 | u16::try_from(digit).unwrap_or(0);
        }
        Ok(unit)
    }

    /// Reads any value, and appends it to `text` as JSON.
    pub(super) fn copy_value(&mut self, text: &mut String, depth: u32) -> Result<()> {
        if text.len() > self.longest {
            return Err(self.too_long());
        }
        let bracket = self.peek()?;
        let Some(bracket @ (b'[' | b'{')) = bracket else {
            let mut value = String::new();
            match self.scalar(&mut value)? {
                Token::Null => text.push_str("null"),
                Token::Bool(value) => text.push_str(if value { "true" } else { "false" }),
                Token::Number => text.push_str(&value),
                Token::String => annals_json::push_string(text, &value),
            }
            return Ok(());
        };
        if depth > DEEPEST {
            return Err(
                self.wrong(format_args!("more than {DEEPEST} arrays and objects in each other"))
            );
        }
        let mut items = self.open(bracket)?;
        let mut key = String::new();
        text.push(char::from(bracket));
        let mut separator = "";
        while self.next(&mut items)? {
            text.push_str(separator);
            separator = ",";
            if bracket == b'{' {
                self.string(&mut key)?;
                self.expect(b':')?;
                annals_json::push_string(text, &key);
                text.push(':');
            }
            self.copy_value(text, depth + 1)?;
        }
        text.push(char::from(items.end));
        Ok(())
    }

    /// Reads the characters of a string, which have no quote, incrementally. `"` was next.
    pub(super) fn stream(&mut self) -> Result<Stream<'_>> {
        self.expect(b'"')?;
        Ok(Stream { reader: self, ended: false })
    }

    /// Reads the end of the file.
    pub(super) fn end(&mut self) -> Result<()> {
        match self.peek()? {
            None => Ok(()),
            found => Err(self.unexpected(found, "the end of the file")),
        }
    }
}

/// An array or object that is being read.
pub(crate) struct Items {
    end: u8,
    is_first: bool,
}

/// The characters of a string that is too long for memory, up to its closing quote.
pub(super) struct Stream<'r> {
    reader: &'r mut Reader,
    ended: bool,
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let mut read = 0;
        while read == 0 {
            let run = self.reader.input.fill_buf()?;
            if run.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file ends in a string",
                ));
            }
            let plain =
                run.iter().take(buffer.len()).take_while(|&&byte| byte != b'"' && byte != b'\\');
            read = plain.count();
            for (to, from) in buffer.iter_mut().zip(run.iter().take(read)) {
                *to = *from;
            }
            let next = run.get(read).copied();
            self.reader.input.consume(read);
            if read == 0 {
                self.reader.input.consume(1);
                match next {
                    Some(b'"') => {
                        self.ended = true;
                        return Ok(0);
                    }
                    // Some programs write `\/` for `/`.
                    _ => continue,
                }
            }
        }
        Ok(read)
    }
}

/// True if a text is a number as JSON has them.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(text: &'static [u8]) -> Reader {
        Reader::new(Box::new(io::BufReader::with_capacity(3, text)), Path::new("x"))
    }

    #[test]
    fn it_reads_what_serde_reads() {
        let cases: [&[u8]; 34] = [
            b"null",
            b"true",
            b"nul",
            b"0",
            b"-0",
            b"01",
            b"1.",
            b".5",
            b"1e5",
            b"1E+5",
            b"1e",
            b"-",
            br#""a""#,
            br#""a"#,
            br#""\u00e9\n\/""#,
            br#""\ud83d\ude00""#,
            br#""\ud83d""#,
            br#""\ude00""#,
            br#""\x""#,
            b"\"\xff\"",
            b"\"\n\"",
            b"[]",
            b"[1,]",
            b"[1,2]",
            b"[1 2]",
            b"{}",
            br#"{"a":1,"b":[{}]}"#,
            br#"{"a"}"#,
            br#"{a:1}"#,
            b"[",
            b"[1",
            b"{\"a\":",
            b"tru",
            b" [ true , null ] ",
        ];
        for case in cases {
            let expected = serde_json::from_slice::<serde_json::Value>(case).ok();
            let mut text = String::new();
            let mut reader = reader(case);
            let read = reader.copy_value(&mut text, 0).and_then(|()| reader.end());
            let found = read.ok().map(|()| serde_json::from_str(&text).unwrap());
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(case));
        }
        let deep: &'static [u8] = vec![b'['; 100_000].leak();
        assert!(reader(deep).copy_value(&mut String::new(), 0).is_err());
    }

    #[test]
    fn mistakes_have_their_line() {
        let mut reader = reader(b"[\n1,\n}");
        let error = reader.copy_value(&mut String::new(), 0).unwrap_err().to_string();
        assert_eq!(error, "x: line 3: `}` stands where a value should be");
    }

    #[test]
    fn a_text_that_no_field_could_hold_is_refused_before_it_takes_memory() {
        // A string, one of escapes, a number, a word, and a value kept as JSON.
        let cases: [(&[u8], &str); 6] = [
            (b"\"abcdefgh\"", ""),
            (b"\"abcdefghi\"", "x: line 1: a text has more than 8 bytes, which is the most"),
            (br#""\u00e9\u00e9\u00e9\u00e9\n""#, "more than 8 bytes"),
            (b"[1,2,3,4,5,6,7]", "more than 8 bytes"),
            (&[b'1'; 5000], "1111.. is too long for a number or a word"),
            (&[b'a'; 5000], "aaaa.. is too long for a number or a word"),
        ];
        for (case, expected) in cases {
            let mut reader = Reader { longest: 8, ..reader(case) };
            let read = reader.copy_value(&mut String::new(), 0);
            let message = read.err().map(|error| error.to_string().replace('`', ""));
            let message = message.unwrap_or_default();
            assert!(
                message.contains(expected) && message.is_empty() == expected.is_empty(),
                "{message}"
            );
        }
    }

    #[test]
    fn a_long_string_passes_through() {
        let mut reader = reader(br#" "ab\/cd" ]"#);
        let mut text = String::new();
        reader.stream().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "ab/cd");
        reader.expect(b']').unwrap();
    }
}
