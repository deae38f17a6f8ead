//! The rows of a table: now, or at a moment.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use crate::forms::form;
use crate::host::{Answer, Arguments, Asked, Fault, Form, Op, Out, Relation, Scan};
use crate::relation::plan::{Plan, Planning};
use crate::relation::refusal;
use crate::relation::walk::Walking;
use crate::session::{Session, Sight};
use crate::shape::Shape;

/// The plans that were made: a scan gets the number of one.
type Plans = Arc<Mutex<Vec<Plan>>>;

/// A table.
pub(crate) struct Table {
    session: Arc<Session>,
    shape: Arc<Shape>,
    is_past: bool,
    declaration: String,
    plans: Plans,
}

impl Table {
    pub(crate) fn new(session: Arc<Session>, shape: Arc<Shape>, is_past: bool) -> Self {
        let mut declaration = "CREATE TABLE x(\"id\" INTEGER PRIMARY KEY".to_owned();
        for column in &shape.columns {
            column.declare(&mut declaration, "");
        }
        declaration.push_str(if is_past { ", \"annals_moment\" HIDDEN)" } else { ")" });
        Self { session, shape, is_past, declaration, plans: Plans::default() }
    }

    /// Returns the condition on the moment, which must be known before all else.
    fn moment(&self, asked: &Asked) -> Result<usize, Fault> {
        let column = c_int::try_from(self.shape.columns.len() + 1).unwrap_or(c_int::MAX);
        let mut terms = asked.terms.iter().filter(|term| term.column == column);
        let mut is_there = false;
        let found = terms.find(|term| {
            is_there |= term.op == Some(Op::Equal);
            term.op == Some(Op::Equal) && term.is_usable
        });
        match found {
            Some(term) => Ok(term.place),
            None if is_there => Err(Fault::unusable()),
            None => Err(Fault::new(format!(
                "{}_at needs a moment: {0}_at(17), {0}_at('time:2024-02-29T12:00:00Z') or {0}_at('comment:TEXT')",
                self.shape.name
            ))),
        }
    }
}

impl Relation for Table {
    fn declaration(&self) -> &str {
        &self.declaration
    }

    fn plan(&self, asked: &Asked) -> Result<Answer, Fault> {
        let moment = if self.is_past { Some(self.moment(asked)?) } else { None };
        let now = self.session.glance();
        self.shape.check(&now)?;
        let planning = Planning { shape: &self.shape, asked, now: &now, is_past: self.is_past };
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
        let moment = self.is_past.then_some(Form::Null);
        Ok(Box::new(TableScan { sight, shape, plans, moment, walking }))
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
    /// The moment, if it is a past state.
    moment: Option<Form<'static>>,
    walking: Walking,
}

impl Scan for TableScan {
    fn begin(&mut self, plan: c_int, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let plan = usize::try_from(plan).ok().and_then(|place| {
            let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.get(place).cloned()
        });
        let plan = plan.ok_or_else(|| Fault::new("a plan of another table"))?;
        let mut first = 0;
        if let Some(moment) = &mut self.moment {
            first = 1;
            *moment = arguments.get(0).into_owned();
            let Some(past) = self.sight.at(moment)? else {
                self.walking = Walking::over(self.sight.snapshot.clone());
                return Ok(());
            };
            self.shape.check(&past)?;
            self.walking = Walking::over(past);
        }
        self.walking.begin(&self.shape, &plan, &|place| arguments.get(first + place))
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.walking.step()
    }

    fn is_over(&self) -> bool {
        self.walking.is_over()
    }

    fn column(&self, place: usize, out: Out<'_>) -> Result<(), Fault> {
        self.walking.with_dependent(|snapshot, walk| {
            let Some(row) = &walk.row else { return Ok(()) };
            match self.shape.column(place) {
                Some(column) => out.put(&form(row.value(column.field), snapshot)?),
                None if place == 0 => out.put(&Form::Integer(row.id().0.cast_signed())),
                None => out.put(self.moment.as_ref().unwrap_or(&Form::Null)),
            }
            Ok(())
        })
    }

    fn id(&self) -> i64 {
        self.walking
            .with_dependent(|_, walk| walk.row.as_ref().map_or(0, |row| row.id().0.cast_signed()))
    }
}
