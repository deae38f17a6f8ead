//! What every request must pass: its host, its origin, its token and the role of that.

use std::sync::Arc;

use annals::Timestamp;
use annals::storage::{Clock as _, SystemClock};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Role;
use crate::answer::{Answer, Refusal};
use crate::refusal_page::{for_people, is_for_people};
use crate::shared::{Served, Shared};

/// The most bytes of a refusal of the router.
const MOST_TEXT: usize = 4 << 10;

/// Checks host and origin, which protect against pages of other sites in a browser on this machine.
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let is_for_people = is_for_people(&request);
    let checked = check_host(&shared, &request);
    let answer = match checked.and_then(|()| check_origin(&shared, request.headers())) {
        Ok(()) => in_json(next.run(request).await).await,
        Err(refusal) => refusal.into_response(),
    };
    if is_for_people { for_people(answer) } else { answer }
}

/// Puts the refusals of the router itself, of a query that can't be read or a method that isn't there, into the form of all
/// others.
async fn in_json(response: Response) -> Response {
    let (status, kind) = (response.status(), response.headers().get(header::CONTENT_TYPE));
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let is_of_router = matches!(status.as_u16(), 400 | 404 | 405 | 413 | 415 | 422);
    if !is_of_router || is_json {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, MOST_TEXT).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let (error, message) = match (status, text.trim()) {
        (StatusCode::METHOD_NOT_ALLOWED, _) => (
            "method_not_allowed",
            "this path doesn't take this method; the header Allow has those that it takes",
        ),
        (_, "") => ("bad_request", "the request can't be read"),
        (_, text) => ("bad_request", text),
    };
    let mut refusal = Refusal::new(status, error, message).into_response();
    if let Some(allowed) = parts.headers.get(header::ALLOW) {
        refusal.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    refusal
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns a host without its port.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// A name that isn't this server's may have been pointed at it by somebody else (DNS rebinding); an address can't.
fn check_host(shared: &Shared, request: &Request) -> Answer<()> {
    let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
    let host = authority.or_else(|| text(request.headers(), header::HOST)).unwrap_or_default();
    let name = without_port(host).trim_start_matches('[').trim_end_matches(']');
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    if is_address
        || name.eq_ignore_ascii_case("localhost")
        || shared.hosts.iter().any(|it| it == name)
    {
        return Ok(());
    }
    let message = format!("this server isn't known as {name:?}: allow that name with --host");
    Err(Refusal::new(StatusCode::FORBIDDEN, "wrong_host", message))
}

fn check_origin(shared: &Shared, headers: &HeaderMap) -> Answer<()> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let own = text(headers, header::HOST);
    let is_own = origin.split_once("://").is_some_and(|(_, host)| Some(host) == own);
    if is_own || shared.origins.iter().any(|it| it == origin) {
        return Ok(());
    }
    let message =
        "pages of another origin may not use this server: allow the origin with --allow-origin";
    Err(Refusal::new(StatusCode::FORBIDDEN, "wrong_origin", message))
}

/// The cookie that has the token of a browser. It is sent by this server's own pages only, since they set it as
/// `SameSite=Strict`, and the origin of each request is checked.
pub(crate) const COOKIE: &str = "annals-token";

/// Returns the token of a request.
fn token(headers: &HeaderMap) -> Option<&str> {
    let bearer = text(headers, header::AUTHORIZATION).and_then(|it| it.strip_prefix("Bearer "));
    bearer.or_else(|| {
        let cookies = text(headers, header::COOKIE)?.split("; ");
        cookies.filter_map(|cookie| cookie.split_once('=')).find(|it| it.0 == COOKIE).map(|it| it.1)
    })
}

fn check_role(role: Option<Role>, needed: Role, headers: &HeaderMap) -> Answer<()> {
    let Some(role) = role else {
        let message =
            "a token is needed: send `Authorization: Bearer TOKEN`, or pass --token to annals";
        let wrong = "the token is not valid here: it may be wrong, revoked or expired";
        let message = if token(headers).is_some() { wrong } else { message };
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "unauthenticated", message));
    };
    if role < needed {
        let message = format!("the token's role is {role}, and this needs {needed}");
        return Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", message));
    }
    Ok(())
}

impl Shared {
    /// Returns the role that the sender of a request has for all of some databases.
    fn role_of<'s>(
        &self,
        headers: &HeaderMap,
        databases: impl Iterator<Item = &'s Served>,
    ) -> Answer<Option<Role>> {
        let token = token(headers);
        let now = Timestamp(SystemClock.now());
        let session = token.zip(self.session.as_ref());
        let role =
            session.and_then(|(token, stored)| stored.role_of(token, now)).max(self.everyone);
        let Some(token) = token else { return Ok(role) };
        let mut least = None;
        for (place, served) in databases.enumerate() {
            let role = served.role_of(token)?;
            least = if place == 0 { role } else { least.min(role) };
        }
        Ok(role.max(least))
    }

    /// Fails unless the sender of a request may do something with all databases that needs a role.
    pub(crate) fn permit_all(&self, headers: &HeaderMap, needed: Role) -> Answer<()> {
        check_role(self.role_of(headers, self.databases.values())?, needed, headers)
    }

    /// Returns a database, if the sender of a request may do something with it that needs a role.
    ///
    /// Who has no valid token learns nothing: not even whether there is such a database.
    pub(crate) fn permit(&self, headers: &HeaderMap, name: &str, needed: Role) -> Answer<&Served> {
        let served = self.databases.get(name);
        check_role(self.role_of(headers, served.into_iter())?, needed, headers)?;
        let Some(served) = served else {
            let message = format!("no database is served as /v1/{name}");
            return Err(Refusal::not_found(message));
        };
        if needed > Role::Read
            && let Some(why) = &self.read_only
        {
            let message = format!("this server only reads: {why}");
            return Err(Refusal::new(StatusCode::FORBIDDEN, "read_only", message));
        }
        Ok(served)
    }
}
