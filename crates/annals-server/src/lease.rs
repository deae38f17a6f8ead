//! Leases: for a while only one client's pushes are judged.

use std::sync::Arc;
use std::time::Duration;

use annals::ErrorKind;
use annals_replica::Connection as _;
use axum::Json;
use axum::extract::Query;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::means::Kind;
use crate::openapi;
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::work::Work;

/// The header with a lease's ticket.
const LEASE: &str = "Annals-Lease";

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(lock, unlock))
}

/// Returns the ticket that a request has.
pub(crate) fn ticket(headers: &HeaderMap) -> Option<u64> {
    u64::from_str_radix(headers.get(LEASE)?.to_str().ok()?, 16).ok()
}

/// Refuses a request while another client has a lease; other errors stay.
pub(crate) fn locked(error: annals::Error) -> Refusal {
    match error.kind() {
        ErrorKind::Conflict => Refusal::new(StatusCode::LOCKED, "locked", error.to_string()),
        _ => Refusal::from(error),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Locking {
    /// How many seconds it lasts, 60 at most.
    seconds: f64,
}

/// Grants a lease, or extends the one whose ticket the request has.
#[utoipa::path(post, path = "/v1/{name}/lease", params(
    Locking,
    ("Annals-Lease" = Option<String>, Header, description = "the ticket of the lease that is extended"),
), responses(
    (status = 200, description = "the ticket, and when it ends", body = Object),
    (status = 423, description = "another has a lease", body = openapi::Failure),
))]
async fn lock(
    allowed: Allowed,
    Query(Locking { seconds }): Query<Locking>,
    headers: HeaderMap,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    let lasting = Duration::try_from_secs_f64(seconds)
        .map_err(|error| Refusal::bad(format!("seconds: {error}")))?;
    let ticket = ticket(&headers);
    let lock = move |_: &mut Work| local.lock(lasting, ticket).map_err(locked);
    let (granted, _) = allowed.run(Kind::Quick, lock).await?;
    let (lease, until) = (format!("{:016x}", granted.ticket), granted.until.to_string());
    Ok(Json(json!({ "lease": lease, "until": until })).into_response())
}

/// Ends a lease.
#[utoipa::path(delete, path = "/v1/{name}/lease", params(
    ("Annals-Lease" = String, Header, description = "its ticket"),
), responses((status = 204, description = "it has ended")))]
async fn unlock(allowed: Allowed, headers: HeaderMap) -> Answer {
    let local = Arc::clone(&allowed.local);
    let ticket = ticket(&headers)
        .ok_or_else(|| Refusal::bad("Annals-Lease: the ticket of the lease is missing"))?;
    local.unlock(ticket)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
