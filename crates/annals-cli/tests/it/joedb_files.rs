//! joedb's own files come in with their histories, and go out again to the byte.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::joedb::{assert_same, by_column, data, joedb_saw, schema, six_digits_of};
use crate::program::{run, succeed};

const FILES: [&str; 7] = ["blobs", "evolution", "library", "random7", "sparse", "types", "vectors"];

/// The length of a joedb file's head.
const HEAD: usize = 41;

fn read(name: &str, ending: &str) -> String {
    fs::read_to_string(data().join(format!("{name}.{ending}"))).unwrap()
}

fn import(dir: &Path, name: &str) {
    let file = data().join(format!("{name}.joedb"));
    let told = succeed(dir, &["import", "joedb", file.to_str().unwrap(), "first.annals"], "");
    assert!(told.starts_with("imported "), "{told}");
    assert!(succeed(dir, &["check", "first.annals"], "").starts_with("ok: "), "{name}");
}

/// Returns the lines of our log that joedb's has, too: not those of commits, which joedb hasn't got, nor the bytes of
/// blobs, which its log leaves out.
fn our_lines(log: &str) -> Vec<String> {
    let is_theirs = |line: &&str| !line.starts_with("commit ") && !line.starts_with("write_blob ");
    log.lines().filter(is_theirs).map(str::to_owned).collect()
}

/// Returns the lines of joedb's log in our words.
fn their_lines(log: &str) -> Vec<String> {
    let mut blobs = Vec::new();
    let mut lines = Vec::new();
    for line in log.lines().filter(|line| !line.is_empty()) {
        if let Some(place) = line.strip_prefix("# Blob: ") {
            blobs.push(place.to_owned());
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let (&last, rest) = words.split_last().unwrap();
        let blob = blobs.iter().position(|place| place == last);
        lines.push(match (words[0], last, blob) {
            ("timestamp", ..) => words[..2].join(" "),
            ("add_field", "boolean", _) => format!("{} bool", rest.join(" ")),
            ("update", _, Some(place)) => format!("{} blob:{}", rest.join(" "), place + 1),
            _ => line.to_owned(),
        });
    }
    lines
}

/// Compares a line word by word: joedb shows six digits of a float.
fn is_the_same_line(ours: &str, theirs: &str) -> bool {
    let number = |word: &str| word.parse::<f64>().ok().map(six_digits_of);
    let same = |(a, b): (&str, &str)| a == b || (number(a).is_some() && number(a) == number(b));
    ours == theirs
        || (ours.split(' ').count() == theirs.split(' ').count()
            && ours.split(' ').zip(theirs.split(' ')).all(same))
}

#[test]
fn the_log_is_joedbs() {
    for name in FILES {
        let dir = tempfile::tempdir().unwrap();
        import(dir.path(), name);
        let ours = our_lines(&succeed(dir.path(), &["log", "first.annals"], ""));
        let theirs = their_lines(&read(name, "logdump"));
        for (place, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            assert!(is_the_same_line(a, b), "{name}: line {place}: {a}, joedb has {b}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
    }
}

#[test]
fn the_rows_are_joedbs() {
    for name in FILES {
        let dir = tempfile::tempdir().unwrap();
        import(dir.path(), name);
        let json = succeed(dir.path(), &["dump", "first.annals", "--format", "json"], "");
        let mut ours = by_column(&serde_json::from_str(&json).unwrap(), &schema(name));
        let mut theirs = joedb_saw(name);
        if name == "blobs" {
            // A blob has another name in each of the two.
            let [a, b] = [&mut ours, &mut theirs]
                .map(|saw| saw["file"].as_object_mut().unwrap().remove("content").unwrap());
            assert_eq!(a[0], "blob:1");
            assert_eq!((&a[1], b[1].to_string()), (&Value::Null, "[0,0]".to_owned()));
            let bytes = succeed(dir.path(), &["shell", "first.annals"], "read_blob blob:1");
            assert!(bytes.starts_with("\"hello, world\"\n"), "{bytes}");
        }
        assert_same(&ours, &theirs, name);
    }
}

#[test]
fn what_comes_in_goes_out_to_the_byte() {
    for name in FILES {
        let dir = tempfile::tempdir().unwrap();
        import(dir.path(), name);
        let export = ["export", "joedb", "--same-bytes", "first.annals", "again.joedb"];
        let exported = run(dir.path(), &export, b"");
        let said = String::from_utf8(exported.stderr).unwrap();
        assert!(exported.status.success(), "{name}: {said}");
        assert!(said.lines().all(|line| line.contains("of zeros at ids that were used before")));
        let [theirs, ours] = [data().join(format!("{name}.joedb")), dir.path().join("again.joedb")]
            .map(|path| fs::read(path).unwrap());
        assert!(ours[HEAD..] == theirs[HEAD..], "{name}: other entries");
        // Theirs has a soft checkpoint, ours a hard one: both positions of the second pair.
        let position = |bytes: &[u8], place: usize| {
            i64::from_le_bytes(bytes[8 * place..8 * place + 8].try_into().unwrap())
        };
        let end = i64::try_from(ours.len()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|place| position(&theirs, place)), [41, 41, 41, -end]);
        assert_eq!([0, 1, 2, 3].map(|place| position(&ours, place)), [41, 41, end, end]);
        assert_eq!(ours[32..HEAD], theirs[32..HEAD], "{name}");

        succeed(dir.path(), &["import", "joedb", "again.joedb", "second.annals"], "");
        let [first, second] = ["first.annals", "second.annals"]
            .map(|file| timeless(&succeed(dir.path(), &["log", file], "")));
        assert_eq!(first, second, "{name}");
    }
}

/// Vectors of several events, and blobs of several pieces, are one entry each.
#[test]
fn long_vectors_and_blobs_stay_whole() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("bytes"), vec![7; 200_000]).unwrap();
    let texts: String = (0..3000).map(|n| format!(" \"text {n}\"")).collect();
    let numbers: String = (0..140_000).map(|n| format!(" {n}")).collect();
    let script = format!(
        "create_table t\nadd_field t s string\nadd_field t n int64\nadd_field t b blob\n\
         insert_vector t 0 1100000\nupdate_vector t 5 s 3000{texts}\nupdate_vector t 1 s 1024{}\n\
         update_vector t 0 n 140000{numbers}\nwrite_blob_file \"bytes\"\nappend_blob 0x0102\n\
         update t 9 b blob:1\ndelete_vector t 0 1100000\n",
        " \"\"".repeat(1024),
    );
    succeed(dir, &["shell", "first.annals"], &script);
    succeed(dir, &["export", "joedb", "first.annals", "out.joedb"], "");
    let import = ["import", "joedb", "--max-rows", "1100000", "out.joedb", "second.annals"];
    // Of all of them, only the deletion is in two parts.
    assert_eq!(succeed(dir, &import, ""), "imported 12 entries in 2 transactions\n");
    succeed(dir, &["export", "joedb", "second.annals", "again.joedb"], "");
    let [out, again] = ["out.joedb", "again.joedb"].map(|file| fs::read(dir.join(file)).unwrap());
    assert!(out == again);
    let few = ["import", "joedb", "--max-rows", "1099999", "out.joedb", "third.annals"];
    let small = run(dir, &few, b"");
    let said = String::from_utf8(small.stderr).unwrap();
    assert!(said.contains("a vector of 1100000 rows"), "{said}");
    assert!(!dir.join("third.annals").exists());
}

