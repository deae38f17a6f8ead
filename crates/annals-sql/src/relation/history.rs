//! `T_history(id)`: the versions of a row, or of all rows.

use std::ops::RangeInclusive;
use std::sync::Arc;

use annals::{RowId, Snapshot, TableNumber, Txid, VersionKind};

use crate::host::{Answer, Asked, Fault, Form, Op, Relation, Scan};
use crate::relation::listed::{
    Listed, Picked, Record, Records, TXIDS, declare, kind, kind_of, origin, paired, pick,
};
use crate::relation::plan::float;
use crate::relation::refusal;
use crate::relation::unsigned::refuse_known;
use crate::seeks::OneRow;
use crate::session::{Session, Sight};
use crate::shape::Shape;

/// The index of the column `txid`.
const TXID: usize = 1;
/// The number of columns before those of the values.
const OWN: usize = 5;
/// The number of versions of a row that the query planner assumes.
const VERSIONS: u64 = 10;

/// The history of the rows of a table.
pub(super) struct Histories {
    session: Arc<Session>,
    shape: Arc<Shape>,
    declaration: String,
    wanted: Vec<(usize, Op)>,
}

impl Histories {
    pub(super) fn new(session: Arc<Session>, shape: Arc<Shape>) -> Self {
        let own = "CREATE TABLE x(\"id\" INTEGER, \"txid\" INTEGER, \"time\" TIMESTAMP_MICROSECONDS, \
                   \"comment\" TEXT, \"kind\" TEXT";
        let declaration = declare(own.to_owned(), &shape.columns, &["annals_row"]);
        let hidden = OWN + 2 * shape.columns.len();
        let mut wanted = vec![(hidden, Op::Equal), (0, Op::Equal)];
        wanted.extend(TXIDS.map(|op| (TXID, op)));
        Self { session, shape, declaration, wanted }
    }
}

impl Relation for Histories {
    fn declaration(&self) -> &str {
        &self.declaration
    }

    fn plan(&self, asked: &Asked) -> Result<Answer, Fault> {
        refuse_known(asked, |place| self.shape.side(place, OWN))?;
        let (number, arguments) = pick(asked, &self.wanted, 1)?;
        let is_of_row = number & 0b11 != 0;
        let all = self.session.glance().txid().0.max(1);
        let is_of_transaction = number & 0b100 != 0;
        let rows = match () {
            () if is_of_row || is_of_transaction => VERSIONS,
            () if number != 0 => (all / 4).max(1),
            () => all,
        };
        let is_by_txid = |it: &crate::host::Order| it.column == 1 && !it.is_descending;
        Ok(Answer {
            arguments,
            given: usize::from(number & 1 != 0),
            number,
            text: match () {
                () if is_of_row => "the versions of a row",
                () if is_of_transaction => "the versions by a transaction",
                () => "all versions",
            }
            .to_owned(),
            cost: float(rows) * 20.0,
            rows,
            is_ordered: asked.order.len() == 1 && asked.order.iter().all(is_by_txid),
            ..Answer::default()
        })
    }

    fn open(&self, is_alone: bool) -> Result<Box<dyn Scan>, Fault> {
        let sight = self.session.enter(is_alone)?;
        self.shape.check(&sight.snapshot)?;
        let table = self.shape.table;
        let begin = move |sight: &Sight, picked: &Picked<'_, '_>| begin(sight, table, picked);
        let shape = Some(Arc::clone(&self.shape));
        Ok(Box::new(Listed::new(sight, shape, 1, Box::new(begin))))
    }

    fn refusal(&self) -> Fault {
        refusal(&format!("{}_history", self.shape.name))
    }
}

fn begin(sight: &Sight, table: TableNumber, picked: &Picked<'_, '_>) -> Result<Records, Fault> {
    let (first, last) = picked.txids(2);
    match picked.row() {
        OneRow::Nothing => Ok(Box::new(std::iter::empty())),
        OneRow::Of(id) => of_row(&sight.snapshot, table, id, Txid(first)..=Txid(last)),
        OneRow::Any => of_all(&sight.snapshot, table, first, last),
    }
}

fn of_row(
    now: &Snapshot,
    table: TableNumber,
    id: RowId,
    txids: RangeInclusive<Txid>,
) -> Result<Records, Fault> {
    let versions = now.history_of(table, id)?;
    let versions =
        versions.filter(move |it| it.as_ref().map_or(true, |it| txids.contains(&it.txid)));
    Ok(Box::new(versions.map(move |version| {
        let version = version?;
        Ok(record(
            version.txid,
            origin(version.txid, version.time, &version.comments),
            version.kind(),
            version.change,
        ))
    })))
}

fn record(
    of: Txid,
    origin: [Form<'static>; 3],
    version: VersionKind,
    change: annals::RowChange,
) -> Record {
    let [txid, time, comment] = origin;
    let id = Form::Integer(change.id.0.cast_signed());
    let forms = vec![id, txid, time, comment, kind(version)];
    Record::of(paired(change.id, of.0), forms, change)
}

/// Returns the versions of all rows, in the order of their transactions.
fn of_all(now: &Snapshot, table: TableNumber, first: u64, last: u64) -> Result<Records, Fault> {
    if first > last {
        return Ok(Box::new(std::iter::empty()));
    }
    // From the first one on also what remains of forgotten history.
    let changes = match first {
        1 => now.changes(..=Txid(last))?,
        _ => now.changes(Txid(first)..=Txid(last))?,
    };
    let now = now.clone();
    let mut begins = first == 1;
    Ok(Box::new(changes.flat_map(move |changed| {
        let changed = match changed {
            Ok(changed) => changed,
            Err(error) => return vec![Err(error.into())],
        };
        let is_state = std::mem::take(&mut begins) && is_beginning(&now, &changed);
        let origin = origin(changed.txid, changed.time, &changed.comments);
        let rows = changed.rows.into_iter().filter(|row| row.table == table);
        let records = rows.map(|change| {
            let of = if is_state { VersionKind::State } else { kind_of(&change) };
            Ok(record(changed.txid, origin.clone(), of, change))
        });
        records.collect()
    })))
}

/// True if a transaction is the state at the beginning of the kept history.
fn is_beginning(now: &Snapshot, changed: &annals::Changed) -> bool {
    let Some(row) = changed.rows.first() else { return false };
    let first = now.history_of(row.table, row.id).ok().and_then(|mut history| history.next());
    matches!(first, Some(Ok(version)) if version.is_beginning)
}
