//! Walking over the rows of a table.

use std::ops::Bound;

use annals::store::IndexRows;
use annals::{FieldNumber, Row, RowId, Rows, Snapshot, TableView, Type, Value, ValueRef};

use crate::host::{Fault, Form, Op};
use crate::seeks::{Seek, both, bound, prefixes, seek};
use crate::shape::{Column, Key, Shape};
use crate::transient::Places;

/// A way to the rows of a query. The values of its conditions are the arguments of a scan, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Way {
    /// The row of an id.
    Row,
    /// Rows in the order of their ids, in bounds.
    Ids { bounds: Vec<Op> },
    /// Rows in the order of an index: of these comparisons for equality, and bounds of the next field.
    Index { key: usize, equal: Vec<Op>, bounds: Vec<Op> },
    /// Rows whose columns equal values, by an index that the statement makes for itself.
    Transient { columns: Vec<usize> },
}

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) way: Way,
    pub(crate) is_backward: bool,
    /// The arguments that pass all values of an IN at once.
    pub(crate) lists: Vec<usize>,
    /// The bounds of texts whose values aren't known yet: SQLite may compare otherwise than with one in the query.
    pub(crate) loose: Vec<(usize, Op)>,
    /// The arguments that numbers of a `uint64` are compared with, and the columns of these.
    pub(crate) unsigned: Vec<(usize, usize)>,
    /// The fields that the statement reads.
    pub(crate) fields: Vec<FieldNumber>,
}

impl Plan {
    pub(super) fn new(way: Way, is_backward: bool) -> Self {
        let (lists, loose, unsigned, fields) = Default::default();
        Self { way, is_backward, lists, loose, unsigned, fields }
    }

    /// Returns a value as a bound that leaves out no row, whatever SQLite makes of both sides; `None`: of no use.
    ///
    /// A number in the query becomes a text. One of a column without a type stays a number, and any text is more. If the
    /// value is a text of a column of numbers, the other texts become numbers where they can, and these are less.
    pub(crate) fn loosened<'v>(&self, argument: usize, form: Form<'v>) -> Option<Form<'v>> {
        let op = self.loose.iter().find(|(it, _)| *it == argument).map(|(_, op)| *op);
        match (op, &form) {
            (Some(Op::Greater | Op::GreaterOrEqual), Form::Integer(_) | Form::Real(_)) => None,
            // The character after all that a number begins with.
            (Some(Op::Less | Op::LessOrEqual), Form::Text(text)) if &**text < ":" => {
                Some(Form::Text(":".into()))
            }
            _ => Some(form),
        }
    }

    /// Returns the column of an index that an argument is compared with for equality, and how.
    pub(crate) fn compared<'s>(
        &self,
        shape: &'s Shape,
        argument: usize,
    ) -> Option<(&'s Column, Op)> {
        let Way::Index { key, equal, .. } = &self.way else { return None };
        let column = shape.keys.get(*key)?.columns.get(argument)?.column;
        Some((shape.column(column)?, *equal.get(argument)?))
    }
}

/// The part of an index that a search reads.
#[derive(Debug)]
pub(crate) struct Found {
    /// The values of its first fields.
    pub(crate) equal: Vec<Value>,
    pub(crate) next: Next,
}

/// The values of the field after them.
#[derive(Debug)]
pub(crate) enum Next {
    /// No row is searched for.
    Nothing,
    All,
    Seek(Seek),
    Prefixes(Vec<String>),
}

/// True if the texts of a pattern have a prefix.
pub(crate) fn has_prefix(op: Op, pattern: &Form<'_>) -> bool {
    matches!(pattern, Form::Text(pattern) if prefixes(op, pattern).is_some())
}

/// Returns the values of conditions by their places; `None`: any value may fulfil one.
pub(crate) type Given<'g, 'v> = &'g dyn Fn(usize) -> Option<Form<'v>>;

/// Returns the values that may fulfil a condition.
fn given(ty: Type, is_nullable: bool, op: Op, argument: Option<&Form<'_>>) -> Seek {
    argument.map_or(Seek::All, |argument| seek(ty, is_nullable, op, argument))
}

/// Returns the single values of columns that equal conditions, so that a hash of them can be looked for; `None` if
/// other values may, too. No values: nothing equals them.
pub(crate) fn single_values(
    shape: &Shape,
    columns: &[usize],
    argument: Given<'_, '_>,
) -> Option<Vec<Value>> {
    let mut values = Vec::with_capacity(columns.len());
    for (place, column) in columns.iter().enumerate() {
        let column = shape.column(*column)?;
        match given(column.ty, column.is_nullable, Op::Equal, argument(place).as_ref()) {
            Seek::Equal(value) => values.push(value),
            Seek::Nothing => return Some(Vec::new()),
            Seek::Between(Bound::Included(low), Bound::Included(high))
                if low.as_ref().total_cmp(&high.as_ref()).is_eq() =>
            {
                values.push(low);
            }
            Seek::Between(..) | Seek::All => return None,
        }
    }
    Some(values)
}

