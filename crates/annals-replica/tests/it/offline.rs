//! What a replica commits without the other side, step by step.

use std::path::Path;
use std::sync::Arc;

use annals::model::OnDelete;
use annals::{
    Command, Cursor, Database, ErrorKind, FieldNumber, Options, Result, RowId, Snapshot,
    TableNumber, Timestamp, Transaction, Type, ValueRef,
};
use annals_replica::{Connection, Local, Replica, has_offline_changes, rebase_journal};

pub(crate) const ITEM: TableNumber = TableNumber(0);
pub(crate) const PART: TableNumber = TableNumber(1);
const NAME: FieldNumber = FieldNumber(0);
const VALUE: FieldNumber = FieldNumber(1);

fn field(table: TableNumber, name: &str, ty: Type) -> Command {
    Command::AddField { table, name: name.to_owned(), ty, nullable: false, default: None }
}

/// Creates `item`, with a unique name and a value, and `part`, which refers to an item that it protects.
pub(crate) fn create(tx: &mut Transaction<'_>) -> Result<()> {
    for command in [
        Command::CreateTable { name: "item".to_owned() },
        field(ITEM, "name", Type::String),
        field(ITEM, "value", Type::Int64),
        Command::CreateIndex {
            name: "item_by_name".to_owned(),
            table: ITEM,
            fields: vec![NAME],
            descending: Vec::new(),
            collated: Vec::new(),
            unique: true,
        },
        Command::CreateTable { name: "part".to_owned() },
        field(PART, "of", Type::Reference(ITEM, OnDelete::Restrict)),
    ] {
        tx.apply_command(&command)?;
    }
    Ok(())
}

pub(crate) fn insert_item(tx: &mut Transaction<'_>, name: &str, value: i64) -> Result<RowId> {
    tx.insert(ITEM, &[ValueRef::String(name), ValueRef::Int64(value)])
}

pub(crate) fn insert_part(tx: &mut Transaction<'_>, of: RowId) -> Result<RowId> {
    tx.insert(PART, &[ValueRef::Reference(of)])
}

pub(crate) fn names(snapshot: &Snapshot) -> Vec<String> {
    let rows = snapshot.table(ITEM).expect("the table").rows();
    rows.map(|row| row.expect("a row").read::<&str>(NAME).to_owned()).collect()
}

/// A database, and a replica of it.
struct Setup {
    folder: tempfile::TempDir,
    origin: Database,
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let origin = Options::new().open(folder.path().join("origin")).expect("a database");
        origin.write(create).expect("a first transaction");
        origin.write(|tx| insert_item(tx, "first", 1)).expect("a row");
        Self { folder, origin }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn connection(&self) -> Arc<dyn Connection> {
        Arc::new(Local::new(self.origin.clone()))
    }

    fn replica(&self) -> Replica {
        Replica::connect(self.connection(), self.path("copy")).expect("a replica")
    }

    fn end(&self) -> Cursor {
        self.origin.read().point().into()
    }

    fn pushed(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).expect("a folder");
        let names =
            names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| name.contains("-local")).collect();
        names.sort();
        names
    }
}

