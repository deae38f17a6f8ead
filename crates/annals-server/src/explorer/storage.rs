//! What a database takes on the disk, and whether it is whole.

use std::path::PathBuf;
use std::sync::Arc;

use annals::{Inspection, inspect};
use annals_replica::Local;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::Answer;
use crate::shared::Shared;
use crate::{Role, blocking};

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(storage))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// True: the file is read once and verified, too.
    check: Option<bool>,
}

/// What a database takes.
#[derive(Default, Serialize, ToSchema)]
struct Storage {
    /// How many bytes of the journal aren't in the image; null where this isn't known.
    tail_bytes: Option<u64>,
    /// The length of the image in bytes; null if there is none, or it isn't known.
    image_bytes: Option<u64>,
    /// The bytes of the image in memory; null where this isn't known.
    cache_bytes: Option<u64>,
    segments: Vec<Segment>,
    /// The result of a check; null if none was asked for, or there is no file.
    check: Option<Checked>,
}

/// A file of the journal.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredSegment)]
struct Segment {
    number: u64,
    bytes: u64,
    first: u64,
    last: u64,
}

/// What a check found.
#[derive(Serialize, ToSchema)]
struct Checked {
    /// What is damaged; null if nothing is.
    damage: Option<String>,
    /// What is odd, and no damage.
    notes: Vec<String>,
    /// The last transactions of the older states that the image keeps.
    key_frames: Vec<u64>,
    /// The last transaction that the history index knows.
    history_index: Option<u64>,
}

/// Returns what a database takes on the disk; with `check=true` it is read and verified.
#[utoipa::path(get, path = "/v1/{name}/storage", params(Asked), responses((status = 200, body = Storage)))]
async fn storage(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Asked { check }): Query<Asked>,
    headers: HeaderMap,
) -> Answer {
    let served = shared.permit(&headers, &name, Role::Read)?;
    let (local, path) = (Arc::clone(&served.local), served.path.clone());
    let found = blocking::run(move || examine(&local, path, check == Some(true)));
    Ok(Json(found.await?).into_response())
}

fn examine(local: &Local, path: Option<PathBuf>, is_check: bool) -> Answer<Storage> {
    let mut found = Storage::default();
    if let Ok(database) = local.database() {
        let stats = database.stats();
        found.tail_bytes = Some(stats.tail_bytes);
        found.image_bytes = Some(stats.image_bytes).filter(|bytes| *bytes > 0);
        found.cache_bytes = Some(stats.cache.bytes);
        let segments = database.segments().unwrap_or_default();
        found.segments = segments.iter().map(of_segment).collect();
    }
    let Some(path) = path.filter(|_| is_check) else { return Ok(found) };
    let inspection = inspect(path)?;
    if let Some(image) = &inspection.image {
        found.image_bytes = Some(image.len);
        found.tail_bytes = image.newest.as_ref().ok().map(|root| root.tail);
    }
    found.check = Some(checked(&inspection));
    Ok(found)
}

fn of_segment(facts: &annals::SegmentFacts) -> Segment {
    let annals::SegmentFacts { number, bytes, first_txid, last_txid, .. } = *facts;
    Segment { number, bytes, first: first_txid.0, last: last_txid.0 }
}

fn checked(inspection: &Inspection) -> Checked {
    let mut notes = Vec::new();
    if inspection.has_damaged_copy() {
        notes.push(
            "a copy of the header or of a slot is damaged; opening the file for writing repairs it"
                .to_owned(),
        );
    }
    if inspection.has_tail() {
        notes.push(
            "there are bytes after the last commit, which the next opening for writing judges"
                .to_owned(),
        );
    }
    if let Some(Err(why)) = inspection.image.as_ref().map(|image| &image.newest) {
        notes.push(format!("the image can't be used: {why}"));
    }
    let key_frames = inspection.image.iter().flat_map(|image| &image.key_frames);
    let history = inspection.history.as_ref().and_then(|history| history.txid.as_ref().ok());
    Checked {
        damage: inspection.damage.clone(),
        notes,
        key_frames: key_frames.map(|txid| txid.0).collect(),
        history_index: history.map(|txid| txid.0),
    }
}
