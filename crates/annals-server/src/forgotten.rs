//! The answer that history was forgotten.

use annals::ErrorKind;
use annals_replica::Local;
use axum::http::StatusCode;

use crate::answer::Refusal;

/// Returns the answer that transactions can't be sent.
pub(crate) fn forgotten(local: &Local, error: annals::Error) -> Refusal {
    if error.kind() != ErrorKind::NotFound {
        return error.into();
    }
    let oldest = local.source().oldest().unwrap_or_default().0;
    let refusal = Refusal::new(StatusCode::GONE, "forgotten", error.to_string());
    refusal.with(serde_json::json!({ "oldest": oldest, "erasures": [], "carried": null }))
}
