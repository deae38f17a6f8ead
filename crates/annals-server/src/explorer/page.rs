//! The page of the explorer: files in the program, and the way in with a token.
//!
//! Nothing comes from elsewhere: the policy that is sent with each file allows only this server.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use crate::Role;
use crate::answer::{Answer, Refusal};
use crate::guard::cookie_name;
use crate::rights::{Allowed, Need, Right};
use crate::shared::Shared;

/// What the page may load, and who may show it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A file of the page: its name, its type, and its bytes.
type Asset = (&'static str, &'static str, &'static [u8]);

macro_rules! assets {
    ($($name:literal: $kind:literal),* $(,)?) => {
        &[$(($name, $kind, include_bytes!(concat!("../../page/", $name)))),*]
    };
}

const ASSETS: &[Asset] = assets! {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css",
    "main.js": "text/javascript",
    "state.js": "text/javascript",
    "model.js": "text/javascript",
    "net.js": "text/javascript",
    "moment.js": "text/javascript",
    "timeline.js": "text/javascript",
    "plot.js": "text/javascript",
    "rows.js": "text/javascript",
    "grid.js": "text/javascript",
    "cells.js": "text/javascript",
    "bytes.js": "text/javascript",
    "row.js": "text/javascript",
    "erased.js": "text/javascript",
    "schema.js": "text/javascript",
    "log.js": "text/javascript",
    "storage.js": "text/javascript",
    "search.js": "text/javascript",
    "copy.js": "text/javascript",
    "ready.js": "text/javascript",
    "sql.js": "text/javascript",
    "complete.js": "text/javascript",
    "chart.js": "text/javascript",
    "vendor/preact.js": "text/javascript",
};

/// The parameters of each path: a browser that enters has a token, and all that the page shows is in the link's fragment.
pub(super) const PARAMETERS: [(&str, &[&str]); 3] =
    [("/explore/{name}", &["token"]), ("/explore/{name}/", &[]), ("/explore/{name}/{*file}", &[])];

pub(crate) fn routes() -> Router<Arc<Shared>> {
    let page = Router::new().route("/explore/{name}", get(enter));
    page.route("/explore/{name}/", get(index)).route("/explore/{name}/{*file}", get(file))
}

#[derive(Deserialize)]
struct Entering {
    token: Option<String>,
}

/// Lets a browser in: the token of the link becomes a cookie, and leaves the address.
async fn enter(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Entering { token }): Query<Entering>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let mut answer = StatusCode::SEE_OTHER.into_response();
    // As the browser wrote it, with its escapes.
    let escaped = uri.path().trim_start_matches("/explore/");
    let text = |text: String| {
        HeaderValue::try_from(text).map_err(|_| Refusal::not_found("there is no such page"))
    };
    let location = text(format!("/explore/{escaped}/"))?;
    answer.headers_mut().insert(header::LOCATION, location);
    let Some(token) = token else { return Ok(answer) };
    Right::of(&shared, Need::Of(Role::Read), &name, Some(&token))?;
    let cookie = cookie_name(&shared, &uri, &headers);
    let cookie = format!("{cookie}={token}; HttpOnly; SameSite=Strict");
    let is_secure = shared.is_tls || headers.contains_key("x-forwarded-proto");
    let secure = if is_secure { "; Secure" } else { "" };
    // The name that TLS gives it needs all paths. Elsewhere other servers on this machine get it at these paths only.
    let own = [format!("/explore/{escaped}"), format!("/v1/{escaped}")];
    let paths = if shared.is_tls { &["/".to_owned()][..] } else { &own };
    for path in paths {
        let cookie = text(format!("{cookie}; Path={path}{secure}"))?;
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    answer.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(answer)
}

async fn index(_: Allowed) -> Response {
    asset("index.html")
}

async fn file(Path((_, file)): Path<(String, String)>) -> Response {
    asset(&file)
}

fn asset(name: &str) -> Response {
    let Some((_, kind, bytes)) = ASSETS.iter().find(|(own, ..)| *own == name) else {
        return Refusal::not_found("the explorer has no such file").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, *kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, *bytes).into_response()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// The most bytes of the page, compressed.
    const MOST: usize = 120 << 10;

    #[test]
    fn all_files_of_the_page_are_known_and_small() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let files = |folder: &str| {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.is_file()).collect::<Vec<_>>()
        };
        let mut size = 0;
        for path in [files(folder), files(&format!("{folder}/vendor"))].concat() {
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
            if name.contains("README") || name.contains("LICENSE") {
                continue;
            }
            let asset = ASSETS.iter().find(|(own, ..)| *own == name);
            let (_, _, bytes) = asset.unwrap_or_else(|| panic!("{name} isn't served"));
            size += lz4_flex::compress(bytes).len();
        }
        assert!(size < MOST, "{size}: no compression that browsers know is worse than LZ4");
    }

    #[test]
    fn libraries_are_those_of_the_list() {
        let list = include_str!("../../page/vendor/README.md");
        for (name, _, bytes) in ASSETS.iter().filter(|(name, ..)| name.starts_with("vendor/")) {
            let sum: String = Sha256::digest(bytes).iter().map(|it| format!("{it:02x}")).collect();
            assert!(list.contains(&sum), "{name} has the sum {sum}");
        }
    }
}
