//! What happened when: changes in buckets of transactions, and marks.
//!
//! The journal is read once, by a thread of its own, from the first question on; later ones read what is new. An answer
//! has what is known by then, and says how far that is.

mod buckets;
mod marks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use annals::event::Event;
use annals::{Committed, Erasure, Error, ErrorKind, Schema, Sink, TableNumber, Timestamp, Txid};
use annals_replica::Local;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::buckets::{Bucket, Buckets, MOST};
use self::marks::{Kind, Mark, Marks};
use crate::answer::{Answer, Refusal};
use crate::shared::Shared;
use crate::{Role, blocking};

/// How many buckets an answer has, if the request doesn't say.
const USUAL: usize = 400;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(activity))
}

/// What is known of a database's history.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The last transaction that was read.
    upto: Txid,
    /// True while a thread reads.
    is_reading: bool,
    buckets: Buckets,
    marks: Marks,
    failure: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The most buckets, 1 to 2,048; 400 if it isn't said.
    buckets: Option<usize>,
}

/// What happened when.
#[derive(Serialize, ToSchema)]
struct Answered {
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
#[utoipa::path(get, path = "/v1/{name}/activity", params(Asked), responses((status = 200, body = Answered)))]
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
    let answer = blocking::run(move || activity.answer(&local, most));
    Ok(Json(answer.await?).into_response())
}

impl Activity {
    fn answer(self: &Arc<Self>, local: &Arc<Local>, most: usize) -> Answer<Answered> {
        let now = local.refresh()?;
        let first = local.source().facts()?.first;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.upto < now.txid() && !known.is_reading {
            known.is_reading = true;
            known.failure = None;
            self.read_on(local, first)?;
        }
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
        Ok(Answered {
            first: first.0,
            last: now.txid().0,
            known: known.upto.0,
            buckets: buckets.collect(),
            marks: marks.collect(),
            failure: known.failure.clone(),
        })
    }

    /// Reads what is new, in a thread that ends when nobody serves the database any more.
    fn read_on(self: &Arc<Self>, local: &Arc<Local>, first: Txid) -> Answer<()> {
        let (activity, local) = (Arc::downgrade(self), Arc::downgrade(local));
        let started = std::thread::Builder::new()
            .name("annals-activity".to_owned())
            .spawn(move || read(&activity, &local, first));
        started.map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(())
    }
}

fn read(activity: &Weak<Activity>, local: &Weak<Local>, first: Txid) {
    let (Some(reading), Some(local)) = (activity.upgrade(), local.upgrade()) else { return };
    let (now, upto) = {
        let known = reading.known.lock().unwrap_or_else(PoisonError::into_inner);
        (local.read(), known.upto.max(Txid(first.0.saturating_sub(1))))
    };
    drop((reading, local));
    let mut collecting = Collecting::new(activity);
    let read =
        now.events(upto, now.txid()).and_then(|events| events.read(&mut collecting));
    if let Some(activity) = activity.upgrade() {
        let mut known = activity.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_reading = false;
        known.failure = read.err().map(|error| error.to_string());
    }
}

/// A transaction that is being read.
struct Collecting<'a> {
    activity: &'a Weak<Activity>,
    transaction: Bucket,
    marks: Vec<(Kind, String)>,
}

impl<'a> Collecting<'a> {
    const fn new(activity: &'a Weak<Activity>) -> Self {
        let transaction =
            Bucket { first: 0, last: 0, time: 0, changes: BTreeMap::new() };
        Self { activity, transaction, marks: Vec::new() }
    }
}

impl Sink for Collecting<'_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> annals::Result<()> {
        let (table, count) = match *event {
            Event::Insert { table, .. }
            | Event::Update { table, .. }
            | Event::Delete { table, .. } => (table, 1),
            Event::InsertVector { table, count, .. } | Event::DeleteVector { table, count, .. } => {
                (table, count)
            }
            Event::UpdateVector { table, field, ref values, .. } => {
                let ty = schema.table(table).and_then(|table| table.field(field)).map(|it| it.ty);
                (table, ty.map_or(0, |ty| values.iter(ty).count() as u64))
            }
            Event::Schema(command) => {
                self.marks.push((Kind::Schema, schema.command_text(command)));
                return Ok(());
            }
            Event::Comment(text) => {
                self.marks.push((Kind::Comment, text.to_owned()));
                return Ok(());
            }
            Event::ValidData => {
                self.marks.push((Kind::ValidData, String::new()));
                return Ok(());
            }
            Event::Blob { .. } | Event::Timestamp(_) => return Ok(()),
        };
        self.transaction.count(Some(table), count);
        Ok(())
    }

    fn erasure(&mut self, schema: &Schema, erasure: &Erasure) -> annals::Result<()> {
        let table = schema.table(erasure.table).map_or("a dropped table", |it| &it.name);
        self.marks.push((Kind::Erasure, format!("row {} of {table}", erasure.row.0)));
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        let Some(activity) = self.activity.upgrade() else {
            return Err(Error::new(ErrorKind::Closed, "nobody asks any more"));
        };
        let Committed { txid, time, .. } = *committed;
        let transaction = Bucket {
            first: txid.0,
            last: txid.0,
            time: time.0,
            changes: std::mem::take(&mut self.transaction.changes),
        };
        let mut known = activity.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.upto = txid;
        known.buckets.add(transaction);
        for (kind, text) in self.marks.drain(..) {
            known.marks.add(Mark { txid, kind, text });
        }
        Ok(())
    }
}
