//! A server: the databases that it has, who may ask, and its routes.

use std::path::{MAIN_SEPARATOR, PathBuf};
use std::sync::Arc;

use annals::internals::check_readable;
use annals::typed::{PlainSchema, Transaction};
use annals::{Abort, Database, Error, ErrorKind, Reader, Result};
use annals_replica::{Backup, Local, Node, Replica};
use axum::Router;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::Refusal;
use crate::identity::Identity;
use crate::means::Means;
use crate::procedures::OfSchema;
use crate::shared::{Ending, Limits, Served, Shared};
use crate::tokens::{StoredToken, Tokens};
use crate::{
    Role, changes, explorer, files, frames, guard, health, history, lease, log, openapi, rows,
    transactions,
};

/// Databases that are served, each by a name.
#[derive(Debug, Default)]
pub struct Server {
    pub(crate) shared: Shared,
    pub(crate) identity: Option<Identity>,
}

/// Answers to a path that the server doesn't have.
async fn nowhere() -> Refusal {
    Refusal::not_found("there is nothing at this path: the URL of a database is /v1/NAME")
}

impl Server {
    /// Begins without databases: every request needs a token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves an open database by a name, as `/v1/NAME`.
    ///
    /// # Errors
    /// `Invalid`: the name can't stand in a URL as it is; `InUse`: another database has it.
    pub fn database(self, name: &str, database: Database) -> Result<Self> {
        self.add(name, Local::new(database), None)
    }

    /// Serves a file that is open for reading, which other programs may write meanwhile: all that writes is refused.
    ///
    /// # Errors
    /// As [`database`](Self::database).
    pub fn reader(self, name: &str, reader: Reader, tokens: Option<Tokens>) -> Result<Self> {
        self.add(name, Local::of_reader(reader), tokens)
    }

    /// Names the file of a database, so that the explorer can examine it, and messages don't say where it is.
    ///
    /// # Errors
    /// `NotFound`: no database of that name is served.
    pub fn file(mut self, database: &str, path: impl Into<PathBuf>) -> Result<Self> {
        let (served, path) = (self.served_mut(database)?, path.into());
        let absolute = std::path::absolute(&path).ok();
        let folders = [Some(path.as_path()), absolute.as_deref()].into_iter().flatten();
        let folders = folders.filter_map(|path| path.parent()?.to_str());
        let folders = folders.filter(|folder| !folder.is_empty());
        // The longest first: it may end with another one.
        served.folders = folders.map(|folder| format!("{folder}{MAIN_SEPARATOR}")).collect();
        served.folders.sort_unstable_by_key(|folder| std::cmp::Reverse(folder.len()));
        served.path = Some(path);
        Ok(self)
    }

