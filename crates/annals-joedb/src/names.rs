//! Names that joedb takes: it refuses to open a file with one that has `__` in it.

use std::collections::HashMap;
use std::hash::Hash;

/// The names in the new file of tables, or of the fields of one, by number.
#[derive(Debug)]
pub(crate) struct Names<N>(HashMap<N, String>);

impl<N> Default for Names<N> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<N: Eq + Hash> Names<N> {
    /// Names a thing, which may have had another name before. Returns its name in the new file: the same, unless
    /// joedb doesn't take that, or has it already.
    pub(crate) fn give(&mut self, number: N, name: &str) -> String {
        self.0.remove(&number);
        let mut free = taken_by_joedb(name);
        if self.is_used(&free) {
            let stem = free.trim_end_matches('_').to_owned();
            let numbered = (2_u64..).map(|count| format!("{stem}_{count}"));
            free = numbered.into_iter().find(|name| !self.is_used(name)).unwrap_or(stem);
        }
        self.0.insert(number, free.clone());
        free
    }

    /// Frees the name of a thing that was dropped.
    pub(crate) fn drop(&mut self, number: &N) {
        self.0.remove(number);
    }

    fn is_used(&self, name: &str) -> bool {
        self.0.values().any(|used| used == name)
    }
}

/// Returns a name with each run of `_` as one.
pub(crate) fn taken_by_joedb(name: &str) -> String {
    let mut taken = String::with_capacity(name.len());
    for c in name.chars() {
        if c != '_' || !taken.ends_with('_') {
            taken.push(c);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_joedb_refuses_become_others_that_are_free() {
        let mut names = Names::default();
        assert_eq!(names.give(0, "a__b"), "a_b");
        assert_eq!(names.give(1, "a___b"), "a_b_2");
        assert_eq!(names.give(2, "a_b"), "a_b_3");
        assert_eq!(names.give(3, "__"), "_");
        assert_eq!(names.give(4, "_"), "_2");
        // A name is free again after its owner was renamed or dropped.
        assert_eq!(names.give(0, "c"), "c");
        assert_eq!(names.give(2, "a_b"), "a_b");
        names.drop(&1);
        assert_eq!(names.give(5, "a_b_2"), "a_b_2");
    }
}
