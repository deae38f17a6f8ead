//! Power cuts and faults at every operation of a server's disk while it is pushed to, and of a replica's while it pulls and
//! writes.

use std::sync::Arc;

use annals::{
    BackfillMode, Command, Cursor, Database, ErrorKind, Options, Result, RowId, TableNumber, Type,
    ValueRef,
};
use annals_replica::{Answer, Connection, Local, Patience, Replica};
use annals_simulated::{CrashStates, Fault, Rng, SimulatedClock, SimulatedDisk};
use annals_storage::{Directory, MemoryDirectory, Spool, SystemClock};

const ITEM: TableNumber = TableNumber(0);
const NAME: &str = "journal";
/// The transactions of a push.
const PUSHED: u64 = 3;

/// How many random states of a disk are looked at after each cut.
fn random_states() -> u64 {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    if full { 200 } else { 6 }
}

fn open(disk: &SimulatedDisk) -> Result<Database> {
    let clock = Arc::new(SimulatedClock::new(1));
    Options::new().open_in(Arc::new(disk.clone()), NAME, clock)
}

fn create(database: &Database) -> Result<()> {
    database.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
        let (name, ty) = ("value".to_owned(), Type::Int64);
        tx.apply_command(&Command::AddField {
            table: ITEM,
            name,
            ty,
            nullable: false,
            default: None,
        })?;
        tx.insert(ITEM, &[ValueRef::Int64(0)]).map(drop)
    })
}

/// Inserts a row, and changes the first one, so that each transaction depends on all before it.
fn change(tx: &mut annals::Transaction<'_>, value: i64) -> Result<()> {
    tx.insert(ITEM, &[ValueRef::Int64(value)])?;
    tx.update(ITEM, RowId(0), annals::FieldNumber(0), ValueRef::Int64(value))
}

fn cursor(database: &Database) -> Cursor {
    database.read().point().into()
}

/// A database, and frames of transactions that somebody else wrote after its end.
struct Prepared {
    disk: SimulatedDisk,
    database: Database,
    /// The cursor before the frames, and after each transaction of them.
    ends: Vec<Cursor>,
    frames: Spool,
}

fn prepare() -> Prepared {
    let disk = SimulatedDisk::new(7);
    let database = open(&disk).expect("a database");
    create(&database).expect("a first transaction");
    // The same history, continued elsewhere.
    let copy = MemoryDirectory::new();
    let content = disk.content(NAME).expect("a journal");
    let file = copy.create(NAME).expect("a file");
    file.write_at(0, &content).expect("a copy");
    let other = Options::new().open_in(copy.again(), NAME, Arc::new(SimulatedClock::new(1)));
    let other = other.expect("the copy is a database");
    let mut ends = vec![cursor(&database)];
    assert_eq!(ends, [cursor(&other)]);
    for value in 1..=PUSHED {
        other.write(|tx| change(tx, value.cast_signed())).expect("a transaction");
        ends.push(cursor(&other));
    }
    let batch = Local::new(other).batch(ends.first().copied()).expect("its frames");
    let mut frames = Spool::new(MemoryDirectory::new().again(), "frames".to_owned(), 0);
    batch.copy_to(&mut frames).expect("a spool");
    Prepared { disk, database, ends, frames }
}

/// Looks at a state of the server's disk after a cut: it has a beginning of what was pushed, all if that was
/// acknowledged; and the client can go on.
fn look(
    state: &SimulatedDisk,
    ends: &[Cursor],
    frames: &mut Spool,
    acknowledged: bool,
    what: &str,
) {
    let database = open(state).unwrap_or_else(|error| panic!("{what}: {error}"));
    let end = cursor(&database);
    let there = ends.iter().position(|it| *it == end);
    let there = there.unwrap_or_else(|| panic!("{what}: {end} is no end that was pushed"));
    assert!(!acknowledged || there == ends.len() - 1, "{what}: lost: only {there} are there");
    assert_eq!(database.read().table(ITEM).expect(what).len(), there as u64 + 1, "{what}");
    // The client that knows nothing sends the same bytes: they are there, or come, or it begins at the end.
    let local = Local::new(database);
    match local.accept(ends[0], frames, None).expect(what) {
        Answer::Conflict => assert!((1..ends.len() - 1).contains(&there), "{what}"),
        Answer::AlreadyThere => assert_eq!(there, ends.len() - 1, "{what}"),
        Answer::Committed => {
            assert_eq!(
                (there, cursor(local.database().expect("it is a database"))),
                (0, ends[ends.len() - 1]),
                "{what}"
            )
        }
    }
}

pub(crate) fn each_state(
    states: &CrashStates,
    rng: &mut Rng,
    mut look: impl FnMut(&SimulatedDisk),
) {
    look(&states.oldest());
    look(&states.newest());
    look(&states.all_but_last());
    for _ in 0..random_states() {
        look(&states.random(rng));
    }
}

