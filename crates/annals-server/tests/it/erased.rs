//! Values that were erased: cursors from before that, requests that wrote them, and what is said of them.

use annals::reports::Restarting;
use annals::{BackfillMode, Command, Cursor, Database, ErrorKind, FieldNumber, Options, RowId};
use annals::{TableNumber, Type, ValueRef};
use annals_replica::{Http, Replica};
use annals_server::Server;
use annals_tools::{Erase, erase};
use reqwest::blocking::Client;
use serde_json::{Value, json};

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
    let go_on = &mut |_: annals::reports::BackfillProgress| std::ops::ControlFlow::Continue(());
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

/// The hash of a request as older versions stored it.
fn old_hash(body: &str) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(body.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn comments(database: &Database) -> Vec<String> {
    let all = database.changes(..).unwrap().map(|changed| changed.unwrap().comments);
    all.flatten().collect()
}

fn post(running: &Running, key: &str, body: &str) -> (u16, Value) {
    let request = Client::new().post(format!("{}/transactions", running.of("origin")));
    let request = request.header("Content-Type", "application/json");
    let answer = request.header("Idempotency-Key", key).body(body.to_owned()).send().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&answer.text().unwrap()).unwrap())
}

#[test]
fn a_request_whose_values_were_erased_never_runs_again() {
    for with_comments in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("origin.annals");
        let database = Options::new().open(&path).unwrap();
        create(&database);
        let body = |name: &str| {
            let row = json!({ "op": "insert", "table": "person", "fields": { "name": name } });
            json!({ "comment": format!("for {name}"), "changes": [row] }).to_string()
        };
        let (secret, old, other) = (body("Secret"), body("Older secret"), body("Bob"));
        // As an older version wrote it.
        let told = format!("answer {} {{\"ids\":[0]}}", old_hash(&old));
        database
            .write(|tx| {
                tx.insert(PERSON, &[ValueRef::String("Older secret")])?;
                ["request old", &told].iter().try_for_each(|text| tx.comment(text))?;
                Ok(())
            })
            .unwrap();
        let running = serve(&database);
        assert_eq!(post(&running, "old", &old).1["repeated"], true);
        for (key, body) in [("new", &secret), ("other", &other)] {
            assert_eq!(post(&running, key, body).0, 200, "{key}");
            assert_eq!(post(&running, key, body).1["repeated"], true, "{key}");
        }
        drop(running);
        let answers: Vec<_> = comments(&database);
        let answers = answers.iter().filter_map(|text| text.strip_prefix("answer "));
        let hashes: Vec<_> =
            answers.map(|text| text.split(' ').next().unwrap()).map(str::to_owned).collect();
        assert_eq!(hashes.len(), 3);
        database.close().unwrap();
        for row in [0, 1] {
            let what = Erase { comments: with_comments, ..Erase::new("person", RowId(row)) };
            assert_eq!(erase(&Options::new(), &path, &what).unwrap().answers, 1);
        }
        let bytes = std::fs::read(&path).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!has(&hashes[0]) && !has(&hashes[1]) && has(&hashes[2]));
        assert!(!has(&old_hash(&old)) && !has(&old_hash(&secret)) && !has(&old_hash(&other)));
        assert_eq!(has("Secret"), !with_comments, "in the comment of the request");
        // Again, which finds the keys as they are.
        let what =
            Erase { comments: true, comments_of: vec![3, 4], ..Erase::new("person", RowId(0)) };
        let again = erase(&Options::new(), &path, &what);
        assert_eq!(again.map(|it| it.comments).unwrap_or_default(), u64::from(!with_comments));

        let database = Options::new().open(&path).unwrap();
        let running = serve(&database);
        let end = database.read().txid();
        for (key, body) in [("old", &old), ("new", &secret), ("new", &other)] {
            let (status, answer) = post(&running, key, body);
            assert_eq!((status, &answer["error"]), (410, &json!("forgotten")), "{key}: {answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("nothing was done") && message.contains(key), "{message}");
        }
        assert_eq!(database.read().txid(), end, "nothing ran");
        assert_eq!(post(&running, "other", &other).1["repeated"], true);
        let names = database.read();
        let names = names.table(PERSON).unwrap();
        for row in [0, 1] {
            assert!(matches!(names.get(RowId(row)).unwrap().value(FieldNumber(0)), ValueRef::Null));
        }
    }
}