/// Leaves out the times of commits, which are the clock's where a file has no timestamps.
pub(crate) fn timeless(log: &str) -> String {
    let cut = |line: &str| match line.strip_prefix("commit soft at ") {
        Some(_) => "commit soft\n".to_owned(),
        None => format!("{line}\n"),
    };
    log.lines().map(cut).collect()
}

/// What joedb says in SQL, and what we do, make the same tables in SQLite.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_sql_makes_joedbs_tables() {
    use rusqlite::Connection;
    use rusqlite::types::Value as V;

    // joedb's strings are bytes, it writes no bytes of blobs, and what was never set is null.
    let text = |value: &V| match value {
        V::Blob(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        V::Text(text) => text.clone(),
        V::Integer(number) => number.to_string(),
        V::Real(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        V::Real(number) => six_digits_of(*number),
        V::Null => "null".to_owned(),
    };
    for name in FILES {
        let dir = tempfile::tempdir().unwrap();
        import(dir.path(), name);
        let sql = succeed(dir.path(), &["dump", "first.annals", "--format", "sql"], "");
        let [ours, theirs] = [sql, read(name, "sql")].map(|sql| {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch("PRAGMA foreign_keys=OFF;").unwrap();
            connection.execute_batch(&sql).unwrap();
            connection
        });
        for table in schema(name).tables() {
            let all = |connection: &Connection| {
                let query = format!("SELECT * FROM \"{}\" ORDER BY 1", table.name);
                crate::sql::rows(connection, &query)
            };
            let (ours, theirs) = (all(&ours), all(&theirs));
            assert_eq!(ours.len(), theirs.len(), "{name}: {}", table.name);
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours.len(), theirs.len(), "{name}: {}", table.name);
                for (a, b) in ours.iter().zip(theirs) {
                    let is_unset = matches!(b, V::Null)
                        && (["", "0", "null"].contains(&text(a).as_str()) || name == "blobs");
                    let same = is_unset || text(a) == text(b) || is_close(a, b);
                    assert!(same, "{name}: {}: {ours:?}, joedb has {theirs:?}", table.name);
                }
            }
        }
    }

    fn is_close(a: &V, b: &V) -> bool {
        let number = |value: &V| match value {
            V::Real(number) => Some(six_digits_of(*number)),
            V::Integer(number) => Some(six_digits_of(*number as f64)),
            _ => None,
        };
        matches!((a, b), (V::Real(_), _) | (_, V::Real(_))) && number(a) == number(b)
    }
}

