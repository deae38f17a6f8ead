//! What all write: numbered transactions of several writers, of which any that is lost, doubled, out of
//! order or not whole is seen in every later snapshot.
//!
//! 1. Each writer numbers its transactions from 0; one has `parts` rows, which follow each other.
//! 2. `total` counts the rows and the transactions of all writers together, read and written by each
//!    transaction: two that didn't see each other lose one.
//! 3. The first transaction defines the schema, so that transaction n of the ledger has txid n + 1.

use std::collections::BTreeMap;

use annals::{
    Command, FieldNumber, RowId, Schema, Snapshot, TableNumber, Transaction, Type, ValueRef, View,
};

const ENTRY: TableNumber = TableNumber(0);
const TOTAL: TableNumber = TableNumber(1);
const ROWS: FieldNumber = FieldNumber(0);
const TRANSACTIONS: FieldNumber = FieldNumber(1);
const BULK: FieldNumber = FieldNumber(2);

/// The writer whose rows nobody may ever see: it takes everything back.
pub(super) const NOBODY: u64 = u64::MAX;

pub(super) fn schema() -> Schema {
    let field = |table, name: &str, ty| Command::AddField {
        table,
        name: name.to_owned(),
        ty,
        nullable: false,
        default: None,
    };
    let mut schema = Schema::default();
    for command in [
        Command::CreateTable { name: "entry".to_owned() },
        Command::CreateTable { name: "total".to_owned() },
        field(ENTRY, "writer", Type::UInt64),
        field(ENTRY, "number", Type::UInt64),
        field(ENTRY, "part", Type::UInt64),
        field(ENTRY, "parts", Type::UInt64),
        field(TOTAL, "rows", Type::UInt64),
        field(TOTAL, "transactions", Type::UInt64),
        field(TOTAL, "bulk", Type::String),
    ] {
        schema.apply(command).unwrap();
    }
    schema
}

/// Makes the changes of one transaction. With `bulk` it is so many bytes long besides, which are gone
/// from the tables at its end.
pub(super) fn write(
    transaction: &mut Transaction<'_>,
    writer: u64,
    number: u64,
    parts: u64,
    bulk: usize,
) -> annals::Result<()> {
    let (rows, transactions) = totals(transaction.view());
    for part in 0..parts {
        let values = [writer, number, part, parts].map(ValueRef::UInt64);
        transaction.insert(ENTRY, &values)?;
    }
    let (rows, transactions) = (rows + parts, transactions + 1);
    if transactions == 1 {
        let counts = [rows, transactions].map(ValueRef::UInt64);
        transaction.insert(TOTAL, &[counts[0], counts[1], ValueRef::String("")])?;
    } else {
        transaction.update(TOTAL, RowId(0), ROWS, ValueRef::UInt64(rows))?;
        transaction.update(TOTAL, RowId(0), TRANSACTIONS, ValueRef::UInt64(transactions))?;
    }
    const STEP: usize = 100_000;
    let text = "bulk".repeat(STEP / 4);
    for _ in 0..bulk.div_ceil(STEP) {
        transaction.update(TOTAL, RowId(0), BULK, ValueRef::String(&text))?;
    }
    if bulk > 0 {
        transaction.update(TOTAL, RowId(0), BULK, ValueRef::String(""))?;
    }
    Ok(())
}

/// Returns how many rows and transactions the ledger says it has.
pub(super) fn totals(view: &View) -> (u64, u64) {
    let Some(row) = view.table(TOTAL).unwrap().find(RowId(0)).unwrap() else { return (0, 0) };
    (row.read(ROWS), row.read(TRANSACTIONS))
}

/// What a snapshot shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) txid: u64,
    /// How many transactions of each writer.
    pub(super) of: BTreeMap<u64, u64>,
}

impl Seen {
    pub(super) fn of(&self, writer: u64) -> u64 {
        self.of.get(&writer).copied().unwrap_or(0)
    }

    /// Checks that nothing is gone that was there before.
    #[track_caller]
    pub(super) fn follows(&self, before: &Self) {
        assert!(self.txid >= before.txid, "txid {} after {}", self.txid, before.txid);
        for (&writer, &count) in &before.of {
            assert!(self.of(writer) >= count, "writer {writer}: {self:?} after {before:?}");
        }
    }
}