#[test]
fn offline_transactions_become_history_as_they_are() {
    let setup = Setup::new();
    let replica = setup.replica();
    let (time, before) = (Timestamp(-5), replica.cursor());
    {
        let offline = replica.offline().expect("an offline journal");
        assert_eq!((offline.from(), offline.transactions()), (before, 0));
        let mut tx = offline.database().begin().expect("a transaction");
        insert_item(&mut tx, "second", 2).expect("a row");
        tx.comment("on the train").expect("a comment");
        tx.set_time(time);
        tx.commit().expect("a commit");
        assert_eq!(names(&offline.read()), ["first", "second"], "both are seen");
        assert_eq!(names(&replica.read()), ["first"], "the replica shows what was accepted");
        let busy = replica.push().expect_err("it is open");
        assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
    }
    replica.close().expect("closing");
    // Another process continues.
    let replica = setup.replica();
    let offline = replica.offline().expect("it is still there");
    assert_eq!(offline.transactions(), 1);
    offline.write(|tx| insert_item(tx, "third", 3)).expect("a commit");
    let changes = offline.database().changes(before.txid + 1..).expect("changes");
    assert_eq!(changes.count(), 2);
    let end = Cursor::from(offline.read().point());
    offline.close().expect("closing");

    let sent = replica.push().expect("a push");
    assert_eq!((sent.transactions, sent.end), (2, end), "the same frames, and chains");
    assert_eq!((setup.end(), replica.cursor()), (end, end));
    assert_eq!(names(&replica.read()), ["first", "second", "third"]);
    let made = setup.origin.changes(before.txid + 1..).expect("changes").next();
    let made = made.expect("a transaction").expect("its changes");
    assert_eq!((made.time, made.comments), (time, vec!["on the train".to_owned()]));
    let name = format!("copy-local.pushed-{}-{:016x}", end.txid, end.chain);
    assert_eq!(setup.pushed(), [name]);
    assert_eq!(replica.push().expect("nothing to push").transactions, 0);
}

#[test]
fn who_comes_second_is_told_who_was_first() {
    let setup = Setup::new();
    let replica = setup.replica();
    let offline = replica.offline().expect("an offline journal");
    offline.write(|tx| insert_item(tx, "mine", 1)).expect("a commit");
    offline.close().expect("closing");
    let mut theirs = setup.origin.begin().expect("a transaction");
    insert_item(&mut theirs, "theirs", 2).expect("a row");
    theirs.comment("from the office").expect("a comment");
    theirs.commit().expect("a commit");
    let refused = replica.push().expect_err("others came first");
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let text = refused.to_string();
    assert!(
        text.contains("transaction 3 came first") && text.contains("from the office"),
        "{text}"
    );

    let rebased = replica.rebase().expect("a rebase");
    assert_eq!(rebased.transactions, 1);
    let moved: Vec<_> = rebased.renumbered.iter().map(|it| (it.from, it.to)).collect();
    assert_eq!(moved, [(RowId(1), RowId(2))]);
    assert_eq!(names(&setup.origin.read()), ["first", "theirs", "mine"]);
    assert_eq!(replica.cursor(), setup.end());
    assert_eq!(setup.pushed().len(), 1);
}

#[test]
fn all_that_clashes_is_listed_and_nothing_is_changed() {
    let setup = Setup::new();
    setup.origin.write(|tx| insert_item(tx, "second", 1)).expect("a row");
    let replica = setup.replica();
    let offline = replica.offline().expect("an offline journal");
    let set = |tx: &mut Transaction<'_>, row, value| {
        tx.update(ITEM, RowId(row), VALUE, ValueRef::Int64(value))
    };
    offline.write(|tx| set(tx, 0, 10)).expect("a commit");
    offline
        .write(|tx| {
            insert_item(tx, "taken", 7)?;
            tx.delete(ITEM, RowId(1))
        })
        .expect("a commit");
    offline.close().expect("closing");
    setup
        .origin
        .write(|tx| {
            tx.comment("sold")?;
            set(tx, 0, 0)
        })
        .expect("a commit");
    setup.origin.write(|tx| insert_item(tx, "taken", 8)).expect("a commit");
    setup.origin.write(|tx| insert_part(tx, RowId(1))).expect("a commit");
    let (end, refused) = (setup.end(), replica.rebase().expect_err("it clashes"));
    assert_eq!((setup.end(), refused.kind()), (end, ErrorKind::Conflict));
    let text = refused.to_string();
    for part in [
        "table `item`, row 0, field `value`: transaction 4 here set it to 10, where it was 1; it is 0; transaction 4 \
         came first",
        "\"sold\"",
        "gave it the key \"taken\" of index `item_by_name`, which row 2 has; transaction 5 came first",
        "transaction 5 here deleted it, and row 0 of table `part` refers to it; transaction 6 came first",
    ] {
        assert!(text.contains(part), "{part} isn't in {text}");
    }
    assert_eq!(setup.pushed(), ["copy-local"]);
    assert_eq!(replica.offline().expect("it is still there").transactions(), 2);
}

