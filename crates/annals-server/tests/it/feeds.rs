//! Changes over HTTP: each transaction once, in order, from any cursor.

use std::io::{BufRead, BufReader};

use annals::reports::Restarting;
use annals::{BackfillMode, Command, Database, Options, TableNumber, ValueRef};
use annals_server::Server;

use crate::running::Running;

fn create(database: &Database) {
    for name in ["one", "two"] {
        database
            .write(|tx| tx.apply_command(&Command::CreateTable { name: name.to_owned() }))
            .unwrap();
    }
}

fn insert(database: &Database, table: u32) {
    database.write(|tx| tx.insert(TableNumber(table), &[] as &[ValueRef<'_>])).unwrap();
}

/// Returns the transactions of lines of JSON, and the last one that the server says it has sent.
fn txids(text: &str) -> (Vec<u64>, Option<u64>) {
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let all = lines.iter().filter_map(|line| line["txid"].as_u64()).collect();
    (all, lines.last().and_then(|line| line["caught_up"].as_u64()))
}

#[test]
fn every_cursor_continues_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin")).unwrap();
    create(&database);
    (0..30).for_each(|number| insert(&database, number % 2));
    let running =
        Running::start(Server::new().database("origin", database.clone()).unwrap().open_to_all());
    let get = |rest: &str| {
        let answer = reqwest::blocking::get(format!("{}{rest}", running.of("origin"))).unwrap();
        (answer.status().as_u16(), answer.text().unwrap())
    };
    for after in 0..=32 {
        let (status, text) = get(&format!("/changes?after={after}"));
        assert_eq!((status, txids(&text)), (200, ((after + 1..=32).collect(), Some(32))));
    }
    let (_, text) = get("/changes?after=2&table=two");
    assert_eq!(txids(&text), ((4..=32).step_by(2).collect(), Some(32)), "only those of the table");
    assert_eq!(get("/changes?after=33").0, 400, "it isn't there yet");
    assert_eq!(get("/changes?table=three").0, 404);

    // A poll that waits gets the next transaction, and no more.
    std::thread::scope(|scope| {
        let polling = scope.spawn(|| get("/changes?after=32&wait=60"));
        insert(&database, 0);
        assert_eq!(txids(&polling.join().unwrap().1), (vec![33], Some(33)));
    });
    assert_eq!(txids(&get("/changes?after=33&wait=0.05").1), (vec![], Some(33)));

    let how = Restarting { forget_history: true, ..Restarting::default() };
    database
        .backfill_with(BackfillMode::Truncate, how, &mut |_| std::ops::ControlFlow::Continue(()))
        .unwrap();
    let (status, text) = get("/changes?after=5");
    assert_eq!(status, 410, "{text}");
}

#[test]
fn events_are_sent_as_they_are_committed() {
    let database = Database::in_memory().unwrap();
    create(&database);
    let running =
        Running::start(Server::new().database("origin", database.clone()).unwrap().open_to_all());
    let client = reqwest::blocking::Client::new();
    let open = |last: &str| {
        let request = client.get(format!("{}/changes", running.of("origin")));
        let request = request.header("Accept", "text/event-stream").header("Last-Event-ID", last);
        BufReader::new(request.send().unwrap()).lines().map(Result::unwrap)
    };
    let mut events = open("1");
    let mut next = |start: &str| events.by_ref().find(|line| line.starts_with(start)).unwrap();
    assert!(next("id: ").starts_with("id: 2"));
    assert_eq!(next("event: "), "event: caught-up");
    assert!(next("id: ").starts_with("id: 2:"), "of that event, with the chain");
    for txid in 3..10 {
        insert(&database, 0);
        let cursor = annals::Cursor::from(database.read().point());
        assert_eq!(next("id: "), format!("id: {cursor}"), "transaction {txid}, the last one");
        assert!(next("data: ").contains("\"table\":\"one\""));
    }
    let mut resumed = open("7");
    assert_eq!(resumed.by_ref().find(|line| line.starts_with("id: ")).unwrap(), "id: 8");
    // The last one says in which history it was.
    let end = annals::Cursor::from(database.read().point());
    insert(&database, 0);
    let mut resumed = open(&end.to_string());
    assert!(resumed.by_ref().find(|line| line.starts_with("id: ")).unwrap().starts_with("id: 10:"));
    let answer = client.get(format!("{}/changes?after=9:00c0ffee00c0ffee", running.of("origin")));
    assert_eq!(answer.send().unwrap().status().as_u16(), 409, "another history");
}

#[test]
fn a_table_that_was_dropped_or_renamed_is_said_to_be() {
    let database = Database::in_memory().unwrap();
    create(&database);
    let drop_one = Command::DropTable { table: TableNumber(0) };
    let before = database.read().txid();
    database.write(|tx| tx.apply_command(&drop_one)).unwrap();
    let dropped = before.0 + 1;
    let running = Running::start(Server::new().database("origin", database).unwrap().open_to_all());
    let ask = |rest: &str, accept: &str| {
        let request =
            reqwest::blocking::Client::new().get(format!("{}{rest}", running.of("origin")));
        let answer = request.header("Accept", accept).send().unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
        (status, serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default())
    };
    let arrow = "application/vnd.apache.arrow.stream";
    for (rest, accept) in [
        ("/changes?after=0&table=one", "*/*"),
        ("/changes?after=0&table=one", "text/event-stream"),
        ("/changes?after=0&table=one", arrow),
        ("/t/one/log", "*/*"),
    ] {
        let (status, answer) = ask(rest, accept);
        assert_eq!((status, answer["dropped"].as_u64()), (404, Some(dropped)), "{rest}: {answer}");
        let message = answer["message"].as_str().unwrap();
        let link = message.rsplit(' ').next().unwrap();
        assert_eq!(ask(link, "*/*").0, 200, "{message}");
    }
    let (status, answer) = ask("/changes?after=0&table=never", "*/*");
    assert_eq!((status, answer.get("dropped")), (404, None), "{answer}");
}
