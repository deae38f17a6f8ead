//! SQL over Annals databases: SQLite's, through virtual tables over snapshots.
//!
//! ```text
//! SQL ─► SQLite: parser, planner, joins, aggregates
//!           │ conditions, order              ▲ rows
//!           ▼                                │
//!        host: the boundary to C ─► relation: plans from exact counts ─► a snapshot, its past, its history
//! ```
//!
//! A statement reads one snapshot; the statements between BEGIN and COMMIT read the same one. For each table `T` there
//! are `T`, `T_at(moment)`, `T_history(id)`, `T_changes(a, b)` and `T_blame(id)`; for the database `annals_log`,
//! `annals_schema` and the function `annals_txid()`. All of them only read. `docs/sql.md` has the forms of values.
//!
//! ```
//! # #[cfg(feature = "bundled")] {
//! annals::schema!("../annals/tutorial.schema");
//! use annals_sql::{Connection, Parameters, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let db = tutorial::Database::in_memory()?;
//! db.write(|tx| Ok(tx.insert(tutorial::city::New { name: "Lille" })?))?;
//! let mut sql = Connection::open(annals::Database::clone(&db))?;
//! let rows = sql.rows("SELECT id, name FROM city WHERE name = ?", &Parameters::from([Value::from("Lille".to_owned())]))?;
//! assert_eq!(rows, [[Value::Integer(0), Value::Text("Lille".to_owned())]]);
//! # Ok(())
//! # }
//! # main().unwrap();
//! # }
//! ```
//!
//! The feature `bundled`, which is on, compiles SQLite in. With `loadable` instead, this is the inside of the extension
//! that other programs load (`annals-sqlite`).

mod attach;
mod collations;
#[cfg(feature = "arrow")]
mod columns;
#[cfg(feature = "bundled")]
mod connection;
mod differences;
#[cfg(feature = "bundled")]
mod error;
#[cfg(feature = "loadable")]
mod extension;
mod forms;
mod functions;
mod host;
#[cfg(feature = "bundled")]
mod limits;
mod relation;
#[cfg(feature = "bundled")]
mod render;
mod seeks;
mod session;
mod shape;
mod transient;

#[cfg(feature = "arrow")]
pub use columns::Columns;
#[cfg(feature = "bundled")]
pub use connection::{Answer, Connection, Parameters};
#[cfg(feature = "bundled")]
pub use error::SqlError;
#[cfg(feature = "loadable")]
pub use extension::init;
pub use forms::{large, read_large};
#[cfg(feature = "bundled")]
pub use limits::Limits;
#[cfg(feature = "bundled")]
pub use render::{Format, Render, is_time, push_plain};
#[cfg(feature = "bundled")]
pub use rusqlite::types::{Value, ValueRef};
pub use session::Source;