#[test]
fn blobs_references_and_times_follow() {
    let setup = Setup::new();
    setup
        .origin
        .write(|tx| tx.apply_command(&field(PART, "picture", Type::Blob)))
        .expect("a field");
    let picture = FieldNumber(1);
    let replica = setup.replica();
    let offline = replica.offline().expect("an offline journal");
    let bytes = vec![7; 200_000];
    let mut tx = offline.database().begin().expect("a transaction");
    let item = insert_item(&mut tx, "mine", 1).expect("a row");
    let blob = tx.write_blob(&*bytes).expect("a blob");
    tx.insert(PART, &[ValueRef::Reference(item), ValueRef::Blob(blob)]).expect("a row");
    tx.set_time(Timestamp(77));
    tx.timestamp(12).expect("a time");
    tx.commit().expect("a commit");
    offline.write(|tx| tx.delete(ITEM, RowId(0))).expect("a commit");
    offline.close().expect("closing");
    setup
        .origin
        .write(|tx| {
            let blob = tx.write_blob(&b"theirs"[..])?;
            let item = insert_item(tx, "theirs", 2)?;
            tx.insert(PART, &[ValueRef::Reference(item), ValueRef::Blob(blob)])
        })
        .expect("a commit");
    replica.rebase().expect("a rebase");
    let now = setup.origin.read();
    assert_eq!(names(&now), ["theirs", "mine"]);
    let part = now.table(PART).expect("the table").get(RowId(1)).expect("the part");
    assert_eq!(part.value(FieldNumber(0)), ValueRef::Reference(RowId(2)));
    let ValueRef::Blob(blob) = part.value(picture) else { panic!("a blob") };
    let mut copied = Vec::new();
    std::io::Read::read_to_end(&mut now.blob(blob).expect("a blob"), &mut copied).expect("bytes");
    assert!(copied == bytes);
    let made = setup.origin.changes(annals::Txid(5)..).expect("changes").next();
    assert_eq!(made.expect("a transaction").expect("changes").time, Timestamp(77));
    assert_eq!(names(&replica.read()), ["theirs", "mine"]);
}

#[test]
fn commands_of_the_schema_are_made_again_unless_they_are_there() {
    let add = |name: &str| field(ITEM, name, Type::Int64);
    for (theirs, ours, is_good) in [
        (vec![], vec!["color"], true),
        (vec!["color"], vec!["color"], true),
        (vec!["color"], vec!["color", "size"], true),
        (vec!["color", "size"], vec!["color"], true),
        (vec!["size"], vec!["color"], false),
    ] {
        let setup = Setup::new();
        let replica = setup.replica();
        let offline = replica.offline().expect("an offline journal");
        for name in &ours {
            offline.write(|tx| tx.apply_command(&add(name))).expect("a command");
        }
        offline.write(|tx| tx.update(ITEM, RowId(0), VALUE, ValueRef::Int64(5))).expect("a commit");
        offline.close().expect("closing");
        setup.origin.write(|tx| insert_item(tx, "theirs", 2)).expect("a commit");
        for name in &theirs {
            setup.origin.write(|tx| tx.apply_command(&add(name))).expect("a command");
        }
        let rebased = replica.rebase();
        assert_eq!(rebased.is_ok(), is_good, "{theirs:?} {ours:?} {rebased:?}");
        if let Err(error) = &rebased {
            assert!(error.to_string().contains("add_field item color"), "{error}");
        }
        let longer = if theirs.len() > ours.len() { &theirs } else { &ours };
        let fields = 2 + if is_good { longer.len() } else { theirs.len() };
        assert_eq!(setup.origin.read().schema().tables()[0].fields.len(), fields);
    }
}