/// Looks at a whole snapshot; panics at anything that no order of whole transactions gives.
#[track_caller]
pub(super) fn audit(snapshot: &Snapshot) -> Seen {
    let mut seen = Seen { txid: snapshot.txid().0, ..Seen::default() };
    if seen.txid == 0 {
        return seen;
    }
    let (rows, transactions) = totals(snapshot);
    assert_eq!(transactions, seen.txid - 1, "as many transactions as commits");
    let entries = snapshot.table(ENTRY).unwrap();
    assert_eq!(entries.len(), rows, "as many rows as were counted");
    let (mut next, mut whole) = (None, 0);
    for (place, row) in entries.rows().enumerate() {
        let row = row.unwrap();
        assert_eq!(row.id().0, place as u64, "rows follow each other");
        let [writer, number, part, parts] = [0, 1, 2, 3].map(|f| row.read::<u64>(FieldNumber(f)));
        assert!(writer != NOBODY && part < parts, "row {place} of writer {writer}");
        let begins = (part == 0).then(|| (writer, seen.of(writer), 0, parts));
        let expected = next.or(begins);
        assert_eq!(Some((writer, number, part, parts)), expected, "row {place}");
        next = Some((writer, number, part + 1, parts)).filter(|_| part + 1 < parts);
        if next.is_none() {
            *seen.of.entry(writer).or_default() += 1;
            whole += 1;
        }
    }
    assert_eq!(next, None, "the last transaction is whole");
    assert_eq!(whole, transactions, "as many transactions as were counted");
    seen
}

/// What writers said: how many transactions of each were submitted, and acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) submitted: BTreeMap<u64, u64>,
    pub(super) acknowledged: BTreeMap<u64, u64>,
}

impl Said {
    /// Takes a line of a child, if it is one of these.
    pub(super) fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let &[what @ ("submitted" | "acknowledged"), writer, number] = words.as_slice() else {
            return;
        };
        let (writer, number): (u64, u64) = (writer.parse().unwrap(), number.parse().unwrap());
        let all = if what == "submitted" { &mut self.submitted } else { &mut self.acknowledged };
        let count = all.entry(writer).or_default();
        assert_eq!(*count, number, "{line}: each once, in order");
        *count += 1;
    }

    /// Checks that nothing acknowledged is missing.
    #[track_caller]
    pub(super) fn is_kept_by(&self, seen: &Seen) {
        for (&writer, &count) in &self.acknowledged {
            assert!(
                seen.of(writer) >= count,
                "writer {writer}: {count} were acknowledged, {} are there",
                seen.of(writer)
            );
        }
    }

    /// Checks that nothing is seen that wasn't submitted.
    #[track_caller]
    pub(super) fn explains(&self, seen: &Seen) {
        for (&writer, &count) in &seen.of {
            let submitted = self.submitted.get(&writer).copied().unwrap_or(0);
            assert!(
                count <= submitted,
                "writer {writer}: {submitted} were submitted, {count} are there"
            );
        }
    }
}

#[test]
fn the_audit_sees_what_is_wrong() {
    use annals::{Database, Level, Options};
    type Wrong = fn(&mut Transaction<'_>) -> annals::Result<()>;
    let wrongs: [Wrong; 5] = [
        |tx| write(tx, 1, 2, 1, 0),      // its number 1 is missing
        |tx| write(tx, 1, 0, 2, 0),      // its number 0 twice
        |tx| write(tx, NOBODY, 0, 1, 0), // was taken back
        |tx| tx.delete(ENTRY, RowId(1)), // half a transaction, and a wrong sum
        |tx| tx.comment("a commit that isn't counted"),
    ];
    for (number, wrong) in wrongs.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().level(Level::Soft).background(false);
        let database: Database =
            options.open_schema(folder.path().join("wrong.annals"), &schema()).unwrap();
        database.write(|tx| write(tx, 1, 0, 2, 250_000)).unwrap();
        assert_eq!(audit(&database.read()).of(1), 1);
        database.write(wrong).unwrap();
        let snapshot = database.read();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| audit(&snapshot)));
        assert!(found.is_err(), "mistake {number} isn't seen");
    }
    let mut said = Said::default();
    said.hear("submitted 4 0");
    said.hear("some other line");
    said.explains(&Seen { txid: 2, of: BTreeMap::from([(4, 1)]) });
}