#[test]
fn random_databases_come_back() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let (mut exported, mut exact) = (0, 0);
    let seeds = if full { 2000 } else { 60 };
    for seed in 0..seeds {
        let script = crate::identity::script(seed);
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        succeed(dir, &["shell", "first.annals"], &script);
        let out = run(dir, &["export", "joedb", "first.annals", "out.joedb"], b"");
        let said = String::from_utf8(out.stderr).unwrap();
        if !out.status.success() {
            assert!(said.contains("joedb's files have no room for the "), "seed {seed}: {said}");
            assert!(!dir.join("out.joedb").exists(), "seed {seed}");
            continue;
        }
        exported += 1;
        let strict =
            run(dir, &["export", "joedb", "--strict", "first.annals", "strict.joedb"], b"");
        assert_eq!(strict.status.success(), said.lines().all(|line| line.contains("takes memory")));
        let bring = ["import", "joedb", "--lossy", "out.joedb", "second.annals"];
        let brought = run(dir, &bring, b"");
        let told = String::from_utf8(brought.stderr).unwrap();
        assert!(brought.status.success(), "seed {seed}: {told}");
        let [first, second] = ["first.annals", "second.annals"].map(|file| {
            let json = succeed(dir, &["dump", file, "--format", "json"], "");
            serde_json::from_str::<Value>(&json).unwrap()
        });
        let schema = succeed(dir, &["schema", "show", "first.annals"], "");
        let schema = annals_schema::parse(&schema).unwrap().schema;
        assert_eq!(as_joedb_has(&first, &schema), second, "seed {seed}:\n{script}");
        if told.is_empty() {
            // Nothing had to be changed, so the file comes out again as it came in.
            exact += 1;
            let again = run(dir, &["export", "joedb", "second.annals", "again.joedb"], b"");
            assert!(again.status.success(), "seed {seed}");
            let [out, again] =
                ["out.joedb", "again.joedb"].map(|file| fs::read(dir.join(file)).unwrap());
            assert!(out == again, "seed {seed}: another file:\n{script}");
        }
    }
    assert!(exported * 3 > seeds && exact * 4 > seeds, "{exported} and {exact} of {seeds}");
}

/// Returns rows as an export to joedb leaves them.
fn as_joedb_has(rows: &Value, schema: &annals::Schema) -> Value {
    use annals::Type;
    let mut rows = rows.clone();
    for table in schema.tables() {
        for row in rows[&table.name].as_array_mut().unwrap() {
            for field in &table.fields {
                let value = &mut row[&field.name];
                let new = match (field.ty, &*value) {
                    (Type::Blob | Type::Reference(..), _) => continue,
                    (Type::Bool, Value::Null) => Value::from(false),
                    (ty, Value::Null) if ty.is_variable() => Value::from(""),
                    (ty, Value::Null) if ty.class() == annals::model::TypeClass::Written => {
                        "".into()
                    }
                    (Type::Float32 | Type::Float64, Value::Null) => Value::from(0.0),
                    (_, Value::Null) => Value::from(0),
                    (Type::Timestamp, time) => {
                        let time: annals::Timestamp = time.as_str().unwrap().parse().unwrap();
                        Value::from(time.microseconds())
                    }
                    (Type::Bytes | Type::FixedBytes(_), bytes) => {
                        let digits = bytes.as_str().unwrap().as_bytes()[2..].chunks(2);
                        let byte = |pair: &[u8]| {
                            u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()
                        };
                        let bytes: Vec<u8> = digits.map(byte).collect();
                        Value::from(String::from_utf8_lossy(&bytes).into_owned())
                    }
                    _ => continue,
                };
                *value = new;
            }
        }
    }
    rows
}
