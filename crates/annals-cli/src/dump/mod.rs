//! The present state of a database as text: a script, SQL, or JSON; and its history as SQL.

mod json;
pub(crate) mod sql;
mod text;

pub(crate) use json::json;
pub(crate) use sql::{Dialect, HistorySql, sql};
pub(crate) use text::text;
