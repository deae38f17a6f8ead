//! The rows of a table: now, or at a moment.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use annals::{Snapshot, ValueRef};

use crate::forms::form;
use crate::host::{Answer, Arguments, Asked, Fault, Form, Op, Out, Relation, Scan};
use crate::relation::lists::Lists;
use crate::relation::plan::Planning;
use crate::relation::refusal;
use crate::relation::unsigned::refuse;
use crate::relation::walk::{Given, Walking, single_values};
use crate::relation::walk::{Plan, Way};
use crate::session::{Session, Sight, Through};
use crate::shape::{Kind, Shape};

/// The plans that were made: a scan gets the number of one.
type Plans = Arc<Mutex<Vec<Plan>>>;

/// How many rows a table is taken to have that isn't there any more.
const DROPPED: u64 = 1000;

/// A table.
pub(crate) struct Table {
    session: Arc<Session>,
    shape: Arc<Shape>,
    /// The schema through which the past is read, if it is the past.
    past: Option<Through>,
    declaration: String,
    plans: Plans,
}

impl Table {
    pub(crate) fn new(session: Arc<Session>, shape: Arc<Shape>, past: Option<Through>) -> Self {
        let mut declaration = "CREATE TABLE x(\"id\" INTEGER PRIMARY KEY".to_owned();
        for column in &shape.columns {
            column.declare(&mut declaration, "");
        }
        if past.is_some() {
            let hidden = crate::shape::quoted(&shape.free_name("annals_moment"));
            declaration.push_str(&format!(", {hidden} HIDDEN"));
        }
        declaration.push(')');
        Self { session, shape, past, declaration, plans: Plans::default() }
    }

    /// Returns the condition on the moment, which must be known before all else.
    fn moment(&self, asked: &Asked, through: Through) -> Result<usize, Fault> {
        let column = c_int::try_from(self.shape.columns.len() + 1).unwrap_or(c_int::MAX);
        let mut terms = asked.terms.iter().filter(|term| term.column == column);
        let mut is_there = false;
        let found = terms.find(|term| {
            is_there |= term.op == Some(Op::Equal);
            term.op == Some(Op::Equal) && term.is_usable
        });
        let ending = match through {
            Through::Present => Kind::At.ending(),
            Through::Then => Kind::AsItWas.ending(),
        };
        let name = format!("{}{ending}", self.shape.name);
        match found {
            Some(term) => Ok(term.place),
            None if is_there => Err(Fault::unusable()),
            None => Err(Fault::new(format!(
                "{name} needs a moment: {name}(17), {name}('time:2024-02-29T12:00:00Z') or {name}('comment:TEXT')"
            ))),
        }
    }
}

impl Relation for Table {
    fn declaration(&self) -> &str {
        &self.declaration
    }

    fn plan(&self, asked: &Asked) -> Result<Answer, Fault> {
        let moment = self.past.map(|through| self.moment(asked, through)).transpose()?;
        let now = self.session.glance();
        self.shape.check(&now)?;
        let total = now.table(self.shape.table).map_or(DROPPED, |table| table.len());
        let planning = Planning { shape: &self.shape, asked, now: &now, total, past: self.past };
        let (plan, mut answer) = planning.choose()?;
        if let Some(moment) = moment {
            answer = Planning::of_past(answer, &plan);
            answer.arguments.insert(0, moment);
            answer.given = 1;
        }
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let place = plans.iter().position(|known| *known == plan).unwrap_or_else(|| {
            plans.push(plan);
            plans.len() - 1
        });
        answer.number = c_int::try_from(place).map_err(|_| Fault::new("too many plans"))?;
        Ok(answer)
    }

    fn open(&self, is_alone: bool) -> Result<Box<dyn Scan>, Fault> {
        let sight = self.session.enter(is_alone)?;
        self.shape.check(&sight.snapshot)?;
        let walking = Walking::over(sight.snapshot.clone());
        let (shape, plans) = (Arc::clone(&self.shape), Arc::clone(&self.plans));
        let (past, moment) = (self.past, Form::Null);
        Ok(Box::new(TableScan {
            sight,
            shape,
            plans,
            past,
            moment,
            walking,
            lists: None,
            is_checked: false,
        }))
    }

    fn refusal(&self) -> Fault {
        refusal(&self.shape.name)
    }
}

/// A walk over rows.
struct TableScan {
    sight: Sight,
    shape: Arc<Shape>,
    plans: Plans,
    past: Option<Through>,
    /// The moment, if it is a past state.
    moment: Form<'static>,
    walking: Walking,
    /// The plan and the values of the walks to come, if some conditions are lists.
    lists: Option<(Plan, Lists)>,
    /// True if the lists were looked at that numbers are compared with.
    is_checked: bool,
}

