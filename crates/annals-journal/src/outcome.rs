//! The modes of recovery of a journal's end, and the report.

use super::format::{Point, Secret};
use super::head;
use super::slots::HardSlots;
use annals_schema::Txid;

/// The treatment of a journal whose end isn't in order.
///
/// None of them helps against damage, that is, if something is missing that was on permanent storage: that is always
/// refused. Each mode saves cut bytes beside the file, if a commit may be in them, and reports its actions. Without
/// space for that it reports that they were not saved, unless `Options::copy_first` requires a copy. In shared mode,
/// once a process has the file open, all but [`Refuse`](Self::Refuse) are as [`Checked`](Self::Checked).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Keeps all commits whose chain verifies, and cuts the bytes after them.
    #[default]
    Checked,
    /// Refuses to open for writing if [`Checked`](Self::Checked) would have to cut anything.
    Refuse,
    /// Recovers to the last commit that is known to have been flushed, according to slots and frames. Later ones are
    /// cut off though they verify, soft ones above all.
    ToHard,
    /// Recovers to the last commit that was acknowledged according to the live block, as far as it verifies. The live
    /// block is at most 10 ms late; without `Options::background` it has the last checkpoint or opening. Never
    /// recovers to an earlier end than [`ToHard`](Self::ToHard).
    ToSoft,
    /// Another name of [`Checked`](Self::Checked), beside [`ToHard`](Self::ToHard) and
    /// [`ToSoft`](Self::ToSoft).
    ToEnd,
}

impl Recovery {
    /// Returns the mode that is possible once several processes have a journal open: a state that one of them shows
    /// must not be taken back.
    #[doc(hidden)]
    #[inline]
    pub const fn among_others(self) -> Self {
        match self {
            Self::Refuse => Self::Refuse,
            _ => Self::Checked,
        }
    }
}

/// The report of opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// True if the journal had not been closed properly.
    pub unclean: bool,
    /// The cut bytes, if any were cut.
    pub cut: Option<Cut>,
    /// The copy of the whole file that was made before anything was cut off, if requested.
    pub copied_to: Option<String>,
    /// A sentence for each thing worth telling a person; empty if there is none.
    pub findings: Vec<String>,
}

/// The bytes that recovery cut off a journal's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position of the cut: the end of the last transaction that is whole.
    pub position: u64,
    /// The number of that transaction.
    pub txid: Txid,
    /// How many bytes followed.
    pub bytes: u64,
    /// How many intact commits are among those bytes: this [`Recovery`] doesn't accept them.
    pub commits: u64,
    /// How many data frames of a transaction that never committed are among those bytes.
    pub uncommitted_frames: u64,
    /// True if a transaction may be lost that had been acknowledged at a level without durability, or by a disk that
    /// violated its guarantee.
    pub may_have_been_acknowledged: bool,
    /// The file beside the journal with the bytes, or the first 64 MiB of them; `None` if no commit can be in them,
    /// or if there was no space for it.
    pub saved_as: Option<String>,
}

/// Where things are when recovery is done.
pub struct Settled {
    /// The findings, and the actions for each.
    pub recovered: Recovered,
    /// The end of the zeros after the last commit.
    pub(crate) zeroed_to: u64,
    /// True if the slots hold a secret that was drawn for this opening.
    pub(super) has_secret: bool,
    pub(super) slots: HardSlots,
}

impl Settled {
    /// Describes a new journal, or segment, of which nothing had to be recovered. `secret` is the secret in its slots.
    #[inline]
    pub fn new_journal(start: Point, secret: Secret) -> Self {
        Self {
            recovered: Recovered::default(),
            zeroed_to: start.position,
            has_secret: true,
            slots: HardSlots::flushed(0, head::first_slot(start, secret)),
        }
    }

    /// Marks that this process has just created the file, whose secret is new.
    #[inline]
    pub fn just_created(self) -> Self {
        Self { has_secret: true, ..self }
    }
}
