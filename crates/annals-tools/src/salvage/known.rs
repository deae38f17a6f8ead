//! Changing the new journal to a state that is known besides the transactions, if some of those before it are lost.
//!
//! One transaction does that: missing rows are inserted, different ones updated, surplus ones deleted. So all that
//! follows fits again.

use std::io;
use std::sync::Arc;

use annals::event::Event;
use annals::internals::{is_same, live_blobs};
use annals::{
    Blob, Command, Database, Error, Result, Row, RowId, Snapshot, Table, TableNumber, Timestamp,
    Transaction, ValueRef,
};

use super::report::Restored;

/// A transaction that changes a database to a state.
struct Bringing<'db, 's> {
    transaction: Transaction<'db>,
    state: &'s Snapshot,
    /// Runs of numbers of blobs whose bytes were lost, first and last.
    lost: &'s mut Vec<(u64, u64)>,
    done: Restored,
}

/// Changes a database to a state by one transaction. Writes nothing if the database has the state already. `lost`
/// are runs of blobs whose bytes aren't in the database; those that the state lacks too are added.
///
/// # Errors
/// `Invalid`: the state kept before has tables that the known state lacks; `Corrupt`: the state can't be read whole;
/// `Io`. Then nothing was written.
pub(super) fn bring(
    database: &Database,
    state: &Snapshot,
    what: &str,
    lost: &mut Vec<(u64, u64)>,
    time: Option<Timestamp>,
) -> Result<Restored> {
    let before = database.read();
    let (own, other) = (before.schema().commands(), state.schema().commands());
    if own.len() > other.len() || own.iter().zip(other.iter()).any(|(own, other)| own != other) {
        return Err(Error::invalid(
            "what was kept before it has other tables, since a schema change is lost",
        ));
    }
    let missing: Vec<_> = other.iter().skip(own.len()).cloned().collect();
    let runs = lost.len();
    let transaction = database.begin()?;
    let mut bringing = Bringing { transaction, state, lost, done: Restored::default() };
    let brought = bringing.all(&before, &missing);
    let Bringing { mut transaction, lost, mut done, .. } = bringing;
    let checked = brought.and_then(|()| transaction.check_constraints());
    if checked.is_err() || done.is_nothing() {
        lost.truncate(runs);
        transaction.rollback()?;
        return checked.map(|()| done);
    }
    done.txid = state.txid();
    transaction.comment(&format!(
        "salvage: the state after transaction {} was taken from {what}, since the journal has lost some of the \
         transactions up to there",
        state.txid()
    ))?;
    if let Some(time) = time {
        transaction.set_time(time);
    }
    transaction.commit()?;
    Ok(done)
}

