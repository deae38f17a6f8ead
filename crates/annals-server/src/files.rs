//! The files of a database by ranges, for lazy replicas: segments of the journal, and the image as of a root.

use std::sync::Arc;

use annals_replica::frames::ExposedFile;
use axum::Json;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::images::Images;
use crate::means::Kind;
use crate::ranges::Asked;
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::work::Work;
use crate::{body, openapi};

/// A sealed segment never changes; only an erasure replaces it, by one with another tag.
const FOR_EVER: &str = "max-age=31536000, immutable";
/// Of what grows a cache must ask again.
const GROWS: &str = "no-cache";

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(files)).routes(routes!(segment)).routes(routes!(image))
}

/// Returns the files of a database, up to its last transaction; pins the root of the image.
#[utoipa::path(get, path = "/v1/{name}/files", responses((status = 200, body = openapi::Files)))]
async fn files(allowed: Allowed) -> Answer {
    let (local, images) = (Arc::clone(&allowed.local), Arc::clone(&allowed.images));
    // The image first: the journal then has its point.
    let read = move |_: &mut Work| {
        let image = local.source().expose_image()?;
        Ok((image, local.source().expose()?))
    };
    let ((image, files), _) = allowed.run(Kind::Quick, read).await?;
    let image = image.map(|image| images.pin(image, allowed.shared().limits.pinned));
    let image = image.map(|it| json!({ "root": it.number, "bytes": it.len, "tag": it.tag }));
    let segment = |it: &ExposedFile| json!({ "number": it.number, "bytes": it.len, "sealed": it.is_sealed, "tag": it.tag });
    let segments: Vec<_> = files.segments.iter().map(segment).collect();
    let (txid, chain) = (files.end.txid.0, format!("{:016x}", files.end.chain));
    let answer = json!({ "txid": txid, "chain": chain, "segments": segments, "image": image });
    Ok(Json(answer).into_response())
}

/// Returns the bytes of a segment of the journal, or a range of them.
#[utoipa::path(get, path = "/v1/{name}/segments/{number}", params(
    ("Range" = Option<String>, Header, description = "one range of bytes"),
    ("If-Range" = Option<String>, Header, description = "the ETag that the file must have for a range of it"),
), responses(
    (status = 200, description = "all of it; without the secret of the file", body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 206, description = "the range", body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 304, description = "it has the ETag of If-None-Match"),
    (status = 416, description = "the range is after its end"),
))]
async fn segment(
    allowed: Allowed,
    Path((_, number)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    let number = self::number(&number)?;
    let expose = move |_: &mut Work| Ok(local.source().expose_segment(number)?);
    let (file, _) = allowed.run(Kind::Quick, expose).await?;
    let file = file.ok_or_else(|| {
        let name = allowed.name();
        Refusal::not_found(format!("segment {number} isn't in the kept history of {name}"))
    })?;
    let caching = if file.is_sealed { FOR_EVER } else { GROWS };
    answer(&Arc::new(file), &headers, caching, &allowed).await
}

/// Returns the bytes of the image as of a root, or a range of them. The root can be read for a minute after each read,
/// though there is a newer one.
#[utoipa::path(get, path = "/v1/{name}/image/{root}", params(
    ("Range" = Option<String>, Header, description = "one range of bytes"),
    ("If-Range" = Option<String>, Header, description = "the ETag that the file must have for a range of it"),
), responses(
    (status = 200, description = "all of it", body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 206, description = "the range", body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 304, description = "it has the ETag of If-None-Match"),
    (status = 410, description = "there is a newer root by now", body = openapi::Failure),
    (status = 416, description = "the range is after its end"),
))]
async fn image(
    allowed: Allowed,
    Path((_, root)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer {
    let root = number(&root)?;
    let images = Arc::clone(&allowed.images);
    let file = match images.get(root) {
        Some(file) => file,
        None => {
            let local = Arc::clone(&allowed.local);
            let expose = move |_: &mut Work| Ok(local.source().expose_image()?);
            let (newest, _) = allowed.run(Kind::Quick, expose).await?;
            newest_root(newest, root, &images, allowed.shared())?
        }
    };
    answer(&file, &headers, FOR_EVER, &allowed).await
}

fn number(text: &str) -> Answer<u64> {
    text.parse().map_err(|_| Refusal::bad(format!("{text:?} isn't a number")))
}

/// Pins the newest root, if it is this one.
fn newest_root(
    newest: Option<ExposedFile>,
    root: u64,
    images: &Arc<Images>,
    shared: &Shared,
) -> Answer<Arc<ExposedFile>> {
    match newest {
        None => Err(Refusal::not_found("there is no image yet: read the segments")),
        Some(newest) if newest.number == root => Ok(images.pin(newest, shared.limits.pinned)),
        Some(newest) => {
            let message = format!(
                "root {root} of the image isn't kept any more: the newest is {}; begin again with that",
                newest.number
            );
            Err(Refusal::new(StatusCode::GONE, "forgotten", message))
        }
    }
}

/// Answers with the range of a file that a request asks for.
async fn answer(
    file: &Arc<ExposedFile>,
    headers: &HeaderMap,
    caching: &'static str,
    allowed: &Allowed,
) -> Answer {
    let (tag, len) = (format!("\"{}\"", file.tag), file.len);
    let response = Response::builder()
        .header(header::ETAG, &tag)
        .header(header::ACCEPT_RANGES, "bytes")
        .header(header::CACHE_CONTROL, caching);
    let is_known =
        headers.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let made = match Asked::of(headers, &tag, len) {
        _ if is_known => response.status(StatusCode::NOT_MODIFIED).body(Body::empty()),
        Asked::Outside => response
            .status(StatusCode::RANGE_NOT_SATISFIABLE)
            .header(header::CONTENT_RANGE, format!("bytes */{len}"))
            .body(Body::empty()),
        asked => {
            let (status, from, to) = match asked {
                Asked::Part { from, to } => (StatusCode::PARTIAL_CONTENT, from, to),
                _ => (StatusCode::OK, 0, len),
            };
            let mut response = response
                .status(status)
                .header(header::CONTENT_TYPE, "application/octet-stream")
                .header(header::CONTENT_LENGTH, to - from);
            if status == StatusCode::PARTIAL_CONTENT {
                let range = format!("bytes {from}-{}/{len}", to - 1);
                response = response.header(header::CONTENT_RANGE, range);
            }
            let (head, rest) = file.range(from, to);
            let ranges = rest.into_iter().collect();
            // The root stays pinned until its last byte is sent.
            let kept = Arc::clone(file);
            response.body(body::of_ranges(head, ranges, kept, allowed).await?)
        }
    };
    made.map_err(|error| Refusal::bad(error.to_string()))
}
