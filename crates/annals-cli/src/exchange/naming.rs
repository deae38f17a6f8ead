//! Valid, unique names for things whose names in other programs Annals doesn't allow.

use std::collections::HashSet;
use std::sync::Arc;

use annals::Schema;

/// The length limit of names, in bytes.
const LONGEST: usize = 255;

/// The names already used in a namespace in which names must be unique.
#[derive(Debug, Default)]
pub(crate) struct Naming(HashSet<String>);

impl Naming {
    /// Returns a valid, free name like this one, and reserves it: invalid characters become `_`, a leading digit gets
    /// `_` before it, and `_` is appended as long as the name is in use.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut free: String = name.chars().map(allowed).take(LONGEST - 16).collect();
        if free.is_empty() || free.starts_with(|c: char| c.is_ascii_digit()) {
            free.insert(0, '_');
        }
        while self.0.contains(&free) {
            free.push('_');
            if free.len() > LONGEST {
                // Many with the same beginning: a number distinguishes them.
                free = format!("_{}", self.0.len());
            }
        }
        self.0.insert(free.clone());
        free
    }
}

/// The length limit of names of files, in bytes, without the ending `.csv`.
const LONGEST_STEM: usize = 251;

/// Returns names for files of the tables, in the order of the schema. A file system may take `City` and `city`
/// for the same, and has no names as long as a table's may be.
pub(crate) fn file_names(schema: &Schema) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |table: &Arc<annals::Table>| {
        let mut name = table.name.clone();
        if name.len() > LONGEST_STEM {
            name.truncate(LONGEST_STEM - 16);
        }
        while !taken.insert(name.to_ascii_lowercase()) {
            name.push('_');
            if name.len() > LONGEST_STEM {
                // Many with the same beginning: a number distinguishes them.
                name.truncate(LONGEST_STEM - 32);
                name.push_str(&format!("_{}", taken.len()));
            }
        }
        name
    };
    schema.tables().iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ours_and_there_once() {
        let mut naming = Naming::default();
        let given = ["a b", "a_b", "7", "", "é", "_", "id"];
        assert_eq!(
            given.map(|name| naming.take(name)),
            ["a_b", "a_b_", "_7", "_", "__", "___", "id"]
        );
        let long = "x".repeat(1000);
        for _ in 0..40 {
            assert!(naming.take(&long).len() <= LONGEST);
        }
    }
}
