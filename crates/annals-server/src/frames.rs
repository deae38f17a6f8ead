//! Frames as they are: what replicas pull and push.

use std::sync::Arc;
use std::time::Duration;

use annals::internals::spool;
use annals::{Cursor, Error, ErrorKind, Txid};
use annals_replica::{Answer as Judged, BATCH, Connection as _, Local, Pushed};
use axum::Json;
use axum::body::Body;
use axum::extract::Query;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ahead::Frames;
use crate::answer::{Answer, Refusal};
use crate::means::Kind;
use crate::openapi;
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::work::Work;
use crate::{body, lease};

/// The most bytes of frames that are sent along with a conflict.
const NEWS: u64 = 1 << 20;
/// What this server answers besides frames.
const FEATURES: &[&str] = &[
    "json",
    #[cfg(feature = "sql")]
    "sql",
    #[cfg(feature = "arrow")]
    "arrow",
];
/// The most txids of a request for chains.
const MOST_CHAINS: usize = 1000;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(describe))
        .routes(routes!(pull, push))
        .routes(routes!(chains))
}

/// Returns facts of a database.
#[utoipa::path(get, path = "/v1/{name}", responses((status = 200, body = openapi::Facts)))]
async fn describe(allowed: Allowed) -> Answer {
    let (local, procedures) = (Arc::clone(&allowed.local), Arc::clone(&allowed.procedures));
    let read = move |_: &mut Work| {
        let facts = local.source().facts()?;
        Ok((facts, local.source().end()?))
    };
    let ((facts, end), _) = allowed.run(Kind::Quick, read).await?;
    let chain = format!("{:016x}", end.chain);
    let (txid, first) = (end.txid.0, facts.first.0);
    let answer = json!({
        "id": facts.id, "txid": txid, "chain": chain, "first": first, "schema": facts.schema, "features": FEATURES,
        "procedures": procedures.names().collect::<Vec<_>>(),
    });
    Ok(Json(answer).into_response())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Pulling {
    /// The cursor after which the frames begin, as `TXID:CHAIN`; without it the header of the oldest segment comes first.
    after: Option<String>,
    /// How many seconds to wait for news, 60 at most.
    wait: Option<f64>,
}

/// Returns the transactions after a cursor; waits for some, if there are none.
#[utoipa::path(get, path = "/v1/{name}/frames", params(Pulling), responses(
    (status = 200, description = "frames as they are in the journal; Annals-Next is the cursor after them", body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 409, description = "the cursor isn't in this history", body = openapi::Failure),
    (status = 410, description = "what follows the cursor was forgotten, or written again by an erasure", body = openapi::Gone),
))]
async fn pull(allowed: Allowed, Query(Pulling { after, wait }): Query<Pulling>) -> Answer {
    let (shared, local) = (allowed.shared(), Arc::clone(&allowed.local));
    let after: Option<Cursor> = after
        .map(|text| text.parse())
        .transpose()
        .map_err(|error| Refusal::bad(format!("after: {error}")))?;
    let wait = Duration::try_from_secs_f64(wait.unwrap_or(0.0))
        .unwrap_or_default()
        .min(shared.limits.wait);
    let read = async || {
        let (local, buffers) = (Arc::clone(&local), Arc::clone(&shared.buffers));
        let read = move |_: &mut Work| {
            Frames::read(&local, after, &buffers).map_err(|error| gone(&local, after, error))
        };
        Answer::Ok(allowed.run(Kind::Quick, read).await?.0)
    };
    let mut frames = match allowed.ahead.take(after).await {
        Some(frames) => frames,
        None => read().await?,
    };
    let deadline = Instant::now() + wait;
    // Without news the answer is empty.
    while let Some(after) = after
        && frames.batch.is_empty()
        && Instant::now() < deadline
    {
        let is_ending = tokio::select! {
            _ = tokio::time::timeout_at(deadline, local.source().news(after.txid)) => false,
            () = shared.ending.begun() => true,
        };
        frames = read().await?;
        if is_ending {
            break;
        }
    }
    let batch = &frames.batch;
    if !batch.is_seal && batch.len() > BATCH / 2 {
        let buffers = Arc::clone(&shared.buffers);
        allowed.ahead.begin(Arc::clone(&local), batch.next, buffers);
    }
    answer(StatusCode::OK, frames, &allowed).await
}

