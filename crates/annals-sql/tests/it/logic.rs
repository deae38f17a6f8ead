//! Scripts of sqllogictest: their answers are those of our tables, and of SQLite's own.

use annals_sql::{Connection, Parameters, Value};
use sqllogictest::{DBOutput, DefaultColumnType};

use crate::shop::{build, native, open};

/// A connection as the runner of scripts wants it.
struct Runs(Connection);

impl sqllogictest::DB for Runs {
    type Error = annals_sql::SqlError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Self::Error> {
        let rows = self.0.rows(sql, &Parameters::None)?;
        let shown = |value: &Value| match value {
            Value::Null => "NULL".to_owned(),
            Value::Integer(value) => value.to_string(),
            Value::Real(value) => format!("{value:.3}"),
            Value::Text(value) if value.is_empty() => "(empty)".to_owned(),
            Value::Text(value) => value.clone(),
            Value::Blob(value) => format!("{value:02x?}"),
        };
        let types = vec![DefaultColumnType::Any; rows.first().map_or(0, Vec::len)];
        let rows = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
        Ok(DBOutput::Rows { types, rows })
    }
}

#[test]
fn scripts_have_the_same_answers() {
    let db = build(12, 40, 60);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/logic");
    let mut scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(scripts.len() >= 4, "{scripts:?}");
    for script in scripts {
        for make in [native, open] {
            let mut runner = sqllogictest::Runner::new(|| async { Ok(Runs(make(&db))) });
            if let Err(error) = runner.run_file(&script) {
                panic!("{}: {error}", script.display());
            }
        }
    }
}

/// Writes the answers of SQLite's own tables into the scripts.
#[test]
#[ignore = "writes the scripts: UPDATE=1"]
fn scripts_are_updated() {
    if std::env::var("UPDATE").is_err() {
        return;
    }
    let db = build(12, 40, 60);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/logic");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut sql = Runs(native(&db));
        let records = text.split("\n\n").map(|record| {
            let Some((question, _)) = record.split_once("\n----") else {
                return record.trim_end().to_owned();
            };
            let query: Vec<_> =
                question.lines().filter(|line| !line.starts_with(['q', '#'])).collect();
            let output = sqllogictest::DB::run(&mut sql, &query.join("\n")).unwrap();
            let DBOutput::Rows { rows, .. } = output else { panic!("{question}") };
            let rows: String = rows.iter().map(|row| "\n".to_owned() + &row.join(" ")).collect();
            format!("{question}\n----{rows}")
        });
        std::fs::write(&path, records.collect::<Vec<_>>().join("\n\n") + "\n").unwrap();
    }
}