#[test]
fn a_push_is_whole_or_a_beginning_after_a_power_cut() {
    let mut rng = Rng::new(11);
    let (mut cuts, mut is_over) = (0, false);
    while !is_over {
        let Prepared { disk, database, ends, mut frames } = prepare();
        disk.crash_at(disk.operations() + cuts);
        let local = Local::new(database);
        let accepted = local.accept(ends[0], &mut frames, None);
        is_over = !disk.is_off();
        let acknowledged = accepted.is_ok();
        assert!(acknowledged || !is_over, "{accepted:?}");
        if is_over {
            disk.crash();
        }
        each_state(&disk.crash_states(), &mut rng, |state| {
            look(state, &ends, &mut frames, acknowledged, &format!("cut at operation {cuts}"));
        });
        cuts += 1;
    }
    assert!(cuts > 2, "a push is at least a write and a flush");
}

#[test]
fn a_push_that_meets_a_fault_changes_nothing_or_is_not_known() {
    for fault in [Fault::NoSpace, Fault::Io] {
        let mut at = 0;
        loop {
            let Prepared { disk, database, ends, mut frames } = prepare();
            let (operations, what) = (disk.operations(), format!("{fault:?} at operation {at}"));
            disk.fail_at(operations + at, fault);
            let local = Local::new(database);
            let accepted = local.accept(ends[0], &mut frames, None);
            let met = disk.operations() > operations + at;
            if let Err(error) = accepted {
                if error.kind() == ErrorKind::UnknownOutcome {
                    // A flush failed: only opening it again tells.
                    drop(local);
                    disk.clear_plan();
                    look(&disk.process(), &ends, &mut frames, false, &what);
                } else {
                    assert_eq!(
                        error.is_want_of_space(),
                        fault == Fault::NoSpace,
                        "{what}: {error}"
                    );
                    assert_eq!(
                        cursor(local.database().expect("it is a database")),
                        ends[0],
                        "{what}: nothing was changed"
                    );
                    let again = local.accept(ends[0], &mut frames, None);
                    assert_eq!(again.expect(&what), Answer::Committed, "{what}");
                }
            } else {
                assert_eq!(
                    cursor(local.database().expect("it is a database")),
                    ends[ends.len() - 1],
                    "{what}"
                );
            }
            if !met {
                break;
            }
            at += 1;
        }
        assert!(at > 2, "{fault:?}: a push is at least a write and a flush");
    }
}

/// What a replica does until its power is cut: returns how many of its transactions were acknowledged.
fn live(disk: &SimulatedDisk, origin: &Database) -> Result<u64> {
    let connection: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
    let (options, patience) = (Options::new(), Patience::default());
    let replica =
        Replica::connect_in(connection, Arc::new(disk.clone()), NAME, &options, patience)?;
    for value in 0..4 {
        replica.transaction(|tx| change(tx, 100 + value))?;
        origin.write(|tx| change(tx, 200 + value))?;
        replica.pull()?;
        if value == 1 {
            replica.database().backfill(BackfillMode::Full)?;
        }
    }
    replica.close().map(|()| 4)
}

#[test]
fn a_replica_goes_on_after_a_power_cut_at_any_operation() {
    let mut rng = Rng::new(13);
    let (mut cuts, mut is_over) = (0, false);
    while !is_over {
        let origin = Options::new()
            .open_in(MemoryDirectory::new().again(), NAME, Arc::new(SystemClock))
            .expect("a database");
        create(&origin).expect("a first transaction");
        let disk = SimulatedDisk::new(5);
        disk.crash_at(cuts);
        let lived = live(&disk, &origin);
        is_over = lived.is_ok();
        assert!(is_over || disk.is_off(), "{lived:?}");
        if is_over {
            disk.crash();
        }
        each_state(&disk.crash_states(), &mut rng, |state| {
            let what = format!("cut at operation {cuts}");
            let connection: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
            let directory: Arc<dyn Directory> = Arc::new(state.clone());
            let (options, patience) = (Options::new(), Patience::default());
            let replica = Replica::connect_in(connection, directory, NAME, &options, patience);
            let replica = replica.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(replica.cursor(), cursor(&origin), "{what}");
            let values = |of: &annals::Snapshot| -> Vec<_> {
                let rows = of.table(ITEM).expect(&what);
                rows.rows()
                    .map(|row| row.expect(&what).value(annals::FieldNumber(0)).to_value())
                    .collect()
            };
            assert_eq!(values(&replica.read()), values(&origin.read()), "{what}");
        });
        cuts += 1;
    }
    assert!(cuts > 10, "only {cuts} operations");
}
