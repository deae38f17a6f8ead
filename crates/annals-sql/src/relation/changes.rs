//! `T_changes(a, b)`: the rows that differ between two moments.

use std::sync::Arc;

use annals::{RowChange, TableNumber, Txid};

use crate::differences::Found;
use crate::host::{Answer, Asked, Fault, Form, Op, Relation, Scan};
use crate::relation::listed::{Listed, Picked, Record, Records, declare, kind, kind_of, pick};
use crate::relation::refusal;
use crate::relation::unsigned::refuse_known;
use crate::seeks::OneRow;
use crate::session::{Session, Sight};
use crate::shape::Shape;

/// The columns before the values.
const OWN: usize = 2;
/// The condition on the id among those that are wanted, after the moments.
const ID: usize = 2;

/// The differences of two states of a table.
pub(super) struct Changes {
    session: Arc<Session>,
    shape: Arc<Shape>,
    declaration: String,
    wanted: [(usize, Op); 3],
}

impl Changes {
    pub(super) fn new(session: Arc<Session>, shape: Arc<Shape>) -> Self {
        let own = "CREATE TABLE x(\"id\" INTEGER, \"kind\" TEXT".to_owned();
        let declaration = declare(own, &shape.columns, &["annals_from", "annals_to"]);
        let hidden = OWN + 2 * shape.columns.len();
        let wanted = [(hidden, Op::Equal), (hidden + 1, Op::Equal), (0, Op::Equal)];
        Self { session, shape, declaration, wanted }
    }
}

impl Relation for Changes {
    fn declaration(&self) -> &str {
        &self.declaration
    }

    fn plan(&self, asked: &Asked) -> Result<Answer, Fault> {
        refuse_known(asked, |place| self.shape.side(place, OWN))?;
        let (number, arguments) = pick(asked, &self.wanted, 2)?;
        if number & 1 == 0 {
            return Err(Fault::new(format!(
                "{0}_changes needs a moment, or two: {0}_changes(17), {0}_changes(17, 20)",
                self.shape.name
            )));
        }
        let is_of_row = number & (1 << ID) != 0;
        let given = arguments.len() - usize::from(is_of_row);
        let is_by_id = |it: &crate::host::Order| it.column <= 0 && !it.is_descending;
        Ok(Answer {
            arguments,
            given,
            number,
            text: if is_of_row { "the difference of a row" } else { "the differences" }.to_owned(),
            cost: 1000.0,
            rows: if is_of_row { 1 } else { 100 },
            is_ordered: asked.order.len() == 1 && asked.order.iter().all(is_by_id),
            ..Answer::default()
        })
    }

    fn open(&self, is_alone: bool) -> Result<Box<dyn Scan>, Fault> {
        let sight = self.session.enter(is_alone)?;
        self.shape.check(&sight.snapshot)?;
        let table = self.shape.table;
        let begin = move |sight: &Sight, picked: &Picked<'_, '_>| begin(sight, table, picked);
        let shape = Some(Arc::clone(&self.shape));
        Ok(Box::new(Listed::new(sight, shape, 2, Box::new(begin))))
    }

    fn refusal(&self) -> Fault {
        refusal(&format!("{}_changes", self.shape.name))
    }
}

fn begin(sight: &Sight, table: TableNumber, picked: &Picked<'_, '_>) -> Result<Records, Fault> {
    let txid = |slot: usize| -> Result<Option<Txid>, Fault> {
        match picked.get(slot) {
            Some(moment) => Ok(sight.txid_of(&moment)?),
            None => Ok(Some(sight.snapshot.txid())),
        }
    };
    let (Some(from), Some(to)) = (txid(0)?, txid(1)?) else {
        return Ok(Box::new(std::iter::empty()));
    };
    let row = picked.get(ID).map_or(OneRow::Any, |id| OneRow::equal(&id));
    if matches!(row, OneRow::Nothing) {
        return Ok(Box::new(std::iter::empty()));
    }
    match (sight.differing(table, [from, to])?, row) {
        (Found::All(rows), OneRow::Of(id)) => {
            let found = rows.binary_search_by_key(&id, |change| change.id).ok();
            let found = found.and_then(|place| rows.get(place)).cloned();
            Ok(Box::new(found.into_iter().map(|change| Ok(record(change)))))
        }
        (Found::All(rows), _) => {
            let rows = (0..rows.len()).filter_map(move |place| rows.get(place).cloned());
            Ok(Box::new(rows.map(|change| Ok(record(change)))))
        }
        // SQLite checks the id, too.
        (Found::Many(first, rest), _) => {
            let rows = first.into_iter().map(Ok).chain(rest);
            Ok(Box::new(rows.map(|change| Ok(record(change?)))))
        }
    }
}

fn record(change: RowChange) -> Record {
    let id = change.id.0.cast_signed();
    let forms = vec![Form::Integer(id), kind(kind_of(&change))];
    Record::of(id, forms, change)
}
