//! Serves databases over HTTP.
//!
//! ```text
//! request ─► guard: Host, Origin, token and role, size ─► a place for work, on a blocking thread ─► answer
//!                                                                        │
//!              frames (pull, push) ─► annals-replica's Local ────────────┤
//!              transactions as JSON, procedures ─► a transaction ────────┤
//!              rows, history, changes as JSON ─► a snapshot ─────────────┘
//! ```
//!
//! A program serves its own databases with [`Server::router`], or all of them with [`Server::listen`]; the program
//! `annals serve` is a thin shell over this.
//!
//! ```no_run
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let db = annals::Options::new().open("library.annals")?;
//! let server = annals_server::Server::new().database("library", db)?.open_to_all();
//! let listening = server.listen("127.0.0.1:8080").await?;
//! println!("listening on {}", listening.url());
//! listening.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod access;
mod activity;
mod ahead;
mod answer;
#[cfg(feature = "arrow")]
mod arrow;
mod blocking;
mod body;
mod buffers;
mod changes;
mod edits;
mod explorer;
mod fair;
mod files;
mod forgotten;
mod frames;
mod guard;
mod health;
mod history;
mod identity;
mod images;
mod keys;
mod lease;
mod listen;
mod log;
mod long;
mod means;
mod object;
mod openapi;
mod parameters;
mod parts;
mod patient;
mod procedures;
mod ranges;
mod receiving;
mod refusal_page;
mod rights;
mod rows;
mod seats;
mod server;
mod shared;
mod slow;
#[cfg(feature = "sql")]
mod sql;
mod state;
mod tokens;
mod transactions;
mod turns;
mod watched;
mod work;
mod writing;

pub use access::Role;
pub use identity::Identity;
pub use listen::Listening;
pub use server::Server;
pub use shared::{Ending, Limits};
pub use tokens::{NewToken, StoredToken, Tokens};
