//! The rows that refer to a row.

use std::sync::Arc;

use annals::{Field, RowId, Snapshot, Table, Type, ValueRef};
use axum::extract::{Path, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::Answer;
use crate::means::Kind;
use crate::rights::Allowed;
use crate::rows::{id, state, table};
use crate::shared::Shared;
use crate::work::Work;

/// The most rows that are named for each field.
const MOST: usize = 20;
/// The most rows that are read for a field without an index.
const SCANNED: usize = 200_000;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(referrers))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct At {
    /// The moment: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`; without it now.
    at: Option<String>,
}

/// The rows that refer to a row by one field.
#[derive(Serialize, ToSchema)]
struct Referrers {
    table: String,
    field: String,
    /// The first of them, at most 20.
    ids: Vec<u64>,
    /// True if there may be more.
    has_more: bool,
}

/// Returns the rows that refer to a row, for each field that refers to its table.
#[utoipa::path(get, path = "/v1/{name}/t/{table}/{id}/referrers", params(At), responses((status = 200, body = Vec<Referrers>)))]
async fn referrers(
    allowed: Allowed,
    Path((_, of, number)): Path<(String, String, String)>,
    Query(At { at }): Query<At>,
) -> Answer {
    let local = Arc::clone(&allowed.local);
    let find = move |work: &mut Work| {
        let now = state(&local, at.as_deref())?;
        let (to, id) = (table(now.schema(), &of)?.number, id(&number)?);
        let fields = now.schema().tables().iter().flat_map(|table| {
            let refers = |field: &&Field| matches!(field.ty, Type::Reference(of, _) if of == to);
            table.fields.iter().filter(refers).map(move |field| (table, field))
        });
        let of_field = |(table, field): (&Arc<Table>, &Field)| {
            work.check()?;
            of_field(&now, table, field, id)
        };
        fields.map(of_field).collect::<Answer<Vec<_>>>()
    };
    allowed.value(Kind::Long, find).await
}

fn of_field(now: &Snapshot, table: &Table, field: &Field, to: RowId) -> Answer<Referrers> {
    let value = ValueRef::Reference(to);
    let indexes = now.schema().indexes().iter();
    let mut leading = indexes.filter(|index| index.fields.first() == Some(&field.number));
    let mut ids = Vec::new();
    let has_more = match leading.find(|index| index.table == table.number) {
        Some(index) => {
            let mut rows = now.index(index.number)?.equal(&[value]);
            for row in rows.by_ref().take(MOST) {
                ids.push(row?.id().0);
            }
            rows.next().is_some()
        }
        None => {
            let rows = now.table(table.number)?;
            for row in rows.rows().take(SCANNED) {
                let row = row?;
                if row.value(field.number) == value {
                    ids.push(row.id().0);
                    if ids.len() > MOST {
                        break;
                    }
                }
            }
            ids.len() > MOST || rows.len() > SCANNED as u64
        }
    };
    ids.truncate(MOST);
    let (table, field) = (table.name.clone(), annals_json::key(table, field));
    Ok(Referrers { table, field, ids, has_more })
}
