//! Where the transactions of some frames end, as the frames say it themselves.

use std::io::{self, Read as _};
use std::ops::Range;

use annals_storage::{Spool, Storage as _};

use crate::journal::Outline;
use crate::journal::format::FRAME_HEADER_LEN;
use crate::{Error, Result};

/// The end of a transaction in some frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The position after its last frame.
    pub position: u64,
    /// The chain after it.
    pub chain: u64,
    /// The time of its commit by a clock, in microseconds since 1970.
    pub clock_time: Option<i64>,
}

/// Returns the ends of the transactions in a spool from a position on; `None` if these aren't whole transactions.
/// Verifies nothing else.
///
/// # Errors
/// `Io`: the spool can't be read.
pub fn transaction_ends(frames: &Spool, begin: u64) -> Result<Option<Vec<End>>> {
    let ends = ends(begin..frames.end(), |at, bytes| frames.read_at(at, bytes));
    ends.map_err(|error| Error::io("can't read the spooled frames", error))
}

/// Returns the time of the last transaction of some frames that has one of a clock; `None` if there is none, or if they aren't
/// whole transactions.
#[must_use]
pub fn last_clock_time(frames: &[u8]) -> Option<i64> {
    let read_at = |at, bytes: &mut [u8]| {
        let rest = usize::try_from(at).ok().and_then(|at| frames.get(at..)).unwrap_or_default();
        (&mut &*rest).read(bytes)
    };
    let ends = ends(0..frames.len() as u64, read_at).ok()??;
    ends.iter().rev().find_map(|end| end.clock_time)
}

fn ends(
    frames: Range<u64>,
    read_at: impl Fn(u64, &mut [u8]) -> io::Result<usize>,
) -> io::Result<Option<Vec<End>>> {
    let (mut at, mut ends, mut is_whole) = (frames.start, Vec::new(), false);
    while at < frames.end {
        let mut header = [0; FRAME_HEADER_LEN];
        let read = read_at(at, &mut header)?;
        let outline = Outline::of(&header).filter(|_| read == header.len());
        let Some(outline) = outline.filter(|it| it.len <= frames.end - at) else {
            return Ok(None);
        };
        at += outline.len;
        is_whole = outline.is_commit;
        if is_whole {
            let mut chain = [0; 8];
            read_at(at - 8, &mut chain)?;
            let clock_time = (!outline.explicit_time).then_some(outline.time);
            ends.push(End { position: at, chain: u64::from_le_bytes(chain), clock_time });
        }
    }
    Ok(is_whole.then_some(ends))
}
