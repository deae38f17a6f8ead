//! Making the tables of a database visible to a connection, as temporary virtual tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::Schema;
use rusqlite::Connection;
use rusqlite::limits::Limit;

use crate::collations;
use crate::host::{Fault, Made, register};
use crate::relation::make;
use crate::session::Session;
use crate::shape::{Kind, Named, Tables, quoted};

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

/// What was attached.
pub(crate) struct Attached {
    /// How many tables the database has.
    #[cfg_attr(not(feature = "loadable"), expect(dead_code, reason = "the extension says it"))]
    pub(crate) tables: usize,
    /// The virtual tables that SQLite can't have, and why.
    pub(crate) left_out: Vec<(String, String)>,
}

impl Attaching<'_> {
    /// Creates the virtual tables.
    pub(crate) fn attach(&self, connection: &Connection) -> rusqlite::Result<Attached> {
        let Tables { shapes, all, count } = Tables::of(self.schema, self.prefix);
        let types = shapes.iter().flat_map(|shape| &shape.columns).map(|column| column.ty);
        collations::register(connection, types)?;
        let most = usize::try_from(connection.limit(Limit::SQLITE_LIMIT_COLUMN)?).unwrap_or(0);
        let (fitting, wide): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.columns <= most);
        let left_out = wide.into_iter().map(|Named { name, columns, .. }| {
            let why = format!("it would have {columns} columns, and SQLite has at most {most}");
            (name, why)
        });
        let wanted = self.wanted(fitting);
        let label = quoted(self.label);
        let old = occupied(connection, &wanted, &label)?;
        let module = format!("{MODULE}{}", MODULES.fetch_add(1, Ordering::Relaxed));
        let log = quoted(&format!("{}{LOG}", self.prefix));
        self.session.ends_by(format!("DELETE FROM temp.{log} WHERE 0"));
        let session = Arc::clone(self.session);
        let maker = move |words: &[&str]| {
            // The last one is the label.
            let words = words.split_last().map_or(words, |(_, words)| words);
            let relation = make(&session, &shapes, words)?;
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
        Ok(Attached { tables: count, left_out: left_out.collect() })
    }

    fn wanted(&self, tables: Vec<Named>) -> Vec<Wanted> {
        let words = |kind: Kind, shape: usize| format!("{kind:?},{shape}");
        let table = |Named { name, kind, shape, .. }| Wanted { name, words: words(kind, shape) };
        let own = [(LOG, "log"), ("annals_schema", "schema")].map(|(name, word)| Wanted {
            name: format!("{}{name}", self.prefix),
            words: word.to_owned(),
        });
        tables.into_iter().map(table).chain(own).collect()
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

#[cfg(test)]
mod tests {
    use annals::{TableNumber, ValueRef};

    use super::*;
    use crate::session::Source;
    use crate::transient::{ENTRY, WALKS};

    #[test]
    fn a_join_that_may_not_make_one_says_which_index_to_create() {
        let db = annals::Database::in_memory().unwrap();
        let schema = "create_table t\nadd_field t x int64\nadd_field t y string\n";
        let schema = Arc::new(annals_schema::parse(schema).unwrap().schema);
        db.upgrade(&schema, &mut |_, _| unreachable!()).unwrap();
        let rows = 3 * u64::from(WALKS);
        db.write(|tx| {
            for number in 0..rows.cast_signed() {
                tx.insert(TableNumber(0), &[ValueRef::Int64(number), ValueRef::String("y")])?;
            }
            Ok(())
        })
        .unwrap();
        let asked = |most: usize, query: &str| {
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            let session = Arc::new(Session::new(Source::from(db.clone()), most));
            let now = db.read();
            let attaching =
                Attaching { session: &session, schema: now.schema(), prefix: "", label: "x" };
            attaching.attach(&connection).unwrap();
            let found = connection.query_row(query, [], |row| row.get::<_, i64>(0));
            found.map_err(|error| error.to_string())
        };
        let room = usize::try_from(rows).unwrap() * ENTRY;
        let join = "SELECT count(*) FROM t a JOIN t b ON b.x = a.x AND b.y = a.y";
        assert_eq!(asked(room, join), Ok(rows.cast_signed()));
        let said = asked(room - 1, join).unwrap_err();
        assert!(said.contains("Create an index: create_index t_by_x_y t x,y"), "{said}");
        // Some searches are walks.
        let few = format!("SELECT count(*) FROM t a JOIN t b ON b.x = a.x WHERE a.id < {WALKS}");
        assert_eq!(asked(0, &few), Ok(WALKS.into()));
        // All indexes of a statement together have the room of one.
        let two = format!("{join} JOIN t c ON c.x = b.x");
        assert!(asked(2 * room - 1, &two).is_err());
        assert_eq!(asked(2 * room, &two), Ok(rows.cast_signed()));
    }
}
