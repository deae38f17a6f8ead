//! What a request needs, and who asks: decided once for every route, before a byte of a body is read, and again while an
//! answer is sent.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use annals::Timestamp;
use annals::storage::{Clock as _, SystemClock};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};

use crate::Role;
use crate::answer::{Answer, Refusal};
use crate::shared::{Served, Shared};
use crate::slow::Slow;

/// So often rights are asked again while an answer is sent or waited for.
const AGAIN: Duration = Duration::from_secs(1);
/// The most bytes of the body of a request that is read into memory whole, if there is so much memory for one who asks.
const MOST_IN_MEMORY: u64 = 16 << 20;
/// The most bytes of any other body.
const MOST_SMALL: u64 = 64 << 10;

/// What a route needs of those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: it says nothing of what is served.
    Nothing,
    /// A role for the database that the path names.
    Of(Role),
    /// A role for all databases.
    OfAll(Role),
}

impl Need {
    /// Returns what a route needs, by its path as the router knows it. A route that isn't named here needs a role for its
    /// database: to read, and with any method that isn't for reading to write.
    pub(crate) fn of(method: &Method, path: Option<&str>, headers: &HeaderMap) -> Self {
        let is_reading = matches!(*method, Method::GET | Method::HEAD);
        match path {
            None
            | Some(
                "/health"
                | "/ready"
                | "/v1/openapi.json"
                | "/explore/{name}"
                | "/explore/{name}/{*file}",
            ) => Self::Nothing,
            Some("/metrics") => Self::OfAll(Role::Admin),
            // A query is in a body, since it may be long.
            Some("/v1/{name}/sql") => Self::Of(Role::Read),
            // Only the owner of a history ends a segment: to a backup it says so.
            Some(_) if headers.contains_key("Annals-Seal") && !is_reading => Self::Of(Role::Admin),
            Some(_) if is_reading => Self::Of(Role::Read),
            Some(_) => Self::Of(Role::Write),
        }
    }
}

/// Returns the most bytes that a body of a route may have.
pub(crate) fn most_of_body(path: Option<&str>, right: &Right) -> u64 {
    let shared = right.shared();
    let most = shared.limits.push;
    match path {
        Some("/v1/{name}/frames") => most,
        Some("/v1/{name}/transactions" | "/v1/{name}/sql") => {
            most.min(MOST_IN_MEMORY).min(shared.means.longest_text(right))
        }
        _ => most.min(MOST_SMALL),
    }
}

/// The right of a request, which passed the guard: what a handler knows of who asks.
#[derive(Clone, Debug)]
pub(crate) struct Right(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    need: Need,
    /// The database that the path names, if it is served.
    served: Option<Arc<Served>>,
    /// Its name.
    name: String,
    token: Option<String>,
    /// Who shares places and memory: those who have the same token.
    who: Arc<str>,
}

