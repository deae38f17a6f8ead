//! The tables of a database: their fields, indexes, and numbers of rows.

use std::sync::Arc;

use annals::{Snapshot, Table};
use axum::extract::Query;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::schema::{Shape, shape};
use crate::Role;
use crate::answer::Answer;
use crate::means::Kind;
use crate::rights::Allowed;
use crate::rows::{state_as, table};
use crate::shared::Shared;
use crate::work::Work;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(catalog))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct At {
    /// The moment of the numbers of rows: `txid:17`, `time:2024-02-29T12:00:00Z` or `comment:TEXT`; without it now.
    at: Option<String>,
    /// True: the tables, fields and indexes of that moment, rather than those of now.
    as_it_was: Option<bool>,
    /// Only this table.
    table: Option<String>,
}

/// The tables of a database.
#[derive(Serialize, ToSchema)]
struct Catalog {
    /// The last transaction of the state that the numbers are of.
    txid: u64,
    /// True if who asks may write.
    can_write: bool,
    tables: Vec<OfTable>,
}

/// A table.
#[derive(Serialize, ToSchema)]
struct OfTable {
    #[serde(flatten)]
    shape: Shape,
    /// How many rows it has.
    rows: u64,
    /// The id of its first row; `next_id` if it has none.
    first_id: u64,
    /// Larger than each id that a row has or had.
    next_id: u64,
}

/// Returns the tables of a database with their fields, indexes, and numbers of rows.
#[utoipa::path(get, path = "/v1/{name}/schema", params(At), responses((status = 200, body = Catalog)))]
async fn catalog(allowed: Allowed, Query(At { at, as_it_was, table: only }): Query<At>) -> Answer {
    let local = Arc::clone(&allowed.local);
    let can_write = allowed.right().includes(Role::Write);
    let read = move |_: &mut Work| {
        let now = state_as(&local, at.as_deref(), as_it_was)?;
        of_state(&now, can_write, only.as_deref())
    };
    allowed.value(Kind::Quick, read).await
}

fn of_state(now: &Snapshot, can_write: bool, only: Option<&str>) -> Answer<Catalog> {
    let schema = now.schema();
    let only = only.map(|name| table(schema, name)).transpose()?.map(|table| table.number);
    let of_table = |table: &Table| {
        let rows = now.table(table.number)?;
        Ok(OfTable {
            shape: shape(schema, table),
            rows: rows.len(),
            first_id: rows.rows().next().transpose()?.map_or(rows.next_id(), |row| row.id().0),
            next_id: rows.next_id(),
        })
    };
    let tables = schema.tables().iter().filter(|it| only.is_none_or(|only| it.number == only));
    let tables = tables.map(|table| of_table(table)).collect::<Answer<_>>()?;
    Ok(Catalog { txid: now.txid().0, can_write, tables })
}
