//! The queue over HTTP.
//!
//! | request | body | answer |
//! |---|---|---|
//! | `POST /jobs` | `{"priority": 5, "payload": ..}` | its id |
//! | `POST /claim` | `{"worker": "w1", "lease_ms": 30000}` | `{"id", "attempt", "payload"}`, or null |
//! | `POST /jobs/7/finish` | `{"attempt": 1}` | |
//! | `POST /jobs/7/fail` | `{"attempt": 1, "reason": ".."}` | |
//! | `GET /stats` | | the number of jobs in each state |
//! | `GET /jobs/7/history` | | what happened to it, and when |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::ErrorKind;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jobs::{Claim, Queue, TooLate, Version};

type Shared = State<Arc<Queue>>;
type Answer<T> = Result<Json<T>, (StatusCode, String)>;

pub(crate) fn router(queue: Queue) -> Router {
    Router::new()
        .route("/jobs", post(add))
        .route("/claim", post(claim))
        .route("/jobs/{id}/finish", post(finish))
        .route("/jobs/{id}/fail", post(fail))
        .route("/jobs/{id}/history", get(history))
        .route("/stats", get(stats))
        .with_state(Arc::new(queue))
}

/// Commits wait for the disk, so they run beside the threads that serve requests.
async fn answer<T: Send + 'static>(
    State(queue): Shared,
    work: impl FnOnce(&Queue) -> annals::Result<T> + Send + 'static,
) -> Answer<T> {
    let result = tokio::task::spawn_blocking(move || work(&queue)).await;
    let internal =
        |error: tokio::task::JoinError| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    result.map_err(internal)?.map(Json).map_err(refusal)
}

fn refusal(error: annals::Error) -> (StatusCode, String) {
    let status = match error.kind() {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Busy | ErrorKind::PageLost => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    match error.into_program::<TooLate>() {
        Ok(late) => (StatusCode::CONFLICT, late.to_string()),
        Err(error) => (status, error.to_string()),
    }
}

#[derive(Deserialize)]
struct Add {
    #[serde(default)]
    priority: i32,
    payload: Box<RawValue>,
}

async fn add(queue: Shared, Json(new): Json<Add>) -> Answer<u64> {
    answer(queue, move |queue| queue.add(new.priority, new.payload.get())).await
}

#[derive(Deserialize)]
struct ClaimOne {
    worker: String,
    lease_ms: u64,
}

async fn claim(queue: Shared, Json(by): Json<ClaimOne>) -> Answer<Option<Claim>> {
    let lease = Duration::from_millis(by.lease_ms);
    answer(queue, move |queue| queue.claim(&by.worker, lease)).await
}

#[derive(Deserialize)]
struct Outcome {
    attempt: u32,
    #[serde(default)]
    reason: String,
}

async fn finish(queue: Shared, Path(id): Path<u64>, Json(of): Json<Outcome>) -> Answer<()> {
    answer(queue, move |queue| queue.finish(id, of.attempt)).await
}

async fn fail(queue: Shared, Path(id): Path<u64>, Json(of): Json<Outcome>) -> Answer<()> {
    answer(queue, move |queue| queue.fail(id, of.attempt, &of.reason)).await
}

async fn history(queue: Shared, Path(id): Path<u64>) -> Answer<Vec<Version>> {
    answer(queue, move |queue| queue.history(id)).await
}

async fn stats(queue: Shared) -> Answer<BTreeMap<String, usize>> {
    answer(queue, |queue| Ok(queue.stats())).await
}
