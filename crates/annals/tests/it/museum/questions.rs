//! Stories of questions: ranges, moments, the past, and statements that fail half way.

use std::ops::Bound;
use std::sync::Arc;

use annals::model::OnDelete;
use annals::storage::MemoryDirectory;
use annals::{
    BackfillMode, Command, Database, ErrorKind, FieldNumber, IndexNumber, Moment, Options, RowId,
    TableNumber, Timestamp, Txid, Type, ValueRef,
};
use annals_simulated::SimulatedClock;
use annals_tools::{Erase, Undo as _};

const A: TableNumber = TableNumber(0);
const B: TableNumber = TableNumber(1);

/// Makes a table of unique names, and another one that refers to it.
fn create() -> (MemoryDirectory, Database, Arc<SimulatedClock>) {
    let (directory, clock) = (MemoryDirectory::new(), Arc::new(SimulatedClock::new(1)));
    let options = Options::new().background(false);
    let database =
        options.open_in(Arc::new(directory.clone()), "db", Arc::clone(&clock) as _).unwrap();
    let field = |table, name: &str, ty| {
        let name = name.to_owned();
        Command::AddField { table, name, ty, nullable: true, default: None }
    };
    let commands = [
        Command::CreateTable { name: "a".to_owned() },
        Command::CreateTable { name: "b".to_owned() },
        field(A, "name", Type::String),
        field(B, "of", Type::Reference(A, OnDelete::Restrict)),
        Command::CreateIndex {
            name: "by_name".to_owned(),
            table: A,
            fields: vec![FieldNumber(0)],
            descending: Vec::new(),
            collated: Vec::new(),
            unique: true,
        },
    ];
    database.write(|tx| commands.iter().try_for_each(|command| tx.apply_command(command))).unwrap();
    (directory, database, clock)
}

fn insert(database: &Database, name: &str) {
    database.write(|tx| tx.insert(A, &[ValueRef::String(name)])).unwrap();
}

/// A range whose start is after its end was a panic. redb 3.0.1,
/// <https://github.com/cberner/redb/blob/master/CHANGELOG.md>
#[test]
fn redb_a_range_that_ends_before_it_starts() {
    let (_, database, _) = create();
    ["a", "b", "c", "d"].iter().for_each(|name| insert(&database, name));
    database.backfill(BackfillMode::Full).unwrap();
    let now = database.read();
    let (table, index) = (now.table(A).unwrap(), now.index(IndexNumber(0)).unwrap());
    let ids = [0, 1, 3, RowId::MAX.0].map(RowId);
    for (start, end) in ids.iter().flat_map(|a| ids.iter().map(|b| (*a, *b))) {
        for bounds in [
            (Bound::Included(start), Bound::Included(end)),
            (Bound::Included(start), Bound::Excluded(end)),
            (Bound::Excluded(start), Bound::Included(end)),
            (Bound::Excluded(start), Bound::Excluded(end)),
        ] {
            let is_in = |id: u64| std::ops::RangeBounds::contains(&bounds, &RowId(id));
            let expected: Vec<_> = (0..4).filter(|id| is_in(*id)).collect();
            let found: Vec<_> = table.range(bounds).map(|row| row.unwrap().id().0).collect();
            assert_eq!(found, expected, "{bounds:?}");
            let back: Vec<_> = table.range(bounds).rev().map(|row| row.unwrap().id().0).collect();
            assert!(back.iter().rev().eq(&expected), "{bounds:?}");
            let txids = |bound| match bound {
                Bound::Included(RowId(id)) => Bound::Included(Txid(id)),
                Bound::Excluded(RowId(id)) => Bound::Excluded(Txid(id)),
                Bound::Unbounded => Bound::Unbounded,
            };
            // One that begins after the last transaction has none, or is an error; it isn't a panic.
            if let Ok(changes) = now.changes((txids(bounds.0), txids(bounds.1))) {
                changes.for_each(|changed| drop(changed.unwrap()));
            }
        }
        let names = ["", "b", "bb", "z"];
        for (low, high) in names.iter().flat_map(|a| names.map(|b| (*a, b))) {
            let bound = |text| Bound::Included(ValueRef::String(text));
            let found = index.range(&[], bound(low), bound(high)).count();
            let is_in = |name: &&&str| low <= **name && **name <= high;
            assert_eq!(
                found,
                ["a", "b", "c", "d"].iter().filter(is_in).count(),
                "{low:?} to {high:?}"
            );
        }
        assert!(
            table.vector(FieldNumber(0), start, end.0).is_ok()
                == (start.0 + end.0 <= 4 || end.0 == 0)
        );
    }
    assert_eq!(now.differences(Txid(3), Txid(2)).unwrap().len(), 1);
}

