//! Bugs of others about pages of the past, as tests of ours.

use std::sync::Arc;

use annals::model::OnDelete;
use annals::{
    BackfillMode, Command, Database, FieldNumber, Options, RowId, TableNumber, Type, ValueRef,
};
use annals_server::Server;
use annals_simulated::{ReadFault, SimulatedClock, SimulatedDisk};
use serde_json::{Value, json};

use crate::running::Running;

const PERSON: TableNumber = TableNumber(0);
const KNOWS: TableNumber = TableNumber(1);
const NAME: FieldNumber = FieldNumber(0);

fn field(table: TableNumber, name: &str, ty: Type) -> Command {
    Command::AddField { table, name: name.to_owned(), ty, nullable: true, default: None }
}

/// Makes people who know each other, in transactions that change the schema, too.
fn database() -> Database {
    let database = Database::in_memory().unwrap();
    let text = ValueRef::String;
    let to = |id| ValueRef::Reference(RowId(id));
    let reference = Type::Reference(PERSON, OnDelete::Restrict);
    // 1: two people, of whom one knows the other.
    let made = database.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "person".to_owned() })?;
        tx.apply_command(&field(PERSON, "name", Type::String))?;
        tx.apply_command(&field(PERSON, "mail", Type::String))?;
        tx.apply_command(&Command::CreateTable { name: "knows".to_owned() })?;
        tx.apply_command(&field(KNOWS, "who", reference))?;
        tx.apply_command(&field(KNOWS, "whom", reference))?;
        tx.insert(PERSON, &[text("Alice"), text("a@x")])?;
        tx.insert(PERSON, &[text("Bob"), text("b@x")])?;
        tx.insert(KNOWS, &[to(0), to(1)]).map(drop)
    });
    made.unwrap();
    // 2: the edge leads elsewhere, and its end has another name.
    let moved = database.write(|tx| {
        tx.insert(PERSON, &[text("Carol"), text("c@x")])?;
        tx.update(PERSON, RowId(1), NAME, text("Robert"))?;
        tx.update(KNOWS, RowId(0), FieldNumber(1), to(2))
    });
    moved.unwrap();
    // 3: another schema.
    let changed = database.write(|tx| {
        tx.apply_command(&Command::DropField { table: PERSON, field: FieldNumber(1) })?;
        tx.apply_command(&field(PERSON, "born", Type::Int16))?;
        tx.apply_command(&Command::RenameField {
            table: PERSON,
            field: NAME,
            name: "called".to_owned(),
        })
    });
    changed.unwrap();
    // 4: the edge is gone.
    database.write(|tx| tx.delete(KNOWS, RowId(0))).unwrap();
    database
}

/// A server with that database.
struct Served(Running);

impl Served {
    fn start() -> Self {
        Self(Running::start(Server::new().database("a", database()).unwrap().open_to_all()))
    }

    fn get(&self, rest: &str) -> Value {
        let answer = reqwest::blocking::get(format!("{}{rest}", self.0.of("a"))).unwrap();
        serde_json::from_str(&answer.text().unwrap()).unwrap()
    }

    fn sql(&self, sql: &str) -> Value {
        let request = reqwest::blocking::Client::new().post(format!("{}/sql", self.0.of("a")));
        let request = request.header("Content-Type", "application/json");
        let answer = request.body(json!({ "sql": sql }).to_string()).send().unwrap();
        serde_json::from_str(&answer.text().unwrap()).unwrap()
    }
}

/// <https://github.com/surrealdb/surrealdb/pull/7198>: a read of the past filled a cache with the schema of then, which later
/// reads of the present had; and what a read of the past looked up itself was of the present.
#[test]
fn surrealdb_7198_a_read_of_the_past_poisons_the_present() {
    let served = Served::start();
    let present = || {
        let sql = served.sql("SELECT * FROM person ORDER BY id");
        let pages =
            ["/t/person", "/t/person/1", "/schema", "/schema/4", "/t/knows", "/openapi.json"];
        (sql, pages.map(|it| served.get(it)))
    };
    let before = present();
    let alice = json!({ "id": 0, "called": "Alice", "born": null });
    assert_eq!(before.1[0]["rows"][0], alice);
    let was = json!({ "id": 0, "name": "Alice", "mail": "a@x" });
    let past = || {
        for txid in [1, 2] {
            let page = served.get(&format!("/t/person?at=txid:{txid}&as_it_was=true"));
            assert_eq!(page["rows"][0], was, "transaction {txid}");
            let row = served.get(&format!("/t/person/0?at=txid:{txid}&as_it_was=true"));
            assert_eq!(row, was);
            let schema = served.get(&format!("/schema?at=txid:{txid}&as_it_was=true"));
            let fields = schema["tables"][0]["fields"].as_array().unwrap();
            let keys: Vec<_> = fields.iter().map(|field| &field["key"]).collect();
            assert_eq!(keys, ["name", "mail"]);
            assert_eq!(
                schema["tables"],
                served.get(&format!("/schema/{txid}"))["tables"].with_rows(&schema)
            );
            // Through the schema of now.
            assert_eq!(served.get(&format!("/t/person/0?at=txid:{txid}")), alice);
            let sql = served.sql(&format!("SELECT * FROM person_at({txid}) WHERE id = 0"));
            assert_eq!(sql, json!([alice]));
        }
    };
    for _ in 0..3 {
        past();
        assert_eq!(present(), before);
    }
    // At the same time, too.
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| (0..10).for_each(|_| past()));
        for _ in 0..10 {
            assert_eq!(present(), before);
        }
        reading.join().unwrap();
    });
}

/// What two answers about the same tables have in common.
trait WithRows {
    fn with_rows(&self, other: &Value) -> Value;
}

