//! Whether a history of operations on a counter could have happened one after the other.
//!
//! Each operation takes effect at one moment between its call and its answer; one without an answer, at any later moment or
//! never. The search tries all orders (Wing and Gong), and remembers where it was.

use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Adds one; it returned the value before.
    Add(u64),
    /// Adds one; nothing was returned.
    AddUnknown,
    /// Reads; it returned this.
    Read(u64),
}

/// An operation, with the moments of its call and of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) call: u64,
    pub(crate) answer: u64,
    pub(crate) what: What,
}

/// What the nodes were told.
#[derive(Default)]
pub(crate) struct Told {
    moment: AtomicU64,
    pub(crate) operations: Mutex<Vec<Operation>>,
    /// The names of the additions.
    pub(crate) acknowledged: Mutex<BTreeSet<String>>,
}

impl Told {
    /// Returns the moment of a call.
    pub(crate) fn call(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes an answer, or that there was none.
    pub(crate) fn note(&self, call: u64, what: What) {
        let answer = match what {
            What::AddUnknown => u64::MAX,
            _ => self.moment.fetch_add(1, Ordering::SeqCst),
        };
        self.operations.lock().unwrap().push(Operation { call, answer, what });
    }
}

/// What was done, in the order of calls: all of a prefix, and some that follow it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Done {
    prefix: usize,
    others: BTreeSet<usize>,
}

impl Done {
    fn has(&self, place: usize) -> bool {
        place < self.prefix || self.others.contains(&place)
    }

    fn with(mut self, place: usize) -> Self {
        self.others.insert(place);
        while self.others.remove(&self.prefix) {
            self.prefix += 1;
        }
        self
    }
}

/// True if there is an order.
pub(crate) fn is_linearizable(operations: &[Operation]) -> bool {
    let mut operations = operations.to_vec();
    operations.sort_unstable_by_key(|it| it.call);
    let mut seen = HashSet::new();
    let mut open = vec![(Done { prefix: 0, others: BTreeSet::new() }, 0)];
    while let Some((done, count)) = open.pop() {
        // What was called after the answer of another comes after that.
        let (mut first_answer, mut candidates, mut is_over) = (u64::MAX, Vec::new(), true);
        for (place, it) in operations.iter().enumerate().skip(done.prefix) {
            if it.call > first_answer {
                break;
            }
            if !done.has(place) {
                is_over &= it.what == What::AddUnknown;
                first_answer = first_answer.min(it.answer);
                candidates.push(place);
            }
        }
        if is_over {
            return true;
        }
        for place in candidates {
            if operations[place].call > first_answer {
                continue;
            }
            let after = match operations[place].what {
                What::Add(before) if before == count => count + 1,
                What::AddUnknown => count + 1,
                What::Read(value) if value == count => count,
                What::Add(_) | What::Read(_) => continue,
            };
            let done = done.clone().with(place);
            if seen.insert((done.clone(), after)) {
                open.push((done, after));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(call: u64, answer: u64, what: What) -> Operation {
        Operation { call, answer, what }
    }

    #[test]
    fn good_histories_are_good_and_bad_ones_bad() {
        use What::{Add, AddUnknown, Read};
        let unknown = |call| op(call, u64::MAX, AddUnknown);
        let good: [&[Operation]; 6] = [
            &[],
            &[op(1, 2, Add(0)), op(3, 4, Add(1)), op(5, 6, Read(2))],
            &[op(1, 9, Add(1)), op(2, 8, Add(0)), op(3, 7, Read(1))],
            &[unknown(1), op(2, 3, Read(0)), op(4, 5, Read(1))],
            &[unknown(1), op(2, 3, Read(0))],
            &[unknown(1), op(2, 3, Add(1))],
        ];
        let bad: [&[Operation]; 7] = [
            // Lost.
            &[op(1, 2, Add(0)), op(3, 4, Read(0))],
            // Twice.
            &[op(1, 2, Add(0)), op(3, 4, Read(2))],
            // The same answer to two.
            &[op(1, 2, Add(0)), op(3, 4, Add(0))],
            // Out of order.
            &[op(1, 2, Add(1)), op(3, 4, Add(0))],
            // Back in time.
            &[op(1, 9, Add(0)), op(2, 3, Read(1)), op(4, 5, Read(0))],
            // The unknown one happened, and then it didn't.
            &[unknown(1), op(2, 3, Read(1)), op(4, 5, Read(0))],
            // It happened before it was called.
            &[op(1, 2, Read(1)), unknown(3)],
        ];
        assert!(good.iter().all(|history| is_linearizable(history)));
        for history in bad {
            assert!(!is_linearizable(history), "{history:?}");
        }
    }
}
