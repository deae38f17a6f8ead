//! Segments: a journal continues in a new file, and the old one is sealed and kept beside it.
//!
//! The path of the database always refers to the newest segment; the one with number N before it is PATH-segment-N.
//! One *restart* makes the other:
//!
//! ```text
//! 1. make the old segment hard to its end, and write a slot with that end
//! 2. write the new one as PATH.next-ID, flush it, hold its locks       (its header has the seal's chain)
//! 3. link the old one as PATH-segment-N, flush the directory           (or it would have no name at 5)
//! 4. write the seal after the end of the old one, flush it            (nobody writes after a seal)
//! 5. rename PATH.next-ID to PATH, flush the directory                  (now, and not before, it is the next)
//! 6. release the old one's locks
//! ```
//!
//! Before 4 the only effect is an extra name or two. After 4 only 5 is missing. The next process that opens the
//! sealed segment at the path, with its locks, renames the prepared file to the path; its header is the one in the
//! seal (`next`). A file isn't a successor until it has the path, so there are never two.
//!
//! In reading order: `names` are those of its files; `seal` ends a segment, `next` is the one that follows. `kept`
//! reads earlier ones, which are `resting` if there are many; `later` finds those that are newer than the file at the
//! path. `retention` decides which of them may be removed; a `place` is a position in all of them.

mod kept;
mod later;
mod names;
mod next;
mod place;
mod resting;
mod retention;

pub use crate::seal::{Seal, Sealer, Sealing, next_in_seal, with_next};
pub use kept::Kept;
pub use later::{later, refuse_replaced};
pub use names::{
    BEFORE_ERASING, after, erased_name, erasing_name, is_id, journal_of, kept_name, number_in,
    refuse_kept,
};
pub use next::{Maker, Next, are_held, finish, is_read, keep, keep_path, remove};
pub use place::Place;
pub use resting::Chain;
pub use retention::{Plan, Retention, SegmentFacts};
