//! What happened when, for the slider.

use std::collections::BTreeMap;
use std::sync::Arc;

use annals::{TableNumber, Timestamp};
use annals_replica::Local;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::activity::{Activity, Kind, MOST, Mark};
use crate::answer::{Answer, Refusal};
use crate::shared::Shared;
use crate::{Role, blocking};

/// How many buckets an answer has, if the request doesn't say.
const USUAL: usize = 400;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(activity))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The most buckets, 1 to 2,048; 400 if it isn't said.
    buckets: Option<usize>,
}

/// What happened when.
#[derive(Serialize, ToSchema)]
struct WhatHappened {
    /// The first transaction that is kept, and the last one.
    first: u64,
    last: u64,
    /// The last one that the buckets have: the rest is being read, ask again.
    known: u64,
    buckets: Vec<OfBucket>,
    marks: Vec<OfMark>,
    /// Why the rest can't be read.
    failure: Option<String>,
}

/// Some transactions in a row.
#[derive(Serialize, ToSchema)]
struct OfBucket {
    first: u64,
    last: u64,
    /// When the last one was committed.
    time: String,
    /// How many changes of rows there were, by table; `""` are further tables.
    changes: BTreeMap<String, u64>,
}

/// Something that stands out.
#[derive(Serialize, ToSchema)]
struct OfMark {
    txid: u64,
    /// `comment`, `schema`, `erasure` or `valid_data`.
    kind: Kind,
    text: String,
}

/// Returns how much each table was changed when, in buckets of transactions, and what stands out: comments, changes of
/// the schema, erasures, marks. Of many comments some are left out.
#[utoipa::path(get, path = "/v1/{name}/activity", params(Asked), responses((status = 200, body = WhatHappened)))]
async fn activity(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Asked { buckets }): Query<Asked>,
    headers: HeaderMap,
) -> Answer {
    let served = shared.permit(&headers, &name, Role::Read)?;
    let most = buckets.unwrap_or(USUAL);
    if !(1..=MOST).contains(&most) {
        return Err(Refusal::bad(format!("buckets: write a number from 1 to {MOST}")));
    }
    let (local, activity) = (Arc::clone(&served.local), Arc::clone(&served.activity));
    let answer = blocking::run(move || answer(&activity, &local, most));
    Ok(Json(answer.await?).into_response())
}

fn answer(activity: &Arc<Activity>, local: &Arc<Local>, most: usize) -> Answer<WhatHappened> {
    let now = local.refresh()?;
    let first = local.source().facts()?.first;
    let known = activity.look(local, first, now.txid())?;
    let name = |table: &Option<TableNumber>| {
        let table = table.and_then(|table| now.schema().table(table));
        table.map_or_else(String::new, |table| table.name.clone())
    };
    let buckets = known.buckets.at_most(most).map(|bucket| {
        let mut changes = BTreeMap::new();
        for (table, count) in &bucket.changes {
            *changes.entry(name(table)).or_default() += count;
        }
        let time = Timestamp(bucket.time).to_string();
        OfBucket { first: bucket.first, last: bucket.last, time, changes }
    });
    let marks = known.marks.list().map(|Mark { txid, kind, text }| OfMark {
        txid: txid.0,
        kind: *kind,
        text: text.clone(),
    });
    Ok(WhatHappened {
        first: first.0,
        last: now.txid().0,
        known: known.upto.0,
        buckets: buckets.collect(),
        marks: marks.collect(),
        failure: known.failure.clone(),
    })
}
