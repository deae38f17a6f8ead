//! A look at the quotes of a CSV file while it is read. The reader behind takes a quote that is never
//! closed, as in a file that was cut off, for closed at the end: here it is an error.

use std::io::{self, Read};

/// Where in a cell the next byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At its beginning.
    Start,
    /// In a cell without quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// Right behind a quote that may be the closing one.
    Closed,
}

/// Hands on what it reads, and fails where the quotes are wrong.
pub(crate) struct Quotes<R> {
    input: R,
    place: Place,
    /// The line that is being read, from 1.
    line: u64,
    /// The line where the last quote was opened.
    opened: u64,
}

impl<R: Read> Quotes<R> {
    /// Begins at the start of a file.
    pub(crate) const fn new(input: R) -> Self {
        Self { input, place: Place::Start, line: 1, opened: 0 }
    }

    fn see(&mut self, byte: u8) -> io::Result<()> {
        self.place = match (self.place, byte) {
            (Place::Quoted, b'"') => Place::Closed,
            (Place::Quoted, _) => Place::Quoted,
            (_, b',' | b'\n' | b'\r') => Place::Start,
            (Place::Start, b'"') => {
                self.opened = self.line;
                Place::Quoted
            }
            (Place::Closed, b'"') => Place::Quoted,
            (Place::Closed, _) => {
                return Err(wrong(self.line, "text right behind a closing quote"));
            }
            (Place::Start | Place::Plain, _) => Place::Plain,
        };
        self.line += u64::from(byte == b'\n');
        Ok(())
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        for &byte in buffer.iter().take(count) {
            self.see(byte)?;
        }
        if count == 0 && !buffer.is_empty() && self.place == Place::Quoted {
            return Err(wrong(self.opened, "a quote is opened here and never closed"));
        }
        Ok(count)
    }
}

fn wrong(line: u64, what: &str) -> io::Error {
    let message = format!("line {line}: {what}; a quote in a quoted cell is written twice");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let mut all = String::new();
        let read = Quotes::new(text.as_bytes()).read_to_string(&mut all);
        read.map(|_| all).map_err(|error| error.to_string())
    }

    #[test]
    fn right_quotes_pass_unchanged() {
        let text = "a,\"b \"\"c\"\",\r\nd\",e\"f\r\n\"\",\"x\"\n";
        assert_eq!(read(text), Ok(text.to_owned()));
    }

    #[test]
    fn wrong_quotes_are_told_with_their_line() {
        assert!(read("a\nb,\"c\nd\n").unwrap_err().starts_with("line 2: a quote is opened"));
        assert!(read("a\n\"b\"c\n").unwrap_err().starts_with("line 2: text right behind"));
    }
}
