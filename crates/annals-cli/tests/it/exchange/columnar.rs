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
