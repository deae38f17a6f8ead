//! What a database takes on the disk, and whether it is whole.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use annals::{Options, Progress};
use annals_replica::Local;
use annals_tools::Inspection;
use axum::body::Body;
use axum::extract::Query;
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::body::Pieces;
use crate::means::Kind;
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::work::Work;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(storage))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// True: the file is read once and verified, too. The answer is then lines of JSON: `{"done":BYTES,"total":BYTES}`
    /// now and then, and at the end what the database takes, or `{"error":TEXT}`.
    check: Option<bool>,
}

/// How many lines may wait for a slow client: further ones about the progress are left out.
const WAITING: usize = 16;

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
    /// How many entries it has.
    history_entries: u64,
}

/// Returns what a database takes on the disk; with `check=true` it is read and verified.
#[utoipa::path(get, path = "/v1/{name}/storage", params(Asked), responses((status = 200, body = Storage)))]
async fn storage(allowed: Allowed, Query(Asked { check }): Query<Asked>) -> Answer {
    let (local, path) = (Arc::clone(&allowed.local), allowed.path.clone());
    if let Some(path) = path.filter(|_| check == Some(true)) {
        let place = allowed.shared().means.place(allowed.right(), Kind::Long).await?;
        let (lines, receiver) = mpsc::channel(WAITING);
        // It ends when the client goes away.
        allowed.shared().long.begin(Box::new(move || {
            let _place = place;
            check_file(&local, path, &lines);
        }));
        let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
        return Ok((kind, Body::from_stream(Pieces(receiver))).into_response());
    }
    allowed.value(Kind::Quick, move |_: &mut Work| examine(&local)).await
}

type Lines = mpsc::Sender<std::io::Result<Bytes>>;

/// Sends the progress of a check, and then its result.
fn check_file(local: &Local, path: PathBuf, lines: &Lines) {
    let watched = lines.clone();
    let tell = move |Progress { done, total, .. }: Progress| {
        let line = format!("{{\"done\":{done},\"total\":{total}}}\n");
        // The last place is for the result.
        if watched.capacity() > 1 {
            let _is_full = watched.try_send(Ok(line.into()));
        }
        match watched.is_closed() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let options = Options::new().on_progress(tell);
    let checked = annals_tools::inspect(&options, path).map_err(Refusal::from);
    let line = match checked.and_then(|inspection| examine_checked(local, &inspection)) {
        Ok(found) => serde_json::to_string(&found).unwrap_or_default(),
        Err(refusal) => serde_json::json!({ "error": refusal.message }).to_string(),
    };
    let _is_gone = lines.try_send(Ok(format!("{line}\n").into()));
}

fn examine_checked(local: &Local, inspection: &Inspection) -> Answer<Storage> {
    let mut found = examine(local)?;
    if let Some(image) = &inspection.image {
        found.image_bytes = Some(image.len);
        found.tail_bytes = image.newest.as_ref().ok().map(|root| root.tail);
    }
    found.check = Some(checked(inspection));
    Ok(found)
}

fn examine(local: &Local) -> Answer<Storage> {
    let mut found = Storage::default();
    if let Ok(database) = local.database() {
        let stats = database.stats();
        found.tail_bytes = Some(stats.tail_bytes);
        found.image_bytes = Some(stats.image_bytes).filter(|bytes| *bytes > 0);
        found.cache_bytes = Some(stats.cache.bytes);
        let segments = database.segments().unwrap_or_default();
        found.segments = segments.iter().map(of_segment).collect();
        return Ok(found);
    }
    let files = local.source().expose()?;
    let mut last = files.end.txid.0;
    for file in files.segments.iter().rev() {
        let (number, bytes, first) = (file.number, file.len, file.txid.0);
        found.segments.push(Segment { number, bytes, first, last });
        last = first.saturating_sub(1);
    }
    found.segments.reverse();
    let image = local.source().expose_image().ok().flatten();
    found.image_bytes = image.map(|image| image.len);
    Ok(found)
}

fn of_segment(facts: &annals::journal::SegmentFacts) -> Segment {
    let annals::journal::SegmentFacts { number, bytes, first_txid, last_txid, .. } = *facts;
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
        history_entries: inspection.history.as_ref().map_or(0, |history| history.entries),
    }
}
