//! The reasons that a change can't be made again, and the transactions of others that are to blame.

use std::collections::HashMap;

use annals::{Changed, Error, FieldNumber, Obstacle, Result, Snapshot, Txid};

use crate::undo::{Key, conflict};

/// A change that can't be made.
#[derive(Debug)]
pub(super) struct Clash {
    pub(super) obstacle: Obstacle,
    /// The row, and perhaps its field, that another transaction changed.
    pub(super) cause: Option<(Key, Option<FieldNumber>)>,
}

/// The transaction of another that changed a row last.
struct Blamed {
    txid: Txid,
    text: String,
}

/// Returns the error that names all clashes, each with the transaction of another that came first.
pub(super) fn explain(clashes: Vec<Clash>, theirs: &Snapshot, common: Txid) -> Result<Error> {
    let mut last: HashMap<(Key, Option<FieldNumber>), Option<Blamed>> =
        clashes.iter().filter_map(|clash| Some((clash.cause?, None))).collect();
    for changed in theirs.changes(Txid(common.0 + 1)..)? {
        let changed = changed?;
        for row in &changed.rows {
            let key = (row.table, row.id);
            let fields = row.fields().map(Some).chain([None]);
            for field in fields {
                if let Some(place) = last.get_mut(&(key, field)) {
                    *place = Some(blamed(&changed));
                }
            }
        }
    }
    let obstacles = clashes.into_iter().map(|Clash { mut obstacle, cause }| {
        if let Some(Some(Blamed { txid, text })) = cause.and_then(|cause| last.get(&cause)) {
            obstacle.txid = Some(*txid);
            obstacle.reason.push_str(text);
        }
        obstacle
    });
    Ok(conflict("these changes can't be made again", obstacles.collect()))
}

fn blamed(changed: &Changed) -> Blamed {
    let Changed { txid, time, comments, .. } = changed;
    let comment = comments.first().map_or_else(String::new, |text| format!(", {text:?}"));
    Blamed { txid: *txid, text: format!("; transaction {txid} came first, of {time}{comment}") }
}
