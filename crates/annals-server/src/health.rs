//! What operators ask: whether the server lives, whether it can serve, and figures for Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use annals::Stats;
use annals_replica::{LAG, Local};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::blocking;
use crate::openapi;
use crate::shared::Shared;

/// A node that lacks more messages of its log isn't ready.
const MOST_LAG: u64 = 1000;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(ready)).routes(routes!(metrics))
}

/// Says that the server answers.
#[utoipa::path(get, path = "/health", responses((status = 200, body = String, content_type = "text/plain")))]
async fn health() -> &'static str {
    "alive\n"
}

/// Says whether all databases can be read, take transactions if they are open for writing, have what others have committed, if they follow another or are nodes of a log, and
/// whether their backups, if they have some, take transactions. If not, it says why; it names no database: everybody may ask.
#[utoipa::path(get, path = "/ready", responses(
    (status = 200, body = openapi::Ready),
    (status = 503, description = "a database can't be read, takes no transactions any more, lacks what others have, or its backup takes no transactions", body = openapi::Failure),
))]
async fn ready(State(shared): State<Arc<Shared>>) -> Answer {
    let locals: Vec<_> =
        shared.databases.values().map(|served| Arc::clone(&served.local)).collect();
    let count = locals.len();
    blocking::run(move || {
        let problem = locals.iter().find_map(|local| problem_of(local));
        problem.map_or(Ok(()), |problem| Err(not_ready(&problem)))
    })
    .await?;
    if shared
        .databases
        .values()
        .filter_map(|it| it.backup.as_ref())
        .any(|it| it.problem().is_some())
    {
        return Err(not_ready("a backup can't take transactions: the server's log says which"));
    }
    Ok(Json(json!({ "databases": count })).into_response())
}

/// Returns why a database can't be read, or is served as it was some time ago.
fn problem_of(local: &Local) -> Option<String> {
    if let Err(error) = local.source().end().and_then(|_| local.refresh()) {
        tracing::error!(%error, "a database can't be read");
        return Some("a database can't be read: the server's log says which".to_owned());
    }
    if let Err(error) = local.source().check_usable() {
        tracing::error!(%error, "a database takes no transactions");
        return Some(
            "a database takes no transactions any more: the server's log says which".to_owned(),
        );
    }
    if let Some(reason) = local.behind() {
        return Some(format!("what others have committed may be missing here: {reason}"));
    }
    match local.figures() {
        Err(error) => Some(format!("a node can't ask its log: {error}")),
        Ok(figures) => {
            let lag = figures.iter().find(|figure| figure.name == LAG)?.value;
            (lag > MOST_LAG).then(|| format!("a node lacks {lag} messages of its log"))
        }
    }
}

fn not_ready(message: &str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message)
}

/// Returns the figures of the databases that a token of role admin is for, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", security(("token" = [])), responses((status = 200, body = String, content_type = "text/plain")))]
async fn metrics(State(shared): State<Arc<Shared>>) -> Answer {
    let locals: Vec<_> = shared
        .databases
        .iter()
        .map(|(name, served)| (name.clone(), Arc::clone(&served.local)))
        .collect();
    let text = blocking::run(move || {
        let stats = |(name, local): &(String, Arc<Local>)| {
            // A file that is only read has none.
            Some((name.clone(), local.database().ok()?.stats()))
        };
        let stats: Vec<_> = locals.iter().filter_map(stats).collect();
        let mut text = text(&stats);
        let mut described = std::collections::BTreeSet::new();
        for (name, local) in &locals {
            // What can't be asked has no figures: /ready says so.
            for annals_replica::Figure { name: figure, help, value } in
                local.figures().unwrap_or_default()
            {
                let kind = if figure.ends_with("_total") { "counter" } else { "gauge" };
                if described.insert(figure) {
                    let _ = writeln!(
                        text,
                        "# HELP annals_{figure} {help}\n# TYPE annals_{figure} {kind}"
                    );
                }
                let _ = writeln!(text, "annals_{figure}{{database=\"{name}\"}} {value}");
            }
        }
        Ok(text)
    });
    let mut text = text.await?;
    push_own(&mut text, &shared);
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    Ok((kind, text).into_response())
}

/// A figure: its name, its kind, what it means, and how it is read.
type Figure = (&'static str, &'static str, &'static str, fn(&Stats) -> f64);

/// Returns a count as a number of the text format, which has only floats.
#[expect(clippy::cast_precision_loss, reason = "the format has only floats")]
const fn float(count: u64) -> f64 {
    count as f64
}

const FIGURES: [Figure; 12] = [
    ("commits_total", "counter", "Commits that were acknowledged.", |it| float(it.commits)),
    ("last_transaction", "gauge", "The last transaction.", |it| float(it.txid.0)),
    ("tail_bytes", "gauge", "Bytes of the journal after the image.", |it| float(it.tail_bytes)),
    ("tail_transactions", "gauge", "Transactions after the image.", |it| {
        float(it.tail_transactions)
    }),
    ("image_bytes", "gauge", "The length of the image.", |it| float(it.image_bytes)),
    ("cache_misses_total", "counter", "Pages read from the image.", |it| float(it.cache.misses)),
    ("cache_bytes", "gauge", "Bytes in the cache.", |it| float(it.cache.bytes)),
    ("memory_bytes", "gauge", "Memory of the database.", |it| float(it.memory.total())),
    ("readers", "gauge", "Snapshots in use.", |it| float(it.readers)),
    ("subscribers", "gauge", "Subscriptions in use.", |it| float(it.subscribers)),
    ("oldest_reader_seconds", "gauge", "Since the oldest state that is read was replaced.", |it| {
        it.oldest_reader.map_or(Duration::ZERO, |oldest| oldest.age).as_secs_f64()
    }),
    ("flush_seconds_total", "counter", "How long flushes of the journal took.", |it| {
        it.flushes.total().as_secs_f64()
    }),
];

fn text(stats: &[(String, Stats)]) -> String {
    let mut out = String::new();
    for (name, kind, help, value) in FIGURES {
        // Writing to a string doesn't fail.
        let _ = writeln!(out, "# HELP annals_{name} {help}\n# TYPE annals_{name} {kind}");
        for (database, stats) in stats {
            let _ = writeln!(out, "annals_{name}{{database=\"{database}\"}} {}", value(stats));
        }
    }
    out
}

/// Appends the figures of the server itself.
fn push_own(out: &mut String, shared: &Shared) {
    let slow = shared.slow.load(Ordering::Relaxed);
    // Writing to a string doesn't fail.
    let _ = writeln!(
        out,
        "# HELP annals_slow_readers_total Readers that were cut off because they were too slow.\n\
         # TYPE annals_slow_readers_total counter\nannals_slow_readers_total {slow}"
    );
    let backups: Vec<_> = shared
        .databases
        .iter()
        .filter_map(|(name, served)| Some((name, served.backup.as_ref()?)))
        .collect();
    if backups.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "# HELP annals_backup_in_sync 1 if the backup has all transactions, and takes new ones.\n\
         # TYPE annals_backup_in_sync gauge"
    );
    for (name, backup) in backups {
        let in_sync = u8::from(backup.problem().is_none());
        let _ = writeln!(out, "annals_backup_in_sync{{database=\"{name}\"}} {in_sync}");
    }
}