/// A read of the past changed what was read of the present, <https://github.com/surrealdb/surrealdb/pull/7198>; and a
/// reference at a moment led to the row of now, <https://github.com/surrealdb/surrealdb/pull/7245>.
#[test]
fn surrealdb_a_read_of_the_past_and_the_present() {
    let (_, database, _) = create();
    insert(&database, "old");
    database.write(|tx| tx.insert(B, &[ValueRef::Reference(RowId(0))])).unwrap();
    let then = database.read().txid();
    let rename = |tx: &mut annals::Transaction<'_>| {
        tx.update(A, RowId(0), FieldNumber(0), ValueRef::String("new"))
    };
    database.write(rename).unwrap();
    let name = |state: &annals::Snapshot| {
        let table = state.table(B).unwrap();
        let row = table.rows().next().unwrap().unwrap();
        let ValueRef::Reference(of) = row.value(FieldNumber(0)) else { panic!("{row:?}") };
        let row = state.table(A).unwrap().find(of).unwrap().unwrap();
        row.read::<&str>(FieldNumber(0)).to_owned()
    };
    for _ in 0..3 {
        for past in [database.at(then).unwrap(), database.as_it_was(then).unwrap()] {
            assert_eq!(name(&past), "old");
            assert_eq!(name(&database.read()), "new");
            // The unique index of then and that of now are two.
            let of = |state: &annals::Snapshot, name| {
                let index = state.index(IndexNumber(0)).unwrap();
                index.first(&[ValueRef::String(name)]).unwrap().is_some()
            };
            assert_eq!([of(&past, "old"), of(&past, "new")], [true, false]);
            assert_eq!([of(&database.read(), "old"), of(&database.read(), "new")], [false, true]);
        }
        database.backfill(BackfillMode::Full).unwrap();
    }
}

/// A state between the creation and the first row, at the same time as that, was not found,
/// <https://github.com/relytcloud/pg_ducklake/issues/222>; a whole number of seconds was taken for microseconds,
/// <https://github.com/cozodb/cozo/issues/312>.
#[test]
fn pg_ducklake_moments_around_the_creation_and_far_away() {
    let (_, database, _) = create();
    let time = Timestamp(1_700_000_000_000_000);
    for name in ["a", "b"] {
        let mut tx = database.begin().unwrap();
        tx.set_time(time);
        tx.insert(A, &[ValueRef::String(name)]).unwrap();
        tx.commit().unwrap();
    }
    // Of several transactions of one time the last one is meant.
    assert_eq!(database.txid_of(time).unwrap(), Txid(3));
    for txid in 0..=3 {
        let rows = database.at(Txid(txid)).unwrap().table(A).unwrap().len();
        assert_eq!(rows, txid.saturating_sub(1));
    }
    assert_eq!(database.at(Timestamp(i64::MIN)).unwrap().txid(), Txid(0));
    assert_eq!(database.at(Timestamp(i64::MAX)).unwrap().txid(), Txid(3));
    for (text, expected) in [
        ("time:2023-11-14T22:13:20Z", Some(3)),
        ("time:2023-11-14T22:13:20.000000Z", Some(3)),
        ("time:9999-12-31T23:59:59.999999Z", Some(3)),
        ("time:1700000000", None),
        ("time:1700000000.0", None),
        ("time:1.7e9", None),
        ("txid:3", Some(3)),
        ("txid:3.0", None),
        ("txid:-1", None),
    ] {
        let moment = text.parse::<Moment>();
        let found = moment.ok().map(|moment| database.txid_of(moment).unwrap().0);
        assert_eq!(found, expected, "{text}");
    }
}

/// A row that was inserted, deleted and erased in one transaction. <https://github.com/xtdb/xtdb/issues/5012>
#[test]
fn xtdb_a_row_of_one_transaction_is_erased() {
    let (directory, database, clock) = create();
    database
        .write(|tx| {
            let secret = tx.insert(A, &[ValueRef::String("secret")])?;
            tx.update(A, secret, FieldNumber(0), ValueRef::String("another secret"))?;
            tx.delete(A, secret)?;
            tx.insert(A, &[ValueRef::String("stays")]).map(drop)
        })
        .unwrap();
    assert_eq!(database.history_of(A, RowId(0)).unwrap().count(), 0);
    database.close().unwrap();
    let place: Arc<dyn annals::storage::Directory> = Arc::new(directory.clone());
    let options = Options::new().background(false);
    let what = Erase::new("a", RowId(0));
    annals_tools::erase_in(&options, &place, "db", &(Arc::clone(&clock) as _), &what).unwrap();
    for name in annals::storage::Directory::list(&directory).unwrap() {
        let bytes = crate::segments::opening::bytes(&directory, &name);
        assert!(!bytes.windows(6).any(|some| some == b"secret"), "{name}");
    }
    let database = options.open_in(place, "db", clock).unwrap();
    let names: Vec<_> =
        database.changes(Txid(2)..).unwrap().map(|it| it.unwrap().rows.len()).collect();
    assert_eq!(names.first(), Some(&1));
    assert_eq!(database.read().table(A).unwrap().len(), 1);
}

