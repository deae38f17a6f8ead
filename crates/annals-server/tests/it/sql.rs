//! `POST /v1/NAME/sql`: answers, parameters, limits, and what is refused.

use annals::{Command, Database, FieldNumber, TableNumber, Type, Value as Stored, ValueRef};
use annals_server::{NewToken, Role, Server};
use serde_json::{Value, json};

use crate::running::Running;

const CITY: TableNumber = TableNumber(0);

fn database() -> Database {
    let database = Database::in_memory().unwrap();
    let field = |name: &str, ty| Command::AddField {
        table: CITY,
        name: name.to_owned(),
        ty,
        nullable: true,
        default: None,
    };
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "city".to_owned() })?;
            tx.apply_command(&field("name", Type::String))?;
            tx.apply_command(&field("large", Type::UInt64))?;
            for name in ["Lille", "a,\"b\"", ""] {
                tx.insert(CITY, &[ValueRef::String(name), ValueRef::UInt64(u64::MAX)])?;
            }
            Ok(())
        })
        .unwrap();
    database
        .write(|tx| tx.update(CITY, annals::RowId(2), FieldNumber(0), Stored::Null.as_ref()))
        .unwrap();
    database
}

/// Asks; returns the status, the transaction that the answer is of, and the text.
fn ask(url: &str, body: &str, accept: &str) -> (u16, String, String) {
    let request = reqwest::blocking::Client::new().post(format!("{url}/sql"));
    let request = request.header("Content-Type", "application/json").header("Accept", accept);
    let answer = request.body(body.to_owned()).send().unwrap();
    let txid = answer.headers().get("Annals-Txid").map(|txid| txid.to_str().unwrap().to_owned());
    (answer.status().as_u16(), txid.unwrap_or_default(), answer.text().unwrap())
}

#[test]
fn queries_are_answered_in_three_forms() {
    let running = Running::start(Server::new().database("a", database()).unwrap().open_to_all());
    let url = running.of("a");
    let body = json!({ "sql": "SELECT id, name, large FROM city" }).to_string();
    let (status, txid, text) = ask(&url, &body, "*/*");
    let rows = json!([
        { "id": 0, "name": "Lille", "large": u64::MAX },
        { "id": 1, "name": "a,\"b\"", "large": u64::MAX },
        { "id": 2, "name": null, "large": u64::MAX },
    ]);
    assert_eq!(
        (status, txid.as_str(), serde_json::from_str::<Value>(&text).unwrap()),
        (200, "2", rows)
    );
    let (_, _, text) = ask(&url, &body, "text/csv");
    assert_eq!(
        text,
        "id,name,large\n0,Lille,18446744073709551615\n1,\"a,\"\"b\"\"\",18446744073709551615\n2,,18446744073709551615\n"
    );
    let (_, _, text) = ask(&url, &body, "application/x-ndjson");
    assert_eq!(text.lines().count(), 3);
    let listed = json!({ "sql": "SELECT count(*) n FROM city WHERE id >= ? AND name IS NOT ?", "params": [1, null] });
    assert_eq!(ask(&url, &listed.to_string(), "").2, "[{\"n\":1}]\n");
    let named = json!({ "sql": "SELECT :a + :b s", "params": { "a": 1, "b": 0.5 } });
    assert_eq!(ask(&url, &named.to_string(), "").2, "[{\"s\":1.5}]\n");
    let past = json!({ "sql": "SELECT name FROM city_at(1) WHERE id = 2" });
    assert_eq!(ask(&url, &past.to_string(), "").2, "[{\"name\":\"\"}]\n");
}

