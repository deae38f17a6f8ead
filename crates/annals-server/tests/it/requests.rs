//! Requests with something that would be ignored, and headers in other forms: an answer says what to send.

use annals::{Command, Database, TableNumber, Type, ValueRef};
use annals_server::{NewToken, Role, Server};
use reqwest::blocking::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::running::Running;

const CITY: TableNumber = TableNumber(0);

/// Makes a table with a field that is called `id`.
fn database() -> Database {
    let database = Database::in_memory().unwrap();
    let field = |name: &str| Command::AddField {
        table: CITY,
        name: name.to_owned(),
        ty: Type::String,
        nullable: true,
        default: None,
    };
    let table = Command::CreateTable { name: "city".to_owned() };
    for command in [table, field("id"), field("name")] {
        database.write(|tx| tx.apply_command(&command)).unwrap();
    }
    let row = [ValueRef::String("FR-59"), ValueRef::String("Lille")];
    database.write(|tx| tx.insert(CITY, &row).map(drop)).unwrap();
    database
}

fn serve() -> Running {
    Running::start(Server::new().database("g", database()).unwrap().open_to_all())
}

/// Returns the status and the message of an answer.
fn ask(request: RequestBuilder) -> (u16, String) {
    let answer = request.send().unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    (status, answer["message"].as_str().map_or(text, str::to_owned))
}

fn post(running: &Running, rest: &str, body: &str) -> (u16, String) {
    let request = Client::new().post(format!("{}{rest}", running.of("g")));
    ask(request.header("Content-Type", "application/json").body(body.to_owned()))
}

#[test]
fn no_route_ignores_a_parameter_that_it_does_not_have() {
    let running = serve();
    let client = Client::new();
    let description = client.get(format!("{}/v1/openapi.json", running.url)).send().unwrap();
    let description: Value = serde_json::from_str(&description.text().unwrap()).unwrap();
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path.replace("{name}", "g").replace("{table}", "city").replace("{id}", "0");
        let path = path.replace("{number}", "0").replace("{root}", "0").replace("{txid}", "1");
        if path == "/metrics" {
            continue; // not for everybody
        }
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase().parse().unwrap();
            let url = format!("{}{path}?afterwards=1", running.url);
            let (status, message) = ask(client.request(method, &url));
            assert_eq!(status, 400, "{url}: {message}");
            assert!(
                message.starts_with("there is no parameter \"afterwards\""),
                "{url}: {message}"
            );
            asked += 1;
        }
    }
    assert!(asked >= 30, "only {asked} routes");
    let (status, message) = ask(client.get(format!("{}/t/city?limti=1", running.of("g"))));
    assert_eq!(status, 400);
    assert!(
        message.contains("did you mean \"limit\"?") && message.contains("as_it_was"),
        "{message}"
    );
    // The page of the explorer isn't described, and has the same rule.
    for path in ["", "/", "/main.js"] {
        let (status, message) = ask(client.get(format!("{}/explore/g{path}?tokne=x", running.url)));
        assert_eq!(status, 400, "{path}: {message}");
        assert!(message.starts_with("there is no parameter \"tokne\""), "{path}: {message}");
        let known = if path.is_empty() { "did you mean \"token\"?" } else { "has no parameters" };
        assert!(message.contains(known), "{path}: {message}");
    }
    let head = client.head(format!("{}/t/city?limti=1", running.of("g"))).send().unwrap();
    assert_eq!(head.status().as_u16(), 400);
}

#[test]
fn rows_that_were_read_need_the_state_in_which_they_were() {
    let running = serve();
    let change = json!({ "op": "delete", "table": "city", "id": 0 });
    let read = json!([{ "table": "city", "id": 0 }]);
    let body = json!({ "read": read, "changes": [change] }).to_string();
    let (status, message) = post(&running, "/transactions", &body);
    assert!(status == 400 && message.contains("\"base\":\"TXID:CHAIN\""), "{status} {message}");
    assert_eq!(ask(Client::new().get(format!("{}/t/city/0", running.of("g")))).0, 200);
}

#[test]
fn a_list_is_no_object() {
    let running = serve();
    let insert = r#"["insert","city",null,null,{}]"#;
    for (rest, body) in [
        ("/transactions", "[]".to_owned()),
        ("/transactions", format!("[null,null,[],[{insert}],null,null]")),
        ("/transactions", format!("{{\"changes\":[{insert}]}}")),
        (
            "/transactions",
            "{\"base\":\"1:0000000000000000\",\"read\":[[\"city\",0]],\"changes\":[]}".to_owned(),
        ),
        ("/sql", "[\"SELECT 1\",null]".to_owned()),
        ("/t/city/0/restore", "[\"txid:3\",null]".to_owned()),
    ] {
        let (status, message) = post(&running, rest, &body);
        assert!(
            status == 400 && message.contains("expected an object"),
            "{body}: {status} {message}"
        );
    }
}

#[test]
fn nothing_is_said_twice() {
    let running = serve();
    let change = |fields: &str| {
        let body = format!(
            "{{\"changes\":[{{\"op\":\"insert\",\"table\":\"city\",\"fields\":{fields}}}]}}"
        );
        post(&running, "/transactions", &body)
    };
    let (status, message) = change("{\"name\":\"Arras\",\"name\":\"Lens\"}");
    assert!(status == 400 && message.contains("duplicate field `name`"), "{status} {message}");
    assert_eq!(change("{\"name\":\"Arras\"}").0, 200);
    let query = "{\"sql\":\"SELECT :a\",\"params\":{\"a\":1,\"a\":2}}";
    let (status, message) = post(&running, "/sql", query);
    assert!(status == 400 && message.contains("duplicate field `a`"), "{status} {message}");
}