/// Returns an answer of frames.
async fn answer(status: StatusCode, frames: Frames, allowed: &Allowed) -> Answer {
    let batch = &frames.batch;
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CONTENT_LENGTH, batch.len())
        .header("Annals-Next", batch.next.to_string());
    if batch.is_seal {
        response = response.header("Annals-Seal", HeaderValue::from_static("1"));
    }
    let body = body::of_frames(frames, allowed).await?;
    response.body(body).map_err(|error| Refusal::bad(error.to_string()))
}

/// Returns the answer that something after a cursor isn't there, with what is left, and how erasures carry the cursor.
pub(crate) fn gone(local: &Local, cursor: Option<Cursor>, error: Error) -> Refusal {
    let is_forgotten = error.kind() == ErrorKind::Forgotten;
    let refusal = Refusal::from(error);
    if !is_forgotten {
        return refusal;
    }
    let oldest = local.source().oldest().unwrap_or_default().0;
    let carrying = cursor.and_then(|cursor| local.source().erased_since(cursor).ok().flatten());
    let erasures: Vec<_> = carrying
        .iter()
        .flat_map(|it| &it.erasures)
        .map(|mark| json!({ "txid": mark.txid.0, "from": mark.first_txid.0 }))
        .collect();
    let carried = carrying.and_then(|it| it.carried).map(|cursor| cursor.to_string());
    refusal.with(json!({ "oldest": oldest, "erasures": erasures, "carried": carried }))
}

/// Makes frames history, if they can be.
#[utoipa::path(post, path = "/v1/{name}/frames", params(
    ("If-Match" = String, Header, description = "the cursor before the frames, as \"TXID:CHAIN\""),
), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses(
    (status = 200, description = "they are history, on permanent storage", body = Object),
    (status = 409, description = "If-Match isn't in this history", body = openapi::Failure),
    (status = 412, description = "the history ends elsewhere by now", body = openapi::Failure),
    (status = 413, description = "more bytes than the server takes", body = openapi::Failure),
    (status = 423, description = "another has a lease", body = openapi::Failure),
    (status = 422, description = "not whole frames, or they don't apply", body = openapi::Failure),
    (status = 428, description = "If-Match is missing", body = openapi::Failure),
    (status = 503, description = "the backup can't take transactions", body = openapi::Failure),
    (status = 507, description = "the disk is full", body = openapi::Failure),
))]
async fn push(allowed: Allowed, headers: HeaderMap, body: Body) -> Answer {
    let is_seal = headers.contains_key("Annals-Seal");
    let limits = allowed.shared().limits;
    allowed.check_backup(limits)?;
    let local = Arc::clone(&allowed.local);
    let from = headers.get(header::IF_MATCH).ok_or_else(|| {
        let message = "If-Match is missing: the cursor before the frames, as \"TXID:CHAIN\"";
        Refusal::new(StatusCode::PRECONDITION_REQUIRED, "if_match_required", message)
    })?;
    let from = from.to_str().unwrap_or_default().trim_matches('"');
    let from: Cursor = from.parse().map_err(|error| Refusal::bad(format!("If-Match: {error}")))?;
    let mut frames = body::spool(&allowed, body, spool(local.database()?)).await?;
    let number = |name| headers.get(name).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    let turn = allowed.turns.come(number("Annals-Turn")).await;
    let wants_news = headers.get("Prefer").is_some_and(|it| it == "return=representation");
    let ticket = lease::ticket(&headers);
    let buffers = Arc::clone(&allowed.shared().buffers);
    let judging = allowed.write(move || {
        let (status, answer) = match is_seal {
            true => judge(&local, local.push_seal(from, &frames).map(of_seal))?,
            false => judge(&local, local.accept(from, &mut frames, ticket))?,
        };
        let is_late = status == StatusCode::PRECONDITION_FAILED;
        let news = (is_late && wants_news).then(|| Frames::read(&local, Some(from), &buffers));
        let is_short = |news: &Frames| !news.batch.is_seal && news.batch.len() <= NEWS;
        Ok((status, answer, news.transpose()?.filter(is_short)))
    });
    let (status, answer, news) = judging.await?;
    let mut response = match news {
        Some(news) => self::answer(status, news, &allowed).await?,
        None => (status, Json(answer)).into_response(),
    };
    if status == StatusCode::PRECONDITION_FAILED {
        let conflicts = number("Annals-Conflicts").and_then(|number| number.try_into().ok());
        if let Some(ticket) = turn.keep(conflicts.unwrap_or(0)) {
            response.headers_mut().insert("Annals-Turn", ticket.into());
        }
    }
    Ok(response)
}

