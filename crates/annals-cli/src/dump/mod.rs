//! The present state of a database as text: a script, SQL, or JSON.

mod json;
pub(crate) mod sql;
mod text;

pub(crate) use json::json;
pub(crate) use sql::{Dialect, sql};
pub(crate) use text::text;
