//! Reading our transactions, and making each of them again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use annals::event::Event;
use annals::internals::RowChanges;
use annals::{
    Blob, Changed, Command, Committed, Cursor, ErrorKind, Obstacle, Result, RowChange, RowId,
    Schema, Sink, Snapshot, Table, TableNumber, Transaction, Txid, Value, View,
};

use super::clashes::Clash;
use super::origins::{self, Made};
use super::renumbering::Renumbering;
use crate::undo::{Key, Step, Values};

/// A change of a row, and the id that the row has here.
pub(super) struct Again {
    pub(super) step: Step,
    pub(super) id: RowId,
}

/// What a transaction has besides its changes of rows.
#[derive(Debug, Default)]
struct Besides {
    commands: Vec<Command>,
    timestamps: Vec<i64>,
    is_valid: bool,
}

/// Takes the events of our transactions, and makes these again in one that is held.
pub(super) struct Replay<'t, 'db> {
    pub(super) tx: &'t mut Transaction<'db>,
    theirs: &'t Snapshot,
    pub(super) ours: &'t Snapshot,
    /// The state that both had.
    pub(super) base: Arc<View>,
    rows: RowChanges,
    besides: Besides,
    /// How many commands of the schema ours had so far.
    commands: usize,
    /// The transactions that were made again already.
    pub(super) made: Made,
    pub(super) ids: Renumbering,
    blobs: HashMap<Blob, Blob>,
    pub(super) clashes: Vec<Clash>,
    /// The rows there, by their ids there, that could not be changed.
    pub(super) failed: BTreeSet<Key>,
    /// True if nothing more can be judged.
    is_over: bool,
    /// How many transactions were made.
    pub(super) transactions: u64,
}

impl<'t, 'db> Replay<'t, 'db> {
    pub(super) fn new(
        tx: &'t mut Transaction<'db>,
        theirs: &'t Snapshot,
        ours: &'t Snapshot,
        base: Arc<View>,
    ) -> Self {
        let commands = base.schema().commands().len();
        Self {
            tx,
            theirs,
            ours,
            rows: RowChanges::new(Arc::clone(&base), Arc::clone(ours.schema())),
            base,
            besides: Besides::default(),
            commands,
            made: Made::default(),
            ids: Renumbering::default(),
            blobs: HashMap::new(),
            clashes: Vec::new(),
            failed: BTreeSet::new(),
            is_over: false,
            transactions: 0,
        }
    }

    /// Returns a row of ours with the values that it has there: its references follow their rows, its blobs are copied.
    pub(super) fn values(&mut self, table: &Table, values: &Values) -> Result<Values> {
        let Some(mut values) = self.ids.row(table, values.clone()) else { return Ok(None) };
        for value in &mut values {
            if let Value::Blob(blob) = value {
                *blob = self.blob(*blob)?;
            }
        }
        Ok(Some(values))
    }

    fn blob(&mut self, blob: Blob) -> Result<Blob> {
        if let Some(copy) = self.blobs.get(&blob) {
            return Ok(*copy);
        }
        if self.base.blob_len(blob)?.is_some() {
            return Ok(blob);
        }
        let copy = self.tx.write_blob(self.ours.blob(blob)?)?;
        self.blobs.insert(blob, copy);
        Ok(copy)
    }

