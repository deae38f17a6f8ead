//! A replica with the types of a schema.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals::internals::{check_readable, upgrade_in};
use annals::typed::{PlainSchema, Snapshot, Transaction};
use annals::{Abort, Cursor, Options, Result, Schema};

use crate::replica::by_value;
use crate::{Accepted, IntoConnection, Lease, Offline, Patience, Rebased, Replica, Sent};

/// A [`Replica`] with the types that were generated from a schema: the same reads as those of its `Database`, and
/// transactions with the same verbs. The module of [`schema!`](crate::schema) calls it `Replica`.
///
/// ```
/// annals_replica::schema!("../annals/tutorial.schema");
/// use tutorial::city;
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("copy.annals");
/// # let server = annals::Options::new().open(folder.path().join("tutorial.annals"))?;
/// # server.write(|tx| tx.comment("begun"))?;
/// # let url = annals_replica::Local::new(server);
/// // let url = "http://127.0.0.1:8080/v1/tutorial";
/// let replica = tutorial::Replica::connect(url, path)?;
/// let (lille, _) = replica.transaction(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?; // accepted, durable there
/// assert_eq!(replica.read().city().require(lille)?.name(), "Lille"); // read here
/// # Ok(())
/// # }
/// ```
#[must_use = "a replica that isn't kept is closed at once"]
pub struct TypedReplica<S> {
    replica: Replica,
    readable: Readable,
    schema: PhantomData<fn() -> S>,
}

/// The last snapshot that the program can read.
struct Readable(Mutex<annals::Snapshot>);

impl Readable {
    /// Returns a snapshot, if the program can read it; else the last one that it can.
    fn newest(&self, now: annals::Snapshot, schema: Result<&Schema>) -> annals::Snapshot {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = Arc::ptr_eq(now.schema(), last.schema());
        if is_same || schema.is_ok_and(|schema| check_readable(now.schema(), schema).is_ok()) {
            *last = now;
        }
        last.clone()
    }
}

/// Runs a change with the types of a schema.
fn change_typed<'db, S: PlainSchema, T>(
    mut transaction: annals::Transaction<'db>,
    change: &mut impl FnMut(&mut Transaction<'_, S>) -> Result<T, Abort>,
) -> Result<(T, annals::Transaction<'db>)> {
    // It is the same, or this is an error, since another program has upgraded it meanwhile.
    upgrade_in(&mut transaction, S::schema()?)?;
    let mut transaction = Transaction::new(transaction);
    let value = change(&mut transaction).map_err(Abort::into_error)?;
    Ok((value, transaction.into_untyped()))
}

/// What was committed without the other side, with types: see [`Offline`].
#[must_use = "what isn't kept is closed at once"]
pub struct TypedOffline<S> {
    offline: Offline,
    schema: PhantomData<fn() -> S>,
}

impl<S> fmt::Debug for TypedOffline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.offline.fmt(f)
    }
}

impl<S: PlainSchema> TypedOffline<S> {
    /// Returns a snapshot: the state of the replica when this was begun, and all changes since.
    #[must_use]
    pub fn read(&self) -> Snapshot<S> {
        Snapshot::new(self.offline.read())
    }

    /// Runs `change` in a transaction, and commits it here. `?` in `change` takes any error.
    ///
    /// # Errors
    /// That of `change`, and those of a commit: nothing was changed.
    pub fn write<T>(
        &self,
        mut change: impl FnMut(&mut Transaction<'_, S>) -> Result<T, Abort>,
    ) -> Result<T> {
        let transaction = self.offline.database().begin()?;
        let (value, transaction) = change_typed(transaction, &mut change)?;
        transaction.commit()?;
        Ok(value)
    }

    /// Returns it without its types.
    pub const fn as_dynamic(&self) -> &Offline {
        &self.offline
    }

    /// Closes it properly; it stays until it is pushed.
    ///
    /// # Errors
    /// `Io`.
    pub fn close(self) -> Result<()> {
        self.offline.close()
    }
}

/// A lease of a replica with types: see [`Lease`].
#[must_use = "a lease that isn't kept is given back at once"]
pub struct TypedLease<'r, S> {
    lease: Lease<'r>,
    schema: PhantomData<fn() -> S>,
}

impl<S> fmt::Debug for TypedLease<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lease.fmt(f)
    }
}

impl<'r, S: PlainSchema> TypedLease<'r, S> {
    /// Runs a transaction under the lease: see [`TypedReplica::transaction`].
    ///
    /// # Errors
    /// As there.
    pub fn transaction<T>(
        &self,
        mut change: impl FnMut(&mut Transaction<'_, S>) -> Result<T, Abort>,
    ) -> Result<(T, Accepted)> {
        self.lease.run(&mut by_value(|transaction| change_typed(transaction, &mut change)))
    }

    /// Runs a transaction under the lease, and gives it back.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn push_unlock<T>(
        self,
        change: impl FnMut(&mut Transaction<'_, S>) -> Result<T, Abort>,
    ) -> Result<(T, Accepted)> {
        self.transaction(change)
    }

    /// Returns it without its types.
    pub const fn as_dynamic(&self) -> &Lease<'r> {
        &self.lease
    }
}

