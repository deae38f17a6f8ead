//! What the explorer needs beside rows and history, and its page.
//!
//! The page asks for buckets, pages of rows and differences, and never for all of something: so what is sent is bounded,
//! however long the history is.

mod activity;
mod catalog;
mod compare;
mod page;
mod referrers;
mod restore;
mod schema;
mod search;
mod storage;
mod table_log;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::shared::Shared;

/// Returns the routes that are described.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    let asked = catalog::routes().merge(activity::routes()).merge(search::routes());
    let past = compare::routes().merge(schema::routes()).merge(table_log::routes());
    let rest = referrers::routes().merge(restore::routes()).merge(storage::routes());
    asked.merge(past).merge(rest)
}

/// The parameters of the routes of the page itself, which aren't described: those of each path.
pub(crate) const PARAMETERS: [(&str, &[&str]); 3] = page::PARAMETERS;

/// Returns the routes of the page itself.
pub(crate) fn pages() -> axum::Router<Arc<Shared>> {
    page::routes()
}
