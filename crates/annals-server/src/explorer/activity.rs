//! What happened when, for the slider.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use annals::{TableNumber, Timestamp};
use annals_replica::Local;
use axum::extract::Query;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::activity::{Activity, Erased, Kind, Known, MOST, Mark, Taken};
use crate::answer::{Answer, Refusal};
use crate::means;
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;

/// How many buckets an answer has, if the request doesn't say.
const USUAL: usize = 400;
/// The most tables whose bytes are said apart.
const MOST_TABLES: usize = 24;

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
    /// What tables have of the journal, the largest first: at most 24, and then all others as `""`.
    tables: Vec<OfTable>,
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

/// What a table has of the journal.
#[derive(Serialize, ToSchema)]
#[schema(as = TakenByTable)]
struct OfTable {
    /// Its name; empty: further tables, and those that were dropped.
    table: String,
    /// How many changes of its rows.
    changes: u64,
    /// How many bytes their events have, and the blobs in them.
    bytes: u64,
}

/// Something that stands out.
#[derive(Serialize, ToSchema)]
struct OfMark {
    txid: u64,
    /// When it was committed.
    time: String,
    /// `comment`, `schema`, `erasure` or `valid_data`.
    kind: Kind,
    text: String,
    /// Whose values were erased.
    erased: Option<OfErasure>,
}

/// The row whose values were erased. Its table and field, which may have been renamed or dropped since, are numbers.
#[derive(Serialize, ToSchema)]
struct OfErasure {
    table: u32,
    id: u64,
    /// The field; null: all of them.
    field: Option<u32>,
    /// What was set again since.
    set: Vec<OfSetting>,
}

/// A field that was set.
#[derive(Serialize, ToSchema)]
struct OfSetting {
    /// The number of the field; null: all of them, since a row was inserted.
    field: Option<u32>,
    /// The first transaction after the erasure that did.
    txid: u64,
}

/// Returns how much each table was changed when, in buckets of transactions, and what stands out: comments, changes of
/// the schema, erasures, marks. Of many comments some are left out.
#[utoipa::path(get, path = "/v1/{name}/activity", params(Asked), responses((status = 200, body = WhatHappened)))]
async fn activity(allowed: Allowed, Query(Asked { buckets }): Query<Asked>) -> Answer {
    let most = buckets.unwrap_or(USUAL);
    if !(1..=MOST).contains(&most) {
        return Err(Refusal::bad(format!("buckets: write a number from 1 to {MOST}")));
    }
    let (local, activity) = (Arc::clone(&allowed.local), Arc::clone(&allowed.activity));
    allowed.value(means::Kind::Quick, move |_: &mut Work| answer(&activity, &local, most)).await
}

fn answer(activity: &Arc<Activity>, local: &Arc<Local>, most: usize) -> Answer<WhatHappened> {
    let now = now(local)?;
    let first = local.source().facts()?.first;
    let known = activity.look(local, first, now.txid())?;
    let name = |table: TableNumber| now.schema().table(table).map(|table| table.name.clone());
    let buckets = known.buckets.at_most(most).map(|bucket| {
        let mut changes = BTreeMap::new();
        for (table, count) in &bucket.changes {
            *changes.entry(table.and_then(name).unwrap_or_default()).or_default() += count;
        }
        let time = Timestamp(bucket.time).to_string();
        OfBucket { first: bucket.first, last: bucket.last, time, changes }
    });
    let marks = known.marks.list().map(|Mark { txid, time, kind, text, erased }| OfMark {
        txid: txid.0,
        time: time.to_string(),
        kind: *kind,
        text: text.clone(),
        erased: erased.as_ref().map(of_erasure),
    });
    Ok(WhatHappened {
        first: first.0,
        last: now.txid().0,
        known: known.upto.0,
        buckets: buckets.collect(),
        marks: marks.collect(),
        tables: largest(&known, name),
        failure: known.failure.clone(),
    })
}

fn of_erasure(Erased { table, row, field, set }: &Erased) -> OfErasure {
    let number = |field: &Option<annals::FieldNumber>| field.map(|field| field.0);
    let set = set.iter().map(|(field, txid)| OfSetting { field: number(field), txid: txid.0 });
    OfErasure { table: table.0, id: row.0, field: number(field), set: set.collect() }
}

/// Returns what the largest tables have, and at the end what all others have.
fn largest(known: &Known, name: impl Fn(TableNumber) -> Option<String>) -> Vec<OfTable> {
    let mut list: Vec<_> = known.taken.iter().map(|(table, taken)| (*table, *taken)).collect();
    list.sort_by_key(|(table, taken)| (Reverse(taken.bytes), *table));
    let (mut tables, mut others) = (Vec::new(), Taken::default());
    for (number, taken) in list {
        match name(number).filter(|_| tables.len() < MOST_TABLES) {
            Some(table) => {
                let Taken { changes, bytes } = taken;
                tables.push(OfTable { table, changes, bytes });
            }
            None => others.add(taken),
        }
    }
    if others != Taken::default() {
        let Taken { changes, bytes } = others;
        tables.push(OfTable { table: String::new(), changes, bytes });
    }
    tables
}