impl Right {
    /// Checks that the sender of a request may do what needs a role.
    ///
    /// # Errors
    /// Refused. Who has no valid token learns nothing: not even whether there is such a database.
    pub(crate) fn of(
        shared: &Arc<Shared>,
        need: Need,
        name: &str,
        token: Option<&str>,
    ) -> Answer<Self> {
        let (served, name) = (shared.databases.get(name).cloned(), name.to_owned());
        let who = token.map_or_else(|| Arc::from(""), |token| crate::tokens::hash(token).into());
        let token = token.map(str::to_owned);
        let shared = Arc::clone(shared);
        let right = Self(Arc::new(Inner { shared, need, served, name, token, who }));
        right.check()?;
        Ok(right)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    pub(crate) fn who(&self) -> &Arc<str> {
        &self.0.who
    }

    /// True if it is one that everybody has.
    pub(crate) fn is_of_everybody(&self) -> bool {
        self.0.need == Need::Nothing
    }

    /// True if it is to read only.
    pub(crate) fn is_to_read(&self) -> bool {
        matches!(self.0.need, Need::Nothing | Need::Of(Role::Read) | Need::OfAll(_))
    }

    /// Checks it as of now.
    pub(crate) fn check(&self) -> Answer<()> {
        match self.0.need {
            Need::Nothing => Ok(()),
            Need::Of(role) => self.check_role(role),
            Need::OfAll(role) => {
                let databases = self.0.shared.databases.values().map(Arc::as_ref);
                self.enough(self.role(databases)?, role)
            }
        }
    }

    fn check_role(&self, needed: Role) -> Answer<()> {
        let Inner { shared, served, name, .. } = &*self.0;
        self.enough(self.role(served.as_deref().into_iter())?, needed)?;
        if served.is_none() {
            return Err(nowhere(name));
        }
        match &shared.read_only {
            Some(why) if needed > Role::Read => {
                let message = format!("this server only reads: {why}");
                Err(Refusal::new(StatusCode::FORBIDDEN, "read_only", message))
            }
            _ => Ok(()),
        }
    }

    /// True if who asks may do also what needs another role.
    pub(crate) fn includes(&self, role: Role) -> bool {
        self.check_role(role).is_ok()
    }

    /// Returns the role for all of some databases.
    fn role<'s>(&self, databases: impl Iterator<Item = &'s Served>) -> Answer<Option<Role>> {
        let Inner { shared, token, who, .. } = &*self.0;
        if token.is_none() {
            return Ok(shared.everyone);
        }
        let now = Timestamp(SystemClock.now());
        let session = shared.session.as_ref().and_then(|stored| stored.role_of_hash(who, now));
        let mut least = None;
        for (place, served) in databases.enumerate() {
            let role = served.role_of(who, now)?;
            least = if place == 0 { role } else { least.min(role) };
        }
        Ok(session.max(shared.everyone).max(least))
    }

    fn enough(&self, role: Option<Role>, needed: Role) -> Answer<()> {
        let Some(role) = role else {
            let message = match self.0.token {
                Some(_) => "the token is not valid here: it may be wrong, revoked or expired",
                None => {
                    "a token is needed: send `Authorization: Bearer TOKEN`, or pass --token to annals"
                }
            };
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "unauthenticated", message));
        };
        if role < needed {
            let message = format!("the token's role is {role}, and this needs {needed}");
            return Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", message));
        }
        Ok(())
    }

    /// Returns a message without the folder of the file, if it names it: that is no matter of those who ask.
    pub(crate) fn without_folder(&self, message: &str) -> Option<String> {
        let folders = self.0.served.iter().flat_map(|served| &served.folders);
        let shown = folders.fold(message.to_owned(), |shown, folder| shown.replace(folder, ""));
        (shown != message).then_some(shown)
    }

    /// Returns why it ends, once it does: the token was revoked, or has expired.
    pub(crate) async fn ended(self) -> Refusal {
        loop {
            tokio::time::sleep(AGAIN).await;
            if let Err(refusal) = self.check() {
                return refusal;
            }
        }
    }
}

/// Returns the refusal of a database that isn't served.
fn nowhere(name: &str) -> Refusal {
    Refusal::not_found(format!("no database is served as /v1/{name}"))
}

/// A database that who asks has a right to: what handlers take.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    right: Right,
    served: Arc<Served>,
    /// What counts the client, if it reads too slowly.
    slow: Arc<Slow>,
}

impl Allowed {
    pub(crate) const fn right(&self) -> &Right {
        &self.right
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.right.shared()
    }

    pub(crate) const fn slow(&self) -> &Arc<Slow> {
        &self.slow
    }

    /// Returns the name of the database.
    pub(crate) fn name(&self) -> &str {
        &self.right.0.name
    }
}

impl Deref for Allowed {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

impl FromRequestParts<Arc<Shared>> for Allowed {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Answer<Self> {
        let right = parts.extensions.get::<Right>().cloned();
        // A route that needs nothing gets no database.
        let right = right.filter(|right| matches!(right.0.need, Need::Of(_)));
        let served = right.as_ref().and_then(|right| right.0.served.clone());
        let (right, served) = right.zip(served).ok_or_else(|| nowhere(""))?;
        // In a server of the program's own the connections are not known.
        let slow = parts.extensions.get::<Arc<Slow>>().cloned();
        let slow = slow.unwrap_or_else(|| Arc::new(Slow::new(Arc::clone(&shared.slow))));
        Ok(Self { right, served, slow })
    }
}
