//! Making the tables of a database visible to a connection, as temporary virtual tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::Schema;
use rusqlite::Connection;

use crate::collations;
use crate::host::{Fault, Made, register};
use crate::relation::make;
use crate::session::Session;
use crate::shape::{KINDS, Shape, quoted, shapes};

/// The beginning of the names of modules.
pub(crate) const MODULE: &str = "annals_";

/// The name of the log.
const LOG: &str = "annals_log";

/// How many modules there were: each database of a connection has its own.
static MODULES: AtomicU64 = AtomicU64::new(0);

/// A database to attach.
pub(crate) struct Attaching<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) schema: &'a Arc<Schema>,
    /// The beginning of the names of all tables.
    pub(crate) prefix: &'a str,
    /// What it is called in the declarations. Tables of the same label are replaced.
    pub(crate) label: &'a str,
}

/// A virtual table to create.
struct Wanted {
    name: String,
    words: String,
}

impl Attaching<'_> {
    /// Creates the virtual tables; returns how many tables of the database there are.
    pub(crate) fn attach(&self, connection: &Connection) -> rusqlite::Result<usize> {
        collations::register(connection, self.schema)?;
        let all = shapes(self.schema, self.prefix);
        let wanted = self.wanted(&all);
        let label = quoted(self.label);
        let old = occupied(connection, &wanted, &label)?;
        let own: Vec<Arc<Shape>> = all.into_iter().map(|(shape, _)| shape).collect();
        let count = own.len();
        let module = format!("{MODULE}{}", MODULES.fetch_add(1, Ordering::Relaxed));
        let log = quoted(&format!("{}{LOG}", self.prefix));
        self.session.ends_by(format!("DELETE FROM temp.{log} WHERE 0"));
        let session = Arc::clone(self.session);
        let maker = move |words: &[&str]| {
            // The last one is the label.
            let words = words.split_last().map_or(words, |(_, words)| words);
            let relation = make(&session, &own, words)?;
            Ok(Made { relation, transactions: Arc::clone(&session) as _ })
        };
        register(connection, &module, Box::new(maker))?;
        for name in old {
            connection.execute_batch(&format!("DROP TABLE temp.{}", quoted(&name)))?;
        }
        for Wanted { name, words } in wanted {
            let name = quoted(&name);
            connection.execute_batch(&format!(
                "CREATE VIRTUAL TABLE temp.{name} USING {module}({words},{label})"
            ))?;
        }
        Ok(count)
    }

    fn wanted(&self, all: &[(Arc<Shape>, Vec<String>)]) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for (number, (_, names)) in all.iter().enumerate() {
            for ((_, word), name) in KINDS.iter().zip(names) {
                wanted.push(Wanted { name: name.clone(), words: format!("{word},{number}") });
            }
        }
        for (name, word) in [(LOG, "log"), ("annals_schema", "schema")] {
            wanted.push(Wanted { name: format!("{}{name}", self.prefix), words: word.to_owned() });
        }
        wanted
    }
}

/// Returns the tables of an earlier attachment, which are replaced.
///
/// # Errors
/// Another table has one of the names.
fn occupied(
    connection: &Connection,
    wanted: &[Wanted],
    label: &str,
) -> rusqlite::Result<Vec<String>> {
    let mut found = connection.prepare(
        "SELECT name, coalesce(sql, ''), 1 FROM temp.sqlite_master WHERE type IN ('table', 'view') \
         UNION ALL SELECT name, '', 0 FROM main.sqlite_master WHERE type IN ('table', 'view')",
    )?;
    let mut found = found.query([])?;
    let mut old = Vec::new();
    while let Some(row) = found.next()? {
        let (name, sql): (String, String) = (row.get(0)?, row.get(1)?);
        let is_ours =
            sql.contains(&format!(" USING {MODULE}")) && sql.ends_with(&format!(",{label})"));
        if is_ours {
            old.push(name);
        } else if wanted.iter().any(|it| it.name.eq_ignore_ascii_case(&name)) {
            return Err(Fault::new(format!(
                "this connection has a table `{name}` already: give all tables of the database another \
                 beginning, as in annals_attach('FILE', 'old_')"
            ))
            .into_error());
        }
    }
    Ok(old)
}