/// Returns the part of an index with the rows of conditions; `argument` returns the values of these.
pub(crate) fn find<'v>(
    shape: &Shape,
    key: &Key,
    equal: &[Op],
    bounds: &[Op],
    argument: Given<'_, 'v>,
) -> Found {
    let mut values = Vec::with_capacity(equal.len());
    for (place, &op) in equal.iter().enumerate() {
        let Some(column) = key.columns.get(place).and_then(|it| shape.column(it.column)) else {
            break;
        };
        match given(column.ty, column.is_nullable, op, argument(place).as_ref()) {
            Seek::Equal(value) => values.push(value),
            Seek::Nothing => return Found { equal: values, next: Next::Nothing },
            Seek::All => return Found { equal: values, next: Next::All },
            between if key.columns[place].is_collated => {
                drop(between);
                return Found { equal: values, next: Next::All };
            }
            between => return Found { equal: values, next: Next::Seek(between) },
        }
    }
    let column = key.columns.get(values.len()).and_then(|it| shape.column(it.column));
    let Some(column) = column.filter(|_| !bounds.is_empty()) else {
        return Found { equal: values, next: Next::All };
    };
    if let [op @ (Op::Like | Op::Glob)] = bounds {
        let next = match argument(equal.len()) {
            Some(Form::Null) => Next::Nothing,
            Some(Form::Text(pattern)) => prefixes(*op, &pattern).map_or(Next::All, Next::Prefixes),
            _ => Next::All,
        };
        return Found { equal: values, next };
    }
    let arguments = (equal.len()..).zip(bounds).map(|(place, &op)| (op, argument(place)));
    Found { equal: values, next: range(column.ty, column.is_nullable, arguments) }
}

/// Returns the values between bounds.
fn range<'v>(
    ty: Type,
    is_nullable: bool,
    arguments: impl Iterator<Item = (Op, Option<Form<'v>>)>,
) -> Next {
    let (mut lower, mut upper) = (Bound::Unbounded, Bound::Unbounded);
    for (op, argument) in arguments {
        match given(ty, is_nullable, op, argument.as_ref()) {
            Seek::Nothing => return Next::Nothing,
            Seek::Between(low, high) => (lower, upper) = (both(lower, low), both(upper, high)),
            Seek::Equal(_) | Seek::All => {}
        }
    }
    match (&lower, &upper) {
        (Bound::Unbounded, Bound::Unbounded) => Next::All,
        _ => Next::Seek(Seek::Between(lower, upper)),
    }
}

/// Rows that are still to come.
enum Left<'a> {
    Nothing,
    Rows(Rows<'a>),
    Index(IndexRows<'a>),
    /// Of several prefixes, the next one last.
    Several(Vec<IndexRows<'a>>),
    /// Those at some places of an index that the statement has made.
    Found(TableView<'a>, Places),
}

impl Left<'_> {
    /// Reads only these fields.
    fn reading(self, fields: &[FieldNumber]) -> Self {
        match self {
            Self::Rows(rows) => Self::Rows(rows.reading(fields)),
            Self::Index(rows) => Self::Index(rows.reading(fields)),
            Self::Several(all) => {
                Self::Several(all.into_iter().map(|rows| rows.reading(fields)).collect())
            }
            Self::Nothing | Self::Found(..) => self,
        }
    }
}

/// A walk over rows of a snapshot.
pub(crate) struct Walk<'a> {
    left: Left<'a>,
    is_backward: bool,
    pub(crate) row: Option<Row<'a>>,
}

self_cell::self_cell!(
    /// A walk, and the snapshot that it reads.
    pub(crate) struct Walking {
        owner: Snapshot,
        #[not_covariant]
        dependent: Walk,
    }
);

impl Walking {
    /// Begins with no rows.
    pub(crate) fn over(snapshot: Snapshot) -> Self {
        Self::new(snapshot, |_| Walk { left: Left::Nothing, is_backward: false, row: None })
    }

    /// Goes to the first row of a plan.
    pub(crate) fn begin<'v>(
        &mut self,
        shape: &Shape,
        plan: &Plan,
        argument: Given<'_, 'v>,
    ) -> Result<(), Fault> {
        self.with_dependent_mut(|snapshot, walk| {
            *walk = Walk::begin(snapshot, shape, plan, argument)?;
            Ok(())
        })
    }

    /// Goes to the first of the rows at some places of an index that the statement has made.
    pub(crate) fn begin_at(
        &mut self,
        shape: &Shape,
        places: Places,
        is_backward: bool,
    ) -> Result<(), Fault> {
        self.with_dependent_mut(|snapshot, walk| {
            let left = Left::Found(snapshot.table(shape.table)?, places);
            *walk = Walk { left, is_backward, row: None };
            walk.step()
        })
    }

    /// Goes to the next row.
    pub(crate) fn step(&mut self) -> Result<(), Fault> {
        self.with_dependent_mut(|_, walk| walk.step())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.with_dependent(|_, walk| walk.row.is_none())
    }
}