/// After an error half way through an operation its transaction could be committed with a half of it. redb 4.3,
/// <https://github.com/cberner/redb/blob/master/CHANGELOG.md>
#[test]
fn redb_an_operation_that_fails_half_way() {
    let (_, database, _) = create();
    insert(&database, "x"); // transaction 2, row 0
    database.write(|tx| tx.delete(A, RowId(0))).unwrap();
    insert(&database, "x"); // row 1 has the name now
    insert(&database, "y");
    database.write(|tx| tx.insert(B, &[ValueRef::Reference(RowId(2))])).unwrap();
    let before = format!("{:?}", rows(&database.read()));
    // Whether a key is unique, and a reference leads somewhere, is asked of the whole transaction.
    let undone = [
        (database.write(|tx| tx.delete_vector(A, RowId(1), 2)), ErrorKind::Reference),
        (database.write(|tx| tx.restore((A, RowId(0)), Txid(2))), ErrorKind::Unique),
        (database.write(|tx| tx.revert(Txid(3)).map(drop)), ErrorKind::Conflict),
    ];
    for (undone, kind) in undone {
        assert_eq!(undone.unwrap_err().kind(), kind);
        assert_eq!(format!("{:?}", rows(&database.read())), before);
    }
    let mut tx = database.begin().unwrap();
    let long = "n".repeat(300);
    let exists = "b".to_owned();
    let failed = [
        tx.restore((A, RowId(0)), Txid(99)),
        tx.revert(Txid(99)).map(drop),
        tx.delete_vector(A, RowId(1), 7),
        tx.apply_command(&Command::RenameTable { table: A, name: exists }),
        tx.apply_command(&Command::RenameField { table: A, field: FieldNumber(0), name: long }),
        tx.apply_command(&Command::DropTable { table: A }),
        tx.apply_command(&Command::DropField { table: A, field: FieldNumber(0) }),
    ];
    for (at, failed) in failed.iter().enumerate() {
        let error = failed.as_ref().expect_err(&format!("operation {at}"));
        assert_ne!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    assert_eq!(format!("{:?}", rows(tx.view())), before);
    tx.view().check().unwrap();
    tx.insert(A, &[ValueRef::String("z")]).unwrap();
    tx.commit().unwrap();
    database.read().check().unwrap();
    assert_eq!(database.read().table(A).unwrap().len(), 3);
}

fn rows(view: &annals::View) -> Vec<(u32, u64, String)> {
    let tables = [A, B].into_iter();
    let of = |table: TableNumber| {
        let rows: Vec<_> = view
            .table(table)
            .unwrap()
            .rows()
            .map(|row| {
                let row = row.unwrap();
                (table.0, row.id().0, format!("{:?}", row.value(FieldNumber(0))))
            })
            .collect();
        rows
    };
    tables.flat_map(of).collect()
}

/// What do many small changes of a long text weigh? <https://github.com/sst/opencode/issues/33356>
#[test]
fn opencode_small_changes_of_a_long_text() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let changes = if full { 10_000 } else { 200 };
    let (directory, database, _) = create();
    let mut text: Vec<u8> = (0..84_000_u32).map(|at| b'a' + (at * 7 % 26) as u8).collect();
    insert(&database, std::str::from_utf8(&text).unwrap());
    for change in 0..changes {
        text[change * 97 % 84_000] = b'!';
        let text = ValueRef::String(std::str::from_utf8(&text).unwrap());
        database.write(|tx| tx.update(A, RowId(0), FieldNumber(0), text)).unwrap();
    }
    let bytes = crate::segments::opening::bytes(&directory, "db").len();
    println!(
        "{changes} changes of a text of 84,000 bytes: {bytes} bytes, {} each",
        bytes / changes
    );
    database.backfill(BackfillMode::Full).unwrap();
    let versions = database.history_of(A, RowId(0)).unwrap().count();
    assert_eq!(versions, changes + 1);
    // A change is the new value, and nothing beside that grows with the history.
    assert!(bytes < (changes + 2) * (84_000 + 200), "{bytes}");
    let image = crate::segments::opening::bytes(&directory, "db-image").len();
    assert!(image < 2 << 20, "{image} bytes of the image");
}
