//! Moments: by transaction, by time, by comment; and their text.

use std::fmt;
use std::str::FromStr;

use annals_schema::{Timestamp, Txid};

/// A moment in the history of a database: the end of one of its transactions.
///
/// Its text is the form that the program `annals` takes: `txid:17`, `time:2024-02-29T12:00:00Z`, `comment:before the
/// fair`.
///
/// ```
/// use annals::{Moment, Txid};
///
/// assert_eq!("txid:17".parse::<Moment>().unwrap(), Moment::from(Txid(17)));
/// assert!("yesterday".parse::<Moment>().unwrap_err().to_string().contains("time:"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After the transaction of this number.
    Txid(Txid),
    /// After the last transaction, in the order of their numbers, whose time isn't later than this.
    Time(Timestamp),
    /// After the last transaction that has exactly this comment.
    Comment(String),
}

/// A text that is no moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentError {
    text: String,
    reason: Option<String>,
}

impl fmt::Display for MomentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no moment: ", self.text)?;
        match &self.reason {
            Some(reason) => f.write_str(reason),
            None => f.write_str("write txid:NUMBER, time:2024-02-29T12:00:00Z or comment:TEXT"),
        }
    }
}

impl std::error::Error for MomentError {}

impl From<Txid> for Moment {
    fn from(txid: Txid) -> Self {
        Self::Txid(txid)
    }
}

impl From<Timestamp> for Moment {
    fn from(time: Timestamp) -> Self {
        Self::Time(time)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Txid(txid) => write!(f, "txid:{txid}"),
            Self::Time(time) => write!(f, "time:{time}"),
            Self::Comment(text) => write!(f, "comment:{text}"),
        }
    }
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let wrong = |reason| MomentError { text: text.to_owned(), reason };
        match text.split_once(':') {
            Some(("txid", number)) => number
                .parse()
                .map(|number| Self::Txid(Txid(number)))
                .map_err(|error| wrong(Some(error.to_string()))),
            Some(("time", time)) => {
                time.parse().map(Self::Time).map_err(|error| wrong(Some(format!("{error}"))))
            }
            Some(("comment", comment)) => Ok(Self::Comment(comment.to_owned())),
            _ => Err(wrong(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_is_written() {
        for moment in [
            Moment::Txid(Txid(0)),
            Moment::Txid(Txid(u64::MAX)),
            Moment::Time(Timestamp(1_709_208_000_000_001)),
            Moment::Comment("with: colons, and 'quotes'".to_owned()),
            Moment::Comment(String::new()),
        ] {
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
        for wrong in ["", "17", "txid:", "txid:-1", "time:noon", "Txid:1"] {
            let error = wrong.parse::<Moment>().unwrap_err().to_string();
            assert!(error.contains("is no moment"), "{error}");
        }
    }
}
