//! Work that may wait for a disk or a lock: never on the threads that serve connections.

use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::http::StatusCode;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::answer::{Answer, Refusal};

/// Runs something on a thread that may block.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(failed()))
}

/// Returns the answer after a panic. Its locks are free again: only this request is lost.
pub(crate) fn failed() -> Refusal {
    let message = "the server failed at this request; its log says why";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
}

/// Runs something on this thread, whose other work another one takes over: so the answer waits for no other thread. As many
/// threads as there are such calls must be free, so their number is bounded; and they can't be abandoned.
pub(crate) async fn run_here<T: Send + 'static>(
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<T> {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => {
            let work = || catch_unwind(AssertUnwindSafe(work));
            tokio::task::block_in_place(work).unwrap_or_else(|_| Err(failed()))
        }
        _ => run(work).await,
    }
}
