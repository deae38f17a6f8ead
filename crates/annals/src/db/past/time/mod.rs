//! Reading the past and following the present: handles of past states, changes, histories and subscriptions.
//!
//! The `handles` return past states. A `cursor` reads a journal from a position on: `changes` returns a range of
//! transactions with it, `fields` one transaction field by field, and a `subscription` new ones, also as a `stream`. A `tail` and
//! the `events` of a range return plain events;
//! `differing` has the rows that differ between two moments; `versions` are those of one row, `deletions` find rows that aren't there any more,
//! `erasures` those whose values were erased, and `blame` returns the origins of a row's values.

mod blame;
mod changes;
mod cursor;
mod deletions;
mod differing;
mod erasures;
mod events;
mod fields;
mod handles;
#[cfg(feature = "tokio")]
mod stream;
mod subscription;
mod tail;
mod versions;

pub use crate::db::past::time::changes::{Changes, schema_after};
pub use crate::db::past::time::deletions::Deletions;
pub use crate::db::past::time::differing::Differing;
pub use crate::db::past::time::erasures::erasures_since;
pub use crate::db::past::time::events::Events;
pub use crate::db::past::time::fields::{ChangedFields, FieldValues, RowFields};
pub use crate::db::past::time::handles::past_of;
#[cfg(feature = "tokio")]
pub use crate::db::past::time::stream::SubscriptionStream;
pub use crate::db::past::time::subscription::Subscription;
pub use crate::db::past::time::tail::Tail;
pub use crate::db::past::time::versions::History;
