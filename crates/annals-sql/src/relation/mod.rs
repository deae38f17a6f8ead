//! The virtual tables: rows now and at a moment, the history of rows, changes between moments, the origin of values,
//! the log, the schema.

mod blame;
mod changes;
mod history;
mod listed;
mod lists;
mod log;
mod plan;
mod rows;
mod schema;
mod unsigned;
mod walk;

use std::sync::Arc;

use crate::host::{Fault, Relation};
use crate::session::{Session, Through};
use crate::shape::{Kind, Shape};

/// Makes a virtual table from the words of its declaration.
pub(crate) fn make(
    session: &Arc<Session>,
    shapes: &[Arc<Shape>],
    words: &[&str],
) -> Result<Box<dyn Relation>, Fault> {
    let session = Arc::clone(session);
    let unknown = || Fault::new("such a virtual table is made by attaching a database");
    match words {
        ["log"] => return Ok(Box::new(log::Log::new(session))),
        ["schema"] => return Ok(Box::new(schema::Definitions::new(session))),
        _ => {}
    }
    let [kind, number] = words else { return Err(unknown()) };
    let number: usize = number.trim().parse().map_err(|_| unknown())?;
    let shape = Arc::clone(shapes.get(number).ok_or_else(unknown)?);
    let table = |past| rows::Table::new(Arc::clone(&session), Arc::clone(&shape), past);
    let is_kind = |known: Kind| format!("{known:?}") == *kind;
    Ok(match Kind::ALL.into_iter().find(|known| is_kind(*known)).ok_or_else(unknown)? {
        Kind::Rows => Box::new(table(None)),
        Kind::At => Box::new(table(Some(Through::Present))),
        Kind::AsItWas => Box::new(table(Some(Through::Then))),
        Kind::History => Box::new(history::Histories::new(session, shape)),
        Kind::Changes => Box::new(changes::Changes::new(session, shape)),
        Kind::Blame => Box::new(blame::Origins::new(session, shape)),
    })
}

/// Refuses a change of a table.
fn refusal(name: &str) -> Fault {
    Fault {
        code: rusqlite::ffi::SQLITE_READONLY,
        message: format!(
            "`{name}` can't be changed here: SQL reads. `annals shell FILE`, a program, and the server's transactions write"
        ),
    }
}
