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
    let expected = "create_table a_b
add_field a_b x_y int64
add_field a_b x_y_ int64
create_table a_b_
create_table annals
insert_at a_b 0 1 2
insert_at annals 0
";
    assert_eq!(dump, expected);
    assert!(said.contains("\"x-y\" becomes a_b.x_y"), "{said}");
    assert!(said.contains("a_b: no row has a key, so that the table has no fields"), "{said}");
}

#[test]
fn what_is_no_json_is_refused_with_its_line() {
    let cases = [
        ("json", "[{\"a\": 1},\n{\"a\": 1,}]", "line 2: "),
        ("json", "[1]", "`1` stands where `{` should be"),
        ("json", "{\"a\": 1}", "use `import ndjson`"),
        ("json", "[{\"a\": 1, \"a\": 2}]", "the key \"a\" is there twice"),
        ("json", "{\"a\": [], \"a\": []}", "the key \"a\" is there twice"),
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

/// A number is a float only if the float's shortest text is that number: the oracle is Rust's own writing of floats.
#[test]
fn no_cell_of_csv_is_changed() {
    let cells = [
        "1.10",
        "1.1",
        "0.1234567890123456789",
        "1e-400",
        "1E5",
        "007",
        "+1",
        "9007199254740993",
        "0.30000000000000004",
        "-0.0",
        "1e300",
        "12.50",
        "1_000",
        "1,5",
        " 1",
        "nan",
        "inf",
        "0x10",
        "5.",
        ".5",
        "18446744073709551616",
        "",
        "2.5e-07",
        "true",
        "TRUE",
        "-",
        "1e",
        "--1",
    ];
    for (at, first) in cells.iter().enumerate() {
        for step in 0..3 {
            let second = cells[(at + step) % cells.len()];
            let text = format!("id,v\n0,\"{first}\"\n1,\"{second}\"\n");
            let (dump, said) = import("csv", "t.csv", &text, &[]).unwrap();
            let rows = dump.lines().filter_map(|line| line.strip_prefix("insert_at t "));
            let values: Vec<&str> = rows.map(|row| row.split_once(' ').unwrap().1).collect();
            let is_text = dump.contains("add_field t v string");
            let is_decimal = dump.contains("add_field t v decimal");
            for (value, cell) in values.into_iter().zip([*first, second]) {
                if is_text {
                    assert_eq!(value, format!("\"{cell}\""), "{text}");
                } else if is_decimal || cell == "true" || cell.parse::<i64>().is_ok() {
                    assert_eq!(value, cell, "{text}");
                } else {
                    let float = cell.parse::<f64>().unwrap();
                    assert!(float.is_finite(), "{text}");
                    assert_eq!(value.parse::<f64>().unwrap().to_bits(), float.to_bits(), "{text}");
                    let digits = |text: &str| -> String {
                        let text = text.split(['e', 'E']).next().unwrap_or_default();
                        let digits = text.chars().filter(char::is_ascii_digit).collect::<String>();
                        digits.trim_matches('0').to_owned()
                    };
                    assert_eq!(digits(&format!("{float:?}")), digits(cell), "{text}");
                }
            }
            assert_eq!(
                said.contains("would lose digits"),
                is_text && both_numbers(first, second),
                "{text}: {said}"
            );
        }
    }
}

fn both_numbers(first: &str, second: &str) -> bool {
    let is = |text: &str| text.parse::<f64>().is_ok() && !text.contains(['n', 'N']);
    is(first) && is(second)
}

#[test]
fn the_separator_is_found_or_given() {
    for (separator, option) in [(';', ";"), ('\t', "tab"), ('|', "|"), (',', ",")] {
        let text = format!("name{separator}price\n\"a{separator}b\"{separator}1\nc{separator}2\n");
        let expected = format!("insert_at t 0 \"a{separator}b\" 1\ninsert_at t 1 \"c\" 2\n");
        let expected = expected.replace('\t', "\\t");
        let (dump, said) = import("csv", "t.csv", &text, &[]).unwrap();
        assert!(dump.ends_with(&expected), "{dump}");
        assert_eq!(said.is_empty(), separator == ',', "{said}");
        let (dump, said) = import("csv", "t.csv", &text, &["--separator", option]).unwrap();
        assert!(dump.ends_with(&expected), "{dump}");
        assert_eq!(said, "");
    }
    // With a comma in the heading others are parts of cells.
    let (dump, _) = import("csv", "t.csv", "a;b,c\n1;2,3\n", &[]).unwrap();
    assert!(dump.ends_with("insert_at t 0 \"1;2\" 3\n"), "{dump}");
    let (dump, _) = import("csv", "t.csv", "a;b,c\n1;2,3\n", &["--separator", ";"]).unwrap();
    assert!(dump.ends_with("insert_at t 0 1 \"2,3\"\n"), "{dump}");
    for wrong in ["", ";;", "\"", "é", "\n"] {
        let said = import("csv", "t.csv", "a;b\n", &["--separator", wrong]).unwrap_err();
        assert!(said.contains("one character of ASCII"), "{said}");
    }
}

#[test]
fn a_field_with_a_default_needs_no_column() {
    let dir = tempfile::tempdir().unwrap();
    let schema = "create_table p\nadd_field p n string\nadd_field p k uuid default v7\nadd_field p x int8 default 5\n\
        create_unique_index by_k p k\n";
    succeed(dir.path(), &["shell", "a.annals"], schema);
    std::fs::write(dir.path().join("p.csv"), "n\na\nb\n").unwrap();
    succeed(dir.path(), &["import", "csv", "a.annals", "p=p.csv"], "");
    let dump = succeed(dir.path(), &["dump", "a.annals"], "");
    let rows: Vec<&str> = dump.lines().filter(|line| line.starts_with("insert_at")).collect();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.ends_with(" 5")), "{dump}");
    assert!(is_sound(dir.path()));
    std::fs::write(dir.path().join("p.csv"), "x\n1\n").unwrap();
    let output = run(dir.path(), &["import", "csv", "a.annals", "p=p.csv"], b"");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no column for these fields of table p: n"), "{said}");
}
