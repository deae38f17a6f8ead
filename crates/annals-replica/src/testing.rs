//! The suite that every connection must pass.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::model::OnDelete;
use annals::reports::Restarting;
use annals::{
    BackfillMode, Command, Cursor, Database, ErrorKind, FieldNumber, Options, Result, RowId,
    Snapshot, TableNumber, Transaction, Txid, Type, ValueRef,
};
use annals_storage::{Directory as _, MemoryDirectory, Spool};

use crate::{Connection, Pushed, Replica};

fn spool() -> Spool {
    Spool::new(MemoryDirectory::new().again(), "spool".to_owned(), 0)
}

/// One of its parts.
type Case = fn(&Setup<'_>);

/// Runs the suite: `open` makes a connection to a database that the suite changes meanwhile, in an empty folder.
///
/// # Panics
/// The connection does something else than its trait says.
pub fn run(folder: &Path, open: &dyn Fn(&Database) -> Arc<dyn Connection>) {
    run_over(folder, &|path| Options::new().open(path).expect("a database"), open);
}

/// Runs the suite over databases that `create_database` creates, each at a path that no other has.
///
/// # Panics
/// As [`run`].
pub fn run_over(
    folder: &Path,
    create_database: &dyn Fn(&Path) -> Database,
    open: &dyn Fn(&Database) -> Arc<dyn Connection>,
) {
    let cases: [(&str, Case); 8] = [
        ("history", a_replica_has_the_same_history),
        ("transactions", transactions_of_replicas_become_history_once),
        ("conflict", a_conflict_changes_nothing),
        ("lease", a_lease_excludes_others_until_it_is_given_back),
        ("garbage", garbage_is_refused_and_changes_nothing),
        ("segments", a_replica_continues_in_new_segments),
        ("waiting", a_pull_waits_for_news),
        ("diverged", histories_that_differ_are_refused),
    ];
    for (name, case) in cases {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).expect("a folder for the case");
        let origin = create_database(&folder.join("origin"));
        origin.write(create).expect("a first transaction");
        case(&Setup { folder: &folder, connection: open(&origin), origin });
    }
}

struct Setup<'f> {
    folder: &'f Path,
    origin: Database,
    connection: Arc<dyn Connection>,
}

impl Setup<'_> {
    fn replica(&self, name: &str) -> Replica {
        Replica::connect(Arc::clone(&self.connection), self.folder.join(name)).expect(name)
    }

    fn end(&self) -> Cursor {
        self.origin.read().point().into()
    }
}

const ITEM: TableNumber = TableNumber(0);
const PART: TableNumber = TableNumber(1);

/// Creates `item`, with a unique name, and `part`, which refers to an item that it protects.
fn create(tx: &mut Transaction<'_>) -> Result<()> {
    let text = |table, name: &str, ty| Command::AddField {
        table,
        name: name.to_owned(),
        ty,
        nullable: false,
        default: None,
    };
    for command in [
        Command::CreateTable { name: "item".to_owned() },
        text(ITEM, "name", Type::String),
        Command::CreateIndex {
            name: "item_by_name".to_owned(),
            table: ITEM,
            fields: vec![FieldNumber(0)],
            descending: Vec::new(),
            collated: Vec::new(),
            unique: true,
        },
        Command::CreateTable { name: "part".to_owned() },
        text(PART, "item", Type::Reference(ITEM, OnDelete::Restrict)),
    ] {
        tx.apply_command(&command)?;
    }
    Ok(())
}

fn insert(tx: &mut Transaction<'_>, name: &str) -> Result<RowId> {
    tx.insert(ITEM, &[ValueRef::String(name)])
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    let rows = snapshot.table(ITEM).expect("the table").rows();
    rows.map(|row| row.expect("a row").read::<&str>(FieldNumber(0)).to_owned()).collect()
}

/// Asserts that a replica has the history and the state of the origin, also when it is opened again.
fn assert_same(setup: &Setup<'_>, replica: Replica, name: &str) {
    replica.pull().expect("a pull");
    assert_eq!(replica.cursor(), setup.end(), "{name}");
    assert_eq!(names(&replica.read()), names(&setup.origin.read()), "{name}");
    replica.close().expect("closing");
    let reopened = Options::new().open_read_only(setup.folder.join(name)).expect("opening again");
    assert_eq!(Cursor::from(reopened.read().point()), setup.end(), "{name} opened again");
}

