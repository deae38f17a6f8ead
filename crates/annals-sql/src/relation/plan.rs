//! Choosing the way to the rows of a query, from exact counts of the trees.

use annals::model::TypeClass;
use annals::{FieldNumber, Snapshot, Type, Value, ValueRef};

use crate::host::{Answer, Asked, Fault, Form, Op, Order, Term};
use crate::relation::unsigned::{is_refused, refuse_known};
use crate::relation::walk::{self, Found, Plan, Way};
use crate::seeks::Seek;
use crate::session::Through;
use crate::shape::{Column, Key, Shape};

/// The cost of a row through an index, in rows of a scan.
const ROW: f64 = 1.5;
/// The cost of sorting a row, for each halving.
const SORT: f64 = 0.6;
/// How many groups of equal keys are counted, to know their size.
const SAMPLES: u64 = 4;
/// The cost of a search in an index that the statement makes for itself.
const TRANSIENT: f64 = 10.0;
/// The share of making it, in rows of a scan, of each search.
const SHARE: f64 = 0.05;
/// The cost of making a past state.
const PAST: f64 = 1000.0;

/// A possible plan.
struct Candidate {
    plan: Plan,
    terms: Vec<usize>,
    rows: f64,
    cost: f64,
    is_ordered: bool,
    is_unique: bool,
}

/// The choice of a plan for a query.
pub(crate) struct Planning<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) asked: &'a Asked,
    pub(crate) now: &'a Snapshot,
    /// How many rows there are.
    pub(crate) total: u64,
    /// The schema through which the past is read; then the first argument is the moment.
    pub(crate) past: Option<Through>,
}

