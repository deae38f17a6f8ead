//! The records of a CSV file, and whether their cells are quoted.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use annals::{Error, Result};

use crate::files::{self, LONGEST_TEXT};

/// A record: the texts of its cells. It is used again for the next.
#[derive(Default)]
pub(super) struct Record {
    bytes: Vec<u8>,
    /// The end of each cell, and whether it is quoted.
    cells: Vec<(usize, bool)>,
    /// The line where it begins, from 1.
    pub(super) line: u64,
}

impl Record {
    /// Returns how many cells there are.
    pub(super) const fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns the bytes of each cell, and whether it is quoted.
    fn raw(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let starts = std::iter::once(0).chain(self.cells.iter().map(|cell| cell.0));
        let cells = starts.zip(&self.cells);
        cells
            .map(|(start, &(end, quoted))| (self.bytes.get(start..end).unwrap_or_default(), quoted))
    }

    /// Returns the text of each cell, and whether it is quoted.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&str, bool)> {
        // They were checked to be UTF-8 when they were read.
        self.raw().map(|(bytes, quoted)| (std::str::from_utf8(bytes).unwrap_or_default(), quoted))
    }
}

/// Where in a cell the next byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At its beginning.
    Start,
    /// In a cell without quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// Right after a quote that may be the closing one.
    Closed,
}

/// Reads records.
pub(super) struct Records {
    input: Box<dyn BufRead>,
    path: PathBuf,
    /// The byte between cells.
    pub(super) separator: u8,
    line: u64,
    /// The most bytes of a record.
    longest: usize,
}

impl Records {
    /// Begins at the start of a file; `path` is its name in errors. Without a separator, it is the one that the first
    /// line has.
    pub(super) fn new(input: Box<dyn BufRead>, path: &Path, separator: Option<u8>) -> Result<Self> {
        let (path, longest) = (path.to_owned(), LONGEST_TEXT);
        let mut records = Self { input, path, separator: b',', line: 1, longest };
        // The byte order mark that some programs write before UTF-8.
        for byte in *b"\xef\xbb\xbf" {
            if records.byte()? != Some(byte) {
                break;
            }
            records.input.consume(1);
        }
        records.separator = match separator {
            Some(separator) => separator,
            None => records.guess()?,
        };
        Ok(records)
    }

    /// Returns the separator of the first line: a comma, unless it has none and has others.
    fn guess(&mut self) -> Result<u8> {
        self.byte()?;
        let begun = self.input.fill_buf();
        let begun = begun.map_err(|error| files::cannot("read", &self.path, error))?;
        let mut counts = [b',', b';', b'\t', b'|'].map(|separator| (separator, 0_u32));
        let mut is_quoted = false;
        for &byte in begun {
            match byte {
                b'"' => is_quoted = !is_quoted,
                _ if is_quoted => {}
                b'\n' | b'\r' => break,
                _ => counts.iter_mut().filter(|it| it.0 == byte).for_each(|it| it.1 += 1),
            }
        }
        let has_commas = counts.iter().any(|&(separator, count)| separator == b',' && count > 0);
        let most = counts.iter().rev().max_by_key(|(_, count)| *count);
        Ok(most.filter(|_| !has_commas).map_or(b',', |(separator, _)| *separator))
    }

    fn byte(&mut self) -> Result<Option<u8>> {
        match self.input.fill_buf() {
            Ok(bytes) => Ok(bytes.first().copied()),
            Err(error) => Err(files::cannot("read", &self.path, error)),
        }
    }

    fn wrong(&self, line: u64, what: &str) -> Error {
        Error::invalid(format!("{}: line {line}: {what}", self.path.display()))
    }

    /// Reads the next record; returns whether there is one. Skips empty lines.
    pub(super) fn read(&mut self, record: &mut Record) -> Result<bool> {
        record.bytes.clear();
        record.cells.clear();
        while let Some(byte @ (b'\n' | b'\r')) = self.byte()? {
            self.line += u64::from(byte == b'\n');
            self.input.consume(1);
        }
        record.line = self.line;
        if self.byte()?.is_none() {
            return Ok(false);
        }
        while self.cell(record)? {}
        for (place, (bytes, _)) in record.raw().enumerate() {
            if std::str::from_utf8(bytes).is_err() {
                let what = format!("cell {}: invalid UTF-8", place + 1);
                return Err(self.wrong(record.line, &what));
            }
        }
        Ok(true)
    }

