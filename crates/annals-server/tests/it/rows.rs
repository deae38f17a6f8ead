//! Rows and history as JSON.

use annals::{Command, Database, FieldNumber, Options, RowId, TableNumber, Type, ValueRef};
use annals_server::Server;
use serde_json::{Value, json};

use crate::running::Running;

const PERSON: TableNumber = TableNumber(0);

/// Makes people, with an index on name and year.
fn create(database: &Database) {
    let field = |name: &str, ty| Command::AddField {
        table: PERSON,
        name: name.to_owned(),
        ty,
        nullable: true,
        default: None,
    };
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "person".to_owned() })?;
            tx.apply_command(&field("name", Type::String))?;
            tx.apply_command(&field("born", Type::Int16))?;
            tx.apply_command(&Command::CreateIndex {
                name: "by_name".to_owned(),
                table: PERSON,
                fields: vec![FieldNumber(0), FieldNumber(1)],
                collated: Vec::new(),
                descending: Vec::new(),
                unique: false,
            })?;
            for (name, born) in [("Bob", 3), ("Ada, \"the\" first", 1), ("Bob", 2), ("Cy", 4)] {
                tx.insert(PERSON, &[ValueRef::String(name), ValueRef::Int16(born)])?;
            }
            Ok(())
        })
        .unwrap();
    database.write(|tx| tx.update(PERSON, RowId(3), FieldNumber(1), ValueRef::Null)).unwrap();
}

#[test]
fn rows_are_there_now_and_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin")).unwrap();
    create(&database);
    let running = Running::start(Server::new().database("origin", database).unwrap().open_to_all());
    let get = |rest: &str| {
        let answer = reqwest::blocking::get(format!("{}{rest}", running.of("origin"))).unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str::<Value>(&answer.text().unwrap()).unwrap())
    };
    let ids = |rest: &str| {
        let (status, page) = get(rest);
        assert_eq!(status, 200, "{rest}: {page}");
        let rows = page["rows"].as_array().unwrap();
        let ids: Vec<u64> = rows.iter().map(|row| row["id"].as_u64().unwrap()).collect();
        (ids, page["next"].as_u64())
    };
    let row = json!({ "id": 3, "name": "Cy", "born": null });
    assert_eq!(get("/t/person/3"), (200, row));
    assert_eq!(get("/t/person/3?at=txid:1").1["born"], 4);
    assert_eq!(ids("/t/person"), (vec![0, 1, 2, 3], None));
    assert_eq!(ids("/t/person?limit=3"), (vec![0, 1, 2], Some(2)));
    assert_eq!(ids("/t/person?limit=3&after=2"), (vec![3], None));
    assert_eq!(ids("/t/person?from=2"), (vec![2, 3], None));
    assert_eq!(ids("/t/person?index=by_name"), (vec![1, 2, 0, 3], None));
    assert_eq!(ids("/t/person?index=by_name&limit=2").0, [1, 2]);
    assert_eq!(ids("/t/person?index=by_name&limit=2&after=2"), (vec![0, 3], None));
    assert_eq!(ids("/t/person?index=by_name&key=Bob"), (vec![2, 0], None));
    assert_eq!(ids("/t/person?index=by_name&key=Bob,3"), (vec![0], None));
    let quoted = "/t/person?index=by_name&key=%22Ada,%20%5C%22the%5C%22%20first%22";
    assert_eq!(ids(quoted), (vec![1], None));
    assert_eq!(ids("/t/person?index=by_name&from=Bob,3"), (vec![0, 3], None));

    assert_eq!(ids("/t/person?index=by_name&rank=3"), (vec![3], None));
    assert_eq!(ids("/t/person?index=by_name&rank=4"), (vec![], None));
    assert_eq!(ids("/t/person?index=by_name&from=Bob,3&fields=born"), (vec![0, 3], None));

    let (_, versions) = get("/t/person/3/history");
    assert_eq!(versions[1]["new"], json!({ "born": null }));
    assert_eq!(get("/t/person/3/history?limit=1").1.as_array().unwrap().len(), 1);
    let (_, blame) = get("/t/person/3/blame");
    assert_eq!((&blame[0]["txid"], &blame[1]["txid"]), (&json!(1), &json!(2)));
    let (_, diff) = get("/diff?from=txid:1");
    assert_eq!(diff[0]["before"], json!({ "name": "Cy", "born": 4 }));
    assert_eq!(get("/at?moment=txid:1").1, json!({ "txid": 1 }));
}

#[test]
fn wrong_questions_get_a_status_and_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let database = Options::new().open(folder.path().join("origin")).unwrap();
    create(&database);
    let running = Running::start(Server::new().database("origin", database).unwrap().open_to_all());
    for (rest, status) in [
        ("/t/person/9", 404),
        ("/t/nobody/0", 404),
        ("/t/person/x", 400),
        ("/t/person/99999999999999999999", 400),
        ("/t/person?limit=0", 400),
        ("/t/person?index=nothing", 404),
        ("/t/person?index=by_name&key=Bob,x", 400),
        ("/t/person?index=by_name&key=a,1,2", 400),
        ("/t/person?key=Bob", 400),
        ("/t/person?index=by_name&key=Bob&from=Ada", 400),
        ("/t/person?index=by_name&key=Bob&rank=1", 400),
        ("/t/person?fields=", 400),
        ("/t/person?fields=nothing", 400),
        ("/t/person?fields=name,name", 400),
        ("/t/person?file=csv&fields=nothing", 400),
        ("/t/person/0?fields=id", 400),
        ("/t/person/0?at=yesterday", 400),
        ("/t/person/0?at=txid:99", 404),
        ("/t/person/9/history", 404),
        ("/t/person/9/blame", 404),
        ("/diff?from=txid:99", 404),
        ("/log?limit=x", 400),
    ] {
        let answer = reqwest::blocking::get(format!("{}{rest}", running.of("origin"))).unwrap();
        assert_eq!(answer.status().as_u16(), status, "{rest}: {}", answer.text().unwrap());
    }
}

