//! The schema of a database of SQLite.

use rusqlite::{Connection, Result};

use crate::notes::note;

/// A table.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// The place of the column that is the row's id, if there is one.
    pub(super) id: Option<usize>,
    pub(super) references: Vec<Reference>,
    /// The last id that was given out, if SQLite keeps it.
    pub(super) last_id: Option<i64>,
}

/// A column.
pub(super) struct Column {
    pub(super) name: String,
    /// The words of its type, unchanged.
    pub(super) declared: String,
    pub(super) not_null: bool,
    /// The expression of its default.
    pub(super) default: Option<String>,
    /// True if its values are computed whenever they are read.
    pub(super) is_virtual: bool,
}

/// A foreign key of one column.
pub(super) struct Reference {
    pub(super) column: String,
    pub(super) target: String,
    /// The target's column; the target's primary key if no column is named.
    pub(super) to: Option<String>,
    pub(super) on_delete: String,
}

/// An index.
pub(super) struct Index {
    pub(super) name: String,
    pub(super) table: String,
    pub(super) unique: bool,
    /// True if SQLite made it for a constraint of the table.
    pub(super) is_implied: bool,
    /// Its columns, and whether each is in descending order.
    pub(super) columns: Vec<(String, bool)>,
}

/// Reads which tables there are, in the order in which they were created. Objects other than tables are reported.
pub(super) fn tables(connection: &Connection) -> Result<Vec<Table>> {
    let query = "SELECT m.name, m.type, coalesce(l.type, ''), coalesce(l.wr, 0), m.sql FROM sqlite_master m \
         LEFT JOIN pragma_table_list l ON l.name = m.name AND l.schema = 'main' \
         WHERE m.type <> 'index' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.rowid";
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    let mut tables = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, kind, of_table): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        match (kind.as_str(), of_table.as_str()) {
            ("table", "table") => {
                let without_rowid = row.get(3)?;
                if without_rowid {
                    note(&format!("the table {name} is WITHOUT ROWID: its rows get ids"));
                }
                tell_clauses(&name, &row.get::<_, String>(4)?);
                tables.push(table(connection, name, without_rowid)?);
            }
            ("table", of_table) => note(&format!("the {of_table} table {name} was left out")),
            (kind, _) => note(&format!("the {kind} {name} was left out")),
        }
    }
    Ok(tables)
}

/// Reports clauses of a table that have no equal here.
fn tell_clauses(table: &str, declaration: &str) {
    let outside: String = declaration.split('\'').step_by(2).collect::<Vec<_>>().join(" ");
    let words: Vec<&str> = outside.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let clauses = [
        ("check", "a CHECK", "was left out"),
        ("collate", "a COLLATE", "was left out: texts are compared by bytes"),
        ("conflict", "an ON CONFLICT", "was left out: what conflicts is refused"),
    ];
    // Each of our enums has one.
    let known = declaration.matches("TEXT \"ENUM(").count();
    for (word, clause, what) in clauses {
        let known = if word == "check" { known } else { 0 };
        if words.iter().filter(|other| other.eq_ignore_ascii_case(word)).count() > known {
            note(&format!("{clause} of table {table} {what}"));
        }
    }
}

/// Reports the numbers that a program keeps in the head of its database.
pub(super) fn tell_settings(connection: &Connection) -> Result<()> {
    for name in ["user_version", "application_id"] {
        let number: i64 = connection.pragma_query_value(None, name, |row| row.get(0))?;
        if number != 0 {
            note(&format!("the {name}, {number}, was left out"));
        }
    }
    Ok(())
}

fn table(connection: &Connection, name: String, without_rowid: bool) -> Result<Table> {
    let query = "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?)";
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([&name])?;
    let (mut columns, mut keys) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let column = Column {
            name: row.get(0)?,
            declared: row.get(1)?,
            not_null: row.get(2)?,
            default: row.get(3)?,
            is_virtual: row.get::<_, i64>(5)? == 2,
        };
        if row.get::<_, i64>(4)? > 0 {
            keys.push(columns.len());
        }
        if row.get::<_, i64>(5)? > 0 {
            note(&format!("{name}.{} is generated: its values become plain ones", column.name));
        }
        columns.push(column);
    }
    // Such a key is the row's id, unless SQLite made an index for it, as it does for some old forms.
    let implied = "SELECT count(*) FROM pragma_index_list(?) WHERE origin = 'pk'";
    let has_index: i64 = connection.query_row(implied, [&name], |row| row.get(0))?;
    let is_id = |place: &usize| {
        let column: Option<&Column> = columns.get(*place);
        column.is_some_and(|column| column.declared.eq_ignore_ascii_case("integer"))
    };
    let id = match keys.as_slice() {
        [place] if !without_rowid && has_index == 0 => Some(*place).filter(is_id),
        _ => None,
    };
    let (references, last_id) = (references(connection, &name)?, last_id(connection, &name)?);
    Ok(Table { name, columns, id, references, last_id })
}

