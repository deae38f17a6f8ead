//! The description of the routes: each path in it is there, and each answer has the shape that it says.

use annals::Database;
use annals_server::Server;
use serde_json::{Value, json};

use crate::running::Running;

/// A field of each kind, with values.
const TYPES: &str = "create_table sort; add_field sort name string; create_table all; \
    add_field all text string null; add_field all flag bool; add_field all small int8; add_field all large uint64; \
    add_field all ratio float64; add_field all raw bytes null; add_field all day date null; \
    add_field all when timestamp null; add_field all price decimal(2); add_field all who uuid; \
    add_field all shape enum(round,flat) null; add_field all of references sort; add_field all more json";

fn get(url: &str) -> (u16, Value) {
    let answer = reqwest::blocking::get(url).unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
    let lines: Vec<_> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    let value =
        serde_json::from_str(&text).unwrap_or_else(|_| lines.first().cloned().unwrap_or_default());
    (status, value)
}

/// Returns what is wrong with an answer, as the description says it.
fn mistakes(description: &Value, shape: &Value, answer: &Value) -> Vec<String> {
    let mut schema = shape.clone();
    schema["components"] = description["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator
        .iter_errors(answer)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect()
}

/// Returns the shape of an operation's answer that is JSON.
fn shape(operation: &Value) -> Option<&Value> {
    let content = operation["responses"]["200"]["content"].as_object()?;
    content.iter().find(|(kind, _)| kind.contains("json")).map(|(_, it)| &it["schema"])
}

/// Calls everything that a description says can be read; returns how many answers were compared.
fn compare(url: &str, description: &Value) -> usize {
    let mut compared = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let Some(operation) = methods.get("get") else { continue };
        let asked = path.replace("{name}", "all").replace("{table}", "all").replace("{id}", "0");
        if path.contains("{root}") {
            continue; // a database in memory has no image here
        }
        let asked = asked.replace("{number}", "0").replace("{txid}", "1");
        let asked = match asked.rsplit('/').next().unwrap() {
            "chains" => format!("{asked}?txid=1,99"),
            "diff" => format!("{asked}?from=txid:1"),
            "at" => format!("{asked}?moment=txid:2"),
            "changes" => format!("{asked}?after=1"),
            "compare" => format!("{asked}?from=txid:1&to=txid:2&table=all"),
            "search" => format!("{asked}?text=plum"),
            _ => asked,
        };
        let (status, answer) = get(&format!("{url}{}", asked.trim_end_matches('/')));
        if asked == "/metrics" {
            assert_eq!(status, 403, "it needs more than everybody may");
            continue;
        }
        assert_eq!(status, 200, "{asked}: {answer}");
        if let Some(shape) = shape(operation) {
            assert_eq!(
                mistakes(description, shape, &answer),
                Vec::<String>::new(),
                "{asked}: {answer}"
            );
            compared += 1;
        }
    }
    compared
}

fn database() -> Database {
    let database = Database::in_memory().unwrap();
    for command in TYPES.split("; ") {
        let schema = database.read().schema().clone();
        let tokens = annals_schema::tokenize(command).unwrap();
        let parsed = annals_schema::parse_command(&schema, &tokens).unwrap().unwrap();
        database.write(|tx| tx.apply_command(&parsed)).unwrap();
    }
    database
}

#[test]
fn answers_have_the_shapes_that_the_description_says() {
    let server = Server::new().database("all", database()).unwrap().open_to_all();
    let running = Running::start(server);
    let here = running.of("all");
    let post = |body: &Value| {
        let request = reqwest::blocking::Client::new().post(format!("{here}/transactions"));
        let answer = request
            .header("Content-Type", "application/json")
            .body(body.to_string())
            .send()
            .unwrap();
        (answer.status().as_u16(), serde_json::from_str::<Value>(&answer.text().unwrap()).unwrap())
    };
    let (_, description) = get(&format!("{}/v1/openapi.json", running.url));
    assert_eq!(description["openapi"].as_str().unwrap().split('.').next(), Some("3"));
    let operation = &description["paths"]["/v1/{name}/transactions"]["post"];
    let asked = json!({ "comment": "begun", "changes": [
        { "op": "insert", "table": "sort", "as": "plum", "fields": { "name": "plum" } },
        { "op": "insert", "table": "all", "fields": { "of": "plum", "ratio": 0.5, "price": "1.25", "more": "[1]",
            "large": u64::MAX, "raw": "0x00ff", "when": "2024-02-29T12:00:00Z", "shape": "flat" } },
        { "op": "update", "table": "all", "id": 0, "fields": { "day": "2024-02-29", "small": -128 } },
    ] });
    let request = &operation["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(mistakes(&description, request, &asked), Vec::<String>::new());
    let (status, answer) = post(&asked);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(mistakes(&description, shape(operation).unwrap(), &answer), Vec::<String>::new());
    let (status, refusal) = post(&json!({ "changes": 1 }));
    let failure = &operation["responses"]["400"]["content"]["application/json"]["schema"];
    assert_eq!((status, mistakes(&description, failure, &refusal)), (400, Vec::new()));
    assert_eq!(compare(&running.url, &description), 22);

    // That of one database knows its tables.
    let (_, one) = get(&format!("{here}/openapi.json"));
    assert_eq!(compare(&here, &one), 26);
    let row = &one["components"]["schemas"]["t.all"];
    assert_eq!(row["properties"]["large"]["maximum"], json!(u64::MAX));
    let wrong = json!({ "id": 0, "text": 1 });
    assert!(!mistakes(&one, row, &wrong).is_empty(), "shapes say something");
}
