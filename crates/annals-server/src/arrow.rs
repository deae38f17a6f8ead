//! Tables and changes as streams of Arrow, which a client asks for by its `Accept`.

use std::sync::Arc;

use annals::{Snapshot, Txid};
use annals_arrow::{Options, PastBatches, TableBatches, ipc};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;

use crate::answer::{Answer, Refusal};
use crate::body::media_types;
use crate::changes::{After, KEPT};
use crate::forgotten::forgotten;
use crate::means::{Held, Kind};
use crate::parts::{self, Parts};
use crate::rights::Allowed;
use crate::rows::{self, Asked, table_or_when_dropped};
use crate::state::now;
use crate::work::Work;

/// The most rows whose ids are kept for an answer; a whole table needs no ids.
const MOST: usize = 1_000_000;

/// The memory of a batch and its piece, about: texts of 4 MiB at most, and 65,536 rows of numbers.
const BATCH: u64 = 16 << 20;

/// True if a client accepts a stream of Arrow.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    media_types(headers, header::ACCEPT).any(|kind| kind == ipc::MEDIA_TYPE)
}

/// Sends the rows of a table.
pub(crate) async fn table(allowed: &Allowed, of: String, asked: Asked) -> Answer {
    let local = Arc::clone(&allowed.local);
    let begin = move |work: &mut Work| {
        let now = rows::state_as(&local, asked.at.as_deref(), asked.as_it_was)?;
        Ok((now.txid(), ipc::Pieces::new(batches(work, &now, &of, &asked)?)?))
    };
    send(allowed, allowed.run(Kind::Long, begin).await?).await
}

fn batches(work: &mut Work, now: &Snapshot, of: &str, asked: &Asked) -> Answer<TableBatches> {
    let table = rows::table(now.schema(), of)?;
    let limit = asked.limit.unwrap_or(MOST);
    if limit == 0 || limit > MOST {
        return Err(Refusal::bad(format!("limit: write a number from 1 to {MOST}")));
    }
    let some =
        [&asked.index, &asked.from, &asked.key, &asked.after].into_iter().any(Option::is_some);
    if !some && asked.rank.is_none() && asked.limit.is_none() {
        let all = 0..u64::MAX;
        return Ok(TableBatches::range(now, table.number, all, Options::for_transport())?);
    }
    let (ids, is_more) = rows::ids(work, now, table, asked, limit)?;
    if is_more && asked.limit.is_none() {
        return Err(Refusal::bad(format!(
            "there are more than {MOST} such rows: say limit=N, and continue with after=ID, the last one's id"
        )));
    }
    Ok(TableBatches::rows(now, table.number, ids, Options::for_transport())?)
}

/// Sends the changes of a table after a transaction.
pub(crate) async fn changes(allowed: &Allowed, of: Option<String>, after: Option<After>) -> Answer {
    let local = Arc::clone(&allowed.local);
    let (Some(of), Some(after)) = (of, after) else {
        let message = "table, after: record batches are the changes of one table after a transaction; after=0 means all";
        return Err(Refusal::bad(message));
    };
    let begin = move |_: &mut Work| {
        let now = now(&local)?;
        let table = table_or_when_dropped(&now, &of)?;
        let first = after.check(&local)? + 1;
        // Nothing may be new.
        let range = (first, now.txid().max(first));
        let changes = now.changes(range.0..=range.1).map_err(|error| forgotten(&local, error))?;
        let changes = changes.keep_at_most(KEPT);
        let batches = PastBatches::changes(&now, table, changes, Options::for_transport())?;
        Ok((now.txid(), ipc::Pieces::new(batches)?))
    };
    send(allowed, allowed.run(Kind::Long, begin).await?).await
}

/// Sends a stream as the reader takes it, batch by batch.
async fn send(allowed: &Allowed, ((txid, pieces), held): ((Txid, ipc::Pieces), Held)) -> Answer {
    let body = parts::send(allowed, Vec::new(), pieces, held).await?;
    let txid = txid.to_string();
    let headers = [(header::CONTENT_TYPE.as_str(), ipc::MEDIA_TYPE), ("annals-txid", &txid)];
    Ok((headers, body).into_response())
}

impl Parts for ipc::Pieces {
    const MOST: u64 = BATCH;

    fn next(&mut self, _: &mut Work) -> Answer<Option<Vec<u8>>> {
        Ok(Iterator::next(self).transpose()?)
    }
}
