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
    assert_eq!(ids("/t/person?index=by_name&limit=2"), (vec![1, 2], Some(2)));
    assert_eq!(ids("/t/person?index=by_name&limit=2&after=2"), (vec![0, 3], None));
    assert_eq!(ids("/t/person?index=by_name&key=Bob"), (vec![2, 0], None));
    assert_eq!(ids("/t/person?index=by_name&key=Bob,3"), (vec![0], None));
    let quoted = "/t/person?index=by_name&key=%22Ada,%20%5C%22the%5C%22%20first%22";
    assert_eq!(ids(quoted), (vec![1], None));
    assert_eq!(ids("/t/person?index=by_name&from=Bob,3"), (vec![0, 3], None));

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
