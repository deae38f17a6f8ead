//! A server: the databases that it has, who may ask, and its routes.

use std::sync::Arc;

use annals::{Database, Error, Result};
use axum::Router;

use crate::answer::Refusal;
use crate::identity::Identity;
use crate::shared::{Limits, Served, Shared};
use crate::tokens::{StoredToken, Tokens};
use crate::{Role, changes, frames, guard, health, history, rows};

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
        self.add(name, database, None)
    }

    /// Serves an open database, with the tokens that are stored beside its file.
    ///
    /// # Errors
    /// As [`database`](Self::database).
    pub fn database_with(self, name: &str, database: Database, tokens: Tokens) -> Result<Self> {
        self.add(name, database, Some(tokens))
    }

    fn add(mut self, name: &str, database: Database, tokens: Option<Tokens>) -> Result<Self> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            return Err(Error::invalid(format!(
                "{name:?} can't be the name of a database in a URL: use letters, digits, `-` and `_`"
            )));
        }
        let served = Served::new(database, tokens);
        match self.shared.databases.insert(name.to_owned(), served) {
            None => Ok(self),
            Some(_) => Err(Error::new(
                annals::ErrorKind::InUse,
                format!("two databases would have the URL /v1/{name}: rename one of the files"),
            )),
        }
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

    /// Refuses all that writes.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.shared.is_read_only = true;
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

    /// Returns the routes, to be served by a program of one's own.
    pub fn router(self) -> Router {
        let shared = Arc::new(self.shared);
        let guard = axum::middleware::from_fn_with_state(Arc::clone(&shared), guard::check);
        let routes = frames::routes().merge(rows::routes()).merge(history::routes());
        let routes = routes.merge(changes::routes()).merge(health::routes());
        routes.fallback(nowhere).layer(guard).with_state(shared)
    }
}
