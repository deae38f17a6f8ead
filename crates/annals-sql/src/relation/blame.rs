//! `T_blame`: for each field of a row the transaction since which it has its value.

use std::sync::Arc;

use annals::{Blame, ErrorKind, RowId};

use crate::forms::form;
use crate::host::{Answer, Asked, Fault, Form, Op, Relation, Scan};
use crate::relation::listed::{Listed, Picked, Record, Records, kind, origin, paired, pick};
use crate::relation::plan::float;
use crate::relation::refusal;
use crate::seeks::OneRow;
use crate::session::{Session, Sight};
use crate::shape::Shape;

/// The column of the argument, after all others.
const ARGUMENT: usize = 7;

/// The origins of the values of a table.
pub(super) struct Origins {
    session: Arc<Session>,
    shape: Arc<Shape>,
}

impl Origins {
    pub(super) const fn new(session: Arc<Session>, shape: Arc<Shape>) -> Self {
        Self { session, shape }
    }
}

impl Relation for Origins {
    fn declaration(&self) -> &str {
        "CREATE TABLE x(\"id\" INTEGER, \"field\" TEXT, \"value\", \"txid\" INTEGER, \
         \"time\" TIMESTAMP_MICROSECONDS, \"comment\" TEXT, \"kind\" TEXT, \"annals_row\" HIDDEN)"
    }

    fn plan(&self, asked: &Asked) -> Result<Answer, Fault> {
        let (number, arguments) = pick(asked, &[(ARGUMENT, Op::Equal), (0, Op::Equal)], 1)?;
        let fields = u64::try_from(self.shape.columns.len()).unwrap_or(1).max(1);
        let rows = match number & 0b11 {
            0 => self.session.glance().table(self.shape.table)?.len().max(1) * fields,
            _ => fields,
        };
        Ok(Answer {
            arguments,
            given: usize::from(number & 1 != 0),
            number,
            text: if number == 0 { "all rows" } else { "one row" }.to_owned(),
            cost: float(rows) * 100.0,
            rows,
            ..Answer::default()
        })
    }

    fn open(&self, is_alone: bool) -> Result<Box<dyn Scan>, Fault> {
        let sight = self.session.enter(is_alone)?;
        self.shape.check(&sight.snapshot)?;
        let shape = Arc::clone(&self.shape);
        let begin = move |sight: &Sight, picked: &Picked<'_, '_>| begin(sight, &shape, picked);
        Ok(Box::new(Listed::new(sight, None, 1, Box::new(begin))))
    }

    fn refusal(&self) -> Fault {
        refusal(&format!("{}_blame", self.shape.name))
    }
}

fn begin(sight: &Sight, shape: &Arc<Shape>, picked: &Picked<'_, '_>) -> Result<Records, Fault> {
    let (now, shape) = (sight.snapshot.clone(), Arc::clone(shape));
    match picked.row() {
        OneRow::Any => {}
        OneRow::Nothing => return Ok(Box::new(std::iter::empty())),
        OneRow::Of(id) => return Ok(Box::new(of_row(&now, &shape, id)?.into_iter().map(Ok))),
    }
    // The ids are looked up one by one, so that a long list takes no memory.
    let mut next = RowId(0);
    let rows = std::iter::from_fn(move || {
        let id = match now.table(shape.table) {
            Ok(table) => table.range(next..).next().transpose().map(|row| row.map(|row| row.id())),
            Err(error) => Err(error),
        };
        let id = id.transpose()?;
        Some(id.map_err(Fault::from).and_then(|id| {
            next = RowId(id.0 + 1);
            of_row(&now, &shape, id)
        }))
    });
    Ok(Box::new(rows.flat_map(|records| match records {
        Ok(records) => records.into_iter().map(Ok).collect::<Vec<_>>(),
        Err(fault) => vec![Err(fault)],
    })))
}

/// Returns the origins of a row's values; none if there is no such row.
fn of_row(now: &annals::Snapshot, shape: &Shape, id: RowId) -> Result<Vec<Record>, Fault> {
    let all = match now.blame(shape.table, id) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        all => all?,
    };
    let record = |blame: Blame| {
        let column = shape.columns.iter().find(|column| column.field == blame.field);
        let name = column.map_or_else(String::new, |column| column.name.clone());
        let [txid, time, comment] = origin(blame.txid, blame.time, &blame.comments);
        let value = form(blame.value.as_ref(), now)?.into_owned();
        let (row, name) = (Form::Integer(id.0.cast_signed()), Form::Text(name.into()));
        let forms = vec![row, name, value, txid, time, comment, kind(blame.kind)];
        Ok(Record::new(paired(id, blame.field.0.into()), forms))
    };
    all.into_iter().map(record).collect()
}
