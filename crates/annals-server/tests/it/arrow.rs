//! Streams of Arrow: tables, changes and answers to SQL, compared with record batches made here.

use std::io::Cursor;

use annals::{Database, RowId, TableNumber, Txid, ValueRef};
use annals_arrow::{Options, PastBatches, TableBatches, ipc};
use annals_server::Server;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use serde_json::{Value, json};

use crate::running::Running;

const CITY: TableNumber = TableNumber(0);
const ROWS: u64 = 70_000;

fn database() -> Database {
    let text = "create_table city\nadd_field city name string\nadd_field city size uint64 null\n\
                create_index city_by_size city size\n";
    let schema = annals_schema::parse(text).unwrap().schema;
    let database = Database::in_memory().unwrap();
    database.upgrade(&schema, &mut |_, _| unreachable!("it has no custom function")).unwrap();
    database
        .write(|tx| {
            (0..ROWS).try_for_each(|n| {
                let size = if n % 7 == 0 { ValueRef::Null } else { ValueRef::UInt64(u64::MAX - n) };
                tx.insert(CITY, &[ValueRef::String(&format!("city {n}")), size]).map(drop)
            })
        })
        .unwrap();
    database.write(|tx| tx.delete(CITY, RowId(3))).unwrap();
    database
}

fn ask(request: reqwest::blocking::RequestBuilder) -> (u16, String, Vec<u8>) {
    let answer =
        request.header("Accept", format!("text/html, {};q=0.9", ipc::MEDIA_TYPE)).send().unwrap();
    let header = |name: &str| answer.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
    let (status, txid) = (answer.status().as_u16(), header("Annals-Txid").unwrap_or_default());
    if status == 200 {
        assert_eq!(header("Content-Type").as_deref(), Some(ipc::MEDIA_TYPE));
    }
    (status, txid, answer.bytes().unwrap().to_vec())
}

fn get(url: &str) -> (u16, String, Vec<u8>) {
    ask(reqwest::blocking::Client::new().get(url))
}

fn batches(stream: Vec<u8>) -> Vec<RecordBatch> {
    ipc::read(Cursor::new(stream)).unwrap().map(|batch| batch.unwrap()).collect()
}

/// The batches of a query that isn't refused.
fn read(url: &str) -> Vec<RecordBatch> {
    let (status, _, body) = get(url);
    assert_eq!(status, 200, "{url}: {}", String::from_utf8_lossy(&body));
    batches(body)
}

fn ids(batches: &[RecordBatch]) -> Vec<u64> {
    let column =
        |batch: &RecordBatch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec();
    batches.iter().flat_map(column).collect()
}

#[test]
fn tables_are_streams() {
    let db = database();
    let running = Running::start(Server::new().database("a", db.clone()).unwrap().open_to_all());
    let url = format!("{}/t/city", running.of("a"));
    let (status, txid, body) = get(&url);
    assert_eq!((status, txid.as_str()), (200, "3"));
    let found = batches(body);
    let made = |snapshot: &annals::Snapshot| -> Vec<RecordBatch> {
        let all = TableBatches::range(snapshot, CITY, 0..u64::MAX, Options::for_transport());
        all.unwrap().map(|batch| batch.unwrap()).collect()
    };
    assert!(found.len() > 1, "a large table is several batches");
    assert_eq!(found, made(&db.read()));
    assert_eq!(read(&format!("{url}?at=txid:2")), made(&db.at(Txid(2)).unwrap()));
    assert_eq!(ids(&read(&format!("{url}?from=2&limit=3"))), [2, 4, 5]);
    assert_eq!(ids(&read(&format!("{url}?after=5&limit=2"))), [6, 7]);
    // Nulls are first, then the largest id has the smallest number.
    let smallest = ROWS - 1 - u64::from((ROWS - 1).is_multiple_of(7));
    let by_size = format!("{url}?index=city_by_size");
    assert_eq!(ids(&read(&format!("{by_size}&from={}&limit=1", u64::MAX - smallest))), [smallest]);
    let all = ids(&read(&by_size));
    let view = db.read();
    let view = view.index(annals::IndexNumber(0)).unwrap();
    assert!(view.rows().ids().map(|id| id.unwrap().0).eq(all));
    for wrong in ["limit=0", "limit=1000001", "index=no", "from=x", "at=no:1"] {
        let (status, _, body) = get(&format!("{url}?{wrong}"));
        let refusal: Value = serde_json::from_slice(&body).unwrap();
        assert!(matches!(status, 400 | 404) && refusal["message"].is_string(), "{wrong}");
    }
    assert_eq!(get(&format!("{}/t/town", running.of("a"))).0, 404);
}

