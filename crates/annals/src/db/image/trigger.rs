//! The trigger of automatic backfills: the one place that decides it.
//!
//! | when                     | what is looked at                                                     |
//! |--------------------------|-----------------------------------------------------------------------|
//! | after each commit        | how long the replay of the journal's tail would take: [`ReplayTail`]        |
//! |                          | how much of the store is in memory alone: an eighth of the memory     |
//! | a transaction spilled    | nothing: what it wrote ahead is to be published                       |
//! | a backfill failed        | the replay, once it takes twice as long                               |
//! | the database is closed   | whether the next opening would be noticeably longer, or meet damage   |
//!
//! The thread that does it is in [`background`](crate::db::image::background).

use crate::db::image::{backfill, retain};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Result;
use crate::db::follow::image_state::ImageState;
use crate::db::follow::report::BackfillMode;
use crate::db::write::core::Core;
use crate::journal::lock;

/// The tail that is worth a backfill when the database is closed: a fraction of a millisecond of replay.
const TAIL_AT_CLOSE: u64 = 16 << 10;
/// A shorter journal gets no image when it is closed: the image would be several times as long.
const FIRST_AT_CLOSE: u64 = 128 << 10;

/// A tail whose replay takes less, in nanoseconds, is left as it is until the database is closed.
const SHORT_REPLAY: u64 = 10_000_000;
/// The time that replay takes for a statement, in nanoseconds, measured with random updates of a large table; and for 4
/// bytes.
const REPLAY_OF_STATEMENT: u64 = 300;
const REPLAY_OF_FOUR_BYTES: u64 = 10;
/// The least time from the beginning of a backfill to the beginning of the next one for a long tail.
const BETWEEN: Duration = Duration::from_millis(750);
/// The next one also waits, from the end of the last one, this many times its duration.
const PAUSES: u32 = 3;

/// The tail of the journal, which the next opening would replay after a kill.
#[derive(Debug)]
pub(in crate::db) struct ReplayTail {
    /// Its beginning, in bytes as [`JournalFile::reach`](crate::db::present::segment::JournalFile::reach) counts them.
    begin: AtomicU64,
    /// The end of the last commit, which may not be published yet.
    end: AtomicU64,
    /// About how many statements it has.
    statements: AtomicU64,
    /// A backfill is due when its replay takes longer, in nanoseconds; while one is wanted `u64::MAX`.
    due: AtomicU64,
}

impl ReplayTail {
    /// Begins with the tail that opening has replayed, of small updates perhaps.
    pub(in crate::db) fn of(core: &Core) -> Self {
        let due = core.image().map_or(u64::MAX, |_| SHORT_REPLAY);
        Self::new(image_reach(core), end(core), due)
    }

    fn new(begin: u64, end: u64, due: u64) -> Self {
        let statements = end.saturating_sub(begin) / 16;
        let [begin, end, statements, due] = [begin, end, statements, due].map(AtomicU64::new);
        Self { begin, end, statements, due }
    }

    /// Adds the statements of a commit with a given end; returns true if replaying the tail takes long.
    pub(in crate::db) fn is_long_with(&self, statements: u64, end: u64) -> bool {
        self.end.fetch_max(end, Ordering::Relaxed);
        self.statements.fetch_add(statements, Ordering::Relaxed);
        self.is_long()
    }

    fn is_long(&self) -> bool {
        self.replay() > self.due.load(Ordering::Relaxed)
    }

    /// Returns about how long its replay takes, in nanoseconds.
    fn replay(&self) -> u64 {
        let (end, statements) = self.seen();
        let bytes = end.saturating_sub(self.begin.load(Ordering::Relaxed));
        let copied = bytes / 4 * REPLAY_OF_FOUR_BYTES;
        statements.saturating_mul(REPLAY_OF_STATEMENT).saturating_add(copied)
    }

    /// Returns its end, and about how many statements it has.
    pub(in crate::db) fn seen(&self) -> (u64, u64) {
        (self.end.load(Ordering::Relaxed), self.statements.load(Ordering::Relaxed))
    }

    /// Calls it short, while a backfill is wanted.
    pub(in crate::db) fn stop_watching(&self) {
        self.due.store(u64::MAX, Ordering::Relaxed);
    }

    /// Continues after a backfill that began at what was [`seen`](Self::seen); returns whether the tail is long
    /// already, by commits that it didn't reach. After a failed one it must be twice as long.
    pub(in crate::db) fn watch(&self, core: &Core, seen: (u64, u64), is_done: bool) -> bool {
        let reached = image_reach(core);
        if reached >= seen.0 {
            self.statements.fetch_sub(seen.1, Ordering::Relaxed);
        }
        self.begin.store(reached, Ordering::Relaxed);
        let due =
            if is_done { SHORT_REPLAY } else { SHORT_REPLAY.max(self.replay()).saturating_mul(2) };
        self.due.store(due, Ordering::Relaxed);
        self.is_long()
    }
}