fn a_replica_has_the_same_history(setup: &Setup<'_>) {
    let replica = setup.replica("replica");
    assert_eq!(replica.cursor(), setup.end());
    let long = "x".repeat(1 << 20);
    for round in 0..20 {
        setup.origin.write(|tx| insert(tx, &format!("{round} {long}"))).expect("a commit");
    }
    assert_eq!(replica.pull().expect("a pull"), 20);
    assert_eq!(replica.pull().expect("a pull"), 0);
    let described = setup.connection.describe().expect("a description");
    assert_eq!((described.end, described.first), (setup.end(), Txid(1)));
    let chains = setup.connection.chains(&[Txid(3), setup.end().txid, Txid(99)]).expect("chains");
    assert!(chains[0].is_some() && chains[1] == Some(setup.end().chain) && chains[2].is_none());
    let refused = replica.database().write(|tx| insert(tx, "here alone")).expect_err("a replica");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_same(setup, replica, "replica");
}

fn transactions_of_replicas_become_history_once(setup: &Setup<'_>) {
    let (one, two) = (setup.replica("one"), setup.replica("two"));
    std::thread::scope(|scope| {
        for (of, replica) in [("one", &one), ("two", &two)] {
            scope.spawn(move || {
                for number in 0..25 {
                    let name = format!("{of} {number}");
                    let (_, accepted) =
                        replica.transaction(|tx| insert(tx, &name)).expect("a transaction");
                    assert!(replica.cursor().txid >= accepted.txid, "its own writes are seen");
                    assert!(names(&replica.read()).contains(&name));
                }
            });
        }
    });
    assert_eq!(setup.end().txid, Txid(1 + 50));
    let mut all = names(&setup.origin.read());
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 50);
    let long = "y".repeat(40 << 20);
    one.transaction(|tx| insert(tx, &long)).expect("a large transaction");
    assert_same(setup, one, "one");
    assert_same(setup, two, "two");
}

fn a_conflict_changes_nothing(setup: &Setup<'_>) {
    let replica = setup.replica("replica");
    let mut runs = 0;
    let (_, accepted) = replica
        .transaction(|tx| {
            runs += 1;
            if runs == 1 {
                setup.origin.write(|tx| insert(tx, "first"))?;
            }
            assert_eq!(tx.view().table(ITEM)?.len(), u64::from(runs > 1));
            insert(tx, "second")
        })
        .expect("a transaction");
    assert_eq!((accepted.runs, accepted.txid), (2, Txid(3)));
    assert_eq!(names(&setup.origin.read()), ["first", "second"]);

    // A statement that fails on the newer state ends it.
    let refused = replica.transaction(|tx| insert(tx, "first")).expect_err("a duplicate");
    assert_eq!(refused.kind(), ErrorKind::Unique);
    let empty = replica.transaction(|_| Ok(())).expect("nothing");
    assert_eq!(empty.1.txid, Txid(3));
    assert_same(setup, replica, "replica");
}

fn a_lease_excludes_others_until_it_is_given_back(setup: &Setup<'_>) {
    let (one, two) = (setup.replica("one"), setup.replica("two"));
    let lease = one.lock_pull(Duration::from_secs(60)).expect("a lease");
    let until = lease.until().to_string();
    let refused = two.lock_pull(Duration::from_secs(1)).expect_err("another has it");
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(refused.to_string().contains(&until), "{refused}");
    let offline = two.offline().expect("an offline journal");
    offline.write(|tx| insert(tx, "offline")).expect("a commit");
    offline.close().expect("closing");
    let refused = two.push().expect_err("another has it");
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(refused.to_string().contains(&until), "{refused}");
    lease.push_unlock(|tx| insert(tx, "under the lease")).expect("a transaction");
    assert_eq!(two.rebase().expect("a rebase").transactions, 1);
    assert_eq!(names(&setup.origin.read()), ["under the lease", "offline"]);
    assert_same(setup, one, "one");
    assert_same(setup, two, "two");
}

