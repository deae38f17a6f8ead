//! Files of version 1 of all formats, which every later version must read: a journal of three segments with its image, an
//! archive of it, and a replica with changes that were made offline. They are never written again; `UPDATE=1` only writes
//! them if they are missing.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::{
    BackfillMode, Command, Cursor, Database, FieldNumber, Moment, Options, Snapshot, TableNumber,
    Txid, Type, ValueRef,
};
use annals_replica::archive::{self, Archive, Bucket, Uploader};
use annals_replica::frames::Source;
use annals_replica::{Connection, Fetching, Lazy, Local, Replica};

const NOTE: TableNumber = TableNumber(0);
const TEXT: FieldNumber = FieldNumber(0);
const PATIENCE: Duration = Duration::from_secs(5);

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures").join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("a name").path();
        let to = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, &to).expect("a copy")),
        }
    }
}

fn write(database: &Database, texts: &[&str]) {
    for text in texts {
        let insert = |tx: &mut annals::Transaction<'_>| {
            tx.comment(&format!("with {text}"))?;
            tx.insert(NOTE, &[ValueRef::String(text)]).map(drop)
        };
        database.write(insert).expect("a commit");
    }
}

fn make(folder: &Path) {
    let database = Options::new().background(false).open(folder.join("v1.annals")).expect("new");
    let field = Command::AddField {
        table: NOTE,
        name: "text".to_owned(),
        ty: Type::String,
        nullable: false,
        default: None,
    };
    let made = database.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "note".to_owned() })?;
        tx.apply_command(&field)
    });
    made.expect("a schema");
    let url = format!("file://{}/archive", folder.display());
    let source = Source::new(database.clone());
    let mut uploader =
        Uploader::open(Bucket::open(&url).expect("a folder"), &source).expect("an uploader");
    for (texts, older) in [(["one", "two"], Older::Kept), (["three", "four"], Older::NotNeeded)] {
        write(&database, &texts);
        uploader.upload(&source).expect("an upload");
        database.restart(older, PATIENCE).expect("a restart");
    }
    write(&database, &["five", "six"]);
    database.backfill(BackfillMode::Full).expect("a root");
    uploader.upload(&source).expect("an upload");
    let connection: Arc<dyn Connection> = Arc::new(Local::new(database.clone()));
    let replica = Replica::connect(connection, folder.join("copy.annals")).expect("a replica");
    let offline = replica.offline().expect("an offline journal");
    write(offline.database(), &["on the train"]);
    offline.close().expect("closing");
    replica.close().expect("closing");
    drop((uploader, source));
    database.close().expect("closing");
}

fn content(what: &str, snapshot: &Snapshot, to: &mut String) {
    let Cursor { txid, chain } = snapshot.point().into();
    write!(to, "{what}: {txid} {chain:016x}:").expect("text");
    for row in snapshot.table(NOTE).expect("the table").rows() {
        write!(to, " {:?}", row.expect("a row").read::<&str>(TEXT)).expect("text");
    }
    to.push('\n');
}

/// Reads all of the files, in a copy of them.
fn describe(folder: &Path) -> String {
    let mut text = String::new();
    let path = folder.join("v1.annals");
    let image = annals_tools::check_image(&Options::new(), &path).expect("the image is read");
    let image = image.expect("an image");
    assert_eq!((image.txid, image.problem), (Txid(7), None));
    let url = format!("file://{}/archive", folder.display());
    let archive = || Archive::new(Bucket::open(&url).expect("a folder"));
    let checked = archive::check(&archive()).expect("the archive is read");
    assert_eq!(checked.damage, Vec::<String>::new());
    for txid in [None, Some(2), Some(4), Some(6)] {
        let to = folder.join(format!("restored-{}", txid.unwrap_or(0)));
        let moment = txid.map(|txid| Moment::Txid(Txid(txid)));
        archive::restore(archive(), &to, moment, &Options::new()).expect("a restore");
        let restored = Options::new().open_read_only(&to).expect("a database");
        content("restored", &restored.read(), &mut text);
    }
    let lazy = Lazy::in_memory(Arc::new(archive()), &Options::new(), Fetching::default());
    content("archive", &lazy.expect("a lazy replica").read(), &mut text);
    let database = Options::new().open(&path).expect("the journal");
    content("journal", &database.read(), &mut text);
    for txid in 1..=7 {
        content("then", &database.at(Txid(txid)).expect("a moment"), &mut text);
    }
    let connection: Arc<dyn Connection> = Arc::new(Local::new(database.clone()));
    let replica = Replica::connect(connection, folder.join("copy.annals")).expect("the replica");
    content("replica", &replica.read(), &mut text);
    let offline = replica.offline().expect("the offline journal");
    content("offline", &offline.read(), &mut text);
    offline.close().expect("closing");
    replica.push().expect("a push");
    content("pushed", &database.read(), &mut text);
    text
}

#[test]
fn files_of_version_1_are_read() {
    if std::env::var_os("UPDATE").is_some() && !fixture("v1").exists() {
        let made = tempfile::tempdir().expect("a folder");
        make(made.path());
        copy(made.path(), &fixture("v1"));
        let again = tempfile::tempdir().expect("a folder");
        copy(made.path(), again.path());
        fs::write(fixture("v1.txt"), describe(again.path())).expect("a file");
    }
    let folder = tempfile::tempdir().expect("a folder");
    copy(&fixture("v1"), folder.path());
    let found = describe(folder.path());
    let expected = fs::read_to_string(fixture("v1.txt")).expect("a file");
    assert_eq!(found, expected);
    // What is made now reads the same, but for chains, which are random.
    let made = tempfile::tempdir().expect("a folder");
    make(made.path());
    let without = |text: &str| -> Vec<String> {
        let line = |line: &str| {
            let words = line.split(' ').enumerate().filter(|(place, _)| *place != 2);
            words.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
        };
        text.lines().map(line).collect()
    };
    assert_eq!(without(&describe(made.path())), without(&expected));
}
