//! joedb's scripts give the rows that joedb's own tools saw in them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use annals_schema::{Schema, Type, parse_files};
use serde_json::{Value, json};

use crate::program::{run, succeed};

/// Those that say the same to both programs.
const SCRIPTS: [&str; 6] = ["evolution", "library", "random7", "sparse", "types", "vectors"];

pub(crate) fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/joedb")
}

fn script(name: &str) -> String {
    std::fs::read_to_string(data().join(format!("{name}.joedbi"))).unwrap()
}

pub(crate) fn joedb_saw(name: &str) -> Value {
    let text = std::fs::read_to_string(data().join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Makes a file of a script, and checks that its log makes the same one.
fn load(dir: &Path, script: &str) -> Value {
    succeed(dir, &["shell", "first.annals"], script);
    let log = succeed(dir, &["log", "first.annals"], "");
    succeed(dir, &["shell", "second.annals"], &log);
    assert!(succeed(dir, &["log", "second.annals"], "") == log, "another log");
    let dump = |file| succeed(dir, &["dump", file, "--format", "json"], "");
    let json = dump("first.annals");
    assert!(dump("second.annals") == json, "other rows");
    assert!(succeed(dir, &["check", "first.annals"], "").starts_with("ok: "));
    serde_json::from_str(&json).unwrap()
}

/// Turns rows into an array for each field, as joedb has them.
pub(crate) fn by_column(rows: &Value, schema: &Schema) -> Value {
    let places: HashMap<(&str, u64), usize> = schema
        .tables()
        .iter()
        .flat_map(|table| {
            let rows = rows[&table.name].as_array().unwrap().iter().enumerate();
            rows.map(|(place, row)| ((table.name.as_str(), row["id"].as_u64().unwrap()), place))
        })
        .collect();
    let mut tables = serde_json::Map::new();
    for table in schema.tables() {
        let rows = rows[&table.name].as_array().unwrap();
        let mut columns = serde_json::Map::new();
        columns.insert("__size".to_owned(), json!(rows.len()));
        for field in &table.fields {
            let value = |row: &Value| match field.ty {
                Type::Reference(target, _) => {
                    let target = schema.table(target).map(|table| table.name.as_str());
                    let id = row[&field.name].as_u64();
                    let place = target.zip(id).and_then(|key| places.get(&key));
                    place.map_or(json!(-1), |place| json!(place))
                }
                _ => row[&field.name].clone(),
            };
            columns.insert(field.name.clone(), rows.iter().map(value).collect());
        }
        tables.insert(table.name.clone(), Value::Object(columns));
    }
    Value::Object(tables)
}

/// Compares as values: `0` and `0.0` are the same number, and joedb shows six digits of one.
pub(crate) fn assert_same(ours: &Value, theirs: &Value, place: &str) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{place}: {:?}, {:?}", a.keys(), b.keys());
            a.iter()
                .zip(b.values())
                .for_each(|((k, a), b)| assert_same(a, b, &format!("{place}.{k}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{place}");
            (0..)
                .zip(a.iter().zip(b))
                .for_each(|(n, (a, b))| assert_same(a, b, &format!("{place}.{n}")));
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            assert_eq!(six_digits(a), six_digits(b), "{place}");
        }
        _ => assert_eq!(ours, theirs, "{place}"),
    }
}

/// Rounds as joedb's tools do when they print a number.
fn six_digits(number: &serde_json::Number) -> String {
    six_digits_of(number.as_f64().unwrap())
}

pub(crate) fn six_digits_of(number: f64) -> String {
    format!("{number:.5e}")
}

pub(crate) fn schema(name: &str) -> Schema {
    parse_files(&[(name, &script(name))]).unwrap().schema
}

#[test]
fn scripts_give_what_joedb_saw_in_them() {
    for name in SCRIPTS {
        let dir = tempfile::tempdir().unwrap();
        let rows = load(dir.path(), &script(name));
        assert_same(&by_column(&rows, &schema(name)), &joedb_saw(name), name);
    }
}

/// joedb's name of a blob is its place in joedb's file, which is the number of the blob here.
#[test]
fn blobs_are_what_joedb_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let theirs = joedb_saw("blobs");
    let [written, null] = [0, 1].map(|row| theirs["file"]["content"][row].clone());
    let named = format!("{},{}", written[0], written[1]);
    let translated = script("blobs").replace(&named, "blob:1");
    assert_ne!(translated, script("blobs"));
    let rows = load(dir.path(), &translated);
    assert_eq!(rows["file"][0]["content"], "blob:1");
    assert_eq!((&rows["file"][1]["content"], null), (&Value::Null, json!([0, 0])));
    let names: Value =
        [0, 1].iter().map(|&row: &usize| rows["file"][row]["name"].clone()).collect();
    assert_eq!(names, theirs["file"]["name"]);
    let read = succeed(dir.path(), &["shell", "first.annals"], "read_blob blob:1");
    let text = "hello, world";
    assert!(read.starts_with(&format!("{text:?}\n")), "{read}");
    assert_eq!(written[1], text.len());
}

#[test]
fn the_compiler_takes_the_schema_of_scripts() {
    for name in SCRIPTS.into_iter().chain(["blobs"]) {
        let dir = tempfile::tempdir().unwrap();
        let commands = |text: &str| {
            let is_schema = |line: &&str| {
                let words = ["create_table", "add_field", "rename_", "drop_", "custom"];
                words.iter().any(|word| line.starts_with(word))
            };
            text.lines().filter(is_schema).map(|line| format!("{line}\n")).collect::<String>()
        };
        let (whole, alone) = (dir.path().join("s.joedbi"), dir.path().join("alone/s.joedbi"));
        std::fs::create_dir(dir.path().join("alone")).unwrap();
        std::fs::write(&whole, script(name)).unwrap();
        std::fs::write(&alone, commands(&script(name))).unwrap();
        succeed(dir.path(), &["compile", "alone/s.joedbi", "-o", "alone/s.rs"], "");
        let output = run(dir.path(), &["compile", "s.joedbi", "-o", "s.rs"], b"");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains("changes data"), "{name}: {said}");
        let [whole, alone] =
            ["s.rs", "alone/s.rs"].map(|file| std::fs::read(dir.path().join(file)));
        assert!(whole.unwrap() == alone.unwrap(), "{name}: what changes data changed the code");
    }
}