impl TableScan {
    /// Returns the state at the moment of a search; `None` if it is null.
    fn state(&mut self, arguments: &Arguments<'_>) -> Result<Option<Snapshot>, Fault> {
        let Some(through) = self.past else { return Ok(Some(self.sight.snapshot.clone())) };
        self.moment = arguments.get(0).into_owned();
        let Some(past) = self.sight.at(&self.moment, through)? else { return Ok(None) };
        if through == Through::Present {
            self.shape.check(&past)?;
        }
        // The table may not have been there.
        Ok(past.table(self.shape.table).is_ok().then_some(past))
    }

    /// Refuses values that SQLite would compare with numbers of a `uint64` wrongly.
    fn check_unsigned(
        &mut self,
        plan: &Plan,
        arguments: &Arguments<'_>,
        first: usize,
    ) -> Result<(), Fault> {
        for &(argument, column) in &plan.unsigned {
            let column = self.shape.column(column);
            if !plan.lists.contains(&argument) {
                refuse(column, &arguments.get(first + argument))?;
            } else if !self.is_checked {
                // A list is the same in each search, but for one that depends on other tables.
                let list = arguments.list(first + argument)?;
                list.iter().try_for_each(|value| refuse(column, value))?;
            }
        }
        self.is_checked = true;
        Ok(())
    }

    /// Goes to the first row of a plan.
    fn walk(&mut self, plan: &Plan, argument: Given<'_, '_>) -> Result<(), Fault> {
        let argument = &|place| argument(place).and_then(|form| plan.loosened(place, form));
        let Self { sight, shape, walking, .. } = self;
        if let Way::Transient { columns } = &plan.way
            && let Some(values) = single_values(shape, columns, argument)
        {
            let mut columns_then = columns.iter().filter_map(|&it| shape.column(it));
            // Nothing equals null, nor a column that wasn't there.
            if values.is_empty() || !columns_then.all(|it| shape.was(walking.borrow_owner(), it)) {
                *walking = Walking::over(walking.borrow_owner().clone());
                return Ok(());
            }
            let found = sight.find(walking.borrow_owner(), shape, columns, &values)?;
            if let Some(places) = found {
                return walking.begin_at(shape, places, plan.is_backward);
            }
        }
        walking.begin(shape, plan, argument)
    }

    /// Goes to the first row of the next values of lists that have any, if there are more.
    fn next_of_lists(&mut self) -> Result<(), Fault> {
        while self.walking.is_over()
            && let Some((plan, mut lists)) = self.lists.take()
        {
            if lists.advance() {
                self.walk(&plan, &|place| lists.get(place))?;
                self.lists = Some((plan, lists));
            }
        }
        Ok(())
    }
}

impl Scan for TableScan {
    fn begin(&mut self, plan: c_int, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let plan = usize::try_from(plan).ok().and_then(|place| {
            let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.get(place).cloned()
        });
        let mut plan = plan.ok_or_else(|| Fault::new("a plan of another table"))?;
        self.lists = None;
        let Some(state) = self.state(arguments)? else {
            self.walking = Walking::over(self.sight.snapshot.clone());
            return Ok(());
        };
        if self.past.is_some() {
            self.walking = Walking::over(state);
        }
        let first = usize::from(self.past.is_some());
        plan.loose.retain(|(argument, _)| !arguments.is_parameter(first + argument));
        self.check_unsigned(&plan, arguments, first)?;
        if plan.lists.is_empty() {
            return self.walk(&plan, &|place| Some(arguments.get(first + place)));
        }
        let lists = Lists::new(&self.shape, &plan, arguments, first)?;
        self.walking = Walking::over(self.walking.borrow_owner().clone());
        self.lists = Some((plan, lists));
        self.next_of_lists()
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.walking.step()?;
        self.next_of_lists()
    }

    fn is_over(&self) -> bool {
        self.walking.is_over()
    }

    fn column(&self, place: usize, out: Out<'_>) -> Result<(), Fault> {
        self.walking.with_dependent(|snapshot, walk| {
            let Some(row) = &walk.row else { return Ok(()) };
            match self.shape.column(place) {
                Some(column) => {
                    // A past schema may be without it.
                    let is_there =
                        self.past != Some(Through::Then) || self.shape.was(snapshot, column);
                    let value = if is_there { row.value(column.field) } else { ValueRef::Null };
                    out.put(&form(value, snapshot)?);
                }
                None if place == 0 => out.put(&Form::Integer(row.id().0.cast_signed())),
                None => out.put(&self.moment),
            }
            Ok(())
        })
    }

    fn id(&self) -> i64 {
        self.walking
            .with_dependent(|_, walk| walk.row.as_ref().map_or(0, |row| row.id().0.cast_signed()))
    }
}
