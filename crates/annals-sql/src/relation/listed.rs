//! Virtual tables whose rows are made one after the other: those of the history.

use std::ffi::c_int;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use annals::{ErrorKind, RowChange, RowId, Timestamp, Txid, Value, VersionKind};

use crate::forms::form;
use crate::host::{Arguments, Asked, Fault, Form, Op, Out, Scan};
use crate::seeks::OneRow;
use crate::session::Sight;
use crate::shape::{Column, Shape};

/// A row: its own values, then those of a row of the database before and after.
#[derive(Clone)]
pub(super) struct Record {
    /// The same in each walk: SQLite knows by it that two of them have found the same row.
    pub(super) id: i64,
    pub(super) forms: Vec<Form<'static>>,
    pub(super) sides: [Option<Vec<Value>>; 2],
}

impl Record {
    pub(super) const fn new(id: i64, forms: Vec<Form<'static>>) -> Self {
        Self { id, forms, sides: [None, None] }
    }

    /// Makes a record with the values of a changed row.
    pub(super) fn of(id: i64, forms: Vec<Form<'static>>, change: RowChange) -> Self {
        Self { id, forms, sides: [change.before, change.after] }
    }
}

/// Returns one number for two. Large ones are mixed; that two pairs get the same number then is as good as impossible.
pub(super) fn paired(row: RowId, other: u64) -> i64 {
    match (u32::try_from(row.0), u32::try_from(other)) {
        (Ok(row), Ok(other)) if row <= u32::MAX / 2 => i64::from(row) << 32 | i64::from(other),
        _ => {
            let mut hasher = DefaultHasher::new();
            (row.0, other).hash(&mut hasher);
            hasher.finish().cast_signed() | i64::MIN
        }
    }
}

/// Rows to come.
pub(super) type Records = Box<dyn Iterator<Item = Result<Record, Fault>>>;

/// Begins to make the rows of an answer: the number of the plan says which conditions have a value.
pub(super) type Begin = Box<dyn Fn(&Sight, &Picked<'_, '_>) -> Result<Records, Fault>>;

/// A walk over such rows.
pub(super) struct Listed {
    sight: Sight,
    /// The columns of a row before and after.
    shape: Option<Arc<Shape>>,
    begin: Begin,
    records: Records,
    record: Option<Record>,
    /// The arguments of the table function.
    given: Vec<Form<'static>>,
    slots: usize,
}

impl Listed {
    /// Makes a walk that ends at once; `slots` is the number of conditions that [`pick`] looked for.
    pub(super) fn new(sight: Sight, shape: Option<Arc<Shape>>, slots: usize, begin: Begin) -> Self {
        let records = Box::new(std::iter::empty());
        Self { sight, shape, begin, records, record: None, given: Vec::new(), slots }
    }
}

impl Scan for Listed {
    fn begin(&mut self, plan: c_int, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let picked = Picked { plan, arguments };
        self.given = (0..self.slots)
            .map(|slot| picked.get(slot).unwrap_or(Form::Null).into_owned())
            .collect();
        self.records = (self.begin)(&self.sight, &picked)?;
        self.step()
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.record = self.records.next().transpose()?;
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.record.is_none()
    }

    fn column(&self, place: usize, out: Out<'_>) -> Result<(), Fault> {
        let Some(record) = &self.record else { return Ok(()) };
        if let Some(form) = record.forms.get(place) {
            out.put(form);
            return Ok(());
        }
        let place = place - record.forms.len();
        let columns = self.shape.as_ref().map_or(&[][..], |shape| shape.columns.as_slice());
        let side = place.checked_div(columns.len()).unwrap_or(2);
        let column = place.checked_rem(columns.len()).and_then(|place| columns.get(place));
        let (Some(side), Some(column)) = (record.sides.get(side), column) else {
            // A hidden column: an argument.
            let given = self.given.get(place - 2 * columns.len());
            out.put(given.unwrap_or(&Form::Null));
            return Ok(());
        };
        let number = usize::try_from(column.field.0).unwrap_or(usize::MAX);
        let value = side.as_ref().and_then(|values| values.get(number)).unwrap_or(&Value::Null);
        match form(value.as_ref(), &self.sight.snapshot) {
            // The bytes of a blob go with the last row that has it.
            Err(error) if error.kind() == ErrorKind::NotFound => out.put(&Form::Null),
            form => out.put(&form?),
        }
        Ok(())
    }

    fn id(&self) -> i64 {
        self.record.as_ref().map_or(0, |record| record.id)
    }
}

