//! A place in a history, which also proves which history it is of.

use std::fmt;
use std::str::FromStr;

use annals_schema::Txid;

use super::format::Point;

/// The end of a transaction: its number, and the chain there, which is a hash of the whole history up to it. Two
/// histories that have the same cursor are the same up to there. The chain finds accidents, not forgery.
///
/// As text it is `TXID:CHAIN`, with the chain as 16 hexadecimal digits.
///
/// ```
/// use annals_journal::Cursor;
/// use annals_schema::Txid;
///
/// let cursor: Cursor = "17:00c0ffee00c0ffee".parse().unwrap();
/// assert_eq!(cursor.txid, Txid(17));
/// assert_eq!(cursor.to_string(), "17:00c0ffee00c0ffee");
/// assert!("17".parse::<Cursor>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor {
    /// The number of the transaction; 0 before the first.
    pub txid: Txid,
    /// The chain after it.
    pub chain: u64,
}

impl From<Point> for Cursor {
    fn from(Point { txid, chain, .. }: Point) -> Self {
        Self { txid, chain }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}", self.txid.0, self.chain)
    }
}

/// A text that isn't a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorError(String);

impl fmt::Display for CursorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} isn't a cursor: write TXID:CHAIN, as 17:00c0ffee00c0ffee", self.0)
    }
}

impl std::error::Error for CursorError {}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let parts = text.split_once(':').filter(|(_, chain)| {
            chain.len() == 16 && chain.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let cursor = parts.and_then(|(txid, chain)| {
            let digits = txid.bytes().all(|byte| byte.is_ascii_digit());
            let txid = txid.parse().ok().filter(|_| digits)?;
            Some(Self { txid: Txid(txid), chain: u64::from_str_radix(chain, 16).ok()? })
        });
        cursor.ok_or_else(|| CursorError(text.chars().take(60).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_has_digits_and_sixteen_hexadecimal_digits() {
        assert!("17:00c0ffee00C0FFEE".parse::<Cursor>().is_ok());
        for wrong in [
            "17:c0ffee",
            "17:00c0ffee00c0ffee0",
            "17:+0c0ffee00c0ffee",
            "+17:00c0ffee00c0ffee",
            ":00c0ffee00c0ffee",
            "17 00c0ffee00c0ffee",
            "18446744073709551616:00c0ffee00c0ffee",
        ] {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
    }
}
