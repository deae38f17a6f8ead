//! What every request must pass: its host, its origin, its token and the role of that.

use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequestParts as _, MatchedPath, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::{Answer, Refusal, Refused};
use crate::fair::Taken;
use crate::receiving::{Failure, Receiving};
use crate::refusal_page::{for_people, is_for_people};
use crate::rights::{Need, Right, most_of_body};
use crate::seats::Seat;
use crate::shared::Shared;
use crate::watched::Watched;

/// The most bytes of a refusal of the router.
const MOST_TEXT: usize = 4 << 10;

/// Checks host and origin, which protect against pages of other sites in a browser on this machine; then the token, its role,
/// and the size of the body. Only then a handler runs, and reads a body that ends at its limits. The right is asked again
/// while it runs and while its answer is sent.
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let is_for_people = is_for_people(&request);
    let answer = match admit(&shared, request).await {
        Ok(Admitted { request, right, _place }) => answer(request, right, next).await,
        Err(refusal) => refusal.into_response(),
    };
    if is_for_people { for_people(answer) } else { answer }
}

/// A request that may be answered: its body is bounded.
struct Admitted {
    request: Request,
    right: Right,
    /// It has this until the answer begins.
    _place: Taken,
}

/// Checks a request.
async fn admit(shared: &Arc<Shared>, request: Request) -> Answer<Admitted> {
    check_host(shared, &request)?;
    check_origin(shared, &request)?;
    let (mut parts, body) = request.into_parts();
    let path = parts.extensions.get::<MatchedPath>().cloned();
    let path = path.as_ref().map(MatchedPath::as_str);
    let names = RawPathParams::from_request_parts(&mut parts, shared).await.ok();
    let name = names.iter().flatten().find_map(|(key, name)| (key == "name").then_some(name));
    let need = Need::of(&parts.method, path, &parts.headers);
    let right = Right::of(shared, need, name.unwrap_or_default(), token(shared, &parts))?;
    let most = most_of_body(path, &right);
    if body.size_hint().lower() > most {
        return Err(Failure::TooLarge(most).into());
    }
    let place = shared.means.place_of_body(&right, &body)?;
    parts.extensions.insert(right.clone());
    let body = Body::new(Receiving::new(body, most, shared.limits.silence));
    Ok(Admitted { request: Request::from_parts(parts, body), right, _place: place })
}

/// Answers a request that was admitted.
async fn answer(request: Request, right: Right, next: Next) -> Response {
    if right.is_of_everybody() {
        return in_json(next.run(request).await).await;
    }
    let using = request.extensions().get::<Arc<Seat>>().map(Seat::used);
    // What writes asks by itself, when it is certain that nothing was changed.
    let response = match right.is_to_read() {
        true => tokio::select! {
            response = next.run(request) => response,
            refusal = right.clone().ended() => refusal.into_response(),
        },
        false => next.run(request).await,
    };
    let response = in_json(response).await;
    let refused = response.extensions().get::<Refused>();
    let response = match refused.and_then(|it| right.without_folder(&it.message)) {
        Some(message) => Refused::with_message(response, message).await,
        None => response,
    };
    let (parts, body) = response.into_parts();
    let body = Watched::new(body, &parts.headers, right, using);
    Response::from_parts(parts, Body::new(body))
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
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        // A proxy may have checked another one of them.
        return Err(Refusal::bad("the request has several Host headers: send one"));
    }
    let host = authority(request.uri(), request.headers()).unwrap_or_default();
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

/// Returns the host and port that a request is for: in HTTP/2 a request has no `Host`.
fn authority<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    uri.authority().map(Authority::as_str).or_else(|| text(headers, header::HOST))
}

fn check_origin(shared: &Shared, request: &Request) -> Answer<()> {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let schemes = ["http://", "https://"];
    // A server without TLS may be behind a proxy that has it.
    let schemes = if shared.is_tls { &schemes[1..] } else { &schemes[..] };
    let host = schemes.iter().find_map(|scheme| origin.strip_prefix(scheme));
    let is_own = host.is_some() && host == authority(request.uri(), request.headers());
    if is_own || shared.origins.iter().any(|it| it == origin) {
        return Ok(());
    }
    let message =
        "pages of another origin may not use this server: allow the origin with --allow-origin";
    Err(Refusal::new(StatusCode::FORBIDDEN, "wrong_origin", message))
}

/// Returns the name of the cookie that has the token of a browser. It has the port, since browsers send cookies to all ports of
/// a host: two servers on a machine don't replace each other's. With TLS no other host can set it.
///
/// It is sent by this server's own pages only, since they set it as `SameSite=Strict`, and the origin of each request is
/// checked.
pub(crate) fn cookie_name(shared: &Shared, uri: &Uri, headers: &HeaderMap) -> String {
    let (prefix, usual) = if shared.is_tls { ("__Host-", "443") } else { ("", "80") };
    let port = authority(uri, headers).and_then(|it| it.strip_prefix(without_port(it)));
    let port = port.and_then(|port| port.strip_prefix(':')).unwrap_or(usual);
    format!("{prefix}annals-{port}")
}

/// Returns the token of a request.
fn token<'r>(shared: &Shared, parts: &'r Parts) -> Option<&'r str> {
    let bearer = text(&parts.headers, header::AUTHORIZATION);
    let bearer = bearer.and_then(|it| it.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
    bearer.map(|(_, token)| token.trim()).or_else(|| {
        let name = cookie_name(shared, &parts.uri, &parts.headers);
        // HTTP/2 may divide them.
        let cookies = parts.headers.get_all(header::COOKIE).into_iter();
        let mut cookies = cookies.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split("; "));
        cookies.find_map(|cookie| cookie.strip_prefix(name.as_str())?.strip_prefix('='))
    })
}