/// Returns when the next backfill may begin that the tail asks for, after one that took from `begun` to
/// `ended`. So such backfills take at most a quarter of the time.
pub(in crate::db) fn soonest(begun: Duration, ended: Duration) -> Duration {
    (begun + BETWEEN).max(ended + ended.saturating_sub(begun) * PAUSES)
}

/// Returns the end of the journal, in bytes as [`JournalFile::reach`] counts them.
pub(in crate::db) fn end(core: &Core) -> u64 {
    let segment = core.segment.load();
    segment.file.reach(segment.checkpoints.acknowledged().position)
}

/// Returns the image's end in the journal, in bytes of that; 0 if there is no image.
fn image_reach(core: &Core) -> u64 {
    core.image().map_or(0, ImageState::end_in_journal)
}

/// Returns how many bytes of changes in memory alone are worth one.
pub(in crate::db) fn unsaved_due(core: &Core) -> usize {
    core.image().map_or(usize::MAX, ImageState::unsaved_due)
}

/// Updates the image if replaying the tail would make the next opening noticeably longer. Ends that after
/// `patience`; only without such an end it copies an image of any size.
pub(in crate::db) fn backfill_at_close(core: &Core, patience: Duration) -> Result<()> {
    let deadline = core.clock().elapsed().saturating_add(patience);
    let go_on = || match core.clock().elapsed() < deadline {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let Some(image_state) = core.image() else { return Ok(()) };
    if is_backfill_worth_it_at_close(core, image_state.end_in_journal()) {
        core.history.is_closing.store(true, Ordering::Relaxed);
        backfill::backfill_watched(core, BackfillMode::Passive, &mut |_| go_on())?;
        // A transaction that was forgotten has the writer for ever.
        retain::keep_the_rules(core, Duration::ZERO)?;
    }
    image_state.shrink(&lock(&image_state.working), patience == Duration::MAX)
}

/// True if an image with the end `reached` in the journal, 0 if there is none, would make the next opening
/// noticeably longer, or let it find the same damage again.
pub(in crate::db) fn is_backfill_worth_it_at_close(core: &Core, reached: u64) -> bool {
    if core.image().is_some_and(|image_state| image_state.damage().count() > 0) {
        return true;
    }
    let worth = if reached == 0 { FIRST_AT_CLOSE } else { TAIL_AT_CLOSE };
    end(core).saturating_sub(reached) >= worth
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::{ReplayTail, SHORT_REPLAY, soonest};

    #[test]
    fn a_tail_is_long_by_the_time_of_its_replay() {
        const KIB: u64 = 1024;
        let begin = 5000 * KIB;
        let is_long = |statements: u64, bytes: u64| {
            let tail = ReplayTail::new(begin, begin + 16, SHORT_REPLAY);
            let is_long = tail.is_long_with(statements, begin + bytes);
            assert_eq!(tail.seen(), (begin + bytes.max(16), 1 + statements));
            tail.stop_watching();
            assert!(!tail.is_long_with(u64::MAX / 2, begin + bytes), "one is wanted already");
            is_long
        };
        assert!(is_long(34_000, 0) && !is_long(33_000, 0), "0.3 us a statement");
        assert!(is_long(0, 4096 * KIB) && !is_long(0, 3072 * KIB), "much is copied");
        assert!(is_long(30_000, 1024 * KIB) && !is_long(20_000, 1024 * KIB));
        let tail = ReplayTail::new(0, 0, SHORT_REPLAY);
        tail.begin.store(1024 * KIB, Ordering::Relaxed);
        assert!(!tail.is_long_with(30_000, 1024 * KIB), "its beginning is later");
    }

    #[test]
    fn backfills_have_pauses() {
        let ms = Duration::from_millis;
        for (took, after) in [(0, 750), (10, 750), (187, 750), (250, 1000), (2000, 8000)] {
            assert_eq!(soonest(ms(5), ms(5 + took)), ms(5 + after), "after one of {took} ms");
        }
    }

    #[test]
    fn a_backfill_is_due_as_the_documents_say() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for document in ["docs/costs.md", "docs/guide/src/image.md"] {
            let text = std::fs::read_to_string(root.join(document)).unwrap();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in ["would take 10 ms", "three times", "0.75 s"] {
                assert!(text.contains(words), "{document} doesn't say {words:?}");
            }
        }
    }
}
