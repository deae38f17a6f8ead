//! What a database must, may and must not hold after a crash.

use annals::journal::format::hash;
use annals::storage::Directory as _;
use annals::{
    Blob, BlobReader, Database, Error, ErrorKind, Level, Snapshot, Transaction, ValueRef, View,
};
use annals_simulated::{SimulatedDisk, is_power_off};

/// What a test gives when a promise is broken: a text that says which.
pub(super) type Checked<T = ()> = Result<T, String>;

/// True if an error is that there is no power. A page that can't be read is lost for its readers, whatever the reason: also
/// where the power is off, or their process is dead.
pub(super) fn is_off(disk: &SimulatedDisk, error: &Error) -> bool {
    is_power_off(error) || (error.kind() == ErrorKind::PageLost && disk.list().is_err())
}

/// One state of the database, by a hash of all it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u64);

impl State {
    /// Takes all into account that was committed.
    pub(super) fn of(snapshot: &Snapshot) -> annals::Result<Self> {
        Self::with(snapshot, &|blob| snapshot.blob(blob))
    }

    /// Takes all into account that a transaction sees.
    pub(super) fn of_transaction(tx: &Transaction<'_>) -> annals::Result<Self> {
        Self::with(tx.view(), &|blob| tx.blob(blob))
    }

    /// Takes everything into account: schema, next ids, rows, blobs.
    fn with<'a>(
        view: &View,
        open: &dyn Fn(Blob) -> annals::Result<BlobReader<'a>>,
    ) -> annals::Result<Self> {
        let mut text = Vec::from(view.schema().to_text());
        let mut blobs = Vec::new();
        for table in view.schema().tables() {
            let rows = view.table(table.number).unwrap();
            text.extend(rows.next_id().to_le_bytes());
            text.extend(rows.len().to_le_bytes());
            for row in rows.rows() {
                let row = row?;
                text.extend(row.id().0.to_le_bytes());
                for field in &table.fields {
                    let value = row.value(field.number);
                    push(&mut text, value);
                    if let ValueRef::Blob(blob) = value {
                        blobs.push(blob);
                    }
                }
            }
        }
        for number in 1.. {
            let mut blob = match open(Blob(number)) {
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                opened => opened?,
            };
            // Of those that no row leads to only the number counts: their bytes may be forgotten.
            text.push(4);
            if blobs.contains(&Blob(number)) {
                text.extend(hash(&blob.to_vec(usize::MAX)?).to_le_bytes());
            }
        }
        Ok(Self(hash(&text)))
    }
}

/// Adds a value, so that no two lists of values give the same bytes.
fn push(text: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => text.push(0),
        ValueRef::Int64(number) => {
            text.push(1);
            text.extend(number.to_le_bytes());
        }
        ValueRef::String(string) => {
            text.push(2);
            text.extend((string.len() as u64).to_le_bytes());
            match string.len() {
                0..100 => text.extend(string.bytes()),
                _ => text.extend(hash(string.as_bytes()).to_le_bytes()),
            }
        }
        ValueRef::Blob(blob) => {
            text.push(3);
            text.extend(blob.0.to_le_bytes());
        }
        other => text.extend(format!("{other:?};").bytes()),
    }
}

/// All states there were, and how much of that is promised.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// The state after each transaction that was acknowledged; the place is the txid.
    states: Vec<State>,
    /// The last transaction that was acknowledged as durable, or that an opening showed.
    pub(super) durable: usize,
    /// The states after the commits that follow the last acknowledged one that may be there, in order:
    /// handed in, or of an outcome that nobody was told.
    pending: Vec<(State, Level)>,
    /// True if an opening ever returned: from then on the file must exist.
    pub(super) opened: bool,
    /// A transaction that a slot on the disk must reach: recovery or a close flushed one there. No position, for a segment
    /// in which nothing was committed may be made again.
    pub(super) hard: u64,
}

impl History {
    pub(super) fn new() -> Self {
        let nothing = annals::store::Store::new();
        let none = &|_| Err(Error::new(ErrorKind::NotFound, ""));
        let empty = State::with(nothing.view(), none).unwrap();
        Self { states: vec![empty], durable: 0, pending: Vec::new(), opened: false, hard: 0 }
    }

    /// Returns all that is promised, as bytes.
    pub(super) fn key(&self, at_least: usize) -> Vec<u8> {
        let flags = [u8::from(self.opened), u8::try_from(self.pending.len()).unwrap()];
        let numbers = [at_least as u64, self.durable as u64, self.hard];
        let pending = self.pending.iter().map(|(state, _)| state);
        let states = self.states.iter().chain(pending).map(|state| state.0);
        let numbers = numbers.into_iter().chain(states).flat_map(u64::to_le_bytes);
        flags.into_iter().chain(numbers).collect()
    }

    /// Returns the txid of the last acknowledged transaction.
    pub(super) fn acknowledged(&self) -> usize {
        self.states.len() - 1
    }

    /// Returns the state after a transaction, if it was acknowledged.
    pub(super) fn was(&self, txid: u64) -> Option<State> {
        self.states.get(usize::try_from(txid).ok()?).copied()
    }

    pub(super) fn newest(&self) -> State {
        self.states[self.acknowledged()]
    }

    /// Returns the txid of the last transaction that may be there.
    pub(super) fn submitted(&self) -> usize {
        self.acknowledged() + self.pending.len()
    }

    /// Notes a commit that was handed in, or that failed so that it may be there.
    pub(super) fn submit(&mut self, state: State, level: Level) {
        self.pending.push((state, level));
    }