/// Returns the frames of a transaction that follows the origin's end, made in a copy of it, and the copy.
fn frames(
    setup: &Setup<'_>,
    name: &str,
    change: &dyn Fn(&mut Transaction<'_>) -> Result<()>,
) -> Vec<u8> {
    let mut bytes = spool();
    setup.connection.pull(None, Duration::ZERO, &mut bytes).expect("a pull");
    let path = setup.folder.join(name);
    let (directory, file) = annals::internals::locate(&path).expect("a path");
    crate::frames::begin_replica(&*directory, &file, &mut bytes).expect("a copy");
    let copy = Options::new().open(&path).expect("the copy");
    let from = copy.read().point().position;
    copy.write(|tx| change(tx)).expect("a change");
    let end = copy.read().point().position;
    copy.close().expect("closing");
    let all = std::fs::read(&path).expect("its bytes");
    let range =
        usize::try_from(from).expect("a position")..usize::try_from(end).expect("a position");
    all.get(range).expect("the frames").to_vec()
}

fn garbage_is_refused_and_changes_nothing(setup: &Setup<'_>) {
    setup
        .origin
        .write(|tx| {
            let item = insert(tx, "kept")?;
            tx.insert(PART, &[ValueRef::Reference(item)])
        })
        .expect("rows");
    let end = setup.end();
    let push = |from: Cursor, bytes: &[u8]| {
        let mut frames = spool();
        frames.append(bytes).expect("a spool");
        loop {
            // The same bytes again and again become history once, or never.
            match setup.connection.push(from, &frames, None) {
                Ok(Pushed::Unknown(_)) => {}
                pushed => return pushed,
            }
        }
    };
    let good = frames(setup, "good", &|tx| insert(tx, "good").map(drop));
    for cut in (0..good.len()).step_by(7) {
        let refused = push(end, &good[..cut]).expect_err("a part of a frame");
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{cut}: {refused}");
    }
    for at in (0..good.len()).step_by(5) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let refused = push(end, &bytes).expect_err("a flipped bit");
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{at}: {refused}");
    }
    let foreign = Cursor { chain: end.chain ^ 1, ..end };
    assert_eq!(push(foreign, &good).expect_err("foreign").kind(), ErrorKind::Diverged);
    let duplicate = frames(setup, "duplicate", &|tx| {
        tx.delete(PART, RowId(0))?;
        tx.delete(ITEM, RowId(0))
    });
    assert_eq!(setup.end(), end, "nothing was changed");
    assert!(matches!(push(end, &good), Ok(Pushed::Committed)));
    assert!(matches!(push(end, &good), Ok(Pushed::Committed)), "it is there already");
    assert_eq!(setup.end().txid, end.txid + 1, "and only once");
    assert!(matches!(push(end, &duplicate), Ok(Pushed::Conflict(_))));
    assert_same(setup, setup.replica("after"), "after");
}

fn a_replica_continues_in_new_segments(setup: &Setup<'_>) {
    let replica = setup.replica("replica");
    for (number, mode) in
        [BackfillMode::Restart, BackfillMode::Truncate].into_iter().cycle().take(5).enumerate()
    {
        setup.origin.write(|tx| insert(tx, &format!("{number} before"))).expect("a commit");
        if number % 2 == 0 {
            replica.pull().expect("a pull");
        }
        let how = Restarting { forget_history: false, ..Restarting::default() };
        setup
            .origin
            .backfill_with(mode, how, &mut |_| std::ops::ControlFlow::Continue(()))
            .expect("a restart");
        let (_, accepted) = replica
            .transaction(|tx| insert(tx, &format!("{number} after")))
            .expect("a transaction");
        assert_eq!(accepted.txid, setup.end().txid);
    }
    // A replica that begins now has the history from the beginning.
    assert_same(setup, setup.replica("later"), "later");
    assert_same(setup, replica, "replica");

    setup.origin.write(|tx| insert(tx, "last")).expect("a commit");
    let how = Restarting { forget_history: true, ..Restarting::default() };
    setup
        .origin
        .backfill_with(BackfillMode::Truncate, how, &mut |_| std::ops::ControlFlow::Continue(()))
        .expect("a restart that forgets");
    assert_same(setup, setup.replica("new"), "new");
    let path = setup.folder.join("later");
    let behind =
        Replica::connect(Arc::clone(&setup.connection), path).expect_err("it is too far behind");
    assert_eq!(behind.kind(), ErrorKind::Forgotten, "{behind}");
}

fn a_pull_waits_for_news(setup: &Setup<'_>) {
    let replica = setup.replica("replica");
    assert_eq!(replica.pull_for(Duration::from_millis(20)).expect("a pull"), 0);
    std::thread::scope(|scope| {
        let pulling = scope.spawn(|| replica.pull_for(Duration::from_secs(60)).expect("a pull"));
        setup.origin.write(|tx| insert(tx, "news")).expect("a commit");
        assert_eq!(pulling.join().expect("no panic"), 1);
    });
    assert_same(setup, replica, "replica");
}

fn histories_that_differ_are_refused(setup: &Setup<'_>) {
    let path = setup.folder.join("other");
    setup.replica("other").close().expect("closing");
    let other = Options::new().open(&path).expect("the file of the replica");
    other.write(|tx| insert(tx, "of its own")).expect("a commit");
    other.close().expect("closing");
    setup.origin.write(|tx| insert(tx, "another")).expect("a commit");
    let refused = Replica::connect(Arc::clone(&setup.connection), &path).expect_err("it differs");
    assert_eq!(refused.kind(), ErrorKind::Diverged, "{refused}");
}