#[test]
fn changes_are_streams() {
    let db = database();
    let running = Running::start(Server::new().database("a", db.clone()).unwrap().open_to_all());
    let url = format!("{}/changes", running.of("a"));
    let (status, txid, body) = get(&format!("{url}?table=city&after=2"));
    assert_eq!((status, txid.as_str()), (200, "3"));
    let changes = db.changes(Txid(3)..).unwrap();
    let made = PastBatches::changes(&db.read(), CITY, changes, Options::for_transport()).unwrap();
    let found = batches(body);
    assert_eq!(found, made.map(|batch| batch.unwrap()).collect::<Vec<_>>());
    assert_eq!(found[0].num_rows(), 1);
    let all: usize =
        read(&format!("{url}?table=city&after=0")).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(all as u64, ROWS + 1);
    assert!(read(&format!("{url}?table=city&after=3")).is_empty(), "3 is the last one");
    for wrong in ["table=city", "after=0", "table=city&after=x", "table=city&after=9"] {
        assert_eq!(get(&format!("{url}?{wrong}")).0, 400, "{wrong}");
    }
}

#[test]
fn answers_to_sql_are_streams() {
    let running = Running::start(Server::new().database("a", database()).unwrap().open_to_all());
    let ask = |sql: &str| {
        let request = reqwest::blocking::Client::new().post(format!("{}/sql", running.of("a")));
        let request = request.header("Content-Type", "application/json");
        ask(request.body(json!({ "sql": sql }).to_string()))
    };
    let (status, txid, body) = ask(
        "SELECT id, name, size, 1 one, iif(id, 0.5, 2) half, NULL n, x'00' b FROM city LIMIT 2",
    );
    assert_eq!((status, txid.as_str()), (200, "3"), "{}", String::from_utf8_lossy(&body));
    let [batch] = batches(body).try_into().unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values().to_vec(), [0, 1]);
    assert_eq!(batch.column(1).as_string::<i32>().value(1), "city 1");
    let sizes = batch.column(2).as_primitive::<UInt64Type>();
    assert!(sizes.is_null(0) && sizes.value(1) == u64::MAX - 1);
    assert_eq!(batch.column(3).as_primitive::<Int64Type>().value(0), 1);
    assert_eq!(batch.column(4).as_primitive::<Float64Type>().values().to_vec(), [2.0, 0.5]);
    assert_eq!(batch.column(5).logical_null_count(), 2);
    assert_eq!(batch.column(6).as_binary::<i32>().value(0), [0]);
    let (status, _, body) = ask("SELECT iif(id, 'a', 1) mixed FROM city LIMIT 2");
    let refusal: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &refusal["error"]), (400, &json!("sql")));
    assert!(refusal["message"].as_str().unwrap().contains("CAST(mixed AS TEXT)"), "{refusal}");
    let [empty] = batches(ask("SELECT name FROM city WHERE 0").2).try_into().unwrap();
    assert_eq!((empty.num_rows(), empty.num_columns()), (0, 1));
}

#[test]
fn what_a_first_batch_can_not_have_is_an_error_of_the_answer() {
    let text = "create_table city\nadd_field city size decimal(0)\n";
    let schema = annals_schema::parse(text).unwrap().schema;
    let database = Database::in_memory().unwrap();
    database.upgrade(&schema, &mut |_, _| unreachable!("it has no custom function")).unwrap();
    let size = annals::model::AnyDecimal::new(i128::MAX, 0);
    database.write(|tx| tx.insert(CITY, &[ValueRef::Decimal(size)])).unwrap();
    let running = Running::start(Server::new().database("a", database).unwrap().open_to_all());
    for rest in ["/t/city", "/t/city?limit=1", "/changes?table=city&after=0"] {
        let (status, _, body) = get(&format!("{}{rest}", running.of("a")));
        let body = String::from_utf8_lossy(&body);
        assert!(status == 400 && body.contains("39 digits"), "{rest}: {status} {body}");
    }
}

#[test]
fn fields_are_those_that_are_asked_for() {
    let running =
        Running::start(Server::new().database("origin", database()).unwrap().open_to_all());
    let url = |rest: &str| format!("{}/t/city{rest}", running.of("origin"));
    for rest in
        ["?fields=size", "?fields=size&index=city_by_size&limit=1000", "?fields=size&after=9"]
    {
        let whole = read(&url(&rest.replace("fields=size", "")));
        let some = read(&url(rest));
        assert_eq!(some[0].schema().fields().len(), 2, "{rest}");
        let sizes = |all: &[RecordBatch], at: usize| -> Vec<_> {
            all.iter().flat_map(|it| it.column(at).as_primitive::<UInt64Type>().iter()).collect()
        };
        assert_eq!(sizes(&some, 1), sizes(&whole, 2), "{rest}");
        assert_eq!(sizes(&some, 0), sizes(&whole, 0), "{rest}");
    }
    assert_eq!(get(&url("?fields=x")).0, 400);
}