#[test]
fn fields_are_those_that_are_asked_for() {
    let database = Database::in_memory().unwrap();
    create(&database);
    let running = Running::start(Server::new().database("origin", database).unwrap().open_to_all());
    let text = |rest: &str| {
        let answer = reqwest::blocking::get(format!("{}/t/person{rest}", running.of("origin")));
        answer.unwrap().text().unwrap()
    };
    assert_eq!(text("/0?fields=born"), "{\"id\":0,\"born\":3}\n");
    assert_eq!(text("/3?fields=born,name&at=txid:1"), "{\"id\":3,\"name\":\"Cy\",\"born\":4}\n");
    assert_eq!(
        text("?fields=born&limit=2"),
        "{\"rows\":[\n{\"id\":0,\"born\":3},\n{\"id\":1,\"born\":1}],\"next\":1}\n"
    );
    for (rest, rows) in [
        ("key=Bob", "2,2\n0,3\n"),
        ("key=Bob&after=2", "0,3\n"),
        ("rank=3", "3,\n"),
        ("", "1,1\n2,2\n0,3\n3,\n"),
    ] {
        let found = text(&format!("?index=by_name&file=csv&fields=born&{rest}"));
        assert_eq!(found, format!("id,born\n{rows}"), "{rest}");
    }
    let lines = "{\"id\":0,\"name\":\"Bob\"}\n";
    assert_eq!(text("?file=ndjson&fields=name").lines().next(), lines.lines().next());
    let wrong = text("?fields=nmae");
    assert!(
        wrong.contains("table `person` has no field \\\"nmae\\\"; its fields: name, born"),
        "{wrong}"
    );
}

/// Pages of an index while its rows change: what a page ended with was changed or deleted since.
#[test]
fn pages_of_an_index_go_on_whatever_becomes_of_their_last_row() {
    let database = Database::in_memory().unwrap();
    create(&database);
    let server = Server::new().database("origin", database.clone()).unwrap().open_to_all();
    let running = Running::start(server);
    let get = |rest: &str| {
        let answer = reqwest::blocking::get(format!("{}/t/person?{rest}", running.of("origin")));
        let answer = answer.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str::<Value>(&answer.text().unwrap()).unwrap())
    };
    let page = |rest: &str| {
        let (status, page) = get(rest);
        assert_eq!(status, 200, "{rest}: {page}");
        let ids = page["rows"].as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap());
        (ids.collect::<Vec<_>>(), page["next"].clone())
    };
    let after = |next: &Value| format!("after={}", next.as_str().unwrap());
    // The order is 1, 2, 0, 3.
    let (ids, next) = page("index=by_name&limit=2");
    assert_eq!(ids, [1, 2]);
    let (ids, of_key) = page("index=by_name&key=Bob&limit=1");
    assert_eq!(ids, [2]);
    let rename = |id: u64, name: &str| {
        database.write(|tx| tx.update(PERSON, RowId(id), FieldNumber(0), ValueRef::String(name)))
    };
    let both = |rest: &str| {
        let by_key = format!("index=by_name&key=Bob&{}", after(&of_key));
        (page(&format!("index=by_name&{}", after(&next))).0, page(&by_key).0, rest.to_owned())
    };
    for name in ["Zoe", "Aaa", "Bob"] {
        rename(2, name).unwrap();
        let (all, of_bob, _) = both(name);
        let rest = if name == "Zoe" { vec![0, 3, 2] } else { vec![0, 3] };
        assert_eq!((all, of_bob), (rest, vec![0]), "after it became {name}");
    }
    database.write(|tx| tx.delete(PERSON, RowId(2))).unwrap();
    assert_eq!(both("deleted"), (vec![0, 3], vec![0], "deleted".to_owned()));
    // An id is where its row is now.
    assert_eq!(page("index=by_name&after=1").0, [0, 3]);
    assert_eq!(get("index=by_name&after=2").0, 404);
    let place = next.as_str().unwrap().split_once('-').unwrap().1;
    let of_this = ["0-x", "0-123", "0-", "0-%2Bf", "0-é"].map(str::to_owned);
    for wrong in [format!("9-{place}"), format!("{place}1")].into_iter().chain(of_this) {
        assert_eq!(get(&format!("index=by_name&after={wrong}")).0, 400, "{wrong}");
    }
    // A place outside of what is asked for leaves all of it, or nothing.
    assert_eq!(page("index=by_name&key=Bob&after=0-00").0, [0]);
    assert_eq!(page("index=by_name&key=Bob&after=0-ffff").0, [] as [u64; 0]);
    assert_eq!(page("index=by_name&after=0-ffff").0, [] as [u64; 0]);
    // In the order of ids that is so without a place.
    assert_eq!(page("limit=2&after=1"), (vec![3], Value::Null));
}
