//! A refusal as a person reads it: a page that says what to do, for browsers; programs get JSON.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::answer::Refused;
use crate::body::media_types;

/// The page may load its style, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
/// What a person does who has no valid token. It says nothing of what is served.
const WAY_IN: &str = "<h1>The explorer needs its whole link</h1>\
<p>This address has no token, or one that is wrong, revoked or expired.</p>\
<ul><li>Did you run <code>annals explore</code>? Open the link that it printed last, with <code>?token=</code> and all that \
comes after it. Each start makes a new token.</li>\
<li>Does a server show this database? Ask the person who runs it for a token: <code>annals token add FILE --role read</code> \
makes one. Then open <code>/explore/NAME?token=TOKEN</code> there.</li></ul>";

/// True if somebody asks for a page of the explorer in a form that a person reads.
pub(crate) fn is_for_people(request: &Request) -> bool {
    request.uri().path().starts_with("/explore/")
        && media_types(request.headers(), header::ACCEPT).any(|kind| kind == "text/html")
}

/// Returns a refusal with its status and headers, as a page; another answer as it is.
pub(crate) fn for_people(answer: Response) -> Response {
    let Some(Refused { message, .. }) = answer.extensions().get().cloned() else { return answer };
    let (mut parts, _) = answer.into_parts();
    let said = match parts.status {
        StatusCode::UNAUTHORIZED => WAY_IN.to_owned(),
        _ => format!("<h1>The explorer doesn't show this</h1><p>{}</p>", escaped(&message)),
    };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        parts.headers.insert(name, HeaderValue::from_static(value));
    }
    // The files of the page are the same below each name.
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Annals</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><link rel=\"icon\" href=\"data:,\">\
         <link rel=\"stylesheet\" href=\"/explore/page/style.css\"></head>\
         <body class=\"refused\"><main>{said}</main></body></html>"
    );
    Response::from_parts(parts, Body::from(page))
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
