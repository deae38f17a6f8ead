//! JSON and CSV of other programs.

use std::path::Path;

use crate::program::{run, succeed};

/// Imports a text; returns what there is then, and what the program said besides.
fn import(format: &str, name: &str, text: &str, more: &[&str]) -> Result<(String, String), String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(name), text).unwrap();
    let output = run(dir.path(), &[&["import", format, name, "a.annals"], more].concat(), b"");
    let errors = String::from_utf8(output.stderr).unwrap();
    if !output.status.success() {
        assert!(!dir.path().join("a.annals").exists());
        return Err(errors);
    }
    assert!(is_sound(dir.path()));
    Ok((succeed(dir.path(), &["dump", "a.annals"], ""), errors))
}

fn is_sound(dir: &Path) -> bool {
    succeed(dir, &["check", "a.annals"], "").starts_with("ok: ")
}

#[test]
fn values_tell_the_types() {
    let text = r#"{"n": 1, "f": 1, "b": true, "s": "x", "at": "2021-11-02T22:10:25Z", "u": 1}
        {"n": -9223372036854775808, "f": 0.1, "b": null, "s": "\ud83d\ude00", "at": "2021-11-02T22:10:25Z",
         "u": 18446744073709551615, "late": [1, {"a": 2}]}"#;
    let (dump, said) = import("ndjson", "some rows.ndjson", text, &[]).unwrap();
    let expected = r#"create_table some_rows
add_field some_rows n int64
add_field some_rows f float64
add_field some_rows b bool null
add_field some_rows s string
add_field some_rows at string
add_field some_rows u uint64
add_field some_rows late string null
insert_at some_rows 0 1 1 true "x" "2021-11-02T22:10:25Z" 1 null
insert_at some_rows 1 -9223372036854775808 0.1 null "😀" "2021-11-02T22:10:25Z" 18446744073709551615 "[1,{\"a\":2}]"
"#;
    assert_eq!(dump, expected);
    assert!(said.contains("\"late\" has values of several kinds"), "{said}");
    let (dump, _) = import("ndjson", "t.ndjson", text, &["--times"]).unwrap();
    assert!(dump.contains("add_field t at timestamp\n"), "{dump}");
    assert!(dump.contains(" 2021-11-02T22:10:25Z "), "{dump}");
}

#[test]
fn no_number_loses_a_digit() {
    let text = r#"[{"a": 123456789012345678901234567890, "b": 1e999, "c": 9007199254740993},
        {"a": 1, "b": 0.5, "c": 0.5}]"#;
    let (dump, said) = import("json", "t.json", text, &[]).unwrap();
    let expected = r#"create_table t
add_field t a string
add_field t b string
add_field t c string
insert_at t 0 "123456789012345678901234567890" "1e999" "9007199254740993"
insert_at t 1 "1" "0.5" "0.5"
"#;
    assert_eq!(dump, expected);
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn ids_are_kept_where_they_ascend() {
    let (dump, _) = import("json", "t.json", r#"[{"id": 3, "x": 1}, {"id": 7}]"#, &[]).unwrap();
    assert!(dump.ends_with("insert_at t 3 1\ninsert_at t 7 null\n"), "{dump}");
    for ids in [["7", "3"], ["3", "3"], ["-1", "3"], ["\"a\"", "3"]] {
        let text = format!("[{{\"id\": {}}}, {{\"id\": {}}}]", ids[0], ids[1]);
        let (dump, _) = import("json", "t.json", &text, &[]).unwrap();
        assert!(dump.contains("add_field t id "), "{dump}");
        assert!(dump.contains("insert_at t 0 ") && dump.contains("insert_at t 1 "), "{dump}");
    }
}

#[test]
fn several_tables_and_names_that_are_none_of_ours() {
    let text = r#"{"a b": [{"x-y": 1, "x_y": 2}], "a_b": [], "annals": [{}]}"#;
    let (dump, said) = import("json", "t.json", text, &[]).unwrap();
    assert!(
        dump.starts_with("create_table a_b\nadd_field a_b x_y int64\nadd_field a_b x_y_ int64\n")
    );
    assert!(
        dump.ends_with("create_table annals\ninsert_at a_b 0 1 2\ninsert_at annals 0\n"),
        "{dump}"
    );
    assert!(said.contains("\"x-y\" becomes a_b.x_y"), "{said}");
}

#[test]
fn what_is_no_json_is_refused_with_its_line() {
    let cases = [
        ("json", "[{\"a\": 1},\n{\"a\": 1,}]", "line 2: "),
        ("json", "[1]", "`1` stands where `{` should be"),
        ("json", "{\"a\": 1}", "use `import ndjson`"),
        ("json", "[{\"a\": 1, \"a\": 2}]", "the key \"a\" is there twice"),
        ("json", "[] x", "the end of the file"),
        ("ndjson", "{}\n{\"a\"", "line 2: the file ends"),
        ("json", "{\"annals\": 9, \"schema\": []}", "reads version 1"),
        ("json", "{\"annals\": 1, \"tables\": {}}", "`tables` stands at a wrong place"),
        ("ndjson", "{\"annals\": 1, \"schema\": [\"create_tabel t\"]}", "create_tabel"),
        (
            "ndjson",
            "{\"annals\":1,\"schema\":[\"create_table t\"]}\n{\"u\":{}}",
            "line 2: there is no table \"u\"",
        ),
        (
            "ndjson",
            "{\"annals\":1,\"schema\":[\"create_table t\"]}\n{\"t\":{\"x\":1}}",
            "has no field \"x\"",
        ),
        (
            "ndjson",
            "{\"annals\":1,\"schema\":[\"create_table t\",\"add_field t b blob\"]}\n{\"t\":{\"b\":\"a*\"}}",
            "line 2: ",
        ),
        (
            "ndjson",
            "{\"annals\":1,\"schema\":[\"create_table t\",\"add_field t x int8\"]}\n{\"t\":{\"x\":200}}",
            "field x of table t: 200 is no value of type int8",
        ),
    ];
    for (format, text, wanted) in cases {
        let said = import(format, "t.json", text, &[]).unwrap_err();
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

#[test]
fn csv_without_a_schema_gets_one() {
    let text =
        "id,name,age,height,zip,ok,note\r\n4,Ada,36,1.75,007,true,\r\n9,\"\",,2,11,false,x\r\n";
    let (dump, _) = import("csv", "people.csv", text, &[]).unwrap();
    let expected = r#"create_table people
add_field people name string
add_field people age int64 null
add_field people height float64
add_field people zip string
add_field people ok bool
add_field people note string null
insert_at people 4 "Ada" 36 1.75 "007" true null
insert_at people 9 "" null 2 "11" false "x"
"#;
    assert_eq!(dump, expected);
    let (dump, _) = import("csv", "t.csv", "a,b\nNULL,\n1,NULL\n", &["--null", "NULL"]).unwrap();
    assert!(dump.ends_with("insert_at t 0 null \"\"\ninsert_at t 1 1 null\n"), "{dump}");
}
