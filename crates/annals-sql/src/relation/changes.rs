//! `T_changes(a, b)`: the rows that differ between two moments.

use std::sync::Arc;

use annals::{TableNumber, Txid};

use crate::host::{Answer, Asked, Fault, Form, Op, Relation, Scan};
use crate::relation::listed::{Listed, Picked, Record, Records, declare, kind, kind_of, pick};
use crate::relation::refusal;
use crate::relation::unsigned::refuse_known;
use crate::session::{Session, Sight};
use crate::shape::Shape;

/// The columns before the values.
const OWN: usize = 2;
/// So many bytes of rows are kept at once, about.
const ROOM: usize = 16 << 20;

/// The differences of two states of a table.
pub(super) struct Changes {
    session: Arc<Session>,
    shape: Arc<Shape>,
    declaration: String,
    wanted: [(usize, Op); 2],
}

impl Changes {
    pub(super) fn new(session: Arc<Session>, shape: Arc<Shape>) -> Self {
        let own = "CREATE TABLE x(\"id\" INTEGER, \"kind\" TEXT".to_owned();
        let declaration = declare(own, &shape.columns, &["annals_from", "annals_to"]);
        let hidden = OWN + 2 * shape.columns.len();
        let wanted = [(hidden, Op::Equal), (hidden + 1, Op::Equal)];
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
        let given = arguments.len();
        let is_by_id = |it: &crate::host::Order| it.column <= 0 && !it.is_descending;
        Ok(Answer {
            arguments,
            given,
            number,
            text: "the differences".to_owned(),
            cost: 1000.0,
            rows: 100,
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
    let rows = sight.snapshot.differing(from, to, ROOM)?.of(table);
    Ok(Box::new(rows.map(|change| {
        let change = change?;
        let id = change.id.0.cast_signed();
        let forms = vec![Form::Integer(id), kind(kind_of(&change))];
        Ok(Record::of(id, forms, change))
    })))
}
