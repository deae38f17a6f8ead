//! Segments: the journal continues in a new file, history reaches into the old ones, and can be forgotten.

mod asked;
mod fixture;
pub(crate) mod forget;
mod imaged;
pub(crate) mod opening;
mod restart;
mod retained;
mod salvage;

use std::sync::Arc;
use std::time::Duration;

use annals::event::{Event, Script};
use annals::reports::Older;
use annals::storage::{Directory, MemoryDirectory};
use annals::{
    Command, Committed, Database, FieldNumber, Options, Result, Schema, Sink, Snapshot,
    TableNumber, Transaction, Type, ValueRef,
};
use annals_simulated::{Rng, SimulatedClock};
use annals_tools::scan_in;

pub(crate) const TABLE: TableNumber = TableNumber(0);
pub(crate) const NAME: &str = "db";
pub(crate) const NOW: Duration = Duration::ZERO;

pub(crate) fn directory() -> (Arc<dyn Directory>, MemoryDirectory) {
    let directory = MemoryDirectory::new();
    (Arc::new(directory.clone()), directory)
}

pub(crate) fn options() -> Options {
    Options::new().background(false).lock_timeout(NOW)
}

pub(crate) fn open(directory: &MemoryDirectory) -> Database {
    try_open(directory).unwrap()
}

fn try_open(directory: &MemoryDirectory) -> Result<Database> {
    options().open_in(Arc::new(directory.clone()), NAME, Arc::new(SimulatedClock::new(7)))
}

/// Opens without an image: all that is needed of the journal is replayed.
fn try_replay(directory: &MemoryDirectory) -> Result<Database> {
    let _ = directory.remove("db-image");
    try_open(directory)
}

/// Makes a table of a name, a number and a blob.
pub(crate) fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "city".to_owned() })?;
    for (name, ty) in [("name", Type::String), ("people", Type::UInt32), ("photo", Type::Blob)] {
        let (name, table) = (name.to_owned(), TABLE);
        tx.apply_command(&Command::AddField { table, name, ty, nullable: true, default: None })?;
    }
    let (name, fields) = ("by_name".to_owned(), vec![FieldNumber(0)]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    })
}

/// Adds a row with a blob of its own; deletes and changes others.
fn change(tx: &mut Transaction<'_>, number: u64) -> Result<()> {
    let mut bytes = vec![0; usize::try_from(number % 5 * 30_000).unwrap()];
    Rng::new(number).fill(&mut bytes);
    let blob = tx.write_blob(&bytes[..])?;
    let name = format!("city {number}");
    let people = u32::try_from(number).unwrap();
    let id = tx.insert(TABLE, &[ValueRef::String(&name), people.into(), blob.into()])?;
    if number % 3 == 2 {
        tx.delete(TABLE, annals::RowId(id.0 - 1))?;
    }
    if number % 4 == 3 {
        tx.update(TABLE, id, FieldNumber(1), ValueRef::Null)?;
    }
    tx.comment(&format!("number {number}"))
}

/// Commits the changes with these numbers, one transaction each.
pub(crate) fn write(database: &Database, numbers: std::ops::Range<u64>) {
    for number in numbers {
        database.write(|tx| change(tx, number)).unwrap();
    }
}

/// Writes down all that a snapshot shows, with what the blobs hold.
pub(crate) fn content(snapshot: &Snapshot) -> String {
    use std::fmt::Write;
    snapshot.check().unwrap();
    let mut text = format!("{:?}\n", snapshot.schema().commands());
    for table in snapshot.schema().tables() {
        let view = snapshot.table(table.number).unwrap();
        writeln!(text, "{}: next id {}", table.name, view.next_id()).unwrap();
        for row in view.rows().map(Result::unwrap) {
            writeln!(text, "{row:?}").unwrap();
            for field in table.fields.iter().filter(|field| field.ty == Type::Blob) {
                if let ValueRef::Blob(blob) = row.value(field.number) {
                    let bytes = snapshot.blob(blob).unwrap().to_vec(usize::MAX).unwrap();
                    let sum = annals::journal::format::hash(&bytes);
                    writeln!(text, "  blob {}: {} bytes, {sum:x}", blob.0, bytes.len()).unwrap();
                }
            }
        }
    }
    for index in snapshot.schema().indexes() {
        let rows = snapshot.index(index.number).unwrap().rows().map(|row| row.unwrap().id());
        writeln!(text, "{}: {:?}", index.name, rows.collect::<Vec<_>>()).unwrap();
    }
    text
}

/// The history as text: events without where they are, and transactions without position and chain.
#[derive(Default)]
pub(crate) struct Text(Script, pub(crate) String);

impl Sink for Text {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.0.push(schema, event, &mut self.1)
    }
    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        let Committed { txid, level, .. } = committed;
        self.1.push_str(&format!("-- {txid} {level:?}\n"));
        Ok(())
    }
}

pub(crate) fn history(directory: &MemoryDirectory) -> String {
    let mut text = Text::default();
    scan_in(&Options::new(), directory, NAME, &mut text).unwrap();
    text.1
}

/// A journal of some segments, and the same history in one.
pub(crate) fn split(segments: u64) -> (MemoryDirectory, Database, MemoryDirectory) {
    let (one, many) = (MemoryDirectory::new(), MemoryDirectory::new());
    let (whole, parted) = (open(&one), open(&many));
    for database in [&whole, &parted] {
        database.write(define).unwrap();
    }
    for segment in 0..segments {
        for database in [&whole, &parted] {
            write(database, segment * 4..segment * 4 + 4);
        }
        let restarted = parted.restart(Older::Kept, NOW).unwrap();
        assert_eq!((restarted.segment, restarted.is_new), (segment + 1, true));
    }
    whole.close().unwrap();
    (many, parted, one)
}
