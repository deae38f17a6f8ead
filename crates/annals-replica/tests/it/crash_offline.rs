//! Power cuts at every operation of a replica's disk while it commits offline, pushes and rebases: what was acknowledged
//! becomes history once.

use std::sync::Arc;
use std::time::Duration;

use annals::{Cursor, Database, ErrorKind, Options, Result, RowId, Txid, ValueRef};
use annals_replica::{Connection, Description, Granted, Local, Patience, Pulled, Pushed, Replica};
use annals_simulated::{Rng, SimulatedDisk};
use annals_storage::{Access, Directory, MemoryDirectory, Spool, SystemClock};

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

/// A server that can't be reached.
#[derive(Debug)]
struct Gone;

fn gone<T>() -> Result<T> {
    Err(annals::Error::new(ErrorKind::Unreachable, "gone".to_owned()))
}

impl Connection for Gone {
    fn name(&self) -> String {
        "gone".to_owned()
    }
    fn describe(&self) -> Result<Description> {
        gone()
    }
    fn pull(&self, _: Option<Cursor>, _: Duration, _: &mut Spool) -> Result<Pulled> {
        gone()
    }
    fn push(&self, _: Cursor, _: &Spool, _: Option<u64>) -> Result<Pushed> {
        gone()
    }
    fn lock(&self, _: Duration, _: Option<u64>) -> Result<Granted> {
        gone()
    }
    fn unlock(&self, _: u64) -> Result<()> {
        gone()
    }
    fn chains(&self, _: &[Txid]) -> Result<Vec<Option<u64>>> {
        gone()
    }
}

/// Looks at a state of the disk without the other side: what isn't there is here.
fn look_alone(origin: &Database, state: &SimulatedDisk, acknowledged: i64, what: &str) {
    if !state.list().expect(what).iter().any(|name| name == NAME) {
        return;
    }
    let (options, patience) = (Options::new().background(false), Patience::default());
    let directory: Arc<dyn Directory> = Arc::new(state.clone());
    let replica = Replica::connect_in(Arc::new(Gone), directory, NAME, &options, patience);
    let replica = replica.unwrap_or_else(|error| panic!("{what}: {error}"));
    let offline = replica.offline().unwrap_or_else(|error| panic!("{what}: {error}"));
    let (here, there) = (names(&offline.read()), names(&origin.read()));
    for number in 0..acknowledged {
        let name = format!("ours {number}");
        assert!(here.contains(&name) || there.contains(&name), "{what}: {name} in {here:?}");
    }
    offline.close().expect(what);
    replica.close().expect(what);
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
                look_alone(&origin, state, acknowledged, &what);
                look(&copy(&directory, &origin), state, acknowledged, &what);
            });
            cuts += 1;
        }
        assert!(cuts > 40, "only {cuts} operations");
    }
}
