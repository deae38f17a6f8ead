//! One fact on the disk, with all the values it may have after a crash.

/// A value that is certain only as of its last completed flush.
///
/// 1. `older` is empty, or begins with the value of the last completed flush.
/// 2. Reads return `newest`. It is always one of the values that a crash may leave.
/// 3. `dropped` means that a failed flush lost the newest value: a flush can cover it only after it
///    is set again.
#[derive(Clone, Debug)]
pub(crate) struct Fact<T> {
    newest: T,
    /// The number of the operation that set it, counted from 1; 0 is the last flush.
    newest_at: u64,
    older: Vec<(u64, T)>,
    dropped: bool,
}

impl<T: Clone + PartialEq> Fact<T> {
    /// Makes a fact that is on the disk.
    pub(crate) fn flushed(value: T) -> Self {
        Self { newest: value, newest_at: 0, older: Vec::new(), dropped: false }
    }

    /// Returns the value that reads see.
    pub(crate) fn newest(&self) -> &T {
        &self.newest
    }

    /// Sets the value in operation `at`.
    pub(crate) fn set(&mut self, at: u64, value: T) {
        // Even the same value, set again, is something that the next flush covers.
        self.dropped = false;
        if value != self.newest {
            let before = std::mem::replace(&mut self.newest, value);
            self.older.push((self.newest_at, before));
            self.newest_at = at;
        }
    }

    /// Makes the newest value the only one, unless a failed flush dropped it.
    pub(crate) fn flush(&mut self) {
        if !self.dropped {
            self.older.clear();
            self.newest_at = 0;
        }
    }

    /// Drops unflushed values, though an unknown part of them may be on the disk.
    pub(crate) fn fail_flush(&mut self) {
        self.dropped = !self.is_certain();
    }

    /// True if only one value is possible.
    pub(crate) fn is_certain(&self) -> bool {
        self.older.is_empty()
    }

    /// Returns the values that a crash may leave.
    pub(crate) fn open(&self) -> Open<T> {
        let newest = (self.newest_at, self.newest.clone());
        let mut open = Open { choices: Vec::new(), history: Vec::new() };
        for (at, value) in self.older.iter().cloned().chain([newest]) {
            let known = open.choices.iter().position(|choice| *choice == value);
            let choice = known.unwrap_or(open.choices.len());
            if known.is_none() {
                open.choices.push(value);
            }
            open.history.push((at, choice));
        }
        open
    }
}

/// The values that a crash may leave of one fact.
#[derive(Clone, Debug)]
pub(crate) struct Open<T> {
    /// The values, each once; the flushed one first. Never empty.
    pub(crate) choices: Vec<T>,
    /// When which of the choices was set, in order. Never empty.
    pub(crate) history: Vec<(u64, usize)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_since_the_flush_are_possible_each_once() {
        let mut fact = Fact::flushed('a');
        for (at, value) in [(1, 'b'), (2, 'b'), (3, 'c'), (4, 'a')] {
            fact.set(at, value);
        }
        let open = fact.open();
        assert_eq!(open.choices, ['a', 'b', 'c']);
        assert_eq!(open.history, [(0, 0), (1, 1), (3, 2), (4, 0)]);
        fact.flush();
        assert!(fact.is_certain());
        assert_eq!(fact.open().choices, ['a']);
    }

    #[test]
    fn what_a_failed_flush_dropped_is_covered_only_when_set_again() {
        let mut fact = Fact::flushed('a');
        fact.set(1, 'b');
        fact.fail_flush();
        fact.flush();
        assert_eq!(*fact.newest(), 'b');
        assert_eq!(fact.open().choices, ['a', 'b']);
        fact.set(2, 'b');
        fact.flush();
        assert_eq!(fact.open().choices, ['b']);
    }
}
