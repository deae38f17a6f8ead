//! Requests for ranges of files over HTTP (RFC 9110, section 14).

use std::ops::Range;

use annals::{Error, ErrorKind, Result};
use reqwest::header::{ETAG, HeaderName, IF_RANGE, LAST_MODIFIED, RANGE};
use reqwest::{RequestBuilder, StatusCode};

use super::ranges::{Object, Piece};
use crate::client::{Lost, Response, whole};

/// Returns a header as text.
fn text<'r>(response: &'r Response<'_>, name: HeaderName) -> Option<&'r str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Returns what proves which version of a file an answer is of.
pub(super) fn tag(response: &Response<'_>) -> Option<String> {
    text(response, ETAG).or_else(|| text(response, LAST_MODIFIED)).map(str::to_owned)
}

/// Asks for a range of a file. If the file has another tag, some servers send all of it.
pub(super) fn of_range(
    request: RequestBuilder,
    tag: Option<&str>,
    range: &Range<u64>,
) -> RequestBuilder {
    let request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end - 1));
    // A weak tag proves nothing about single bytes; that of the answer is compared all the same.
    match tag.filter(|tag| tag.starts_with('"')) {
        Some(tag) => request.header(IF_RANGE, tag),
        None => request,
    }
}

/// Returns the range that an answer has, and the length of the whole file.
pub(super) fn content_range(response: &Response<'_>) -> Option<(Range<u64>, u64)> {
    let range = text(response, reqwest::header::CONTENT_RANGE)?.strip_prefix("bytes ")?;
    let (range, len) = range.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((first..last.checked_add(1)?, len.parse().ok()?))
}

/// Reads the answer to a request for a range; `None` if it is another one than that, or all of the file.
pub(super) fn piece(
    name: &str,
    response: Response<'_>,
    object: &Object,
    range: &Range<u64>,
) -> Result<Option<Piece>> {
    if matches!(response.status(), StatusCode::GONE | StatusCode::NOT_FOUND | StatusCode::OK) {
        return Ok(Some(Piece::Replaced));
    }
    // It is shorter by now.
    if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
        return Ok(Some(Piece::Replaced));
    }
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return Err(refused(name, &response));
    }
    let is_same = object.tag.is_none() || tag(&response) == object.tag;
    match content_range(&response) {
        _ if !is_same => return Ok(Some(Piece::Replaced)),
        Some((sent, _)) if sent == *range => {}
        _ => return Ok(None),
    }
    // One byte more shows that it has too many.
    let read = response.read(range.end - range.start + 1);
    Ok(Some(Piece::Bytes(read.map_err(|error| unreachable(name, &error))?)))
}

/// Returns the error of a status that isn't an answer.
pub(super) fn refused(name: &str, response: &Response<'_>) -> Error {
    let status = response.status();
    let kind = match status {
        status if status.is_redirection() => ErrorKind::Invalid,
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorKind::Forbidden,
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => ErrorKind::Unreachable,
        status if status.is_server_error() => ErrorKind::Unreachable,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, format!("{name}: {status}"))
}

/// Returns the error that no whole answer came.
pub(super) fn unreachable(name: &str, error: &Lost) -> Error {
    Error::new(error.kind(), format!("{name}: {}", whole(error)))
}
