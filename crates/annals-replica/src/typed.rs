//! A replica with the types of a schema.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::internals::{check_readable, upgrade_in};
use annals::typed::{PlainSchema, Snapshot, Transaction};
use annals::{Abort, Cursor, Options, Result};

use crate::replica::by_value;
use crate::{Accepted, Connection, Patience, Replica};

/// A [`Replica`] with the types that were generated from a schema: the same reads as those of its `Database`, and
/// transactions with the same verbs.
///
/// ```
/// annals::schema!("../annals/tutorial.schema");
/// use annals_replica::{Local, TypedReplica};
/// use std::sync::Arc;
/// use tutorial::city;
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("copy.annals");
/// # let server = annals::Options::new().open(folder.path().join("tutorial.annals"))?;
/// # server.write(|tx| tx.comment("begun"))?;
/// # let connection = Arc::new(Local::new(server));
/// // let connection = Arc::new(annals_replica::Http::new("http://127.0.0.1:8080/v1/tutorial", token)?);
/// let replica = TypedReplica::<tutorial::Schema>::connect(connection, path)?;
/// let (lille, _) = replica.transaction(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?; // accepted, durable there
/// assert_eq!(replica.read().city().require(lille)?.name(), "Lille"); // read here
/// # Ok(())
/// # }
/// ```
#[must_use = "a replica that isn't kept is closed at once"]
pub struct TypedReplica<S> {
    replica: Replica,
    schema: PhantomData<fn() -> S>,
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
    pub fn connect(connection: Arc<dyn Connection>, path: impl AsRef<Path>) -> Result<Self> {
        Self::connect_with(connection, path, &Options::new(), Patience::default())
    }

    /// Does what [`connect`](Self::connect) does, with options of the database and of the replica.
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(
        connection: Arc<dyn Connection>,
        path: impl AsRef<Path>,
        options: &Options,
        patience: Patience,
    ) -> Result<Self> {
        let replica = Replica::connect_with(connection, path, options, patience)?;
        if check_readable(&replica.read(), S::schema()?).is_err() {
            replica.transaction(|tx| upgrade_in(tx, S::schema()?))?;
        }
        Ok(Self { replica, schema: PhantomData })
    }

    /// Returns a snapshot of the last transaction that is here. Never waits for the network.
    #[must_use]
    pub fn read(&self) -> Snapshot<S> {
        Snapshot::new(self.replica.read())
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
        check_readable(&self.replica.read(), S::schema()?)?;
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
        self.replica.run(&mut by_value(|mut transaction| {
            // It is the same, or this is an error, since another program has upgraded it meanwhile.
            upgrade_in(&mut transaction, S::schema()?)?;
            let mut transaction = Transaction::new(transaction);
            let value = change(&mut transaction).map_err(Abort::into_error)?;
            Ok((value, transaction.into_untyped()))
        }))
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
