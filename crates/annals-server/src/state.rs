//! The state that answers are of.

use annals::{ErrorKind, Snapshot};
use annals_replica::Local;
use axum::http::StatusCode;

use crate::answer::{Answer, Refusal};

/// Returns the state of now. If it can't be read, since the file was removed or replaced, that is no answer to what was
/// asked.
pub(crate) fn now(local: &Local) -> Answer<Snapshot> {
    local.refresh().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "unreadable", error.to_string())
        }
        _ => error.into(),
    })
}
