//! Spilling: a working view that is larger than memory is written to free space of the image before it commits.
//!
//! A spill is the beginning of a backfill: pages and nodes are written, and the working view continues from them. The
//! draft is kept until its contents are committed and acknowledged. Then a backfill continues with it and publishes.
//! Until then no root reaches the spilled pages: a crash, or a rollback, leaves free space.
//!
//! Invariants
//! 1. There is at most one such draft, in `Working`; meanwhile only its own root may be published.
//! 2. All views published after the commit refer to its spilled pages.
//! 3. A view over spilled pages pins the root below: space that the draft's own root doesn't reach isn't reused
//!    before that pin is released. It also pins the draft, by a number that no root has. A handle that opens the
//!    image later, when such a view has outlived this one, can't know which space it reaches. So it writes after the
//!    file's end as long as the pin exists.
//!
//! The journal need not be hard before: nothing here is believed before a root is published, and the
//! backfill that does it makes the journal hard first.

use crate::db::follow::drafting::Counts;
use crate::image::{Array, Image, Mark, PutAside, Root, read_catalog};

/// Pages written ahead of the backfill that publishes them.
#[derive(Debug)]
pub(in crate::db) struct Spill {
    pub(in crate::db) draft: PutAside,
    /// The pages written so far.
    pub(in crate::db) written: Counts,
    /// The arrays that were spilled last, in the form of a catalog.
    pub(in crate::db) arrays: Vec<Array>,
    /// The transaction that is open, if a part of it is that one's.
    pub(in crate::db) open: Option<u64>,
    /// The last committed transaction that has pages in it.
    pub(in crate::db) committed: Option<u64>,
    /// How the space was before the transaction that is open, and which arrays there were.
    pub(in crate::db) before: Option<(Mark, Vec<Array>)>,
}

/// How much was spilled at a savepoint of the open transaction.
#[derive(Clone, Debug)]
pub(in crate::db) struct SpillMark {
    space: Mark,
    arrays: Vec<Array>,
}

impl Spill {
    /// Returns how much is spilled now, for a savepoint.
    pub(in crate::db) fn mark(&self) -> Option<SpillMark> {
        Some(SpillMark { space: self.draft.mark()?, arrays: self.arrays.clone() })
    }

    /// Frees the pages spilled since a savepoint: no view refers to them any more.
    pub(in crate::db) fn return_to(&mut self, mark: &SpillMark) {
        self.draft.go_back(mark.space.clone());
        self.arrays.clone_from(&mark.arrays);
    }

    /// Returns the transaction up to which pages must be published; `None` if one of them is still open.
    pub(in crate::db) const fn due(&self) -> Option<u64> {
        if self.open.is_some() { None } else { self.committed }
    }

    /// Adds pages that were written; `before` is the state of the space before that.
    pub(in crate::db) fn add(
        &mut self,
        written: Counts,
        arrays: Vec<Array>,
        before: Option<Mark>,
        txid: u64,
        is_open: bool,
    ) {
        self.written = self.written.and(written);
        let arrays_before = std::mem::replace(&mut self.arrays, arrays);
        if !is_open {
            (self.open, self.committed) = (None, Some(txid));
        } else if self.open.replace(txid).is_none() && self.committed.is_some() {
            self.before = before.map(|mark| (mark, arrays_before));
        }
    }

    /// Marks all spilled pages as committed.
    pub(in crate::db) fn commit(&mut self) {
        self.committed = self.open.take().or(self.committed);
        self.before = None;
    }
}

/// Returns the arrays as saved last: by a spill, else by the backfill of the root.
pub(in crate::db) fn saved_before(
    image: &Image,
    root: Option<Root>,
    spill: Option<&Spill>,
) -> Vec<Array> {
    match (spill, root) {
        (Some(spill), _) => spill.arrays.clone(),
        // A page that can't be read now is reported when it is needed.
        (None, Some(root)) => read_catalog(image, &root).map(|it| it.arrays).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}
