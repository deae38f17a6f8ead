//! Blame: since when each field of a row has its value, from the history of the row.

use std::collections::BTreeMap;
use std::sync::Arc;

use annals_schema::{FieldNumber, RowId, TableNumber, Value};

use crate::db::past::time::versions::History;
use crate::db::present::snapshot::Published;
use crate::db::write::changed::{Blame, Version};
use crate::{Error, ErrorKind, Result};

/// Returns the origin of each field of a row, in the order of the present schema.
///
/// # Errors
/// `NotFound`: there is no such table or row; `Corrupt`, `Io`.
pub(in crate::db) fn blame_of(
    published: &Arc<Published>,
    table: TableNumber,
    id: RowId,
) -> Result<Vec<Blame>> {
    let mut origins = BTreeMap::new();
    let mut last = None;
    for version in History::open(published, table, id)? {
        let version = version?;
        if version.change.after.is_none() {
            origins.clear();
        } else {
            for field in version.change.fields() {
                origins.insert(field, origin(&version, field));
            }
        }
        last = Some(version);
    }
    let Some(Version { change, txid, time, .. }) = last else {
        return Err(no_row(published, table, id, "the kept history has no version of it"));
    };
    let Some(values) = change.after else {
        let why = format!("transaction {txid} deleted it at {time}");
        return Err(no_row(published, table, id, &why));
    };
    let fields = published.view.schema().table(table).map(|table| table.fields.as_slice());
    let present = fields.unwrap_or_default().iter().filter_map(|field| {
        let value = values.get(field.number.0 as usize)?.clone();
        origins.remove(&field.number).map(|origin| Blame { value, ..origin })
    });
    Ok(present.collect())
}

fn origin(version: &Version, field: FieldNumber) -> Blame {
    let Version { txid, time, ref comments, .. } = *version;
    Blame {
        field,
        value: Value::Null,
        txid,
        time,
        comments: comments.clone(),
        kind: version.kind(),
    }
}

fn no_row(published: &Published, table: TableNumber, id: RowId, why: &str) -> Error {
    let table = published.view.schema().table(table).map_or("?", |table| &table.name);
    Error::new(ErrorKind::NotFound, format!("table `{table}` has no row {}: {why}", id.0))
}