impl Table {
    /// Leaves out a column.
    pub(super) fn leave_out(&mut self, place: usize) {
        self.columns.remove(place);
        self.id = self.id.map(|id| if id > place { id - 1 } else { id });
    }
}

fn references(connection: &Connection, table: &str) -> Result<Vec<Reference>> {
    let query = "SELECT min(\"from\"), \"table\", min(\"to\"), on_delete, count(*), on_update \
         FROM pragma_foreign_key_list(?) GROUP BY id ORDER BY id DESC";
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([table])?;
    let mut references = Vec::new();
    while let Some(row) = rows.next()? {
        let reference = Reference {
            column: row.get(0)?,
            target: row.get(1)?,
            to: row.get(2)?,
            on_delete: row.get(3)?,
        };
        if row.get::<_, i64>(4)? > 1 {
            let what = "a foreign key of several columns was left out";
            note(&format!("{table}: {what}, its columns stay"));
            continue;
        }
        let (column, on_update) = (&reference.column, row.get::<_, String>(5)?);
        if !["NO ACTION", "RESTRICT"].contains(&on_update.as_str()) {
            let what = "was left out: the id of a row never changes";
            note(&format!("{table}.{column}: ON UPDATE {on_update} {what}"));
        }
        if reference.on_delete == "SET DEFAULT" {
            let what = "was left out: nothing is enforced";
            note(&format!("{table}.{column}: ON DELETE SET DEFAULT {what}"));
        }
        references.push(reference);
    }
    Ok(references)
}

fn last_id(connection: &Connection, table: &str) -> Result<Option<i64>> {
    let kept = "SELECT count(*) FROM sqlite_master WHERE name = 'sqlite_sequence'";
    if connection.query_row(kept, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let query = "SELECT max(seq) FROM sqlite_sequence WHERE name = ? AND typeof(seq) = 'integer'";
    connection.query_row(query, [table], |row| row.get(0))
}

/// Reads the indexes of all tables, in the order in which they were created. Features without an equivalent are
/// reported.
pub(super) fn indexes(connection: &Connection) -> Result<Vec<Index>> {
    let query = "SELECT l.name, m.name, l.\"unique\", l.origin, l.partial FROM sqlite_master m, \
         pragma_index_list(m.name) l LEFT JOIN sqlite_master i ON i.type = 'index' AND i.name = l.name \
         WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         ORDER BY coalesce(i.rowid, 0), m.rowid, l.seq DESC";
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    let mut indexes = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, table): (String, String) = (row.get(0)?, row.get(1)?);
        let is_partial: bool = row.get(4)?;
        let is_implied = row.get::<_, String>(3)? != "c";
        match (index_columns(connection, &name)?, is_partial) {
            (Some(columns), false) => {
                indexes.push(Index { name, table, unique: row.get(2)?, is_implied, columns });
            }
            (_, is_partial) => {
                let what = if is_partial { "of some rows only" } else { "on an expression" };
                note(&format!("the index {name} on {table} is {what}: it was left out"));
            }
        }
    }
    Ok(indexes)
}

/// Returns the columns of an index, and whether each is in descending order; `None` if one is an expression.
fn index_columns(connection: &Connection, index: &str) -> Result<Option<Vec<(String, bool)>>> {
    let query =
        "SELECT cid, name, coll, \"desc\" FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno";
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([index])?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? < 0 {
            return Ok(None);
        }
        let collation: String = row.get(2)?;
        if !collation.eq_ignore_ascii_case("binary") {
            note(&format!("the index {index} sorts by {collation}: here it sorts by bytes"));
        }
        columns.push((row.get(1)?, row.get(3)?));
    }
    Ok(Some(columns))
}
