//! Replicas: local copies of a journal elsewhere, that are read without the network, and written by transactions which
//! the other side must accept.
//!
//! ```text
//! Replica ── reads ──► its own file, at the speed of any database
//!    │ pull: frames after its cursor, verified and applied, written as they are
//!    │ push: the frames of a transaction, if the other side still ends at the cursor before them
//!    ▼
//! Connection ──► Local (a database that this process has open) │ Http (a server) │ SharedLog │ Archive (pulled only)
//! ```
//!
//! The crate moves frames, and leaves rows to `annals`.

#[cfg(feature = "archive")]
pub mod archive;
mod backup;
#[cfg(feature = "http")]
mod call;
#[cfg(feature = "http")]
mod client;
mod connection;
mod continuation;
pub mod frames;
#[cfg(feature = "http")]
mod http;
pub mod lazy;
mod lease;
mod local;
mod node;
mod offline;
mod outcome;
mod outgoing;
mod redact;
mod replica;
#[cfg(feature = "log")]
pub mod shared_log;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(feature = "http")]
mod tunnel;
mod typed;
mod url;

pub use backup::Backup;
#[cfg(feature = "http")]
pub use call::Called;
#[cfg(feature = "http")]
pub use client::ServerAccess;
pub use connection::{
    BATCH, Connection, Description, Figure, Granted, IntoConnection, LAG, Pulled, Pushed,
};
#[cfg(feature = "http")]
pub use http::Http;
pub use lazy::{Fetched, Fetching, IntoRanges, Lazy, Ranges, TypedLazy};
pub use lease::Lease;
pub use local::Local;
pub use node::Answer;
pub use node::Node;
pub use offline::{Offline, Rebased, has_offline_changes, rebase_journal};
pub use outcome::Patience;
pub use outgoing::{Sent, push};
pub use redact::redact;
pub use replica::{Accepted, Replica};
#[cfg(feature = "log")]
pub use shared_log::SharedLog;
pub use typed::{TypedLease, TypedOffline, TypedReplica};

/// Compiles a schema as `annals::schema!` does, with two more types in its module: `Replica` is [`TypedReplica`] and
/// `Lazy` is [`TypedLazy`] of this schema.
///
/// ```
/// annals_replica::schema!("../annals/tutorial.schema");
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("copy.annals");
/// # let server = annals::Options::new().open(folder.path().join("tutorial.annals"))?;
/// # server.write(|tx| tx.comment("begun"))?;
/// # let url = annals_replica::Local::new(server);
/// let replica = tutorial::Replica::connect(url, path)?; // url: as "http://127.0.0.1:8080/v1/tutorial"
/// println!("{} cities", replica.read().city().len());
/// # Ok(())
/// # }
/// ```
pub use annals_macros::schema_with_replicas as schema;
