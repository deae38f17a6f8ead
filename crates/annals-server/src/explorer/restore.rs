//! Restoring a row as it was at a moment, by a new transaction.

use std::sync::Arc;

use annals::Moment;
use annals_tools::Undo as _;
use axum::Json;
use axum::body::Body;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::rights::Allowed;
use crate::rows::{id, no_moment, table};
use crate::shared::Shared;
use crate::transactions::Failed;
use crate::{body, lease, object, openapi};

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(restore))
}

/// Which version of a row, and why.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// A moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`.
    moment: String,
    /// The comment of the transaction.
    comment: Option<String>,
}

/// The transaction that restored a row.
#[derive(Serialize, ToSchema)]
struct Restored {
    txid: u64,
}

/// Restores a row as it was at a moment, by a new transaction.
#[utoipa::path(post, path = "/v1/{name}/t/{table}/{id}/restore", request_body = Wanted, responses(
    (status = 200, description = "it is history, on permanent storage", body = Restored),
    (status = 409, description = "a value was erased since", body = openapi::Failure),
    (status = 422, description = "another row has its unique key, or a row that it refers to is gone", body = openapi::Failure),
))]
async fn restore(
    allowed: Allowed,
    Path((_, of, number)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    allowed.check_backup(allowed.shared().limits)?;
    body::check_json(&headers)?;
    let (text, held) = body::text(&allowed, body, 1).await?;
    let (local, ticket) = (Arc::clone(&allowed.local), lease::ticket(&headers));
    let restored = allowed.write(move || {
        let _held = held;
        let Wanted { moment, comment } = object::read(&text).map_err(|error| {
            Refusal::bad(format!("{error}; write {{\"moment\":\"txid:N\",\"comment\":TEXT}}"))
        })?;
        let moment: Moment =
            moment.parse().map_err(|error| Refusal::bad(format!("moment: {error}")))?;
        let known = Arc::clone(&local);
        let (_, accepted) = local
            .commit(ticket, move |mut tx| {
                let table = table(tx.view().schema(), &of)?.number;
                tx.restore((table, id(&number)?), moment.clone())
                    .map_err(|error| no_moment(&known, &moment, error))?;
                if let Some(comment) = &comment {
                    tx.comment(comment)?;
                }
                Ok(((), tx))
            })
            .map_err(|failed: Failed| failed.0)?;
        Ok(Restored { txid: accepted.txid.0 })
    });
    Ok(Json(restored.await?).into_response())
}
