//! Names of tables, columns and indexes that SQL takes for different ones.
//!
//! SQLite ignores the case of names, and reserves those that begin with `sqlite_`. PostgreSQL truncates names after
//! 63 bytes, searches its own tables `pg_..` first, and has some reserved columns in each table. Both have one room
//! for the names of tables and indexes.

use std::collections::HashSet;

use super::Dialect;

/// The length limit of PostgreSQL's names, in bytes.
const LONGEST: usize = 63;

/// The columns that each table of PostgreSQL has.
const COLUMNS: [&str; 6] = ["ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"];

/// The names that are taken, in one room for names.
#[derive(Debug)]
pub(super) struct Names {
    taken: HashSet<String>,
    dialect: Dialect,
}

impl Names {
    /// Begins with no name taken.
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { taken: HashSet::new(), dialect }
    }

    /// Begins with the names that no column may have.
    pub(super) fn of_columns(dialect: Dialect) -> Self {
        let mut names = Self::new(dialect);
        // The row's id is the first column.
        names.taken.insert("id".to_owned());
        if dialect != Dialect::Sqlite {
            names.taken.extend(COLUMNS.map(str::to_owned));
        }
        names
    }

    /// Returns the name, with `_` appended as long as it is taken, and takes it.
    pub(super) fn take(&mut self, name: &str) -> String {
        let (mut free, lower) = (name.to_owned(), name.to_ascii_lowercase());
        let for_sqlite = self.dialect == Dialect::Sqlite;
        if lower.starts_with("sqlite_") || (lower.starts_with("pg_") && !for_sqlite) {
            free.insert(0, '_');
        }
        let longest = if for_sqlite { usize::MAX } else { LONGEST };
        free.truncate(longest);
        while !self.taken.insert(free.to_ascii_lowercase()) {
            if free.len() == longest {
                // A number distinguishes those with the same beginning.
                let end = format!("_{}", self.taken.len());
                free.truncate(longest - end.len() - 1);
                free.push_str(&end);
            }
            free.push('_');
        }
        free
    }

    /// Frees a name.
    pub(super) fn free(&mut self, name: &str) {
        self.taken.remove(&name.to_ascii_lowercase());
    }
}

/// Writes a name in quotes. Names hold no quote themselves.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_capitals_only_get_an_underscore() {
        let mut names = Names::new(Dialect::Both);
        let taken = ["city", "City", "city_", "sqlite_x", "CITY"].map(|name| names.take(name));
        assert_eq!(taken, ["city", "City_", "city__", "_sqlite_x", "CITY___"]);
        assert_eq!(Names::of_columns(Dialect::Both).take("xmin"), "xmin_");
        assert_eq!(Names::of_columns(Dialect::Sqlite).take("xmin"), "xmin");
    }

    #[test]
    fn long_names_stay_different() {
        let mut names = Names::new(Dialect::Postgres);
        let long = "x".repeat(255);
        let taken: HashSet<String> = (0..100).map(|_| names.take(&long)).collect();
        assert_eq!(taken.len(), 100);
        assert!(taken.iter().all(|name| name.len() <= LONGEST), "{taken:?}");
    }
}
