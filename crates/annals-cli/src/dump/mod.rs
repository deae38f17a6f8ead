//! The present state of a database as text: a script, SQL, or JSON.

mod json;
mod names;
mod sql;
mod text;

pub(crate) use json::json;
pub(crate) use sql::sql;
pub(crate) use text::text;