#[test]
fn no_route_says_of_a_forgotten_moment_that_it_never_was() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin.annals")).unwrap();
    create(&database);
    for name in ["Ada", "Bob"] {
        insert(&database, name);
    }
    let how = Restarting { forget_history: true, ..Restarting::default() };
    let go_on = &mut |_: annals::reports::BackfillProgress| std::ops::ControlFlow::Continue(());
    database.backfill_with(BackfillMode::Truncate, how, go_on).unwrap();
    insert(&database, "Eve");
    let running = serve(&database);
    let ask = |rest: &str| {
        let answer = reqwest::blocking::get(format!("{}{rest}", running.of("origin"))).unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
        (status, serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default())
    };
    let early = "2000-01-01T00:00:00Z";
    for rest in [
        "/t/person?at=txid:2".to_owned(),
        "/t/person?at=txid:2&as_it_was=true".to_owned(),
        format!("/t/person?at=time:{early}"),
        "/t/person?at=txid:2&file=csv".to_owned(),
        "/t/person/0?at=txid:2".to_owned(),
        "/t/person/0/referrers?at=txid:2".to_owned(),
        "/log?after=0".to_owned(),
        "/log?after=0&fields=changed".to_owned(),
        "/diff?from=txid:2".to_owned(),
        format!("/diff?from=time:{early}"),
        "/compare?from=txid:2&to=txid:4".to_owned(),
        "/schema?at=txid:2".to_owned(),
        "/schema?at=txid:2&as_it_was=true".to_owned(),
        "/schema/2".to_owned(),
        format!("/at?moment=time:{early}"),
        "/search?text=a&at=txid:2".to_owned(),
        "/changes?after=1".to_owned(),
    ] {
        let (status, answer) = ask(&rest);
        assert_eq!((status, &answer["error"]), (410, &"forgotten".into()), "{rest}: {answer}");
        assert!(answer["oldest"].as_u64().is_some_and(|it| it > 2), "{rest}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains("forgotten"), "{rest}: {answer}");
    }
    // What never was isn't there.
    for rest in
        ["/t/person?at=txid:99", "/diff?from=txid:99", "/at?moment=comment:no", "/schema/99"]
    {
        assert_eq!(ask(rest).0, 404, "{rest}");
    }
}

#[test]
fn activity_says_what_was_erased_and_what_was_set_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("origin.annals");
    let database = Options::new().open(&path).unwrap();
    create(&database);
    for name in ["Ada", "Bob", "Eve"] {
        insert(&database, name);
    }
    database.close().unwrap();
    let name = FieldNumber(0);
    for (row, field) in [(0, None), (1, Some("name".to_owned())), (2, None)] {
        erase(&Options::new(), &path, &Erase { field, ..Erase::new("person", RowId(row)) })
            .unwrap();
    }
    let database = Options::new().open(&path).unwrap();
    let write = |change: &dyn Fn(&mut annals::Transaction<'_>) -> annals::Result<()>| {
        database.write(|tx| change(tx)).unwrap();
    };
    write(&|tx| tx.update(PERSON, RowId(0), name, ValueRef::String("Ada")));
    write(&|tx| tx.update(PERSON, RowId(0), name, ValueRef::Null));
    write(&|tx| tx.delete(PERSON, RowId(1)));
    write(&|tx| tx.insert_at(PERSON, RowId(1), &[ValueRef::Null]));
    let running = serve(&database);
    let erased = || loop {
        let answer = reqwest::blocking::get(format!("{}/activity", running.of("origin"))).unwrap();
        let answer: Value = serde_json::from_str(&answer.text().unwrap()).unwrap();
        if answer["known"] == answer["last"] {
            let marks = answer["marks"].as_array().unwrap().iter();
            let marks = marks.filter(|mark| !mark["erased"].is_null());
            let marks = marks.map(|mark| (mark["txid"].clone(), mark["erased"].clone()));
            break marks.collect::<Vec<_>>();
        }
    };
    let of = |row: u64, field: Option<u64>, set: Value| json!({ "table": 0, "id": row, "field": field, "set": set });
    let mut expected = vec![
        (json!(6), of(0, None, json!([{ "field": 0, "txid": 9 }]))),
        (json!(7), of(1, Some(0), json!([{ "field": null, "txid": 12 }]))),
        (json!(8), of(2, None, json!([]))),
    ];
    assert_eq!(erased(), expected);
    // What is new is read from there on.
    write(&|tx| tx.update_vector(PERSON, RowId(1), name, &["Bob", "Eve"][..]));
    expected[1].1["set"] = json!([{ "field": null, "txid": 12 }, { "field": 0, "txid": 13 }]);
    expected[2].1["set"] = json!([{ "field": 0, "txid": 13 }]);
    assert_eq!(erased(), expected);
}

