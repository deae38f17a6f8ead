//! The present state of a database as text: a script, SQL, or JSON; and its history as SQL.

mod history_sql;
mod json;
mod names;
mod sql;
mod text;

pub(crate) use history_sql::HistorySql;
pub(crate) use json::json;
pub(crate) use sql::sql;
pub(crate) use text::text;
