//! Power cuts at every operation of a replica's disk while it commits offline, pushes and rebases: what was acknowledged
//! becomes history once.

use std::sync::Arc;

use annals::{Database, ErrorKind, Options, Result, RowId, ValueRef};
use annals_replica::{Connection, Local, Patience, Replica};
use annals_storage::simulated::{Rng, SimulatedDisk};
use annals_storage::{Access, Directory, MemoryDirectory, SystemClock};

use crate::crash::each_state;
use crate::offline::{ITEM, create, insert_item, names};

const NAME: &str = "journal";
const VALUE: annals::FieldNumber = annals::FieldNumber(1);

/// Opens a database in memory, with a row.
fn begin() -> (MemoryDirectory, Database) {
    let directory = MemoryDirectory::new();
    let options = Options::new().background(false);
    let origin = options.open_in(directory.again(), NAME, Arc::new(SystemClock));
    let origin = origin.expect("a database");
    origin.write(create).expect("a first transaction");
    origin.write(|tx| insert_item(tx, "first", 1)).expect("a row");
    (directory, origin)
}

/// Copies a database in memory.
fn copy(directory: &MemoryDirectory, origin: &Database) -> Database {
    origin.hard_checkpoint().expect("a checkpoint");
    let file = directory.open(NAME, Access::Read).expect("its file");
    let mut bytes = vec![0; usize::try_from(file.len().expect("a length")).expect("it fits")];
    file.read_at(0, &mut bytes).expect("its bytes");
    let other = MemoryDirectory::new();
    other.create(NAME).expect("a file").write_at(0, &bytes).expect("a copy");
    let options = Options::new().background(false);
    options.open_in(other.again(), NAME, Arc::new(SystemClock)).expect("the copy is a database")
}

fn connect(origin: &Database, disk: &SimulatedDisk) -> Result<Replica> {
    let connection: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
    let (options, patience) = (Options::new().background(false), Patience::default());
    Replica::connect_in(connection, Arc::new(disk.clone()), NAME, &options, patience)
}

/// What a replica does until its power is cut: commits offline, and sends it in two parts. `acknowledged` counts its
/// transactions. With `others` another transaction comes first each time.
fn live(
    disk: &SimulatedDisk,
    origin: &Database,
    others: bool,
    acknowledged: &mut i64,
) -> Result<()> {
    let replica = connect(origin, disk)?;
    for part in 0..2 {
        let offline = replica.offline()?;
        for _ in 0..2 {
            let number = *acknowledged;
            offline.write(|tx| {
                tx.update(ITEM, RowId(0), VALUE, ValueRef::Int64(number))?;
                insert_item(tx, &format!("ours {number}"), number)
            })?;
            *acknowledged += 1;
        }
        offline.close()?;
        if others {
            origin.write(|tx| insert_item(tx, &format!("theirs {part}"), 0))?;
            replica.rebase()?;
        } else {
            replica.push()?;
        }
    }
    replica.close()
}

/// Looks at a state of the disk after a cut: sending what is there ends with every acknowledged transaction there once.
fn look(origin: &Database, state: &SimulatedDisk, acknowledged: i64, what: &str) {
    let replica = connect(origin, state).unwrap_or_else(|error| panic!("{what}: {error}"));
    match replica.push() {
        Err(error) if error.kind() == ErrorKind::Conflict => {
            replica.rebase().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        pushed => drop(pushed.unwrap_or_else(|error| panic!("{what}: {error}"))),
    }
    let all = names(&origin.read());
    let of = |number: i64| all.iter().filter(|name| **name == format!("ours {number}")).count();
    for number in 0..acknowledged {
        assert_eq!(of(number), 1, "{what}: {number} in {all:?}");
    }
    // The last one may have been written without that being known.
    let last = all.iter().filter(|name| name.starts_with("ours")).count() as i64 - 1;
    assert!((acknowledged - 1..=acknowledged).contains(&last), "{what}: {all:?}");
    let now = origin.read();
    let value = now.table(ITEM).expect(what).get(RowId(0)).expect(what).read::<i64>(VALUE);
    assert_eq!(value, if last < 0 { 1 } else { last }, "{what}");
    assert_eq!(names(&replica.read()), all, "{what}");
    let local = state.list().expect(what).into_iter().find(|name| name == "journal-local");
    assert_eq!(local, None, "{what}");
    let offline = replica.offline().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(offline.transactions(), 0, "{what}");
}

#[test]
fn what_was_committed_offline_becomes_history_once_after_a_power_cut() {
    for others in [false, true] {
        let mut rng = Rng::new(17);
        let (mut cuts, mut is_over) = (0, false);
        while !is_over {
            let (directory, origin) = begin();
            let disk = SimulatedDisk::new(3);
            disk.crash_at(cuts);
            let mut acknowledged = 0;
            let lived = live(&disk, &origin, others, &mut acknowledged);
            is_over = lived.is_ok();
            assert!(is_over || disk.is_off(), "{lived:?}");
            if is_over {
                disk.crash();
            }
            let what = format!("cut at operation {cuts}, others: {others}, {lived:?}");
            each_state(&disk.crash_states(), &mut rng, |state| {
                look(&copy(&directory, &origin), state, acknowledged, &what);
            });
            cuts += 1;
        }
        assert!(cuts > 40, "only {cuts} operations");
    }
}