impl<'a> Walk<'a> {
    fn begin<'v>(
        snapshot: &'a Snapshot,
        shape: &Shape,
        plan: &Plan,
        argument: Given<'_, 'v>,
    ) -> Result<Self, Fault> {
        let left = match &plan.way {
            Way::Row => {
                let one = given(Type::UInt64, false, Op::Equal, argument(0).as_ref());
                if let Seek::Equal(Value::UInt64(id)) = one {
                    let row = snapshot.table(shape.table)?.find(RowId(id))?;
                    return Ok(Self { left: Left::Nothing, is_backward: false, row });
                }
                by_id(snapshot, shape, one)?
            }
            Way::Ids { bounds } => {
                let arguments = bounds.iter().enumerate().map(|(at, &op)| (op, argument(at)));
                match range(Type::UInt64, false, arguments) {
                    Next::Nothing => Left::Nothing,
                    Next::Seek(seek) => by_id(snapshot, shape, seek)?,
                    _ => by_id(snapshot, shape, Seek::All)?,
                }
            }
            // Of a search that finds no places: any row may have the values.
            Way::Transient { .. } => by_id(snapshot, shape, Seek::All)?,
            Way::Index { key, equal, bounds } => {
                let key = &shape.keys[*key];
                let found = find(shape, key, equal, bounds, argument);
                by_index(snapshot, key, &found, plan.is_backward)?
            }
        };
        let left = left.reading(&plan.fields);
        let mut walk = Self { left, is_backward: plan.is_backward, row: None };
        walk.step()?;
        Ok(walk)
    }

    fn step(&mut self) -> Result<(), Fault> {
        let next = match (&mut self.left, self.is_backward) {
            (Left::Nothing, _) => None,
            (Left::Rows(rows), false) => rows.next(),
            (Left::Rows(rows), true) => rows.next_back(),
            (Left::Index(rows), false) => rows.next(),
            (Left::Index(rows), true) => rows.next_back(),
            (Left::Found(table, (hashed, places)), is_backward) => {
                let place = if is_backward { places.next_back() } else { places.next() };
                place.and_then(|place| hashed.id(place)).map(|id| table.get(id))
            }
            (Left::Several(all), is_backward) => loop {
                let Some(rows) = all.last_mut() else { break None };
                match if is_backward { rows.next_back() } else { rows.next() } {
                    Some(row) => break Some(row),
                    None => drop(all.pop()),
                }
            },
        };
        self.row = next.transpose()?;
        Ok(())
    }
}

/// Returns the rows of ids.
fn by_id<'a>(snapshot: &'a Snapshot, shape: &Shape, seek: Seek) -> Result<Left<'a>, Fault> {
    let table = snapshot.table(shape.table)?;
    let id = |value: &Value| match value {
        Value::UInt64(id) => RowId(*id),
        _ => RowId(0),
    };
    Ok(match seek {
        Seek::Nothing => Left::Nothing,
        Seek::All => Left::Rows(table.rows()),
        Seek::Equal(value) => Left::Rows(table.range(id(&value)..=id(&value))),
        Seek::Between(lower, upper) => {
            Left::Rows(table.range((lower.as_ref().map(id), upper.as_ref().map(id))))
        }
    })
}

/// Returns the rows of a part of an index.
fn by_index<'a>(
    snapshot: &'a Snapshot,
    key: &Key,
    found: &Found,
    is_backward: bool,
) -> Result<Left<'a>, Fault> {
    let index = snapshot.index(key.number)?;
    let equal: Vec<ValueRef<'_>> = found.equal.iter().map(Value::as_ref).collect();
    Ok(match &found.next {
        Next::Nothing => Left::Nothing,
        Next::Seek(Seek::Between(lower, upper)) => {
            Left::Index(index.range(&equal, bound(lower), bound(upper)))
        }
        Next::All | Next::Seek(_) => Left::Index(index.equal(&equal)),
        Next::Prefixes(prefixes) => {
            let rows = |prefix: &String| index.prefix(&equal, prefix.as_bytes());
            let is_descending =
                key.columns.get(found.equal.len()).is_some_and(|it| it.is_descending);
            let mut all: Vec<_> = prefixes.iter().map(rows).collect();
            // The one that comes first is taken from the end.
            if is_descending == is_backward {
                all.reverse();
            }
            Left::Several(all)
        }
    })
}
