//! Reading the past and the present on: handles of the state as it was, changes, histories and subscriptions.
//!
//! The `handles` offer the state as it was. A `cursor` reads a journal on: so `changes` gives a range of transactions,
//! and a `subscription` those to come; a `tail` and the `events` of a range give them as they are; `versions` are what
//! each transaction made of a row.

mod changes;
mod cursor;
mod events;
mod handles;
mod subscription;
mod tail;
mod versions;

pub use changes::Changes;
pub use events::Events;
pub use subscription::Subscription;
pub use tail::Tail;
pub use versions::History;
