//! When the transactions of a file were committed: joedb's programs write the time of a transaction as its last entry.

use std::io::BufRead;

use annals::{Result, Timestamp};

use super::format::HEAD;
use super::reader::Reader;
use super::survey::pass;

/// Reads ahead to the timestamps of a file, each once.
pub(crate) struct Times<R> {
    reader: Reader<R>,
    /// Where the last timestamp that was read ends, and its time.
    last: Option<(u64, Timestamp)>,
}

impl<R: BufRead> Times<R> {
    /// Begins with the first entry, which is where the input is. `end` is where the last timestamp ends.
    pub(crate) fn new(input: R, end: u64) -> Self {
        Self { reader: Reader::new(input, HEAD, end), last: None }
    }

    /// Returns the time of a transaction that ends at a position: of the first timestamp that ends there or later.
    /// Positions must not decrease.
    pub(crate) fn of(&mut self, position: u64) -> Result<Option<Timestamp>> {
        loop {
            if let Some((at, time)) = self.last
                && at >= position
            {
                return Ok(Some(time));
            }
            let Some(passed) = pass(&mut self.reader)? else { return Ok(None) };
            if let Some(seconds) = passed {
                self.last = Some((self.reader.position(), Timestamp::from_seconds(seconds)));
            }
        }
    }
}
