//! Work that may wait for a disk or a lock: never on the threads that serve connections.

use axum::http::StatusCode;

use crate::answer::{Answer, Refusal};

/// Runs something on a thread that may block.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Its locks are free again: only this request is lost.
        Err(_) => Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the server failed at this request; its log says why",
        )),
    }
}
