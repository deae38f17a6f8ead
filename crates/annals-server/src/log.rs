//! The log: an event for each request, whose target is `annals_server`.
//!
//! It has what was asked for and how it ended: the path, but not the query, whose keys are values of rows, and no token.

use annals::storage::{Clock as _, SystemClock};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;

use crate::answer::Refused;

/// Records a request when its answer begins: at the level `info`, and at `error` if this side is at fault.
pub(crate) async fn record(request: Request, next: Next) -> Response {
    let begun = SystemClock.elapsed();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let micros = u64::try_from(SystemClock.elapsed().saturating_sub(begun).as_micros());
    let micros = micros.unwrap_or(u64::MAX);
    let refused = response.extensions().get::<Refused>();
    match refused.map(|refused| refused.error) {
        None => tracing::info!(%method, path, status, micros, "request"),
        Some(error) if response.status() < StatusCode::INTERNAL_SERVER_ERROR => {
            tracing::info!(%method, path, status, micros, error, "refused");
        }
        Some(error) => {
            // Only here the message is about this machine, and not about what the client sent.
            let message = refused.map(|refused| refused.message.as_str());
            tracing::error!(%method, path, status, micros, error, message, "failed");
        }
    }
    response
}