#[test]
fn the_other_side_may_continue_in_new_files_meanwhile() {
    let setup = Setup::new();
    let replica = setup.replica();
    let offline = replica.offline().expect("an offline journal");
    offline.write(|tx| insert_item(tx, "mine", 1)).expect("a commit");
    offline.close().expect("closing");
    setup.origin.write(|tx| insert_item(tx, "theirs", 1)).expect("a commit");
    let how = annals::reports::Restarting {
        forget_history: false,
        ..annals::reports::Restarting::default()
    };
    for mode in [annals::BackfillMode::Restart, annals::BackfillMode::Truncate] {
        setup
            .origin
            .backfill_with(mode, how, &mut |_| std::ops::ControlFlow::Continue(()))
            .expect("a restart");
        setup.origin.write(|tx| insert_item(tx, &format!("{mode:?}"), 1)).expect("a commit");
    }
    replica.pull().expect("a pull");
    // It begins in a file that has another name by now.
    let offline = replica.offline().expect("it is still there");
    assert_eq!(names(&offline.read()), ["first", "mine"]);
    offline.write(|tx| insert_item(tx, "mine, too", 2)).expect("a commit");
    offline.close().expect("closing");
    replica.rebase().expect("a rebase");
    let all = ["first", "theirs", "Restart", "Truncate", "mine", "mine, too"];
    assert_eq!(names(&setup.origin.read()), all);
    assert_eq!(replica.cursor(), setup.end());
}

#[test]
fn a_copy_with_changes_is_rebased_once() {
    let setup = Setup::new();
    setup.replica().close().expect("closing");
    let path = setup.path("copy");
    let write = |path: &Path, name: &str| {
        let database = Options::new().open(path).expect("the copy");
        database.write(|tx| insert_item(tx, name, 1)).expect("a commit");
        database.close().expect("closing");
    };
    write(&path, "mine");
    setup.origin.write(|tx| insert_item(tx, "theirs", 1)).expect("a commit");
    let rebased = rebase_journal(setup.connection(), &path).expect("a rebase");
    assert_eq!((rebased.transactions, rebased.end), (1, setup.end()));
    assert_eq!(rebased.renumbered.len(), 1);
    let again = rebase_journal(setup.connection(), &path).expect("nothing new");
    assert_eq!(again.transactions, 0);
    write(&path, "mine, too");
    setup.origin.write(|tx| insert_item(tx, "theirs, too", 1)).expect("a commit");
    let again = rebase_journal(setup.connection(), &path).expect("a rebase");
    assert_eq!(again.transactions, 1);
    let all = ["first", "theirs", "mine", "theirs, too", "mine, too"];
    assert_eq!(names(&setup.origin.read()), all);
    let files = std::fs::read_dir(setup.folder.path()).expect("a folder");
    let names: Vec<_> = files.map(|file| file.expect("a file").file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("rebase")), "{names:?}");
}

#[test]
fn an_unused_or_damaged_file_is_none() {
    let setup = Setup::new();
    let replica = setup.replica();
    replica.offline().expect("an offline journal").close().expect("closing");
    assert!(has_offline_changes(&setup.path("copy")));
    setup.origin.write(|tx| insert_item(tx, "theirs", 1)).expect("a commit");
    replica.pull().expect("a pull");
    let offline = replica.offline().expect("it begins again");
    assert_eq!(offline.from(), setup.end());
    offline.close().expect("closing");
    assert_eq!(replica.rebase().expect("nothing").transactions, 0);
    assert!(!has_offline_changes(&setup.path("copy")));

    replica.offline().expect("an offline journal").close().expect("closing");
    let mut bytes = std::fs::read(setup.path("copy-local")).expect("its bytes");
    for (at, kind) in
        [(0, ErrorKind::NotAJournal), (16, ErrorKind::Corrupt), (70, ErrorKind::Corrupt)]
    {
        bytes[at] ^= 1;
        std::fs::write(setup.path("copy-local"), &bytes).expect("writing");
        assert_eq!(replica.offline().expect_err("it is damaged").kind(), kind, "{at}");
        bytes[at] ^= 1;
    }
}