/// Returns the outcome of a pushed seal, as that of frames.
fn of_seal(pushed: Pushed) -> Judged {
    match pushed {
        Pushed::Committed => Judged::Committed,
        Pushed::Conflict(_) | Pushed::NotSent(_) | Pushed::Unknown(_) => Judged::Conflict,
    }
}

/// Returns the answer to a push.
fn judge(local: &Local, judged: annals::Result<Judged>) -> Answer<(StatusCode, serde_json::Value)> {
    let judged = judged.map_err(|error| match error.kind() {
        ErrorKind::Diverged => Refusal::from(error),
        ErrorKind::Conflict => lease::locked(error),
        _ if error.is_want_of_space() => Refusal::from(error),
        ErrorKind::Invalid
        | ErrorKind::Unique
        | ErrorKind::Reference
        | ErrorKind::Refused
        | ErrorKind::NotFound
        | ErrorKind::InUse
        | ErrorKind::Corrupt
        | ErrorKind::Unsupported => Refusal::unprocessable(&error),
        _ => Refusal::from(error),
    })?;
    let end = local.source().end()?;
    let cursor = json!({ "txid": end.txid.0, "chain": format!("{:016x}", end.chain), "level": "checksummed" });
    Ok(match judged {
        Judged::Committed => (StatusCode::OK, cursor),
        Judged::AlreadyThere => (StatusCode::OK, json!({ "already_there": true, "end": cursor })),
        Judged::Conflict => {
            let message = format!("the journal ends with transaction {} by now", end.txid);
            let answer = json!({ "error": "conflict", "message": message, "end": cursor });
            (StatusCode::PRECONDITION_FAILED, answer)
        }
    })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Chained {
    /// Numbers of transactions, with commas between them, at most 1,000.
    txid: String,
}

/// Returns the chains after some transactions.
#[utoipa::path(get, path = "/v1/{name}/chains", params(Chained), responses((status = 200, body = openapi::Chains)))]
async fn chains(allowed: Allowed, Query(Chained { txid }): Query<Chained>) -> Answer {
    let local = Arc::clone(&allowed.local);
    let txids: Result<Vec<u64>, _> = txid.split(',').map(str::parse).collect();
    let txids = txids.ok().filter(|txids| txids.len() <= MOST_CHAINS).ok_or_else(|| {
        Refusal::bad(format!("txid: write at most {MOST_CHAINS} numbers, with commas between them"))
    })?;
    let find = move |work: &mut Work| {
        let chain = |txid| {
            work.check()?;
            Ok(local.source().chain(Txid(txid))?.map(|chain| format!("{chain:016x}")))
        };
        let chains = txids.into_iter().map(chain).collect::<Answer<Vec<_>>>()?;
        Ok(json!({ "chains": chains }))
    };
    allowed.value(Kind::Long, find).await
}
