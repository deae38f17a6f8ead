//! Cursors of a history in which values were erased since.

use annals::{BackfillMode, Command, Cursor, Database, ErrorKind, Options, Restarting, RowId};
use annals::{TableNumber, Type, ValueRef};
use annals_replica::{Http, Replica};
use annals_server::Server;
use annals_tools::{Erase, erase};

use crate::running::Running;

const PERSON: TableNumber = TableNumber(0);

fn create(database: &Database) {
    let (name, ty, default) = ("name".to_owned(), Type::String, None);
    let field = Command::AddField { table: PERSON, name, ty, nullable: true, default };
    let table = Command::CreateTable { name: "person".to_owned() };
    for command in [table, field] {
        database.write(|tx| tx.apply_command(&command)).unwrap();
    }
}

fn insert(database: &Database, name: &str) -> Cursor {
    database.write(|tx| tx.insert(PERSON, &[ValueRef::String(name)]).map(drop)).unwrap();
    database.read().point().into()
}

fn serve(database: &Database) -> Running {
    Running::start(Server::new().database("origin", database.clone()).unwrap().open_to_all())
}

#[test]
fn cursors_from_before_an_erasure_are_gone_and_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("origin.annals");
    let database = Options::new().open(&path).unwrap();
    create(&database);
    insert(&database, "Ada");
    let inside = insert(&database, "Secret");
    let end = insert(&database, "Bob");
    let running = serve(&database);
    let connect = |running: &Running, name: &str| {
        let connection = std::sync::Arc::new(Http::new(&running.of("origin"), None).unwrap());
        Replica::connect(connection, folder.path().join(name))
    };
    connect(&running, "replica").unwrap().close().unwrap();
    drop(running);
    database.close().unwrap();
    erase(&Options::new(), &path, &Erase::new("person", RowId(1))).unwrap();

    let database = Options::new().open(&path).unwrap();
    insert(&database, "Eve");
    let running = serve(&database);
    let get = |rest: &str| {
        let answer = reqwest::blocking::get(format!("{}{rest}", running.of("origin"))).unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
        (status, serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default())
    };
    for path in ["/frames", "/changes"] {
        for cursor in [end, inside] {
            let (status, answer) = get(&format!("{path}?after={cursor}"));
            assert_eq!(status, 410, "{path} {cursor}: {answer}");
            assert_eq!(answer["error"], "forgotten");
            assert!(answer["message"].as_str().unwrap().contains("were erased"), "{answer}");
            let erasures = answer["erasures"].as_array().unwrap();
            assert_eq!(erasures.len(), 1, "{answer}");
            assert!(erasures[0]["txid"].as_u64().unwrap() > end.txid.0, "{answer}");
        }
        // The marks know the chain at the end of what was written again: it can be gone on from there.
        let (_, answer) = get(&format!("{path}?after={end}"));
        let carried = answer["carried"].as_str().expect("a cursor").to_owned();
        assert_ne!(carried, end.to_string());
        assert_eq!(get(&format!("{path}?after={carried}")).0, 200);
        let wrong = Cursor { chain: 1, txid: database.read().txid() };
        assert_eq!(get(&format!("{path}?after={wrong}")).0, 409, "no erasure explains that");
    }
    let error = connect(&running, "replica").expect_err("it has the values");
    assert_eq!(error.kind(), ErrorKind::Forgotten, "{error}");
    assert!(error.to_string().contains("begin again with a new copy"), "{error}");
    let again = connect(&running, "again").unwrap();
    assert_eq!(again.cursor(), database.read().point().into());
}

#[test]
fn cursors_before_the_kept_history_are_gone_and_say_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin.annals")).unwrap();
    create(&database);
    let early = insert(&database, "Ada");
    insert(&database, "Bob");
    let how = Restarting { forget_history: true, ..Restarting::default() };
    let go_on = &mut |_: annals::BackfillProgress| std::ops::ControlFlow::Continue(());
    database.backfill_with(BackfillMode::Truncate, how, go_on).unwrap();
    let end = insert(&database, "Eve");
    let running = serve(&database);
    for rest in [
        format!("/frames?after={early}"),
        format!("/changes?after={early}"),
        format!("/changes?after={}", early.txid),
    ] {
        let answer = reqwest::blocking::get(format!("{}{rest}", running.of("origin"))).unwrap();
        assert_eq!(answer.status().as_u16(), 410, "{rest}");
        let answer: serde_json::Value = serde_json::from_str(&answer.text().unwrap()).unwrap();
        let oldest = answer["oldest"].as_u64().unwrap();
        assert!((early.txid.0 + 1..=end.txid.0).contains(&oldest), "{rest}: {answer}");
        assert_eq!(answer["erasures"], serde_json::json!([]));
    }
}
