//! A connection: the few things that a replica asks of the journal that it follows.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use annals::internals::Origin;
use annals::{Cursor, Error, ErrorKind, Result, Timestamp, Txid};
use annals_storage::Spool;

/// The most bytes of transactions that are passed on at once, unless one has more. A spool keeps so many in memory.
pub const BATCH: u64 = 8 << 20;

/// A way to a journal elsewhere: in another file, in memory, or on a server.
///
/// The same suite of tests runs over every implementation.
pub trait Connection: Debug + Send + Sync {
    /// Names the journal in messages, as a person would write it.
    fn name(&self) -> String;

    /// Returns facts of the journal as it is now.
    ///
    /// # Errors
    /// Those of the connection: `Unreachable`, `Unauthenticated`, `Forbidden`, `NotFound`, `Io`.
    fn describe(&self) -> Result<Description>;

    /// Appends to `into` the transactions after a cursor: whole ones, at most 8 MiB or one; or the seal of a segment,
    /// with the state with which the next begins. Without a cursor, which is how a replica begins, the header of the
    /// oldest segment is before them. If there are none, it waits up to `wait` for some.
    ///
    /// # Errors
    /// `Diverged`: the journal doesn't have the cursor; `Forgotten`: what follows it isn't kept any more; those of
    /// the connection.
    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled>;

    /// Asks that frames become history: they follow `from`, which should be the end of the journal.
    ///
    /// # Errors
    /// The other side says that they can't become history, and that nothing was changed: `Diverged`: the journal doesn't have `from`; `Invalid`,
    /// `Unique`, `Reference` and others: they don't apply; `TooLarge`, `NoSpace`; those of the connection, where it is
    /// certain that the frames did not arrive.
    ///
    /// `Conflict`: another has a [lease](Self::lock), and `lease` isn't its ticket.
    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed>;

    /// Asks for a lease: until it ends, or is given back, pushes with its ticket are judged alone. With the ticket of the
    /// present one that is extended. It ends by itself, after 60 s at most.
    ///
    /// # Errors
    /// `Conflict`, which names its end: another has one; `Unsupported`: there are none here; those of the connection.
    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted>;

    /// Ends a lease. If it has ended already, nothing happens.
    ///
    /// # Errors
    /// Those of the connection.
    fn unlock(&self, ticket: u64) -> Result<()>;

    /// Asks that the journal continues in another segment, as the one did that it is a backup of: the bytes are the
    /// seal of a segment, which ends at `from`, and the state with which the next one begins.
    ///
    /// # Errors
    /// `Unsupported`: it is no connection to a backup; `Invalid`: they are something else; those of the connection.
    fn push_seal(&self, _from: Cursor, _bytes: &Spool) -> Result<Pushed> {
        let message =
            format!("{}: can't be a backup of a journal of several segments", self.name());
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Returns the chains after some transactions; `None` for those that aren't in the kept history. By them the last
    /// common transaction of two histories is found.
    ///
    /// # Errors
    /// Those of the connection.
    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>>;

    /// Returns how the frames that it sends are to be judged.
    fn origin(&self) -> Origin {
        Origin::History
    }

    /// Returns figures of the connection for operators; none, if it counts nothing.
    ///
    /// # Errors
    /// Those of the connection.
    fn figures(&self) -> Result<Vec<Figure>> {
        Ok(Vec::new())
    }

    /// Learns that transactions that it sent, from a cursor to another, can't become history. Returns true if it will send
    /// others in their place: those that don't count are skipped then, by all that follow the journal.
    ///
    /// # Errors
    /// Those of the connection.
    fn refused(&self, _after: Cursor, _next: Cursor, _error: &Error) -> Result<bool> {
        Ok(false)
    }

    /// Called before a transaction is run on the state at a cursor: waits for a moment where others, who lost to this
    /// one, are to come first. Returns true if something came.
    fn yield_to_others(&self, _at: Cursor) -> bool {
        false
    }
}

/// Something that a replica can be connected to: a [`Connection`], one in an [`Arc`], or a URL.
///
/// | URL | what it names | feature |
/// |---|---|---|
/// | `http://HOST:PORT/v1/NAME`, `https://..` | a database on a server | `http` |
/// | `ssh://HOST/PATH` | a file on another machine | `http` |
/// | `nats://HOST:PORT/STREAM`, `tls://..` | a shared log | `log` |
/// | `file:///FOLDER`, `s3://BUCKET/PATH`, `gs://..`, `az://..` | an archive, which can only be pulled | `archive` |
///
/// The token for a server is that of the environment variable `ANNALS_TOKEN`, and `ANNALS_CA` names a file with certificates
/// of an authority, as with the program `annals`. With another token, or other settings, make the connection yourself:
/// `Http::new(url, token)?`, `Http::with(url, access)?`, `SharedLog::with(url, access)?`.
pub trait IntoConnection {
    /// Returns the connection. Nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid`: it is no such URL; `Unsupported`: the feature for such URLs is off.
    fn into_connection(self) -> Result<Arc<dyn Connection>>;
}

impl<C: Connection + 'static> IntoConnection for C {
    fn into_connection(self) -> Result<Arc<dyn Connection>> {
        Ok(Arc::new(self))
    }
}

impl<C: Connection + 'static> IntoConnection for Arc<C> {
    fn into_connection(self) -> Result<Arc<dyn Connection>> {
        Ok(self)
    }
}

impl IntoConnection for Arc<dyn Connection> {
    fn into_connection(self) -> Result<Self> {
        Ok(self)
    }
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// What proves it.
    pub ticket: u64,
    /// When it ends, by the clock of the other side.
    pub until: Timestamp,
}

/// A figure of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name, as operators read it.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Its value.
    pub value: u64,
}

/// The name of the figure that counts what the other side has and this one hasn't read.
pub const LAG: &str = "log_lag_messages";

/// Facts of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its 128-bit random id, as 32 hexadecimal digits.
    pub id: String,
    /// Its end.
    pub end: Cursor,
    /// The first transaction that is kept.
    pub first: Txid,
}

/// The result of pulling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// The cursor after the bytes; the one that was asked for, if there are none.
    pub next: Cursor,
    /// True if they are a seal, and not transactions.
    pub is_seal: bool,
}

/// The result of pushing.
#[derive(Debug)]
pub enum Pushed {
    /// They are history, on permanent storage.
    Committed,
    /// The other side says that another transaction came first. It may send along the frames that came after the cursor, if
    /// they aren't many. That proves nothing yet: see `outcome`.
    Conflict(Option<Vec<u8>>),
    /// This push brings nothing there, now or later, so another may be made in its place at once: nothing was sent. The error
    /// says why. It is a `Conflict` if it is another's turn.
    NotSent(Error),
    /// Nothing was said that can be believed: they may be history, or not.
    Unknown(Error),
}