    fn transaction(&mut self, changed: &Changed, committed: &Committed) -> Result<()> {
        let besides = std::mem::take(&mut self.besides);
        if let Some(&there) = self.made.get(&(committed.txid, committed.chain)) {
            self.commands += besides.commands.len();
            return self.recognize(changed, there);
        }
        for command in &besides.commands {
            self.command(command, changed)?;
        }
        if self.is_over {
            return Ok(());
        }
        let steps = self.steps(changed)?;
        self.apply(&steps)?;
        if !self.clashes.is_empty() {
            return Ok(());
        }
        for comment in &changed.comments {
            self.tx.comment(comment)?;
        }
        let original = Cursor { txid: committed.txid, chain: committed.chain };
        self.tx.comment(&origins::comment(original))?;
        for &seconds in &besides.timestamps {
            self.tx.timestamp(seconds)?;
        }
        if besides.is_valid {
            self.tx.valid_data()?;
        }
        if committed.explicit_time {
            self.tx.set_time(committed.time);
        }
        match self.tx.end_one() {
            Ok(()) => self.transactions += 1,
            Err(error) if matches!(error.kind(), ErrorKind::Unique | ErrorKind::Reference) => {
                let row = changed.rows.first();
                let table = row.and_then(|row| self.ours.schema().table(row.table));
                let name = table.map_or("?", |table| &table.name);
                let reason = format!("transaction {} here: {error}", changed.txid);
                let obstacle = Obstacle::new(name, row.map_or(RowId(0), |row| row.id), reason);
                let obstacle = obstacle.met_by(changed.txid);
                self.clashes.push(Clash { obstacle, cause: None });
                self.is_over = true;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a command of the schema again, unless it is there already.
    fn command(&mut self, command: &Command, changed: &Changed) -> Result<()> {
        let there = Arc::clone(self.tx.view().schema());
        let made = there.commands().get(self.commands);
        let text = self.ours.schema().command_text(command);
        let applied = match made {
            Some(made) if made == command => Ok(()),
            Some(other) => Err(format!("it is `{}` there", there.command_text(other))),
            None => match self.tx.apply_command(command) {
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                applied => applied.map_err(|error| error.to_string()),
            },
        };
        self.commands += 1;
        if let Err(reason) = applied {
            let reason = format!(
                "transaction {} here has `{text}` as command {} of the schema: {reason}",
                changed.txid, self.commands
            );
            let obstacle = Obstacle::new("schema", RowId(0), reason).met_by(changed.txid);
            self.clashes.push(Clash { obstacle, cause: None });
            self.is_over = true;
        }
        Ok(())
    }

    /// Makes the changes: rows are deleted last, when nothing of the others refers to them.
    fn apply(&mut self, steps: &[Again]) -> Result<()> {
        let phase = |again: &Again| match (&again.step.now, &again.step.target) {
            (_, None) => 2,
            (None, _) => 1,
            _ => 0,
        };
        for now in 0..=2 {
            for again in steps.iter().filter(|again| phase(again) == now) {
                let key = (again.step.table, again.step.id);
                if !self.failed.contains(&key) {
                    again.step.apply(self.tx)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the ids of the rows that a transaction of ours inserted when it was made again before: each table's are in the
    /// same order.
    fn recognize(&mut self, changed: &Changed, there: Txid) -> Result<()> {
        let mut inserted = HashMap::<TableNumber, Vec<RowId>>::new();
        for made in self.theirs.changes(there..=there)? {
            for row in inserts(&made?) {
                inserted.entry(row.table).or_default().push(row.id);
            }
        }
        let mut places = HashMap::<TableNumber, usize>::new();
        for row in inserts(changed) {
            let place = places.entry(row.table).or_default();
            let id = inserted.get(&row.table).and_then(|ids| ids.get(*place));
            *place += 1;
            if let Some(id) = id {
                self.ids.note((row.table, row.id), *id);
            }
        }
        Ok(())
    }
}

fn inserts(changed: &Changed) -> impl Iterator<Item = &RowChange> {
    changed.rows.iter().filter(|row| row.before.is_none())
}

impl Sink for Replay<'_, '_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Schema(command) => self.besides.commands.push(command.clone()),
            Event::Timestamp(seconds) => self.besides.timestamps.push(seconds),
            Event::ValidData => self.besides.is_valid = true,
            _ => {}
        }
        self.rows.event(schema, event)
    }

    fn commit(&mut self, schema: &Schema, committed: &Committed) -> Result<()> {
        self.rows.commit(schema, committed)?;
        while let Some(changed) = self.rows.done.pop_front() {
            if !self.is_over {
                self.transaction(&changed, committed)?;
            }
        }
        Ok(())
    }
}