    fn served_mut(&mut self, database: &str) -> Result<&mut Served> {
        // Requests have it only while the server runs.
        self.shared.databases.get_mut(database).and_then(Arc::get_mut).ok_or_else(|| {
            let message = format!("no database is served as /v1/{database}");
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Serves an open database, with the tokens that are stored beside its file.
    ///
    /// # Errors
    /// As [`database`](Self::database).
    pub fn database_with(self, name: &str, database: Database, tokens: Tokens) -> Result<Self> {
        self.add(name, Local::new(database), Some(tokens))
    }

    /// Serves a replica that is only read here, and that the program keeps up to date: [`Replica::pull_for`]. While that
    /// fails, `/ready` says so.
    ///
    /// # Errors
    /// As [`database`](Self::database).
    pub fn follower(
        self,
        name: &str,
        replica: Arc<Replica>,
        tokens: Option<Tokens>,
    ) -> Result<Self> {
        self.add(name, Local::of_follower(replica), tokens)
    }

    /// Serves a replica whose transactions another side must accept, as a shared log: all that writes is passed on.
    ///
    /// # Errors
    /// As [`database`](Self::database).
    pub fn node(self, name: &str, node: Arc<Node>, tokens: Option<Tokens>) -> Result<Self> {
        self.add(name, Local::of_node(node), tokens)
    }

    fn add(mut self, name: &str, local: Local, tokens: Option<Tokens>) -> Result<Self> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            return Err(Error::invalid(format!(
                "{name:?} can't be the name of a database in a URL: use letters, digits, `-` and `_`"
            )));
        }
        let served = Arc::new(Served::new(local, tokens));
        match self.shared.databases.insert(name.to_owned(), served) {
            None => Ok(self),
            Some(_) => Err(Error::new(
                ErrorKind::InUse,
                format!("two databases would have the URL /v1/{name}: rename one of the files"),
            )),
        }
    }

    /// Lets clients call a function by name, with arguments in JSON: `POST /v1/NAME/transactions`. It runs in a
    /// transaction of its own, and its result is the answer, when the transaction is on permanent storage. Calls that come at the
    /// same time share flushes. A call that is repeated with its key runs once.
    ///
    /// `?` in the function takes any error: it rolls back, and the client reads the error's text. While it runs,
    /// nobody else writes: it shouldn't wait for anything. (Remote procedures as in joedb, with types.)
    ///
    /// ```
    /// annals::schema!("../annals/tutorial.schema");
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// let db = tutorial::Database::in_memory()?;
    /// let found = |tx: &mut tutorial::Transaction<'_>, name: String| {
    ///     Ok(tx.insert(city::New { name: &name })?.as_u64())
    /// };
    /// let server = annals_server::Server::new()
    ///     .database("tutorial", annals::Database::clone(&db))?
    ///     .procedure("tutorial", "found", found)?;
    /// // curl -d '{"procedure":"found","args":"Lille"}' ..
    /// # drop(server);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`: no database of that name is served; `InUse`: it has such a procedure; `SchemaMismatch`: it has another
    /// schema.
    pub fn procedure<S, A, R>(
        mut self,
        database: &str,
        name: &str,
        run: impl Fn(&mut Transaction<'_, S>, A) -> Result<R, Abort> + Send + Sync + 'static,
    ) -> Result<Self>
    where
        S: PlainSchema + 'static,
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        let served = self.served_mut(database)?;
        check_readable(served.local.read().schema(), S::schema()?)?;
        let procedures = Arc::get_mut(&mut served.procedures);
        // Requests have a copy only while the server runs.
        procedures.map_or(Ok(()), |it| it.add(name, Arc::new(OfSchema::new(run))))?;
        Ok(self)
    }

    /// Acknowledges transactions of a database only when its backup has them, too: see [`Backup::start`].
    ///
    /// # Errors
    /// `NotFound`: no database of that name is served.
    pub fn backup(mut self, database: &str, backup: Arc<Backup>) -> Result<Self> {
        self.served_mut(database)?.backup = Some(backup);
        Ok(self)
    }

    /// Opens all databases for reading and writing, without a token: for loopback only.
    #[must_use]
    pub fn open_to_all(mut self) -> Self {
        self.shared.everyone = Some(Role::Write);
        self
    }

    /// Accepts a token for all databases, until the server ends.
    #[must_use]
    pub fn session(mut self, token: StoredToken) -> Self {
        self.shared.session = Some(token);
        self
    }

    /// Refuses all that writes, for a reason that clients read.
    #[must_use]
    pub fn read_only(mut self, why: impl Into<String>) -> Self {
        self.shared.read_only = Some(why.into());
        self
    }

    /// Accepts requests for this host, as the `Host` of a request names it, besides `localhost` and addresses.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.shared.hosts.push(name.into());
        self
    }

    /// Accepts requests of pages from this origin, as `https://example.org`.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.shared.origins.push(origin.into());
        self
    }

    /// Speaks TLS: then it may listen where other machines reach it.
    #[must_use]
    pub fn tls(mut self, identity: Identity) -> Self {
        self.shared.is_tls = true;
        self.identity = Some(identity);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.shared.limits = limits;
        self
    }

    /// True if a request without a token may do something.
    pub(crate) const fn is_open(&self) -> bool {
        self.shared.everyone.is_some()
    }

    /// Returns the end of those who wait for news, which a program with a server of its own begins: a graceful shutdown waits
    /// for all answers, and theirs have none. [`Listening::run`](crate::Listening::run) does it by itself.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.shared.ending.clone()
    }

    /// Returns the routes, to be served by a program of one's own.
    pub fn router(mut self) -> Router {
        self.shared.means = Means::new(self.shared.limits, self.is_open());
        let shared = Arc::new(self.shared);
        let guard = axum::middleware::from_fn_with_state(Arc::clone(&shared), guard::check);
        let routes = frames::routes().merge(files::routes()).merge(lease::routes());
        let routes = routes.merge(rows::routes()).merge(history::routes());
        let routes = routes.merge(changes::routes()).merge(health::routes());
        let routes = routes.merge(transactions::routes()).merge(openapi::routes());
        let routes = routes.merge(explorer::routes());
        #[cfg(feature = "sql")]
        let routes = routes.merge(crate::sql::routes());
        let routes = openapi::describe(routes, explorer::pages(), explorer::PARAMETERS);
        let routes = routes.fallback(nowhere).layer(guard);
        routes.layer(axum::middleware::from_fn(log::record)).with_state(shared)
    }
}