    /// Reads a cell; returns whether the record continues.
    fn cell(&mut self, record: &mut Record) -> Result<bool> {
        let (mut place, mut quoted, mut opened) = (Place::Start, false, self.line);
        loop {
            let Some(byte) = self.byte()? else {
                if place == Place::Quoted {
                    let what = "a quote is opened here and never closed; a quote in a quoted cell is \
                                written twice";
                    return Err(self.wrong(opened, what));
                }
                record.cells.push((record.bytes.len(), quoted));
                return Ok(false);
            };
            self.input.consume(1);
            // A cell takes as much memory as some bytes, also if it is empty.
            if record.bytes.len() + size_of::<(usize, bool)>() * record.cells.len() >= self.longest
            {
                let what =
                    format!("a record has more than {} bytes, which is the most", self.longest);
                return Err(self.wrong(record.line, &what));
            }
            place = match (place, byte) {
                (Place::Quoted, b'"') => Place::Closed,
                (Place::Quoted, _) => {
                    record.bytes.push(byte);
                    Place::Quoted
                }
                (_, byte) if byte == self.separator || matches!(byte, b'\n' | b'\r') => {
                    self.line += u64::from(byte == b'\n');
                    record.cells.push((record.bytes.len(), quoted));
                    // The LF of CR LF is skipped with the empty lines in front of the next record.
                    return Ok(byte == self.separator);
                }
                (Place::Start, b'"') => {
                    (opened, quoted) = (self.line, true);
                    Place::Quoted
                }
                (Place::Closed, b'"') => {
                    record.bytes.push(byte);
                    Place::Quoted
                }
                (Place::Closed, _) => {
                    let what = "text right behind a closing quote; a quote in a quoted cell is written \
                                twice";
                    return Err(self.wrong(self.line, what));
                }
                (Place::Start | Place::Plain, _) => {
                    record.bytes.push(byte);
                    Place::Plain
                }
            };
            self.line += u64::from(byte == b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Cells = Vec<(String, bool)>;

    fn read(text: &'static str) -> Result<Vec<(u64, Cells)>, String> {
        let input = std::io::BufReader::with_capacity(2, text.as_bytes());
        let mut records = Records::new(Box::new(input), Path::new("x"), None).unwrap();
        let (mut record, mut all) = (Record::default(), Vec::new());
        while records.read(&mut record).map_err(|error| error.to_string())? {
            let cells = record.cells().map(|(text, quoted)| (text.to_owned(), quoted)).collect();
            all.push((record.line, cells));
        }
        Ok(all)
    }

    fn cells(cells: &[(&str, bool)]) -> Cells {
        cells.iter().map(|(text, quoted)| ((*text).to_owned(), *quoted)).collect()
    }

    #[test]
    fn a_record_that_no_row_could_hold_is_refused_before_it_takes_memory() {
        let read = |text: &'static [u8]| {
            let mut records = Records::new(Box::new(text), Path::new("x"), None).unwrap();
            records.longest = 64;
            let read = records.read(&mut Record::default());
            read.map_err(|error| error.to_string())
        };
        assert_eq!(read(&[b'a'; 64]), Ok(true));
        let refused =
            Err("x: line 1: a record has more than 64 bytes, which is the most".to_owned());
        assert_eq!(read(&[b'a'; 65]), refused);
        let quoted: &'static [u8] = format!("\"{}\"", "\n".repeat(70)).into_bytes().leak();
        assert_eq!(read(quoted), refused);
        assert_eq!(read(&[b','; 10]), refused, "empty cells take memory, too");
    }

    #[test]
    fn cells_are_what_is_written() {
        let text = "\u{feff}a,\"b \"\"c\"\",\r\nd\",e\"f\r\n\r\n\"\",,\"x\"\n\ny";
        let expected = vec![
            (1, cells(&[("a", false), ("b \"c\",\r\nd", true), ("e\"f", false)])),
            (4, cells(&[("", true), ("", false), ("x", true)])),
            (6, cells(&[("y", false)])),
        ];
        assert_eq!(read(text), Ok(expected));
        assert_eq!(read("a,\n"), Ok(vec![(1, cells(&[("a", false), ("", false)]))]));
        assert_eq!(read(""), Ok(vec![]));
    }

    #[test]
    fn the_first_line_says_what_separates() {
        let guessed = |text: &'static str| {
            Records::new(Box::new(text.as_bytes()), Path::new("x"), None).unwrap().separator
        };
        for (text, separator) in [
            ("a;b\n1,5;2", b';'),
            ("\u{feff}a\tb", b'\t'),
            ("a|b|c;d", b'|'),
            ("a,b;c;d;e", b','),
            ("\"a,b\";c\n", b';'),
            ("\"a;b\"\nc;d", b','),
            ("a\nb;c", b','),
            ("", b','),
        ] {
            assert_eq!(guessed(text), separator, "{text}");
        }
        let mut records =
            Records::new(Box::new(&b"a;b,c\n"[..]), Path::new("x"), Some(b';')).unwrap();
        let mut record = Record::default();
        assert!(records.read(&mut record).unwrap());
        assert_eq!(record.cells().map(|cell| cell.0).collect::<Vec<_>>(), ["a", "b,c"]);
    }

    #[test]
    fn wrong_quotes_are_told_with_their_line() {
        assert!(read("a\nb,\"c\nd\n").unwrap_err().starts_with("x: line 2: a quote is opened"));
        assert!(read("a\n\"b\"c\n").unwrap_err().starts_with("x: line 2: text right behind"));
    }
}
