//! Whether a history of operations on a counter could have happened one after the other.
//!
//! Each operation takes effect at one moment between its call and its answer; one without an answer, at any later moment or
//! never. The search tries all orders (Wing and Gong), and remembers where it was.

use std::collections::HashSet;

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

/// True if there is an order.
pub(crate) fn is_linearizable(operations: &[Operation]) -> bool {
    let mut operations = operations.to_vec();
    operations.sort_unstable_by_key(|it| it.call);
    let mut seen = HashSet::new();
    // What is done is a prefix, and some that follow it.
    let mut open = vec![(vec![false; operations.len()], 0)];
    while let Some((done, count)) = open.pop() {
        if operations.iter().zip(&done).all(|(it, done)| *done || it.what == What::AddUnknown) {
            return true;
        }
        let first_answer = operations.iter().zip(&done).filter(|(_, done)| !**done);
        let first_answer = first_answer.map(|(it, _)| it.answer).min().unwrap_or(u64::MAX);
        for (place, it) in operations.iter().enumerate() {
            // What was called after the answer of another comes after that.
            if done[place] || it.call > first_answer {
                continue;
            }
            let after = match it.what {
                What::Add(before) if before == count => count + 1,
                What::AddUnknown => count + 1,
                What::Read(value) if value == count => count,
                What::Add(_) | What::Read(_) => continue,
            };
            let mut done = done.clone();
            done[place] = true;
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