impl WithRows for Value {
    /// Adds the numbers of rows that another answer has.
    fn with_rows(&self, other: &Value) -> Value {
        let mut tables = self.clone();
        for (table, other) in
            tables.as_array_mut().unwrap().iter_mut().zip(other["tables"].as_array().unwrap())
        {
            for key in ["rows", "first_id", "next_id"] {
                table[key] = other[key].clone();
            }
        }
        tables
    }
}

/// <https://github.com/surrealdb/surrealdb/issues/7245>: rows were of the moment, and the references of them led to those of now.
#[test]
fn surrealdb_7245_references_at_a_moment_lead_to_now() {
    let served = Served::start();
    let join = |txid: u64| {
        served.sql(&format!(
            "SELECT a.called AS who, b.called AS whom FROM knows_at({txid}) k \
             JOIN person_at({txid}) a ON a.id = k.who JOIN person_at({txid}) b ON b.id = k.whom"
        ))
    };
    for (txid, end, name) in [(1, 1, "Bob"), (2, 2, "Carol"), (3, 2, "Carol")] {
        let at = format!("at=txid:{txid}");
        let edge = served.get(&format!("/t/knows/0?{at}"));
        assert_eq!(edge, json!({ "id": 0, "who": 0, "whom": end }), "transaction {txid}");
        assert_eq!(served.get(&format!("/t/person/{end}?{at}"))["called"], name);
        assert_eq!(join(txid), json!([{ "who": "Alice", "whom": name }]));
        for id in 0..3 {
            let referrers = served.get(&format!("/t/person/{id}/referrers?{at}"));
            let by = |field: &str| {
                let all = referrers.as_array().unwrap();
                all.iter().find(|it| it["field"] == field).unwrap()["ids"].clone()
            };
            let expected = |is_it: bool| if is_it { json!([0]) } else { json!([]) };
            assert_eq!(by("who"), expected(id == 0), "who, {id} at {txid}");
            assert_eq!(by("whom"), expected(id == end), "whom, {id} at {txid}");
        }
    }
    assert_eq!(served.get("/t/knows?at=txid:4")["rows"], json!([]));
    assert_eq!(join(4), json!([]));
    assert_eq!(served.get("/t/person/2/referrers")[1]["ids"], json!([]));
}

/// 8,000 people with an index of their long names, filled back and opened again with little memory:
/// most of them have to be read from the disk.
fn people_beyond_memory(disk: &SimulatedDisk) -> Database {
    let open = |memory: u64| {
        let clock = Arc::new(SimulatedClock::new(1));
        let options = Options::new().memory(memory).background(false);
        options.open_in(Arc::new(disk.clone()), "journal", clock).unwrap()
    };
    let db = open(1 << 30);
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "person".to_owned() })?;
        tx.apply_command(&field(PERSON, "name", Type::String))?;
        let (name, table, fields) = ("by_name".to_owned(), PERSON, vec![NAME]);
        let (descending, collated, unique) = (Vec::new(), Vec::new(), false);
        tx.apply_command(&Command::CreateIndex {
            name,
            table,
            fields,
            descending,
            collated,
            unique,
        })?;
        (0..8_000).try_for_each(|number| {
            let name = format!("a name that no cell has room for, of number {number}");
            tx.insert(PERSON, &[ValueRef::String(&name)]).map(drop)
        })
    })
    .unwrap();
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    open(1 << 17)
}

/// redb: an iterator went on after an error, as if there were no more rows.
/// <https://github.com/cberner/redb/blob/master/CHANGELOG.md>, 4.3
#[test]
fn redb_4_3_an_answer_is_whole_or_an_error() {
    let disk = SimulatedDisk::new(9);
    let db = people_beyond_memory(&disk);
    let served = Running::start(Server::new().database("a", db).unwrap().open_to_all());
    let client = reqwest::blocking::Client::new();
    let arrow = "application/vnd.apache.arrow.stream";
    for (door, accept) in [
        ("/t/person?limit=10000", "application/json"),
        ("/t/person?index=by_name&limit=10000", "application/json"),
        ("/t/person", arrow),
        ("/t/person?index=by_name&limit=20000", arrow),
        ("/changes?after=0", "application/json"),
        ("/sql", "application/json"),
        ("/sql", arrow),
    ] {
        // The answer, if it came as a whole.
        let ask = || {
            let url = format!("{}{door}", served.of("a"));
            let request = match door {
                "/sql" => client.post(url).header("Content-Type", "application/json").body(
                    json!({ "sql": "SELECT id, name FROM person ORDER BY name" }).to_string(),
                ),
                _ => client.get(url),
            };
            let answer = request.header("Accept", accept).send().ok()?;
            let is_ok = answer.status().is_success();
            answer.bytes().ok().filter(|_| is_ok)
        };
        let begun = disk.reads();
        let whole = ask().unwrap_or_else(|| panic!("{door}, {accept}"));
        let reads = disk.reads() - begun;
        let mut failed = 0;
        // One read fails, or all.
        for (part, count) in (0..8).flat_map(|part| [(part, 1), (part, 1 << 16)]) {
            let first = disk.reads() + reads * part / 8;
            (first..first + count).for_each(|read| disk.fail_read_at(read, ReadFault::Io));
            let found = ask();
            disk.clear_plan();
            failed += u64::from(found.is_none());
            if let Some(found) = found {
                let is_told = String::from_utf8_lossy(&found).contains("\"error\"");
                let lens = (found.len(), whole.len());
                assert!(found == whole || is_told, "{door}, {accept}, {part}: {lens:?}");
                failed += u64::from(is_told);
            }
        }
        assert!(failed > 0, "{door}, {accept}: all was in memory");
        assert!(ask().is_some_and(|found| found == whole), "{door}, {accept}: afterwards");
    }
}