impl<S> fmt::Debug for TypedReplica<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.replica.fmt(f)
    }
}

impl<S: PlainSchema> TypedReplica<S> {
    /// Opens the replica in a file, or begins it there: see [`Replica::connect`]. If the journal has an older schema,
    /// the upgrade is a transaction that the other side accepts like any other.
    ///
    /// # Errors
    /// Those of [`Replica::connect`]; `SchemaMismatch`: the journal has another schema. A newer one, of which the
    /// program's is a beginning, can be read.
    pub fn connect(to: impl IntoConnection, path: impl AsRef<Path>) -> Result<Self> {
        Self::connect_with(to, path, &Options::new(), Patience::default())
    }

    /// Does what [`connect`](Self::connect) does, with options of the database and of the replica.
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(
        to: impl IntoConnection,
        path: impl AsRef<Path>,
        options: &Options,
        patience: Patience,
    ) -> Result<Self> {
        let replica = Replica::connect_with(to, path, options, patience)?;
        if check_readable(replica.read().schema(), S::schema()?).is_err() {
            replica.transaction(|tx| upgrade_in(tx, S::schema()?))?;
        }
        let readable = Readable(Mutex::new(replica.read()));
        Ok(Self { replica, readable, schema: PhantomData })
    }

    /// Returns a snapshot of the last transaction that is here. Never waits for the network.
    ///
    /// If another program has taken something away that this one needs, it is the last snapshot that has it:
    /// [`pull`](Self::pull) says so.
    #[must_use]
    pub fn read(&self) -> Snapshot<S> {
        Snapshot::new(self.readable.newest(self.replica.read(), S::schema()))
    }

    /// Fetches all transactions that the other side has by now: see [`Replica::pull`].
    ///
    /// # Errors
    /// As there; `SchemaMismatch`: the journal's schema lacks something by now that the program needs.
    pub fn pull(&self) -> Result<u64> {
        self.pull_for(Duration::ZERO)
    }

    /// Does what [`pull`](Self::pull) does; if there is nothing new, it waits for that, up to `wait`.
    ///
    /// # Errors
    /// As there.
    pub fn pull_for(&self, wait: Duration) -> Result<u64> {
        let pulled = self.replica.pull_for(wait)?;
        check_readable(self.replica.read().schema(), S::schema()?)?;
        Ok(pulled)
    }

    /// Runs `change` in a transaction that the other side must accept: see [`Replica::transaction`]. `?` in `change`
    /// takes any error.
    ///
    /// # Errors
    /// As there; `SchemaMismatch`: the journal has a newer schema than the program.
    pub fn transaction<T>(
        &self,
        mut change: impl FnMut(&mut Transaction<'_, S>) -> Result<T, Abort>,
    ) -> Result<(T, Accepted)> {
        let mut work = by_value(|transaction| change_typed(transaction, &mut change));
        self.replica.run(&mut work, None)
    }

    /// Opens what was committed here without the other side, or begins it: see [`Replica::offline`]. If it has an older
    /// schema, the upgrade is its next transaction.
    ///
    /// # Errors
    /// As there; `SchemaMismatch`: it has another schema, or a newer one.
    pub fn offline(&self) -> Result<TypedOffline<S>> {
        let offline = self.replica.offline()?;
        offline.write(|tx| upgrade_in(tx, S::schema()?))?;
        Ok(TypedOffline { offline, schema: PhantomData })
    }

    /// Asks the other side to accept what was committed offline: see [`Replica::push`].
    ///
    /// # Errors
    /// As there.
    pub fn push(&self) -> Result<Sent> {
        self.replica.push()
    }

    /// Makes what was committed offline again, after what others did meanwhile: see [`Replica::rebase`].
    ///
    /// # Errors
    /// As there.
    pub fn rebase(&self) -> Result<Rebased> {
        self.replica.rebase()
    }

    /// Asks for a lease, and pulls: see [`Replica::lock_pull`].
    ///
    /// # Errors
    /// As there.
    pub fn lock_pull(&self, lasting: Duration) -> Result<TypedLease<'_, S>> {
        let lease = self.replica.lock_pull(lasting)?;
        Ok(TypedLease { lease, schema: PhantomData })
    }

    /// Returns the cursor of the last transaction that is here.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.replica.cursor()
    }

    /// Returns the replica without its types.
    pub const fn as_dynamic(&self) -> &Replica {
        &self.replica
    }

    /// Closes the file properly.
    ///
    /// # Errors
    /// `Io`.
    pub fn close(self) -> Result<()> {
        self.replica.close()
    }
}
