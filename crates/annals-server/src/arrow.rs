//! Tables and changes as streams of Arrow, which a client asks for by its `Accept`.

use annals::Txid;
use annals_arrow::ipc;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;

use crate::answer::Answer;
use crate::body::media_types;
use crate::means::Held;
use crate::parts::{self, Parts};
use crate::rights::Allowed;
use crate::work::Work;

/// The memory of a batch and its piece, about: texts of 4 MiB at most, and 65,536 rows of numbers.
const BATCH: u64 = 16 << 20;

/// True if a client accepts a stream of Arrow.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    media_types(headers, header::ACCEPT).any(|kind| kind == ipc::MEDIA_TYPE)
}

/// Sends a stream as the reader takes it, batch by batch.
pub(crate) async fn send(
    allowed: &Allowed,
    ((txid, pieces), held): ((Txid, ipc::Pieces), Held),
) -> Answer {
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
