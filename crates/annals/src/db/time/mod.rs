//! The past: which moment is meant, the state as it was then, and what changed from then on.
//!
//! `moment` says when; `at` gives the state as it was then, which the `handles` offer; `changed` is what one
//! transaction, or one version of a row, did. A `cursor` reads a journal on, and `rows` says what becomes of rows meanwhile: so `changes` gives a
//! range of transactions, and a `subscription` those to come, of which it hears by a `feed`; a `tail` and the
//! `events` of a range give them as they are.

mod at;
mod changed;
mod changes;
mod cursor;
mod events;
mod feed;
mod handles;
mod moment;
mod rows;
mod subscription;
mod tail;

pub(super) use at::{Present, Through};
pub use changed::{Changed, RowChange, Version};
pub use changes::Changes;
pub use events::Events;
pub(super) use feed::{Feed, Slot};
pub use moment::{Moment, MomentError, Txid};
pub use subscription::Subscription;
pub use tail::Tail;
