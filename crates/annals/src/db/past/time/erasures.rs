//! The marks of the erasures after a moment.

use annals_schema::Txid;

use crate::Result;
use crate::db::past::history::ask::ask;
use crate::db::present::snapshot::Snapshot;
use crate::journal::Erasure;

/// Returns the marks after a transaction up to a snapshot.
///
/// Cost: if anything was ever erased, reading the journal after the transaction.
///
/// # Errors
/// `Corrupt`, `Unsupported`, `Io`.
pub fn erasures_since(snapshot: &Snapshot, txid: Txid) -> Result<Vec<Erasure>> {
    let (published, mut marks) = (snapshot.here()?, Vec::new());
    if published.file.head()?.header.last_erasure().is_none() {
        return Ok(marks);
    }
    let (end, places) = ask(published, |places| places.end_of(txid.0))?;
    let mut next = Some(end.map_or_else(|| places.files.first(), |end| end.since));
    while let Some(since) = next {
        next = places.files.read(since, u64::MAX, &mut |seen| {
            marks.extend(Erasure::of(seen.frame));
            Ok(())
        })?;
    }
    marks.retain(|mark| mark.txid > txid);
    Ok(marks)
}
