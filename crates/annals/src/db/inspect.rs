//! Looking at a journal file from outside: where its checkpoints are and what lies behind its end.

use std::path::Path;

use annals_schema::Timestamp;

use super::options::locate;
use super::scan::{self, open_to_read};
use crate::journal::format::Slot;
use crate::journal::{Point, Survey, Verdict};
use crate::storage::Directory;
use crate::{Error, Result};

/// What a journal file says of itself.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The version of the format.
    pub version: u32,
    /// The journal's random id.
    pub journal_id: [u8; 16],
    /// The number of the segment.
    pub segment: u64,
    /// When it was created.
    pub created: Timestamp,
    /// The length of the file in bytes.
    pub len: u64,
    /// The end of the last commit that counts.
    pub end: Point,
    /// The farthest position that was known to be flushed.
    pub hard: u64,
    /// The two hard slots; `None` where the two copies don't agree.
    pub slots: [Option<Slot>; 2],
    /// The process that has it open for writing, as the live block says.
    pub holder: Option<u32>,
    /// How many copies of the header are damaged, of 3.
    pub damaged_headers: usize,
    /// Data frames behind the end, of a transaction that didn't commit (or not yet).
    pub uncommitted_frames: u64,
    /// Half and two-phase commits behind the end whose frames verify, but of which nothing shows that
    /// they were flushed, so that they don't count.
    pub doubtful_commits: usize,
    /// The first byte behind all frames that verify which is not zero.
    pub tail: Option<u64>,
    /// Whether it was closed properly.
    pub closed: bool,
    /// The damage, if there is any: something was durable and doesn't verify any more.
    pub damage: Option<String>,
}

/// Looks at a journal file. Takes no lock and writes nothing; damage is part of the answer.
///
/// Cost: reads the file once, or more often if it seems damaged.
///
/// # Errors
/// `NotFound`, `NotAJournal`, `Unsupported`, `Io`; `Corrupt` if not even a header is left.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection> {
    let (directory, name) = locate(path.as_ref())?;
    inspect_in(&*directory, &name)
}

/// As [`inspect`], in any directory.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_in(directory: &dyn Directory, name: &str) -> Result<Inspection> {
    let (storage, shown) = open_to_read(directory, name)?;
    // Damage that another process's writing pretends is gone at the next look.
    let is_damaged = |survey: &Survey| survey.verdict() == Verdict::Damaged;
    let (survey, ()) = scan::survey(&*storage, &shown, is_damaged, |(), _, _| Ok(()))?;
    let damaged = is_damaged(&survey);
    let damage = damaged.then(|| Error::to_string(&survey.damage(&shown)));
    let header = survey.head.header;
    Ok(Inspection {
        version: header.version,
        journal_id: header.journal_id,
        segment: header.segment,
        created: Timestamp(header.created),
        len: survey.len,
        end: survey.end,
        hard: survey.hard,
        slots: survey.head.slots,
        holder: survey.head.live.map(|live| live.pid).filter(|&pid| pid != 0),
        damaged_headers: survey.head.damaged_headers.iter().filter(|&&damaged| damaged).count(),
        uncommitted_frames: survey.uncommitted_frames,
        doubtful_commits: survey.doubtful.len(),
        tail: survey.tail.map(|tail| tail.first),
        closed: survey.is_closed(),
        damage,
    })
}
