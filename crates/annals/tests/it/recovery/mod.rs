//! Recovery as users choose it: its modes, what it reads, what it asks, and salvage.

mod asking;
mod counting;
mod modes;
mod reads;
mod salvage;
pub(crate) mod sweep;

use std::sync::Arc;

use annals::{
    Command, Database, FieldNumber, Level, Options, Recovery, RowId, TableNumber, Type, ValueRef,
    View,
};
use annals_simulated::{SimulatedClock, SimulatedDisk};

const NAME: &str = "journal";
const TABLE: TableNumber = TableNumber(0);
const TEXT: FieldNumber = FieldNumber(0);

/// Returns a disk with one file, all of which is on it for good.
fn install(bytes: &[u8]) -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    disk.install(NAME, bytes).unwrap();
    disk
}

fn options(recovery: Recovery) -> Options {
    Options::new().background(false).recovery(recovery)
}

fn open_with(options: &Options, disk: &SimulatedDisk) -> annals::Result<Database> {
    options.open_in(Arc::new(disk.clone()), NAME, Arc::new(SimulatedClock::new(7)))
}

fn open(disk: &SimulatedDisk, recovery: Recovery) -> annals::Result<Database> {
    open_with(&options(recovery), disk)
}

/// Makes the table, as transaction 1.
fn define(database: &Database) {
    let command = |command| database.write(|tx| tx.apply_command(&command));
    let field = |name: &str, ty| Command::AddField {
        table: TABLE,
        name: name.to_owned(),
        ty,
        nullable: true,
        default: None,
    };
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
            tx.apply_command(&field("text", Type::String))?;
            tx.apply_command(&field("blob", Type::Blob))
        })
        .unwrap();
    // Not all of the schema in one transaction.
    command(Command::CreateIndex {
        name: "by_text".to_owned(),
        table: TABLE,
        fields: vec![TEXT],
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    })
    .unwrap();
}

/// Inserts the row of a transaction, which is its number.
fn insert(database: &Database, level: Level) -> u64 {
    let txid = database.read().txid().0 + 1;
    let text = format!("row of {txid}");
    let inserted = database.write(|tx| {
        tx.set_level(level);
        tx.insert_at(TABLE, RowId(txid), &[ValueRef::String(&text), ValueRef::Null])
    });
    inserted.unwrap();
    txid
}

/// Returns the ids of the rows.
fn ids(view: &View) -> Vec<u64> {
    match view.table(TABLE) {
        Ok(table) => table.rows().map(|row| row.unwrap().id().0).collect(),
        Err(_) => Vec::new(),
    }
}

/// Writes a journal whose first two transactions make the schema, and whose others, at these levels,
/// insert a row each; returns the file as it is when the process is killed. After a transaction with a
/// mark after it others are told how far it is.
fn written(levels: &[(Level, bool)]) -> (SimulatedDisk, Vec<u8>) {
    let disk = SimulatedDisk::new(3);
    let database = open(&disk, Recovery::Checked).unwrap();
    define(&database);
    for &(level, tells) in levels {
        insert(&database, level);
        if tells {
            database.soft_checkpoint().unwrap();
        }
    }
    let bytes = disk.content(NAME).unwrap();
    (disk, bytes)
}

/// Returns where the transactions of a journal end: the place is the txid.
fn ends(bytes: &[u8]) -> Vec<usize> {
    #[derive(Default)]
    struct Ends(Vec<usize>);
    impl annals::Sink for Ends {
        fn event(
            &mut self,
            _: &annals::Schema,
            _: &annals::event::Event<'_>,
        ) -> annals::Result<()> {
            Ok(())
        }
        fn commit(
            &mut self,
            _: &annals::Schema,
            committed: &annals::Committed,
        ) -> annals::Result<()> {
            self.0.push(usize::try_from(committed.position).unwrap());
            Ok(())
        }
    }
    let mut ends = Ends(vec![16384]);
    annals_tools::scan_in(&Options::new(), &install(bytes), NAME, &mut ends).unwrap();
    ends.0
}

/// Makes the slots unreadable that tell this position or a later one.
fn tear_slots_from(bytes: &mut [u8], position: usize) -> usize {
    let mut torn = 0;
    for block in [4096, 8192] {
        let at = u64::from_le_bytes(bytes[block + 512 + 8..][..8].try_into().unwrap());
        if at >= position as u64 {
            for copy in [512, 1024] {
                bytes[block + copy] ^= 0xff;
            }
            torn += 1;
        }
    }
    torn
}
