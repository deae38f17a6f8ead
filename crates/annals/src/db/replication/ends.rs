//! Where the transactions of some frames end, as the frames say it themselves.

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
    let io = |error| Error::io("can't read the spooled frames", error);
    let (mut at, mut ends, mut is_whole) = (begin, Vec::new(), false);
    while at < frames.end() {
        let mut header = [0; FRAME_HEADER_LEN];
        let read = frames.read_at(at, &mut header).map_err(io)?;
        let outline = Outline::of(&header).filter(|_| read == header.len());
        let Some(outline) = outline.filter(|it| it.len <= frames.end() - at) else {
            return Ok(None);
        };
        at += outline.len;
        is_whole = outline.is_commit;
        if is_whole {
            let mut chain = [0; 8];
            frames.read_at(at - 8, &mut chain).map_err(io)?;
            let clock_time = (!outline.explicit_time).then_some(outline.time);
            ends.push(End { position: at, chain: u64::from_le_bytes(chain), clock_time });
        }
    }
    Ok(is_whole.then_some(ends))
}
