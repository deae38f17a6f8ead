//! What `annals dump --format sql` prints is loaded into PostgreSQL, which must hold the same. Without a server
//! that `psql` reaches (`PGHOST`, `PGUSER`, .. say where) nothing is tested.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use annals::{Options, ValueRef};

use crate::identity;
use crate::program::succeed;

/// Runs `psql` with this on standard input; none if there is no such program.
fn psql(script: &str) -> Option<Output> {
    let mut command = Command::new("psql");
    let database = std::env::var("PGDATABASE").unwrap_or_else(|_| "postgres".to_owned());
    command.args(["-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1", "-d", &database]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let script = script.to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = feeder.join().unwrap();
    Some(output)
}

/// Returns a field of PostgreSQL's text format, as it stands for one of ours.
fn text(value: ValueRef<'_>, bytes: impl FnOnce() -> Vec<u8>) -> String {
    let hex = |bytes: &[u8]| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("\\\\x{digits}")
    };
    match value {
        ValueRef::Null => "\\N".to_owned(),
        ValueRef::Bool(value) => if value { "t" } else { "f" }.to_owned(),
        ValueRef::Bytes(value) => hex(value),
        ValueRef::Blob(_) => hex(&bytes()),
        ValueRef::Timestamp(value) => value.to_string(),
        ValueRef::Reference(id) => id.0.to_string(),
        ValueRef::String(value) => value
            .replace('\\', "\\\\")
            .replace('\n', "\\n")
            .replace('\r', "\\r")
            .replace('\t', "\\t"),
        ValueRef::Int64(value) => value.to_string(),
        ValueRef::Float32(value) => format!("{value}"),
        ValueRef::Float64(value) => format!("{value}"),
        value => value.to_string(),
    }
}

/// True if two fields are the same, if they are floats also with other digits.
fn is_same(found: &str, expected: &str, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Float32(value) => {
            let found: f32 = found.parse().unwrap();
            found.to_bits() == value.to_bits() || (found.is_nan() && value.is_nan())
        }
        ValueRef::Float64(value) => {
            let found: f64 = found.parse().unwrap();
            found.to_bits() == value.to_bits() || (found.is_nan() && value.is_nan())
        }
        _ => found == expected,
    }
}

fn check(dir: &Path, name: &str, dialect: &str) {
    let sql = succeed(dir, &["dump", name, "--format", "sql", "--dialect", dialect], "");
    let snapshot = Options::new().open_read_only(dir.join(name)).unwrap().read();
    let place = format!("annals_{}_{dialect}", std::process::id());
    let begin = format!("CREATE SCHEMA {place};\nSET search_path TO {place};\n");
    let mut script = format!("{begin}{sql}");
    for table in snapshot.schema().tables() {
        script += &format!("COPY (SELECT * FROM \"{}\" ORDER BY id) TO STDOUT;\n", table.name);
    }
    let output = psql(&script).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let quiet = "SET client_min_messages TO warning;";
    psql(&format!("{quiet} DROP SCHEMA {place} CASCADE;")).unwrap();
    let has_zero = snapshot.schema().tables().iter().any(|table| {
        let mut rows = snapshot.table(table.number).unwrap().rows();
        rows.any(|row| {
            let row = row.unwrap();
            let mut values = table.fields.iter().map(|field| row.value(field.number));
            values.any(|value| matches!(value, ValueRef::String(text) if text.contains('\0')))
        })
    });
    let has_zero = has_zero || snapshot.schema().to_text().contains("\\000");
    if has_zero {
        assert!(errors.contains("0x00"), "PostgreSQL has no zero in texts: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}\n{script}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut lines = printed.lines();
    for table in snapshot.schema().tables() {
        for row in snapshot.table(table.number).unwrap().rows() {
            let row = row.unwrap();
            let line = lines.next().expect("a row is missing");
            let mut found = line.split('\t');
            assert_eq!(found.next().unwrap(), row.id().0.to_string());
            for (field, found) in table.fields.iter().zip(found) {
                let value = row.value(field.number);
                let bytes = || match value {
                    ValueRef::Blob(blob) => snapshot.blob(blob).unwrap().to_vec(1 << 20).unwrap(),
                    _ => Vec::new(),
                };
                let expected = text(value, bytes);
                assert!(is_same(found, &expected, value), "{line}: {found} is not {expected}");
            }
        }
    }
    assert_eq!(lines.next(), None, "rows that aren't there");
}

#[test]
fn postgres_holds_the_same() {
    let reached = psql("SELECT 1;").is_some_and(|output| output.status.success());
    if !reached {
        return annals_untested::untested(
            "psql reaches no server of PostgreSQL; start one, and set PGHOST",
        );
    }
    for seed in 3000..3030 {
        let dir = tempfile::tempdir().unwrap();
        succeed(dir.path(), &["shell", "a.annals"], &identity::script(seed).replace("\\000", "0"));
        check(dir.path(), "a.annals", "both");
        check(dir.path(), "a.annals", "postgres");
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "create_table t\nadd_field t s string\ninsert t \"a\\000\"\n";
    succeed(dir.path(), &["shell", "a.annals"], script);
    check(dir.path(), "a.annals", "both");
}