    /// Notes that a commit was handed in and acknowledged, with all before it.
    pub(super) fn commit(&mut self, state: State, level: Level) {
        self.submit(state, level);
        self.acknowledge(self.submitted());
    }

    /// Notes that all up to this transaction is acknowledged, with what its level promises.
    fn acknowledge(&mut self, txid: usize) {
        let count = txid - self.acknowledged();
        for (state, level) in self.pending.drain(..count) {
            self.states.push(state);
            let last = self.states.len() - 1;
            let kept = match level {
                Level::Soft => 0,
                Level::Half | Level::TwoPhase | Level::Checksummed => last,
            };
            self.durable = self.durable.max(kept);
        }
    }

    /// Notes what can be seen: that is acknowledged, in the order in which it was handed in.
    pub(super) fn see(&mut self, database: &Database) -> Checked {
        let txid = usize::try_from(database.read().txid().0).unwrap();
        if txid < self.acknowledged() || txid > self.submitted() {
            let (from, to) = (self.acknowledged(), self.submitted());
            return Err(format!("transaction {txid} can be seen, but only {from} to {to} may be"));
        }
        self.acknowledge(txid);
        Ok(())
    }

    /// Checks what one of several handles shows: a state that was, not before transaction `from`. It will
    /// not be taken back as long as the power is on; whether it is durable is another question. Gives
    /// its txid.
    pub(super) fn shown(&mut self, txid: u64, state: State, from: usize) -> Checked<usize> {
        let txid = usize::try_from(txid).unwrap();
        if txid < from || txid > self.submitted() {
            let upto = self.submitted();
            return Err(format!("shows transaction {txid}, but {from} to {upto} is promised"));
        }
        let count = txid.saturating_sub(self.acknowledged());
        self.states.extend(self.pending.drain(..count).map(|(state, _)| state));
        if self.states[txid] == state {
            return Ok(txid);
        }
        Err(format!("is not the state after transaction {txid}"))
    }

    /// Notes what a handle saw that has the turn: what isn't there now will never be.
    pub(super) fn settled(&mut self, txid: u64) -> Checked {
        let txid = usize::try_from(txid).unwrap();
        if txid < self.acknowledged() || txid > self.submitted() {
            let (from, to) = (self.acknowledged(), self.submitted());
            return Err(format!("transaction {txid} is the last one, but {from} to {to} may be"));
        }
        let count = txid - self.acknowledged();
        self.states.extend(self.pending.drain(..count).map(|(state, _)| state));
        self.pending.clear();
        Ok(())
    }

    /// Notes that somebody was shown this transaction as a hard one. Should its commit be a half one,
    /// only those before it are durable.
    pub(super) fn shown_as_hard(&mut self, txid: usize) {
        self.durable = self.durable.max(txid.saturating_sub(1));
    }

    /// As [`opened`](Self::opened), where others have the file open: nothing need have been flushed.
    pub(super) fn joined(
        &mut self,
        disk: &SimulatedDisk,
        database: &Database,
        at_least: usize,
    ) -> Checked {
        let durable = self.durable;
        self.opened(disk, database, at_least)?;
        self.durable = durable;
        Ok(())
    }

    /// Notes that the database was closed: all that was handed in is acknowledged and durable.
    pub(super) fn close(&mut self) {
        self.acknowledge(self.submitted());
        self.harden();
    }

    /// Notes that all up to this transaction, which could be seen, was made durable.
    pub(super) fn harden_up_to(&mut self, txid: usize) -> Checked {
        if txid > self.acknowledged() {
            return Err(format!("transaction {txid} is in the image, and nobody could see it yet"));
        }
        self.durable = self.durable.max(txid);
        Ok(())
    }

    /// Notes that all that can be seen was made durable.
    pub(super) fn harden(&mut self) {
        self.durable = self.acknowledged();
    }

    /// Checks what an opening shows: one of the states from `at_least` on, whole. That is the
    /// history from now on, and it is durable.
    pub(super) fn opened(
        &mut self,
        disk: &SimulatedDisk,
        database: &Database,
        at_least: usize,
    ) -> Checked {
        let snapshot = database.read();
        match snapshot.check() {
            // An opening doesn't fail with the image, so it may end when the power is off.
            Err(error) if !is_off(disk, &error) => {
                return Err(format!("the store isn't consistent: {error}"));
            }
            _ => {}
        }
        let txid = usize::try_from(snapshot.txid().0).unwrap();
        self.states.extend(self.pending.drain(..).map(|(state, _)| state));
        if txid < at_least || txid > self.acknowledged() {
            let upto = self.acknowledged();
            return Err(format!("shows transaction {txid}, but {at_least} to {upto} is promised"));
        }
        self.states.truncate(txid + 1);
        self.durable = txid;
        self.opened = true;
        if database.recovered().unclean {
            self.hard = snapshot.point().txid.0;
        }
        self.shows_the_newest(disk, &snapshot)
    }

    /// Checks that a snapshot is the newest state. Without power there is nothing to be seen.
    pub(super) fn shows_the_newest(&self, disk: &SimulatedDisk, snapshot: &Snapshot) -> Checked {
        match State::of(snapshot) {
            Ok(state) if state == self.newest() => Ok(()),
            Ok(_) => Err(format!("is not the state after transaction {}", self.acknowledged())),
            Err(error) if is_off(disk, &error) => Ok(()),
            Err(error) => Err(format!("a row or a blob can't be read: {error:?}")),
        }
    }
}