#[test]
fn parameters_are_the_numbers_that_were_written() {
    let running = Running::start(Server::new().database("a", database()).unwrap().open_to_all());
    let url = running.of("a");
    let typed = |param: &str| {
        let body = format!("{{\"sql\":\"SELECT ?1 v, typeof(?1) t\",\"params\":[{param}]}}");
        ask(&url, &body, "text/csv")
    };
    for (param, found) in [
        ("1", "1,integer"),
        ("-9223372036854775808", "-9223372036854775808,integer"),
        ("1.0", "1.0,real"),
        ("-0.0", "-0.0,real"),
        ("1e2", "100.0,real"),
        ("123456789012345680.0", "1.2345678901234568e17,real"),
        ("1e300", "1e300,real"),
        ("true", "1,integer"),
        ("\"1\"", "1,text"),
        ("null", ",null"),
    ] {
        let (status, _, text) = typed(param);
        assert_eq!((status, text.as_str()), (200, format!("v,t\n{found}\n").as_str()), "{param}");
    }
    for param in ["9223372036854775808", "-9223372036854775809", "123456789012345678901", "1e999"] {
        let (status, _, text) = typed(param);
        assert!(status == 400 && text.contains("out of range"), "{param}: {text}");
    }
}

#[test]
fn what_writes_or_takes_too_long_is_refused() {
    let running = Running::start(Server::new().database("a", database()).unwrap().open_to_all());
    let url = running.of("a");
    for (sql, status, error) in [
        ("SELEC 1", 400, "sql"),
        ("SELECT * FROM town", 400, "sql"),
        ("SELECT ?", 400, "sql"),
        ("DELETE FROM city", 422, "read_only"),
        ("ATTACH 'x' AS y", 422, "read_only"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
            422,
            "row_limit",
        ),
    ] {
        let (found, _, text) = ask(&url, &json!({ "sql": sql }).to_string(), "");
        let refusal: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((found, refusal["error"].as_str().unwrap()), (status, error), "{sql}: {text}");
        assert!(refusal["message"].as_str().unwrap().len() > 10, "{text}");
    }
    for body in [
        "",
        "{}",
        "{\"sql\":1}",
        "{\"sql\":\"SELECT 1\",\"params\":3}",
        "{\"sql\":\"SELECT ?\",\"params\":[[]]}",
    ] {
        assert_eq!(ask(&url, body, "").0, 400, "{body}");
    }
    let plain =
        reqwest::blocking::Client::new().post(format!("{url}/sql")).body("{\"sql\":\"SELECT 1\"}");
    assert_eq!(plain.send().unwrap().status().as_u16(), 415);
    assert_eq!(ask(&running.of("b"), "{}", "").0, 404);
}

#[test]
fn a_request_has_one_answer() {
    let running = Running::start(Server::new().database("a", database()).unwrap().open_to_all());
    let url = running.of("a");
    let ask = |sql: &str, accept: &str| ask(&url, &json!({ "sql": sql }).to_string(), accept);
    for accept in ["application/json", "application/x-ndjson", "text/csv"] {
        let (status, _, text) = ask("SELECT 1 AS n; SELECT 2 AS n", accept);
        let refusal: Value = serde_json::from_str(&text).unwrap();
        let message = refusal["message"].as_str().unwrap();
        assert_eq!((status, refusal["error"].as_str()), (400, Some("sql")), "{accept}: {text}");
        assert!(message.contains("another request"), "{accept}: {text}");
    }
    // Statements without an answer may come before it.
    let (status, _, text) = ask("SELECT 1 AS n; -- that was all\n ;", "application/json");
    assert_eq!((status, text.as_str()), (200, "[{\"n\":1}]\n"));
}

#[test]
fn reading_is_the_role_that_it_needs() {
    let secret = NewToken::random(Role::Read, None);
    let server = Server::new().database("a", database()).unwrap().session(secret.stored);
    let secret = secret.token;
    let running = Running::start(server);
    let body = json!({ "sql": "SELECT 1 n" }).to_string();
    assert_eq!(ask(&running.of("a"), &body, "").0, 401);
    let request = reqwest::blocking::Client::new().post(format!("{}/sql", running.of("a")));
    let answer =
        request.header("Content-Type", "application/json").bearer_auth(secret).body(body).send();
    assert_eq!(answer.unwrap().text().unwrap(), "[{\"n\":1}]\n");
}
