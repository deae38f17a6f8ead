//! The trigger of automatic backfills: the one place that decides it.
//!
//! | when                     | what is looked at                                                     |
//! |--------------------------|-----------------------------------------------------------------------|
//! | after each commit        | how long the journal's tail after the image's point is: [`tail_due`]  |
//! |                          | how much of the store is in memory alone: a quarter of what may be    |
//! | a transaction spilled    | nothing: what it wrote ahead is to be published                       |
//! | a backfill failed        | the tail, once it has doubled                                         |
//! | the database is closed   | whether the next opening would be noticeably longer                   |
//!
//! The thread that does it is in [`background`](super::background).

use crate::db::engine::{backfill, retain};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Result;
use crate::db::engine::background::Background;
use crate::db::engine::core::Core;
use crate::db::image::{BackfillMode, ImageState};
use crate::db::present::segment::JournalFile;
use crate::journal::lock;
use crate::store::Store;

/// The tail that is worth a backfill while the database is open, in bytes: a few hundredths of a second of
/// replay.
const TAIL: u64 = 4 << 20;
/// The tail that is worth one all the same where the last one wrote little, for the sake of key frames.
const TAIL_BETWEEN_FRAMES: u64 = 1 << 20;
/// The tail that is worth one when it is closed: a fraction of a millisecond of replay.
const TAIL_AT_CLOSE: u64 = 16 << 10;
/// A journal that is shorter gets no image when it is closed: it would be several times as long.
const FIRST_AT_CLOSE: u64 = 128 << 10;

impl Background {
    /// Wakes the thread if a backfill is due, by the length of the journal or by the changes in memory alone.
    pub(in crate::db) fn note_commit(&self, file: &JournalFile, position: u64, store: &mut Store) {
        self.note(file.reach(position));
        if store.has_unsaved(self.unsaved_due()) {
            self.want();
        }
    }
}

/// Returns the end of the journal, in bytes as [`JournalFile::reach`] counts them.
fn end(core: &Core) -> u64 {
    let segment = core.segment.load();
    segment.file.reach(segment.checkpoints.acknowledged().position)
}

/// Returns the image's end in the journal, and how many bytes the last backfill wrote.
fn image_reach(core: &Core) -> Option<(u64, u64)> {
    core.image().map(ImageState::state)
}

/// Returns the end of the journal at which the next backfill pays.
pub(in crate::db) fn image_due(core: &Core) -> u64 {
    let due = |(reached, wrote): (u64, u64)| reached.saturating_add(tail_due(wrote));
    image_reach(core).map_or(u64::MAX, due)
}

/// Returns how many bytes of changes in memory alone are worth one.
pub(in crate::db) fn unsaved_due(core: &Core) -> usize {
    core.image().map_or(usize::MAX, ImageState::unsaved_due)
}

/// Returns at which end of the journal a backfill is tried again that has failed.
pub(in crate::db) fn image_due_later(core: &Core) -> u64 {
    let end = end(core);
    let tail = end.saturating_sub(image_reach(core).map_or(end, |(reached, _)| reached));
    end.saturating_add(TAIL.max(tail))
}

/// Updates the image if replaying the tail would make the next opening noticeably longer. Ends that after
/// `patience`.
pub(in crate::db) fn backfill_at_close(core: &Core, patience: Duration) -> Result<()> {
    let deadline = core.clock.elapsed().saturating_add(patience);
    let go_on = || match core.clock.elapsed() < deadline {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let Some((reached, _)) = image_reach(core) else { return Ok(()) };
    if is_backfill_worth_it_at_close(core, reached) {
        core.history.is_closing.store(true, Ordering::Relaxed);
        backfill::backfill_watched(core, BackfillMode::Passive, &mut |_| go_on())?;
        // A transaction that was forgotten has the writer for ever.
        retain::keep_the_rules(core, Duration::ZERO)?;
    }
    let image_state = core.image_state()?;
    image_state.shrink(&lock(&image_state.working))
}

/// True if an image with the end `reached` in the journal, 0 if there is none, would make the next opening
/// noticeably longer.
pub(in crate::db) fn is_backfill_worth_it_at_close(core: &Core, reached: u64) -> bool {
    let worth = if reached == 0 { FIRST_AT_CLOSE } else { TAIL_AT_CLOSE };
    end(core).saturating_sub(reached) >= worth
}

/// Returns how many bytes of the journal after the image's point are worth a backfill, if the last one wrote `wrote`
/// bytes: 4 MiB, or a quarter of `wrote` if that is more. After a backfill of less than 4 MiB, which costs little, it
/// is `wrote`, and 1 MiB at least.
fn tail_due(wrote: u64) -> u64 {
    TAIL.max(wrote / 4).min(wrote.max(TAIL_BETWEEN_FRAMES))
}

#[cfg(test)]
mod tests {
    use super::tail_due;

    #[test]
    fn a_backfill_is_due_as_the_documents_say() {
        const MIB: u64 = 1 << 20;
        for (wrote, due) in [(0, 1), (1, 1), (2, 2), (4, 4), (5, 4), (16, 4), (20, 5), (400, 100)] {
            assert_eq!(tail_due(wrote * MIB), due * MIB, "after {wrote} MiB");
        }
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for document in ["README.md", "docs/costs.md", "docs/guide/src/image.md"] {
            let text = std::fs::read_to_string(root.join(document)).unwrap();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in
                ["4 MiB", "a quarter of what the last", "wrote less than 4 MiB", "1 MiB at least"]
            {
                assert!(text.contains(words), "{document} doesn't say {words:?}");
            }
        }
    }
}
