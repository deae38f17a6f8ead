//! Errors as answers.

use annals::{Error, ErrorKind};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// The reason of work that ended since nobody waits for it, or it takes too long.
pub(crate) const CANCELLED: &str = "cancelled";

/// A refusal: a status, the name of its reason, and a message that says what to do.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: &'static str,
    pub(crate) message: String,
    /// More members of the answer, for programs.
    pub(crate) more: Option<Box<Value>>,
}

/// Why an answer is a refusal, for the log.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) error: &'static str,
    pub(crate) message: String,
}

impl Refused {
    /// Replaces the message of an answer; the log has the one before.
    pub(crate) async fn with_message(answer: Response, message: String) -> Response {
        let (mut parts, body) = answer.into_parts();
        // A refusal is in memory.
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
        body["message"] = message.into();
        parts.headers.remove(header::CONTENT_LENGTH);
        Response::from_parts(parts, body.to_string().into())
    }
}

/// The answer to a request that may be refused.
pub(crate) type Answer<T = Response> = Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self { status, error, message: message.into(), more: None }
    }

    /// Adds the members of an object to the answer.
    pub(crate) fn with(self, more: Value) -> Self {
        Self { more: Some(Box::new(more)), ..self }
    }

    /// Refuses a request that isn't one.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// Says that something isn't there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// Refuses frames or values that can't become history; nothing was changed.
    pub(crate) fn unprocessable(error: &Error) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, name(error), error.to_string())
    }
}

/// Returns the name of a kind of error.
fn name(error: &Error) -> &'static str {
    match error.kind() {
        _ if error.is_want_of_space() => "no_space",
        ErrorKind::Unique => "unique",
        ErrorKind::Reference => "reference",
        ErrorKind::Refused => "refused",
        ErrorKind::Aborted => "aborted",
        ErrorKind::UnknownOutcome => "unknown",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::InUse => "in_use",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Diverged => "diverged",
        ErrorKind::Forgotten => "forgotten",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Busy => "busy",
        ErrorKind::PageLost => "page_lost",
        ErrorKind::Unreachable => "unreachable",
        ErrorKind::Cancelled => CANCELLED,
        _ => "invalid",
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            _ if error.is_want_of_space() => StatusCode::INSUFFICIENT_STORAGE,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::Diverged | ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Forgotten => StatusCode::GONE,
            ErrorKind::Unique
            | ErrorKind::Reference
            | ErrorKind::Refused
            | ErrorKind::InUse
            | ErrorKind::Aborted
            | ErrorKind::SchemaMismatch
            | ErrorKind::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Busy
            | ErrorKind::PageLost
            | ErrorKind::Closed
            | ErrorKind::Unreachable
            | ErrorKind::UnknownOutcome => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut message = error.to_string();
        if error.kind() == ErrorKind::Aborted
            && let Some(cause) = std::error::Error::source(&error)
        {
            message = cause.to_string();
        }
        Self::new(status, name(&error), message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.error, "message": self.message });
        if let (Value::Object(body), Some(Value::Object(more))) =
            (&mut body, self.more.map(|more| *more))
        {
            body.extend(more);
        }
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(Refused { error: self.error, message: self.message });
        // It is for a while, and nothing was changed.
        if self.status == StatusCode::SERVICE_UNAVAILABLE && self.error != "unknown" {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}