/// The queries of the routes that need one.
const QUERIES: [(&str, &str); 6] = [
    ("/chains", "?txid=1,2"),
    ("/diff", "?from=txid:2"),
    ("/compare", "?from=txid:2&to=txid:4"),
    ("/at", "?moment=txid:2"),
    ("/search", "?text=a"),
    ("/changes", "?after=2"),
];

/// A server that only reads a file stands beside the programs that write it, and an erasure replaces that.
#[test]
fn no_route_says_of_a_file_that_was_replaced_that_something_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("origin.annals");
    let database = Options::new().open(&path).unwrap();
    create(&database);
    insert(&database, "Ada");
    let cursor = insert(&database, "Secret");
    insert(&database, "Eve");
    let reader = Options::new().open_read_only(&path).unwrap();
    let server = Server::new().reader("origin", reader, None).unwrap().file("origin", &path);
    let running = Running::start(server.unwrap().open_to_all());
    let ask = |rest: &str| {
        let answer = reqwest::blocking::get(format!("{}{rest}", running.of("origin"))).unwrap();
        let again = answer.headers().contains_key("retry-after");
        let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
        let answer = serde_json::from_str::<Value>(&text).unwrap_or_default();
        (status, again, answer["error"].as_str().unwrap_or_default().to_owned())
    };
    let description = reqwest::blocking::get(format!("{}/v1/openapi.json", running.url)).unwrap();
    let description: Value = serde_json::from_str(&description.text().unwrap()).unwrap();
    let paths = description["paths"].as_object().unwrap().iter();
    let paths = paths.filter(|(_, methods)| !methods["get"].is_null());
    let paths = paths.filter_map(|(path, _)| path.strip_prefix("/v1/{name}"));
    // The description of a database is of what the server has read of it.
    let paths = paths.filter(|path| *path != "/openapi.json").map(|path| {
        let query = QUERIES.iter().find_map(|(of, query)| (*of == path).then_some(*query));
        let path = path.replace("{table}", "person").replace("{id}", "0").replace("{txid}", "2");
        let path = path.replace("{number}", "0").replace("{root}", "9");
        path + query.unwrap_or_default()
    });
    let more = [
        format!("/frames?after={cursor}"),
        "/t/person/0?at=txid:3".to_owned(),
        "/t/person?at=txid:3&file=csv".to_owned(),
        "/changes?after=1&wait=1".to_owned(),
    ];
    let paths: Vec<_> = paths.chain(more).collect();
    assert!(paths.len() >= 25, "{paths:?}");
    // There is no image.
    for path in paths.iter().filter(|path| !path.starts_with("/image/")) {
        assert_eq!(ask(path).0, 200, "{path}");
    }
    database.close().unwrap();
    erase(&Options::new(), &path, &Erase::new("person", RowId(1))).unwrap();
    for path in &paths {
        assert_eq!(ask(path), (503, true, "unreadable".to_owned()), "{path}");
    }
}