/// Looks for conditions that a table uses, each by its column and comparison. Returns the number that says which were
/// found, and their places. The first `given` ones are arguments of a table function.
pub(super) fn pick(
    asked: &Asked,
    wanted: &[(usize, Op)],
    given: usize,
) -> Result<(c_int, Vec<usize>), Fault> {
    let (mut plan, mut places) = (0, Vec::new());
    for (slot, &(column, op)) in wanted.iter().enumerate() {
        let is_it = |column_found: c_int, op_found: Option<Op>| {
            usize::try_from(column_found) == Ok(column) && op_found == Some(op)
        };
        let mut terms = asked.terms.iter().filter(|term| is_it(term.column, term.op));
        match terms.find(|term| term.is_usable) {
            Some(term) => {
                plan |= 1 << slot;
                places.push(term.place);
            }
            None => {
                let is_there = asked.terms.iter().any(|term| is_it(term.column, term.op));
                if slot < given && is_there {
                    return Err(Fault::unusable());
                }
            }
        }
    }
    Ok((plan, places))
}

/// The conditions that [`pick`] found, with their values.
pub(super) struct Picked<'p, 'a> {
    pub(super) plan: c_int,
    arguments: &'p Arguments<'a>,
}

impl Picked<'_, '_> {
    /// Returns the value of a condition, if it was found.
    pub(super) fn get(&self, slot: usize) -> Option<Form<'static>> {
        let is_there = self.plan & (1 << slot) != 0;
        let before = self.plan & ((1 << slot) - 1);
        is_there.then(|| self.arguments.get(before.count_ones() as usize).into_owned())
    }

    /// Returns the row that the first two conditions name: the argument of a table function, and one on the id.
    pub(super) fn row(&self) -> OneRow {
        let given = match self.get(0).map(|given| OneRow::equal(&given)) {
            None => OneRow::Any,
            // No other value is an id.
            Some(OneRow::Any) => OneRow::Nothing,
            Some(row) => row,
        };
        given.and(self.get(1).map_or(OneRow::Any, |id| OneRow::equal(&id)))
    }

    /// Returns the transactions of the conditions that begin with slot `first`, those of [`TXIDS`].
    pub(super) fn txids(&self, first: usize) -> (u64, u64) {
        let number = |place: usize| match self.get(first + place) {
            Some(Form::Integer(number)) => Some(number),
            _ => None,
        };
        let at = |number: i64| u64::try_from(number).unwrap_or(0);
        let equal = number(0);
        let lower = [equal, number(1).map(|it| it.saturating_add(1)), number(2)];
        let upper = [equal, number(3).map(|it| it.saturating_sub(1)), number(4)];
        let first = lower.into_iter().flatten().map(at).max().unwrap_or(0);
        let last = match upper.into_iter().flatten().min() {
            // No transaction has such a number.
            Some(last) if last < 1 => return (1, 0),
            last => last.map_or(u64::MAX, at),
        };
        (first.max(1), last)
    }
}

/// The comparisons of the number of a transaction that narrow a search.
pub(super) const TXIDS: [Op; 5] =
    [Op::Equal, Op::Greater, Op::GreaterOrEqual, Op::Less, Op::LessOrEqual];

/// Returns the values of a transaction: its number, time and comments.
pub(super) fn origin(txid: Txid, time: Timestamp, comments: &[String]) -> [Form<'static>; 3] {
    let comment = match comments {
        [] => Form::Null,
        comments => Form::Text(comments.join("\n").into()),
    };
    [Form::Integer(txid.0.cast_signed()), Form::Integer(time.0), comment]
}

/// Returns the kind of a change.
pub(super) fn kind(kind: VersionKind) -> Form<'static> {
    Form::Text(kind.name().into())
}

/// Returns the kind of a change between two moments.
pub(super) const fn kind_of(change: &RowChange) -> VersionKind {
    match (&change.before, &change.after) {
        (None, _) => VersionKind::Insert,
        (_, None) => VersionKind::Delete,
        _ => VersionKind::Update,
    }
}

/// Appends the declarations of the values before and after, and of hidden arguments.
pub(super) fn declare(mut text: String, columns: &[Column], hidden: &[&str]) -> String {
    for before in ["old_", "new_"] {
        columns.iter().for_each(|column| column.declare(&mut text, before));
    }
    for name in hidden {
        text.push_str(&format!(", {} HIDDEN", crate::shape::quoted(name)));
    }
    text + ")"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_numbers_of_their_own() {
        let edges = [0, 1, 2, u64::from(u32::MAX / 2), u64::from(u32::MAX), 1 << 32, 1 << 40];
        let all = edges.iter().flat_map(|&row| edges.map(|other| paired(RowId(row), other)));
        let all: std::collections::HashSet<_> = all.collect();
        assert_eq!(all.len(), edges.len() * edges.len());
    }
}