impl Bringing<'_, '_> {
    fn all(&mut self, before: &Snapshot, missing: &[Command]) -> Result<()> {
        for command in missing {
            if let Command::SetSingleRow { table, single: true } = *command {
                self.place_holder(before, table)?;
            }
            self.event(&Event::Schema(command))?;
            self.done.commands += 1;
        }
        self.blobs()?;
        let schema = Arc::clone(self.state.schema());
        schema.tables().iter().try_for_each(|table| self.table(before, table))
    }

    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.transaction.take_event(event, |store| store.apply(event))
    }

    /// Makes the row without which a table can't be made one of a single row.
    fn place_holder(&mut self, before: &Snapshot, table: TableNumber) -> Result<()> {
        if before.table(table).is_ok_and(|view| view.rows().next().is_some()) {
            return Ok(());
        }
        let id = self.state.table(table)?.single().map_or(RowId(0), |row| row.id());
        self.event(&Event::InsertVector { table, id, count: 1 })
    }

    /// Adds the blobs whose numbers the database doesn't have yet, so that later ones keep theirs.
    fn blobs(&mut self) -> Result<()> {
        let next = self.transaction.view().last_blob().0 + 1;
        let live = live_blobs(self.state)?;
        for blob in (next..=self.state.last_blob().0).map(Blob) {
            let is_live = live.binary_search(&blob).is_ok();
            let read = || io::copy(&mut self.state.blob(blob).ok()?, &mut io::sink()).ok();
            let whole = is_live && read().is_some();
            match whole {
                true => self.transaction.write_blob(self.state.blob(blob)?)?,
                false => self.transaction.write_blob(io::empty())?,
            };
            if is_live && !whole {
                self.lost.push((blob.0, blob.0));
            }
            self.done.blobs += u64::from(whole);
        }
        Ok(())
    }

    /// Fills a table with the rows that the state has.
    fn table(&mut self, before: &Snapshot, table: &Table) -> Result<()> {
        let state = self.state;
        let view = state.table(table.number)?;
        let mut theirs = view.rows().peekable();
        let ours = before.table(table.number).ok();
        let mut ours = ours.iter().flat_map(|view| view.rows()).peekable();
        loop {
            let id = |row: Option<&Result<Row<'_>>>| match row {
                Some(Ok(row)) => Some(row.id()),
                _ => None,
            };
            let (own, other) = (id(ours.peek()), id(theirs.peek()));
            let takes_own = own.is_some_and(|own| other.is_none_or(|other| own <= other));
            let takes_other = other.is_some_and(|other| own.is_none_or(|own| other <= own));
            let ours = if takes_own || own.is_none() { ours.next().transpose()? } else { None };
            let theirs =
                if takes_other || other.is_none() { theirs.next().transpose()? } else { None };
            match (ours, theirs) {
                (None, None) => break,
                (own, Some(row)) => self.row(table, own.as_ref(), &row)?,
                (Some(own), None) => {
                    self.event(&Event::Delete { table: table.number, id: own.id() })?;
                    self.done.deleted += 1;
                }
            }
        }
        self.next_id(table.number, view.next_id())
    }

    /// Inserts a row, or changes one to its values in the state.
    fn row(&mut self, table: &Table, own: Option<&Row<'_>>, row: &Row<'_>) -> Result<()> {
        let (number, id) = (table.number, row.id());
        let values: Vec<_> = table
            .fields
            .iter()
            .map(|field| self.value(field.nullable, row.value(field.number)))
            .collect();
        let is_there = own.is_some() || self.transaction.view().table(number)?.contains(id)?;
        if !is_there {
            self.done.inserted += 1;
            return self.event(&Event::Insert { table: number, id, values: &values });
        }
        let mut is_changed = false;
        for (field, value) in table.fields.iter().zip(values) {
            // Its own row is of before the commands, which may have added the field.
            let is_kept = own.is_some_and(|own| {
                own.table().schema().field(field.number).is_some()
                    && is_same(own.value(field.number), value)
            });
            if !is_kept {
                let field = field.number;
                self.event(&Event::Update { table: number, id, field, value })?;
                is_changed = true;
            }
        }
        self.done.updated += u64::from(is_changed);
        Ok(())
    }

    /// Returns a value, or null in place of a blob whose bytes are lost.
    fn value<'v>(&mut self, nullable: bool, value: ValueRef<'v>) -> ValueRef<'v> {
        let ValueRef::Blob(blob) = value else { return value };
        let is_lost = self.lost.iter().any(|&(first, last)| (first..=last).contains(&blob.0));
        self.done.lost_blobs += u64::from(is_lost);
        if is_lost && nullable { ValueRef::Null } else { value }
    }

    /// Makes and deletes the row of the largest id that a table ever had.
    fn next_id(&mut self, table: TableNumber, next: u64) -> Result<()> {
        let own = self.transaction.view().table(table)?.next_id();
        match next.checked_sub(1).map(RowId).filter(|_| own < next) {
            Some(id) => {
                self.event(&Event::InsertVector { table, id, count: 1 })?;
                self.event(&Event::Delete { table, id })
            }
            None => Ok(()),
        }
    }
}