impl Planning<'_> {
    /// Returns the fields that the statement reads.
    fn fields(&self) -> Vec<FieldNumber> {
        let columns = (1..).zip(&self.shape.columns);
        columns.filter(|(place, _)| self.asked.uses(*place)).map(|(_, it)| it.field).collect()
    }

    /// Chooses the cheapest plan.
    pub(crate) fn choose(&self) -> Result<(Plan, Answer), Fault> {
        refuse_known(self.asked, |place| self.shape.column(place))?;
        let total = self.total;
        let unavailable: Vec<_> =
            self.now.unavailable_indexes().map(|(number, _)| number).collect();
        let mut best = self.by_id(total);
        for (place, key) in self.shape.keys.iter().enumerate() {
            if unavailable.contains(&key.number) {
                continue;
            }
            let candidate = self.by_index(place, key, total)?;
            if self.weight(&candidate) < self.weight(&best) {
                best = candidate;
            }
        }
        if let Some(candidate) = self.by_transient(float(total))
            && self.weight(&candidate) < self.weight(&best)
            && !(self.asked.has_limit && best.is_ordered && !candidate.is_ordered)
        {
            best = candidate;
        }
        let rows = best.rows.max(1.0);
        let is_list = |argument: &usize| {
            let place = best.terms.get(*argument).copied().unwrap_or(usize::MAX);
            let is_text = |(column, _): (&Column, Op)| column.is_text();
            self.asked.terms.get(place).is_some_and(|term| term.is_in)
                && best.plan.compared(self.shape, *argument).is_some_and(is_text)
        };
        best.plan.lists = (0..best.terms.len()).filter(is_list).collect();
        best.plan.loose = self.loose(&best.terms);
        best.plan.fields = self.fields();
        self.check_unsigned(&mut best);
        let lists = best.plan.lists.iter().filter_map(|&it| best.terms.get(it).copied()).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of rows"
        )]
        let answer = Answer {
            arguments: best.terms,
            given: 0,
            lists,
            number: 0,
            text: self.text(&best.plan),
            cost: best.cost,
            rows: rows as u64,
            is_ordered: best.is_ordered,
            is_unique: best.is_unique,
        };
        Ok((best.plan, answer))
    }

    /// Returns the arguments that are bounds of texts and aren't known yet.
    fn loose(&self, terms: &[usize]) -> Vec<(usize, Op)> {
        let bound = |(argument, place): (usize, &usize)| {
            let term = self.asked.terms.get(*place)?;
            let column = self.shape.column(usize::try_from(term.column).ok()?)?;
            let is_loose = |op: &Op| match op {
                Op::Greater | Op::GreaterOrEqual => column.is_text(),
                Op::Less | Op::LessOrEqual => column.ty.class() == TypeClass::String,
                _ => false,
            };
            let op = term.op.filter(is_loose)?;
            term.value.is_none().then_some((argument, op))
        };
        terms.iter().enumerate().filter_map(bound).collect()
    }

    /// Adds the values that numbers of a `uint64` are compared with to the arguments, so that the scan looks at them.
    fn check_unsigned(&self, best: &mut Candidate) {
        for term in &self.asked.terms {
            let column = usize::try_from(term.column).unwrap_or(0);
            let is_checked = term.is_usable && term.value.is_none();
            if !is_checked || !is_refused(self.shape.column(column), term.op) {
                continue;
            }
            let argument = match best.terms.iter().position(|place| *place == term.place) {
                Some(argument) => argument,
                // SQLite would search once for each value.
                None if term.is_in && !term.can_be_listed() => continue,
                None => {
                    best.terms.push(term.place);
                    let argument = best.terms.len() - 1;
                    best.plan.lists.extend(term.is_in.then_some(argument));
                    argument
                }
            };
            best.plan.unsigned.push((argument, column));
        }
    }

    /// Returns what a plan costs with sorting its rows.
    fn weight(&self, candidate: &Candidate) -> f64 {
        let is_sorted = candidate.is_ordered || self.asked.order.is_empty();
        let halvings = (candidate.rows + 2.0).log2();
        candidate.cost + if is_sorted { 0.0 } else { candidate.rows * halvings * SORT }
    }

    /// Returns the usable conditions on a column in SQL.
    fn terms(&self, place: usize) -> impl Iterator<Item = (&Term, Op)> {
        let column = self.shape.column(place);
        self.asked.terms.iter().filter_map(move |term| {
            let is_on = usize::try_from(term.column.max(0)) == Ok(place);
            let op = term.op.filter(|_| is_on && term.is_usable)?;
            let compares = match (op, column) {
                (Op::Like | Op::Glob, column) => {
                    column.is_some_and(|column| column.ty.class() == TypeClass::String)
                }
                (Op::IsNull, _) => true,
                // Of an IN, SQLite compares each single value again as a text. A subquery of numbers makes numbers of both.
                (_, Some(column)) if column.is_text() => {
                    term.collation.as_deref() == Some(column.collation())
                        && (!term.is_in || term.can_be_listed())
                }
                _ => true,
            };
            compares.then_some((term, op))
        })
    }

    fn equality(&self, place: usize) -> Option<(&Term, Op)> {
        self.terms(place).find(|(_, op)| matches!(op, Op::Equal | Op::Is | Op::IsNull))
    }

    /// Returns at most one lower and one upper bound, or a pattern.
    fn bounds(&self, place: usize, with_patterns: bool) -> Vec<(&Term, Op)> {
        let find = |ops: [Op; 2]| self.terms(place).find(|(_, op)| ops.contains(op));
        let pattern = find([Op::Glob, Op::Like]).filter(|(term, op)| {
            with_patterns && term.value.as_ref().is_none_or(|value| walk::has_prefix(*op, value))
        });
        if let Some(pattern) = pattern {
            return vec![pattern];
        }
        let lower = find([Op::Greater, Op::GreaterOrEqual]);
        lower.into_iter().chain(find([Op::Less, Op::LessOrEqual])).collect()
    }

    fn by_id(&self, total: u64) -> Candidate {
        let total = float(total);
        if let Some((term, Op::Equal | Op::Is)) = self.equality(0) {
            return Candidate {
                plan: Plan::new(Way::Row, false),
                terms: vec![term.place],
                rows: 1.0,
                cost: 1.0,
                is_ordered: true,
                is_unique: true,
            };
        }
        let bounds = self.bounds(0, false);
        let share: f64 = bounds.iter().map(|_| 0.25).product();
        let order = self.order(&[(0, false)], &[]);
        let (terms, bounds) = bounds.iter().map(|(term, op)| (term.place, *op)).unzip();
        Candidate {
            plan: Plan::new(Way::Ids { bounds }, order == Some(true)),
            terms,
            rows: total * share,
            cost: total * share + 2.0,
            is_ordered: order.is_some(),
            is_unique: false,
        }
    }

    fn by_index(&self, place: usize, key: &Key, total: u64) -> Result<Candidate, Fault> {
        let leading = key.columns.iter().map_while(|column| self.equality(column.column));
        let leading: Vec<_> = leading.collect();
        let next = key.columns.get(leading.len()).filter(|column| !column.is_collated);
        let bounds = next.map_or_else(Vec::new, |column| self.bounds(column.column, true));
        let rows = self.count(key, &leading, &bounds, total)?;
        let mut sequence = Vec::new();
        for column in key.columns.iter().skip(leading.len()) {
            let is_sorted = self.shape.column(column.column).is_some_and(sorts_alike);
            if column.is_collated || !is_sorted {
                break;
            }
            sequence.push((column.column, column.is_descending));
        }
        if leading.len() + sequence.len() == key.columns.len() {
            sequence.push((0, false));
        }
        // Texts may equal a number in several forms, so they are one text only if the value is known to be one.
        let is_one = |(column, (term, _)): (usize, &(&Term, Op))| {
            let column = key.columns[column].column;
            let is_text = matches!(term.value, Some(Form::Text(_)));
            (!self.shape.column(column).is_some_and(Column::is_text) || is_text).then_some(column)
        };
        let constant: Option<Vec<_>> = leading.iter().enumerate().map(is_one).collect();
        let order = constant.and_then(|constant| self.order(&sequence, &constant));
        let ops = |terms: &[(&Term, Op)]| terms.iter().map(|(_, op)| *op).collect();
        let way = Way::Index { key: place, equal: ops(&leading), bounds: ops(&bounds) };
        Ok(Candidate {
            plan: Plan::new(way, order == Some(true)),
            terms: leading.iter().chain(&bounds).map(|(term, _)| term.place).collect(),
            rows,
            cost: (float(total) + 2.0).log2() * 0.2 + rows * ROW,
            is_ordered: order.is_some(),
            is_unique: false,
        })
    }

    /// Returns the plan of an index that the statement makes for itself, of all columns whose values will be known.
    fn by_transient(&self, total: f64) -> Option<Candidate> {
        // A value that is known by now is searched for once.
        let is_joined =
            |(term, op): &(&Term, Op)| *op == Op::Equal && term.value.is_none() && !term.is_in;
        let (mut columns, mut terms) = (Vec::new(), Vec::new());
        for place in 1..=self.shape.columns.len() {
            // Variants may have had other names then.
            let is_hashed = |it: &Column| match it.ty {
                Type::Enum(_) => self.past != Some(Through::Then),
                ty => ty.class() != TypeClass::Blob,
            };
            let found = self.terms(place).find(is_joined);
            if let Some((term, _)) =
                found.filter(|_| self.shape.column(place).is_some_and(is_hashed))
            {
                columns.push(place);
                terms.push(term.place);
            }
        }
        if columns.is_empty() {
            return None;
        }
        let order = self.order(&[(0, false)], &[]);
        let rows = total.sqrt().sqrt().max(1.0);
        Some(Candidate {
            plan: Plan::new(Way::Transient { columns }, order == Some(true)),
            terms,
            rows,
            cost: TRANSIENT + total * SHARE + rows * ROW,
            is_ordered: order.is_some(),
            is_unique: false,
        })
    }

    /// Returns how the requested order is met by rows in the order of `sequence`, columns with their directions: by
    /// walking backward or forward; `None` if it isn't.
    fn order(&self, sequence: &[(usize, bool)], constant: &[usize]) -> Option<bool> {
        let (mut backward, mut left) = (None, sequence.iter());
        for Order { column, is_descending } in &self.asked.order {
            let column = usize::try_from(*column).unwrap_or(0);
            if constant.contains(&column) {
                continue;
            }
            let &(next, next_descends) = left.next()?;
            let is_backward = *is_descending != next_descends;
            if next != column || backward.is_some_and(|backward| backward != is_backward) {
                return None;
            }
            backward = Some(is_backward);
            if next == 0 {
                break;
            }
        }
        Some(backward.unwrap_or(false))
    }

    /// Counts the rows of conditions: exactly if their values are known by now, else by the size of a usual group.
    fn count(
        &self,
        key: &Key,
        leading: &[(&Term, Op)],
        bounds: &[(&Term, Op)],
        total: u64,
    ) -> Result<f64, Fault> {
        if leading.is_empty() && bounds.is_empty() {
            return Ok(float(total));
        }
        if self.past.is_none() && leading.iter().chain(bounds).all(|(term, _)| term.value.is_some())
        {
            let values: Vec<_> =
                leading.iter().chain(bounds).filter_map(|(term, _)| term.value.clone()).collect();
            let ops = |terms: &[(&Term, Op)]| terms.iter().map(|(_, op)| *op).collect::<Vec<_>>();
            let (equal, bounds) = (ops(leading), ops(bounds));
            let found =
                walk::find(self.shape, key, &equal, &bounds, &|place| values.get(place).cloned());
            return count(self.now, key, &found);
        }
        let group = match leading.len() {
            0 => float(total),
            all if key.is_unique && all == key.columns.len() => 1.0,
            fields => self.usual_group(key, fields, total)?,
        };
        Ok((group * bounds.iter().map(|_| 0.25).product::<f64>()).max(1.0))
    }

    /// Returns the number of rows that have the same first fields of a key: the mean of some groups.
    fn usual_group(&self, key: &Key, fields: usize, total: u64) -> Result<f64, Fault> {
        let index = self.now.index(key.number)?;
        let mut inverse = 0.0;
        let samples = SAMPLES.min(total);
        for sample in 0..samples {
            let Some(row) = index.nth((total * (2 * sample + 1)) / (2 * samples))? else {
                continue;
            };
            let numbers = key.columns.iter().take(fields);
            let numbers = numbers.filter_map(|it| self.shape.column(it.column)).map(|it| it.field);
            let values: Vec<ValueRef<'_>> = numbers.map(|field| row.value(field)).collect();
            let size = index.equal(&values).left()?.max(1);
            inverse += 1.0 / float(size);
        }
        Ok(if inverse > 0.0 { float(samples) / inverse } else { 1.0 })
    }

    /// Returns a plan as people read it.
    fn text(&self, plan: &Plan) -> String {
        let mut text = match &plan.way {
            Way::Row => "id = ?".to_owned(),
            Way::Ids { bounds } => {
                let bounds: Vec<_> =
                    bounds.iter().map(|op| format!("id {} ?", op.sign())).collect();
                if bounds.is_empty() { "all".to_owned() } else { bounds.join(" AND ") }
            }
            Way::Transient { columns } => {
                let names = columns.iter().filter_map(|&it| self.shape.column(it));
                let terms: Vec<_> = names.map(|column| format!("{} = ?", column.name)).collect();
                format!("index for this statement: {}", terms.join(" AND "))
            }
            Way::Index { key, equal, bounds } => {
                let key = &self.shape.keys[*key];
                let name = |at: usize| {
                    let column = key.columns.get(at).and_then(|it| self.shape.column(it.column));
                    column.map_or("", |column| column.name.as_str())
                };
                let equal = equal.iter().enumerate().map(|(at, op)| (at, *op));
                let next = equal.len();
                let bounds = bounds.iter().map(|op| (next, *op));
                let terms = equal
                    .chain(bounds)
                    .map(|(at, op)| format!("{} {} ?", name(at), op.sign().trim()));
                format!("{}: {}", key.name, terms.collect::<Vec<_>>().join(" AND "))
            }
        };
        if plan.is_backward {
            text.push_str(" backward");
        }
        text
    }

    /// Adds the cost of the past to an answer.
    pub(crate) fn of_past(mut answer: Answer, plan: &Plan) -> Answer {
        answer.cost += if plan.way == Way::Row { 10.0 } else { PAST };
        answer
    }
}

/// True if an index has the values of a column in the order in which SQLite sorts them.
fn sorts_alike(column: &Column) -> bool {
    column.ty.class() != TypeClass::Blob
}

fn count(now: &Snapshot, key: &Key, found: &Found) -> Result<f64, Fault> {
    let index = now.index(key.number)?;
    let Found { equal, next } = found;
    let equal: Vec<_> = equal.iter().map(Value::as_ref).collect();
    let rows = match next {
        walk::Next::Nothing => 0,
        walk::Next::All => index.equal(&equal).left()?,
        walk::Next::Seek(Seek::Between(lower, upper)) => {
            index.range(&equal, crate::seeks::bound(lower), crate::seeks::bound(upper)).left()?
        }
        walk::Next::Seek(_) => index.equal(&equal).left()?,
        walk::Next::Prefixes(prefixes) => {
            let mut all = 0;
            for prefix in prefixes {
                all += index.prefix(&equal, prefix.as_bytes()).left()?;
            }
            all
        }
    };
    Ok(float(rows))
}

#[expect(clippy::cast_precision_loss, reason = "a number of rows")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}
