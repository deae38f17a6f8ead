//! The transactions that changed a table: a scan backward, which ends after a while and says where to continue.

use std::sync::Arc;
use std::time::Duration;

use annals::event::Event;
use annals::storage::{Clock as _, SystemClock};
use annals::{Committed, Schema, Sink, Snapshot, TableNumber, Txid};
use annals_replica::Local;
use axum::extract::{Path, Query};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::changes::push_changed_fields;
use crate::means::Kind;
use crate::openapi;
use crate::rights::Allowed;
use crate::rows::{LARGEST, table_or_when_dropped};
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;

/// How many transactions an answer has, if the request doesn't say, and the most of them.
const USUAL: usize = 50;
const MOST: usize = 1000;
/// The most changes of a transaction.
const MOST_ROWS: usize = 2000;
/// How long an answer takes at most, about: the rest is for the next one.
const LONGEST: Duration = Duration::from_millis(500);
/// So many transactions are read at first, then twice as many, up to the most.
const PART: u64 = 16;
const LONGEST_PART: u64 = 4096;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(log_of_table))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The last transaction, with which the answer begins: `next` of the answer before; without it the newest one.
    upto: Option<u64>,
    /// The transaction after which the first one is.
    after: Option<u64>,
    /// The most transactions of the answer, 1 to 1,000; 50 if it isn't said.
    limit: Option<usize>,
    /// The most changes of each, up to 2,000; `left_out` counts the others.
    rows: Option<usize>,
}

/// Returns the transactions that changed rows of a table, the newest first, with the changed fields of these rows: as many as
/// half a second is enough for. `next` is the `upto` of the next answer, null at the end.
#[utoipa::path(get, path = "/v1/{name}/t/{table}/log", params(Asked), responses((status = 200, body = openapi::TableLog)))]
async fn log_of_table(
    allowed: Allowed,
    Path((_, of)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    allowed.text(Kind::Long, move |work| answer(work, &local, &of, &asked)).await
}

fn answer(work: &mut Work, local: &Local, of: &str, asked: &Asked) -> Answer<String> {
    let limit = asked.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Refusal::bad(format!("limit: write a number from 1 to {MOST}")));
    }
    let now = now(local)?;
    let only = table_or_when_dropped(&now, of)?;
    let first =
        local.source().facts()?.first.0.max(asked.after.map_or(1, |it| it.saturating_add(1)));
    let last = asked.upto.unwrap_or(u64::MAX).min(now.txid().0);
    let rows = asked.rows.unwrap_or(MOST_ROWS).min(MOST_ROWS);
    let mut search = Search { now, only, rows, limit, text: String::new(), count: 0 };
    let next = search.run(work, first, last)?;
    let next = next.map_or_else(|| "null".to_owned(), |next| next.to_string());
    Ok(format!("{{\"transactions\":[{}],\"next\":{next}}}\n", search.text))
}

/// A search for transactions that is going on.
struct Search {
    now: Snapshot,
    only: TableNumber,
    /// The most changes of a transaction.
    rows: usize,
    /// The most transactions.
    limit: usize,
    /// Those that were found, as JSON.
    text: String,
    count: usize,
}

impl Search {
    /// Searches from the last transaction back to the first one; returns where to continue.
    fn run(&mut self, work: &mut Work, first: u64, last: u64) -> Answer<Option<u64>> {
        let deadline = SystemClock.elapsed() + LONGEST;
        let (mut last, mut size) = (last, PART);
        while last >= first {
            let begin = last.saturating_sub(size - 1).max(first);
            for txid in Touching::find(&self.now, self.only, begin, last)?.into_iter().rev() {
                self.push(txid)?;
                work.cover(self.text.capacity())?;
                let is_full = self.count >= self.limit || self.text.len() > LARGEST;
                if is_full || SystemClock.elapsed() >= deadline {
                    return Ok((txid > first).then(|| txid - 1));
                }
            }
            last = begin - 1;
            size = (size * 2).min(LONGEST_PART);
            if SystemClock.elapsed() >= deadline {
                return Ok((last >= first).then_some(last));
            }
        }
        Ok(None)
    }

    /// Adds a transaction, unless its changes of the table left nothing changed.
    fn push(&mut self, txid: u64) -> Answer<()> {
        let found = self.now.changed_fields(Txid(txid), Some(self.only), self.rows)?;
        if let Some(changed) = found.filter(|it| !it.rows.is_empty() || it.left_out > 0) {
            self.text.push_str(if self.count > 0 { ",\n" } else { "\n" });
            push_changed_fields(&mut self.text, self.now.schema(), &changed);
            self.count += 1;
        }
        Ok(())
    }
}

/// Notes the transactions that touch a table.
struct Touching {
    only: TableNumber,
    is_touched: bool,
    found: Vec<u64>,
}

impl Touching {
    /// Returns those of a range that do, in order.
    fn find(now: &Snapshot, only: TableNumber, first: u64, last: u64) -> Answer<Vec<u64>> {
        let mut touching = Self { only, is_touched: false, found: Vec::new() };
        now.read_events(Txid(first - 1), Txid(last), &mut touching)?;
        Ok(touching.found)
    }
}

impl Sink for Touching {
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> annals::Result<()> {
        let table = match *event {
            Event::Insert { table, .. }
            | Event::Update { table, .. }
            | Event::Delete { table, .. }
            | Event::InsertVector { table, .. }
            | Event::UpdateVector { table, .. }
            | Event::DeleteVector { table, .. } => table,
            Event::Schema(_)
            | Event::Blob { .. }
            | Event::Comment(_)
            | Event::Timestamp(_)
            | Event::ValidData => return Ok(()),
        };
        self.is_touched |= table == self.only;
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        if std::mem::take(&mut self.is_touched) {
            self.found.push(committed.txid.0);
        }
        Ok(())
    }
}
