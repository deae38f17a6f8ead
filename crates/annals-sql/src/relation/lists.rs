//! The values of conditions of which some are lists: those of an IN, passed at once.
//!
//! SQLite would search for one value after the other, but compares each found row with the value as a text. Where the
//! values are numbers of a subquery, that leaves out rows. With all values at once it compares as for its own tables.

use crate::host::{Arguments, Fault, Form, Op};
use crate::relation::walk::Plan;
use crate::seeks::{Seek, seek};
use crate::shape::{Column, Shape};

/// The values of conditions, one combination after the other.
pub(crate) struct Lists {
    /// The values of each condition; `None`: any value may fulfil it.
    values: Vec<Vec<Option<Form<'static>>>>,
    /// The place of each in the next combination; none after the last one.
    next: Option<Vec<usize>>,
    now: Vec<usize>,
}

impl Lists {
    /// Reads the arguments of a search by a plan from `first` on.
    pub(crate) fn new(
        shape: &Shape,
        plan: &Plan,
        arguments: &Arguments<'_>,
        first: usize,
    ) -> Result<Self, Fault> {
        let (mut values, mut narrows) = (Vec::new(), true);
        for place in 0..arguments.len().saturating_sub(first) {
            let compared = plan.compared(shape, place);
            let is_list = plan.lists.contains(&place);
            let found = match (is_list, compared) {
                (true, Some((column, _))) if narrows => {
                    listed(column, arguments.list(first + place)?)
                }
                (true, _) => vec![None],
                (false, _) => vec![Some(arguments.get(first + place).into_owned())],
            };
            // Where a field may have several values, the next ones of the index narrow nothing: the rows of each value of
            // a list would be the same.
            narrows &= match (compared, found.first()) {
                (Some((column, op)), Some(Some(value))) => {
                    matches!(seek(column.ty, column.is_nullable, op, value), Seek::Equal(_))
                }
                (_, first) => first.is_none(),
            };
            values.push(found);
        }
        let has_any = values.iter().all(|values| !values.is_empty());
        let next = has_any.then(|| vec![0; values.len()]);
        Ok(Self { now: Vec::new(), next, values })
    }

    /// Goes to the next combination of values; false after the last one.
    pub(crate) fn advance(&mut self) -> bool {
        let Some(now) = self.next.take() else { return false };
        let mut next = now.clone();
        for (at, values) in next.iter_mut().zip(&self.values).rev() {
            *at += 1;
            if *at < values.len() {
                self.next = Some(next);
                break;
            }
            *at = 0;
        }
        self.now = now;
        true
    }

    /// Returns the value of a condition.
    pub(crate) fn get(&self, place: usize) -> Option<Form<'static>> {
        self.values.get(place)?.get(*self.now.get(place)?)?.clone()
    }
}

/// Returns the values of a list that a column may have. Each is another value, so that no row is found twice. If one of
/// them may equal several, any value may.
fn listed(column: &Column, list: Vec<Form<'static>>) -> Vec<Option<Form<'static>>> {
    let mut values = Vec::with_capacity(list.len());
    for value in list {
        match seek(column.ty, column.is_nullable, Op::Equal, &value) {
            Seek::Nothing => {}
            Seek::Equal(_) => values.push(Some(value)),
            Seek::All | Seek::Between(..) => return vec![None],
        }
    }
    values
}
