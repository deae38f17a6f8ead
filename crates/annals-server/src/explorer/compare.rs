//! What differs between two moments: how many rows of each table, and those of one table. It ends after a while and says
//! where to continue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{RowId, Schema, TableNumber};
use annals_replica::Local;
use axum::extract::Query;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::forgotten::forgotten;
use crate::history::txid;
use crate::means::Kind;
use crate::openapi;
use crate::rights::Allowed;
use crate::rows::{LARGEST, id, table};
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;

/// The most rows of an answer.
const MOST: usize = 10_000;
/// How long an answer takes at most, about: the rest is for the next one.
const LONGEST: Duration = Duration::from_millis(500);

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(compare))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// A moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`.
    from: String,
    /// Another one, which may be earlier.
    to: String,
    /// The table whose rows are in the answer.
    table: Option<String>,
    /// The most of these rows, 0 to 10,000: the first ones by their ids. They end after about 8 MiB, too.
    limit: Option<usize>,
    /// Where to begin: `next` of the answer before.
    start: Option<String>,
}

/// Returns how many rows of each table differ between two moments, and those of one table: as many as half a second is enough
/// for. `next` is the `start` of the next answer, null at the end.
#[utoipa::path(get, path = "/v1/{name}/compare", params(Asked), responses((status = 200, body = openapi::Compared)))]
async fn compare(allowed: Allowed, Query(asked): Query<Asked>) -> Answer {
    let local = Arc::clone(&allowed.local);
    allowed.text(Kind::Rows, move |work| answer(work, &local, &asked)).await
}

fn answer(work: &mut Work, local: &Local, asked: &Asked) -> Answer<String> {
    let limit = asked.limit.unwrap_or(MOST);
    if limit > MOST {
        return Err(Refusal::bad(format!("limit: write a number up to {MOST}")));
    }
    let now = now(local)?;
    let schema = now.schema();
    let shown = asked.table.as_ref().map(|name| table(schema, name)).transpose()?;
    let deadline = SystemClock.elapsed() + LONGEST;
    let moments = (txid(local, "from", &asked.from)?, txid(local, "to", &asked.to)?);
    let differing = now.differing(moments.0, moments.1, work.room());
    let mut differing = differing.map_err(|error| forgotten(local, error))?;
    if let Some(start) = &asked.start {
        let (table, id) = place(schema, start)?;
        differing = differing.starting_at(table, id);
    }
    let (mut counts, mut rows, mut count) = (BTreeMap::new(), String::new(), 0);
    // What was read of the journal is used, however late it is.
    while let Some(row) = differing.next().transpose()? {
        work.cover(work.room() + rows.capacity())?;
        if let Some(table) = schema.table(row.table) {
            *counts.entry(table.name.as_str()).or_insert(0_u64) += 1;
            let has_room = count < limit && rows.len() < LARGEST;
            if has_room && shown.is_some_and(|shown| shown.number == row.table) {
                rows.push_str(if count > 0 { ",\n" } else { "\n" });
                annals_json::push_change(&mut rows, table, &row);
                count += 1;
            }
        }
        if differing.at_hand() == 0 && SystemClock.elapsed() >= deadline {
            break;
        }
    }
    let mut text = "{\"tables\":{".to_owned();
    for (place, (name, count)) in counts.into_iter().enumerate() {
        text.push_str(if place > 0 { "," } else { "" });
        annals_json::push_string(&mut text, name);
        text.push_str(&format!(":{count}"));
    }
    let next = differing.place().map_or_else(
        || "null".to_owned(),
        |(table, id)| {
            let name = schema.table(table).map_or("", |table| table.name.as_str());
            format!("\"{name}/{}\"", id.0)
        },
    );
    Ok(format!("{text}}},\"rows\":[{rows}],\"next\":{next}}}\n"))
}

/// Reads a place, as `person/17`.
fn place(schema: &Schema, text: &str) -> Answer<(TableNumber, RowId)> {
    let (name, number) = text.rsplit_once('/').ok_or_else(|| {
        Refusal::bad(format!("start: {text:?} isn't TABLE/ID, the `next` of an answer"))
    })?;
    Ok((table(schema, name)?.number, id(number)?))
}