#[test]
fn headers_are_read_whatever_their_capitals() {
    let new = NewToken::random(Role::Read, None);
    let server = Server::new().database("g", database()).unwrap().session(new.stored.clone());
    let running = Running::start(server);
    let client = Client::new();
    let ask = |scheme: &str, kind: &str, accept: &str| {
        let request = client.post(format!("{}/sql", running.of("g")));
        let request = request.header("Authorization", format!("{scheme} {}", new.token));
        let request = request.header("Content-Type", kind).header("Accept", accept);
        let answer = request.body(r#"{"sql":"SELECT 1"}"#).send().unwrap();
        (answer.status().as_u16(), answer.text().unwrap())
    };
    let json = (200, "[{\"1\":1}]\n".to_owned());
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(ask(scheme, "application/json", "*/*"), json, "{scheme}");
    }
    assert_eq!(ask("Basic", "application/json", "*/*").0, 401);
    for kind in ["Application/JSON", "application/json ;charset=UTF-8"] {
        assert_eq!(ask("Bearer", kind, "*/*"), json, "{kind}");
    }
    for kind in ["application/jsonx", "application/json-seq", "text/plain;application/json"] {
        assert_eq!(ask("Bearer", kind, "*/*").0, 415, "{kind}");
    }
    assert_eq!(ask("Bearer", "application/json", "Text/CSV; header=present").1, "1\n1\n");
}

#[test]
fn nul_in_a_statement_is_refused() {
    let running = serve();
    let (status, message) = post(&running, "/sql", "{\"sql\":\"SELECT 1\\u0000 garbage\"}");
    assert!(status == 400 && message.contains("NUL"), "{status} {message}");
    // In the value of a parameter it is a character as any other.
    let body = "{\"sql\":\"SELECT length(CAST(? AS BLOB)) AS n\",\"params\":[\"a\\u0000b\"]}";
    assert_eq!(post(&running, "/sql", body), (200, "[{\"n\":3}]\n".to_owned()));
}

#[test]
fn the_last_id_of_events_is_one_of_this_history() {
    let running = serve();
    for id in ["x", "", "17:", "999", "-1"] {
        let request = Client::new().get(format!("{}/changes", running.of("g")));
        let request = request.header("Accept", "text/event-stream").header("Last-Event-ID", id);
        let answer = request.send().unwrap();
        assert_eq!(answer.status().as_u16(), 400, "{id:?}");
    }
}

#[test]
fn what_comes_after_a_later_transaction_than_the_last_one_is_refused() {
    let running = serve();
    for (path, accept) in [
        ("/log", "*/*"),
        ("/log?fields=changed", "*/*"),
        ("/changes", "*/*"),
        ("/changes", "text/event-stream"),
        ("/changes?table=city", "application/vnd.apache.arrow.stream"),
    ] {
        let status_after = |txid: u64| {
            let sign = if path.contains('?') { '&' } else { '?' };
            let url = format!("{}{path}{sign}after={txid}", running.of("g"));
            let answer = Client::new().get(url).header("Accept", accept).send().unwrap();
            answer.status().as_u16()
        };
        // The last one is transaction 4: what follows it isn't there yet.
        for (txid, status) in [(4, 200), (5, 400), (u64::MAX, 400)] {
            assert_eq!(status_after(txid), status, "{path} {accept} after {txid}");
        }
    }
}

#[test]
fn a_field_that_is_called_id_has_its_full_name() {
    let running = serve();
    let insert = |key: &str| {
        let fields = json!({ key: "FR-62" });
        let change = json!({ "op": "insert", "table": "city", "fields": fields });
        post(&running, "/transactions", &json!({ "changes": [change] }).to_string())
    };
    let (status, message) = insert("id");
    assert_eq!(status, 400);
    assert!(
        message.contains("it is the row's id") && message.contains("city.id, name"),
        "{message}"
    );
    assert_eq!(insert("city.id").0, 200);
    let (_, row) = ask(Client::new().get(format!("{}/t/city/1", running.of("g"))));
    assert_eq!(row, "{\"id\":1,\"city.id\":\"FR-62\",\"name\":null}\n");
}

#[test]
fn who_has_a_lease_writes_in_every_way() {
    let running = serve();
    let url = running.of("g");
    let post = |rest: &str, body: &str, lease: Option<&str>| {
        let request = Client::new().post(format!("{url}{rest}")).body(body.to_owned());
        let request = request.header("Content-Type", "application/json");
        let answer = match lease {
            Some(lease) => request.header("Annals-Lease", lease),
            None => request,
        };
        let answer = answer.send().unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str::<Value>(&answer.text().unwrap()).unwrap())
    };
    let lease = post("/lease?seconds=60", "", None).1["lease"].as_str().unwrap().to_owned();
    let change = "{\"changes\":[{\"op\":\"update\",\"table\":\"city\",\"id\":0,\"fields\":{\"name\":\"Lens\"}}]}";
    for (rest, body) in
        [("/transactions", change), ("/t/city/0/restore", "{\"moment\":\"txid:4\"}")]
    {
        assert_eq!(post(rest, body, None).0, 423, "{rest}");
        assert_eq!(post(rest, body, Some(&lease)).0, 200, "{rest}");
    }
}
