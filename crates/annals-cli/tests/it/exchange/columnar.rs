//! Parquet and Arrow: there and back, and what is refused.

use crate::program::{run, succeed};

const FORMATS: [(&str, &str); 2] = [("parquet", "parquet"), ("arrow", "arrows")];

const SCRIPT: &str = "create_table town\nadd_field town name string\n\
    create_table all\nadd_field all small int8\nadd_field all large uint64 null\nadd_field all ratio float64\n\
    add_field all ok bool\nadd_field all text string null\nadd_field all raw bytes null\n\
    add_field all at timestamp null\nadd_field all day date null\nadd_field all key uuid null\n\
    add_field all price decimal(2) null\nadd_field all colour enum(red, green)\nadd_field all town references town\n\
    add_field all file blob\ncreate_index all_by_text all text\ninsert town Lille\nwrite_blob \"some bytes\"\n\
    insert all -128 18446744073709551615 -0.5 true \"a, \\\"b\\\"\" 0x00ff 1969-12-31T23:59:59.999999Z 2024-02-29 \
    00112233-4455-6677-8899-aabbccddeeff -12.50 green 0 blob:1\n\
    insert all 127 null 0 false null null null null null null red null null\n";

#[test]
fn tables_come_back_from_columns() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    let dump = succeed(dir.path(), &["dump", "a.annals"], "");
    assert!(dump.contains("18446744073709551615"), "{dump}");
    for (format, ending) in FORMATS {
        let back = format!("{format}.annals");
        succeed(dir.path(), &["export", format, "a.annals", format], "");
        succeed(dir.path(), &["import", format, format, &back], "");
        assert_eq!(succeed(dir.path(), &["dump", &back], ""), dump, "{format}");
        // One table into a database that has another already.
        let one = format!("one-{format}.annals");
        let town = format!("town={format}/town.{ending}");
        succeed(
            dir.path(),
            &["import", format, &one, "--schema", &format!("{format}/schema.annals"), &town],
            "",
        );
        assert!(succeed(dir.path(), &["dump", &one], "").contains("Lille"), "{format}");
    }
}

#[test]
fn a_wrong_file_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    for (format, ending) in FORMATS {
        succeed(dir.path(), &["export", format, "a.annals", format], "");
        let path = dir.path().join(format).join(format!("all.{ending}"));
        let whole = std::fs::read(&path).unwrap();
        for bytes in [&b"nothing"[..], &whole[..whole.len() / 2], &[]] {
            std::fs::write(&path, bytes).unwrap();
            let output = run(dir.path(), &["import", format, format, "b.annals"], b"");
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{format}: {said}");
            assert!(said.contains(&format!("all.{ending}")), "{format}: {said}");
            assert!(!dir.path().join("b.annals").exists(), "{format}");
        }
        std::fs::remove_dir_all(dir.path().join(format)).unwrap();
    }
    let output = run(dir.path(), &["import", "parquet", "nowhere", "b.annals"], b"");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_schema_is_derived_of_the_columns() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    succeed(dir.path(), &["shell", "a.annals"], "insert_at town 7 Roubaix\ndelete_from town 0\n");
    let rows = |dump: &str| -> Vec<String> {
        let rows = dump.lines().filter(|line| line.starts_with("insert_at"));
        rows.map(|line| line.replace(" blob:1", "")).collect()
    };
    for (format, ending) in FORMATS {
        succeed(dir.path(), &["export", format, "a.annals", format], "");
        std::fs::remove_file(dir.path().join(format).join("schema.annals")).unwrap();
        let back = format!("{format}.annals");
        let output = run(dir.path(), &["import", format, format, &back], b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let derived = succeed(dir.path(), &["schema", "show", &back], "");
        for field in [
            "small int8",
            "large uint64 null",
            "ok bool",
            "at timestamp null",
            "day date null",
            "key uuid null",
            "price decimal(2) null",
            "text string null",
            "raw bytes null",
        ] {
            assert!(derived.contains(&format!("add_field all {field}\n")), "{format}: {derived}");
        }
        // The ids are those of the rows, and so are all values.
        let town = |file: &str| {
            rows(&succeed(dir.path(), &["dump", file], ""))
                .into_iter()
                .filter(|row| row.starts_with("insert_at town"))
                .collect::<Vec<_>>()
        };
        assert_eq!(town(&back), ["insert_at town 7 \"Roubaix\""], "{format}");
        // A single file is a table, too, and the values are those with a schema.
        let one = format!("one-{format}.annals");
        let all = format!("{format}/all.{ending}");
        succeed(dir.path(), &["import", format, &all, &one], "");
        let dump = succeed(dir.path(), &["dump", &one], "");
        assert!(
            dump.contains(" -128 18446744073709551615 -0.5 true \"a, \\\"b\\\"\" 0x00ff "),
            "{dump}"
        );
    }
}
