//! Names of tables, columns and indexes that SQL takes for different ones.
//!
//! SQLite doesn't tell capitals from small letters in names, has one room for the names of tables and
//! indexes, and keeps those that begin with `sqlite_` for itself.

use std::collections::HashSet;

/// The names that are taken, in one room for names.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// Gives the name, with `_` appended as long as it is taken, and takes it.
    pub(super) fn take(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        if free.to_ascii_lowercase().starts_with("sqlite_") {
            free.insert(0, '_');
        }
        while !self.0.insert(free.to_ascii_lowercase()) {
            free.push('_');
        }
        free
    }

    /// Lets others take a name that was taken.
    pub(super) fn free(&mut self, name: &str) {
        self.0.remove(&name.to_ascii_lowercase());
    }
}

/// Writes a name in quotes. Names hold no quote themselves.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_that_differ_in_capitals_only_get_an_underscore() {
        let mut names = Names::default();
        let taken = ["city", "City", "city_", "sqlite_x", "CITY"].map(|name| names.take(name));
        assert_eq!(taken, ["city", "City_", "city__", "_sqlite_x", "CITY___"]);
    }
}
