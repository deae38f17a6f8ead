//! `annals_log`: the transactions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use annals::{Changed, Snapshot, Txid};

use crate::host::{Answer, Asked, Fault, Form, Relation, Scan};
use crate::relation::listed::{Listed, Picked, Record, Records, TXIDS, origin, pick};
use crate::relation::plan::float;
use crate::relation::refusal;
use crate::session::{Session, Sight};

/// The bit of a plan's number that says that the last transaction is first.
const BACKWARD: i32 = 1 << TXIDS.len();
/// The bit of a plan's number that says that nobody asks how many rows a transaction changed.
const UNCOUNTED: i32 = BACKWARD << 1;
/// The column of that number.
const CHANGES: u32 = 3;
/// How many single transactions are kept for the rest of a statement: a join asks for the same ones again.
const KEPT: usize = 4096;
/// The first part of the log that is read backward has so many transactions, each further one twice as many.
const PART: u64 = 8;
/// The most transactions of such a part.
const LONGEST_PART: u64 = 4096;

/// The log.
pub(super) struct Log {
    session: Arc<Session>,
}

impl Log {
    pub(super) const fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

impl Relation for Log {
    fn declaration(&self) -> &str {
        "CREATE TABLE x(\"txid\" INTEGER PRIMARY KEY, \"time\" TIMESTAMP_MICROSECONDS, \"comment\" TEXT, \
         \"changes\" INTEGER)"
    }

    fn plan(&self, asked: &Asked) -> Result<Answer, Fault> {
        let wanted = TXIDS.map(|op| (0, op));
        let (mut number, arguments) = pick(asked, &wanted, 0)?;
        let all = self.session.glance().txid().0.max(1);
        let rows = match number {
            0 => all,
            _ if number & 1 != 0 => 1,
            _ => (all / 4).max(1),
        };
        if !asked.uses(CHANGES) {
            number |= UNCOUNTED;
        }
        let by_txid = asked.order.first().filter(|first| first.column == 0);
        if by_txid.is_some_and(|first| first.is_descending) {
            number |= BACKWARD;
        }
        Ok(Answer {
            arguments,
            number,
            text: if number & BACKWARD != 0 {
                "transactions, the last first"
            } else {
                "transactions"
            }
            .to_owned(),
            cost: float(rows) * 20.0,
            rows,
            // No two transactions have the same number.
            is_ordered: by_txid.is_some(),
            ..Answer::default()
        })
    }

    fn open(&self, is_alone: bool) -> Result<Box<dyn Scan>, Fault> {
        let sight = self.session.enter(is_alone)?;
        let known = RefCell::default();
        let begin = move |sight: &Sight, picked: &Picked<'_, '_>| begin(sight, picked, &known);
        Ok(Box::new(Listed::new(sight, None, 0, Box::new(begin))))
    }

    fn refusal(&self) -> Fault {
        refusal("annals_log")
    }
}

/// Single transactions, by their numbers and whether their rows were counted.
type Known = HashMap<(u64, bool), Option<Record>>;

fn begin(sight: &Sight, picked: &Picked<'_, '_>, known: &RefCell<Known>) -> Result<Records, Fault> {
    let (first, last) = picked.txids(0);
    let now = sight.snapshot.clone();
    let last = last.min(now.txid().0);
    if first > last {
        return Ok(Box::new(std::iter::empty()));
    }
    if first == last && first > 1 {
        let is_counted = picked.plan & UNCOUNTED == 0;
        let mut known = known.borrow_mut();
        if known.len() >= KEPT {
            known.clear();
        }
        let record = match known.entry((first, is_counted)) {
            Entry::Occupied(record) => record.into_mut(),
            Entry::Vacant(place) => place.insert(single(&now, first, is_counted)?),
        };
        return Ok(Box::new(record.clone().map(Ok).into_iter()));
    }
    if picked.plan & BACKWARD == 0 {
        let changes = range(&now, first, last)?;
        return Ok(Box::new(changes.map(|changed| Ok(record(&changed?)))));
    }
    Ok(Box::new(Backward { now, first, next: last, size: PART, part: Vec::new(), is_over: false }))
}

/// Returns transactions; from the first one on also what remains of forgotten history.
fn range(now: &Snapshot, first: u64, last: u64) -> Result<annals::Changes, Fault> {
    Ok(match first {
        1 => now.changes(..=Txid(last))?,
        _ => now.changes(Txid(first)..=Txid(last))?,
    })
}

/// Returns one transaction. Without the number of its rows, only its own events are read.
fn single(now: &Snapshot, txid: u64, is_counted: bool) -> Result<Option<Record>, Fault> {
    if is_counted {
        let changed = range(now, txid, txid)?.next().transpose()?;
        return Ok(changed.as_ref().map(record));
    }
    let fields = now.changed_fields(Txid(txid), None, 0)?;
    Ok(fields.map(|it| {
        let mut forms = origin(it.txid, it.time, &it.comments).to_vec();
        forms.push(Form::Null);
        Record::new(it.txid.0.cast_signed(), forms)
    }))
}

fn record(changed: &Changed) -> Record {
    let changes = i64::try_from(changed.rows.len()).unwrap_or(i64::MAX);
    let mut forms = origin(changed.txid, changed.time, &changed.comments).to_vec();
    forms.push(Form::Integer(changes));
    Record::new(changed.txid.0.cast_signed(), forms)
}

/// The log from its end on, part by part.
struct Backward {
    now: Snapshot,
    first: u64,
    /// The last transaction that wasn't read yet.
    next: u64,
    size: u64,
    /// Those that were read, the one to return next last.
    part: Vec<Record>,
    is_over: bool,
}

impl Iterator for Backward {
    type Item = Result<Record, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.part.is_empty() && !self.is_over {
            if let Err(fault) = self.read() {
                self.is_over = true;
                return Some(Err(fault));
            }
        }
        self.part.pop().map(Ok)
    }
}

impl Backward {
    fn read(&mut self) -> Result<(), Fault> {
        let begin = self.next.saturating_sub(self.size - 1).max(self.first);
        let read = range(&self.now, begin, self.next);
        let read = match (read, begin) {
            // Some of it was forgotten: what is left is read from its beginning.
            (Err(_), begin) if begin > 1 => range(&self.now, 1, self.next)?,
            (read, _) => read?,
        };
        self.part = read.map(|changed| Ok(record(&changed?))).collect::<Result<_, Fault>>()?;
        let oldest = self.part.first().map(|record| record.forms.first().cloned());
        let reached = match oldest.flatten() {
            Some(Form::Integer(txid)) => u64::try_from(txid).unwrap_or(0).min(begin),
            _ => begin,
        };
        self.is_over = reached <= self.first;
        self.next = reached.saturating_sub(1);
        self.size = (self.size * 2).min(LONGEST_PART);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Op;

    #[test]
    fn the_plan_has_a_bit_for_each_condition() {
        assert_eq!(TXIDS[0], Op::Equal);
        assert_eq!(BACKWARD.trailing_zeros() as usize, TXIDS.len());
    }
}
