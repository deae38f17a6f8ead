//! A journal in a replicated log of messages, which many machines read and append to (NATS JetStream).
//!
//! ```text
//! Replica (a node) ──push──► SharedLog ── message: frames, from, end ──► append, if the log still ends there ──► Log
//!                 ◄──pull──           ◄── those that count, in order ◄── read, repaired from other replicas ◄──
//! ```
//!
//! - `log`: what is asked of a log; `message`: its messages, byte by byte.
//! - `copies`: which copy of a message is believed; `finding`: where a cursor is; `place`: places that are known.
//! - `reading`: which messages count; `writing`: appending, and fences; `turns`: who is to append next; `trimming`: removing;
//!   `status`: what happened meanwhile.
//! - `beginning`: how a log begins; `connection`: all of it as a [`Connection`](crate::Connection).
//! - `jetstream`: a stream of NATS as a log; `testing`: servers of NATS for tests, with `links` that can be cut.

mod beginning;
mod connection;
mod copies;
mod finding;
pub mod jetstream;
#[cfg(feature = "testing")]
mod links;
mod log;
mod message;
mod place;
mod reading;
mod status;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod trimming;
mod turns;
mod writing;

pub use connection::SharedLog;
pub use log::{Appended, Extent, Log, Message, Replicas, Source};
pub use status::{Status, Void};
pub use trimming::Trimmed;
