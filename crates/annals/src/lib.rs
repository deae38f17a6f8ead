//! Annals: an embedded relational database that never forgets.
//!
//! It stores only a journal of every change. Tables and indexes are derived from it. [`schema!`] turns a schema into
//! typed Rust, which is where a program begins:
//!
//! ```
//! // create_table city
//! // add_field city name string
//! // create_unique_index city_by_name city name
//! // ..
//! annals::schema!("tutorial.schema");
//! use tutorial::city;
//!
//! # fn main() -> annals::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("tutorial.annals");
//! let db = tutorial::Database::open(&path)?;
//! let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?; // durable here
//!
//! let now = db.read(); // a snapshot: it stays as it is, and waits for no writer
//! assert_eq!(now.city().require(lille)?.name(), "Lille");
//! assert!(now.city().by_name().get("Lille")?.is_some());
//!
//! let refused = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?)).unwrap_err();
//! assert_eq!(refused.kind(), annals::ErrorKind::Unique);
//! db.close()
//! # }
//! ```
//!
//! Without a schema at hand, as tools do, a [`Database`] is opened with [`Options`]; its [`Transaction`]s take
//! tables, fields and values by number, and a [`Snapshot`] is a [`View`]. [`Transaction::write_blob`] writes bytes of
//! any length, which stay in the journal and are read by [`Snapshot::blob`]. The crate
//! `annals-tools` reads the history of a file (`scan`), and examines it without opening it (`inspect`).
//!
//! A commit has a [`Level`], which says what it survives; opening recovers, and reports that in
//! [`Recovered`](journal::Recovered). Errors are one [`Error`], whose [`ErrorKind`] a program can act on. Nothing here panics because of a file's contents.
//!
//! The feature `serde` lets ids, owned rows, `New`, [`Timestamp`] and [`Txid`] be read and written by serde.
//! The features `jiff` and `chrono` convert [`Timestamp`] and [`Date`] to and from the types of those crates.
//! The feature `tokio` adds `write_async`, and subscriptions as streams; `tracing` adds spans and events.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the text above a folder's code is for those who work there, and names its private parts"
)]

/// Without the feature `serde`, generated code has nothing of it.
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __serde {
    ($($any:tt)*) => {};
}

pub mod advanced;
mod db;
pub mod event;
pub mod internals;
pub mod journal;
pub mod model;
mod progress;
pub mod reports;
pub mod storage;
pub mod store;
mod trace;
pub mod typed;

use annals_storage::{bytes, debug};
use annals_store::image;

pub use annals_macros::schema;
pub use annals_schema::{
    Blob, Command, Date, Decimal, Field, FieldNumber, Index, IndexNumber, RowId, Schema, Table,
    TableNumber, Timestamp, Txid, Type, Uuid, Value, ValueRef,
};
/// ```
/// annals::schema!("tutorial.schema");
/// use tutorial::city;
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
/// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
/// let error = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?)).unwrap_err();
/// let violation = error.violation().unwrap();
/// assert_eq!(violation.id(), Some(lille)); // the city that has the name already
/// let annals::Violation::Unique { index, key, .. } = violation else { panic!() };
/// assert_eq!((index.as_str(), key), ("city_by_name", &vec![annals::Value::String("Lille".to_owned())]));
/// # Ok(())
/// # }
/// ```
pub use annals_storage::Violation;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use annals_storage::mistakes;
pub use annals_storage::{Error, ErrorKind, Obstacle, Result};
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use annals_store::collation::testing as collation_testing;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use annals_store::image::testing as image_testing;
#[cfg(feature = "tokio")]
pub use db::SubscriptionStream;
pub use db::{
    BackfillMode, Backfilled, Blame, BlobReader, Changed, ChangedFields, Changes, Commit, Custom,
    Customs, Database, Deletions, Differing, Embedded, Events, FieldValues, History, Moment,
    Options, Pending, Proposed, Reader, RowChange, RowFields, Savepoint, Sink, Snapshot, Stats,
    Subscription, Tail, Transaction, Unapplied, Version, VersionKind,
};
pub(crate) use db::{BackfillProgress, Checked};
pub use journal::{Committed, Cursor, Level, Point, Recovery, Retention};
pub use progress::{Phase, Progress};
/// ```
/// use annals::{Command, FieldNumber, IndexNumber, TableNumber, Type, ValueRef};
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = annals::Options::new().open(folder.path().join("a.annals"))?;
/// # let mut tx = db.begin()?;
/// # let table = TableNumber(0);
/// # tx.apply_command(&Command::CreateTable { name: "city".to_owned() })?;
/// # let name = "name".to_owned();
/// # let (ty, nullable, default) = (Type::String, false, None);
/// # tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
/// # let (name, fields) = ("by_name".to_owned(), vec![FieldNumber(0)]);
/// # tx.apply_command(&Command::CreateIndex { name, table, fields, descending: Vec::new(), collated: Vec::new(), unique: true })?;
/// for name in ["Lille", "Lyon", "Nantes", "Paris"] {
///     tx.insert(table, &[ValueRef::String(name)])?;
/// }
/// tx.commit()?;
///
/// let now = db.read();
/// let mut cities = now.index(IndexNumber(0))?.cursor();
/// cities.seek(&[ValueRef::String("M")])?; // between Lyon and Nantes
/// assert_eq!(cities.rank()?, 2);
/// let nantes = cities.next().unwrap()?;
/// assert_eq!(nantes.read::<&str>(FieldNumber(0)), "Nantes");
/// assert_eq!(cities.prev().unwrap()?.id(), nantes.id());
/// assert_eq!(cities.prev().unwrap()?.read::<&str>(FieldNumber(0)), "Lyon");
/// # Ok(())
/// # }
/// ```
pub(crate) use store::IndexCursor;
pub(crate) use store::{IndexRows, IndexView, Selected};
pub use store::{Row, Rows, TableView, View};
#[cfg(feature = "serde")]
#[doc(hidden)]
pub use typed::wire as __wire;
pub use typed::{Abort, FieldValue, Query};
