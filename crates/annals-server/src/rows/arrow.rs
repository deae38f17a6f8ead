//! The rows of a table as a stream of Arrow.

use std::sync::Arc;

use annals::Snapshot;
use annals_arrow::{Options, TableBatches, ipc};

use super::Asked;
use crate::answer::{Answer, Refusal};
use crate::arrow::send;
use crate::means::Kind;
use crate::rights::Allowed;
use crate::work::Work;

/// The most rows whose ids are kept for an answer; a whole table needs no ids.
const MOST: usize = 1_000_000;

/// Sends the rows of a table.
pub(super) async fn table(allowed: &Allowed, of: String, asked: Asked) -> Answer {
    let local = Arc::clone(&allowed.local);
    let begin = move |work: &mut Work| {
        let now = super::state_as(&local, asked.at.as_deref(), asked.as_it_was)?;
        Ok((now.txid(), ipc::Pieces::new(batches(work, &now, &of, &asked)?)?))
    };
    send(allowed, allowed.run(Kind::Long, begin).await?).await
}

fn batches(work: &mut Work, now: &Snapshot, of: &str, asked: &Asked) -> Answer<TableBatches> {
    let table = super::table(now.schema(), of)?;
    let shown = super::shown::Shown::new(table, asked.fields.as_deref())?;
    let limit = asked.limit.unwrap_or(MOST);
    if limit == 0 || limit > MOST {
        return Err(Refusal::bad(format!("limit: write a number from 1 to {MOST}")));
    }
    let some =
        [&asked.index, &asked.from, &asked.key, &asked.after].into_iter().any(Option::is_some);
    if !some && asked.rank.is_none() && asked.limit.is_none() {
        let all = 0..u64::MAX;
        let batches = TableBatches::range(now, table.number, all, Options::for_transport())?;
        return Ok(batches.of_fields(&shown.table)?);
    }
    let (ids, is_more) = super::ids(work, now, table, asked, limit)?;
    if is_more && asked.limit.is_none() {
        return Err(Refusal::bad(format!(
            "there are more than {MOST} such rows: say limit=N, and continue with after=ID, the last one's id"
        )));
    }
    let batches = TableBatches::rows(now, table.number, ids, Options::for_transport())?;
    Ok(batches.of_fields(&shown.table)?)
}
