//! Answers to `annals sql` as Parquet and Arrow, read back; and where they may not go.

use std::fs::{self, File};
use std::io::Cursor;
use std::path::Path;

use annals_arrow::{Batches, ipc, parquet};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch};

use crate::program::{run, succeed};

const SCRIPT: &str = "create_table town\nadd_field town name string\n\
    create_table sale\nadd_field sale town references town\nadd_field sale count int16\n\
    add_field sale large uint64 null\nadd_field sale price decimal(2) null\nadd_field sale day date null\n\
    add_field sale time timestamp null\nadd_field sale paid bool null\nadd_field sale ratio float64 null\n\
    add_field sale kind enum(cash,card) null\nadd_field sale raw bytes null\nadd_field sale key uuid null\n\
    insert town Lille\ninsert town \"Élan | \\\"x\\\"\"\n\
    insert sale 0 7 18446744073709551615 -12.50 2024-02-29 2024-02-29T01:02:03.000004Z true nan card 0x00ff \
    00112233-4455-6677-8899-aabbccddeeff\n\
    insert sale 1 -7 5 99.00 -00044-03-15 null false -0.5 cash null null\n\
    insert sale 1 1 null null null null null null null null null\n";

fn create(dir: &Path) {
    succeed(dir, &["shell", "a.annals"], SCRIPT);
}

fn read(path: &Path, format: &str) -> Batches {
    match format {
        "parquet" => parquet::read(File::open(path).unwrap()).unwrap(),
        _ => ipc::read(File::open(path).unwrap()).unwrap(),
    }
}

fn one(path: &Path, format: &str) -> RecordBatch {
    let mut batches = read(path, format);
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none(), "{format}");
    batch
}

#[test]
fn columns_have_the_types_of_their_values() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    create(dir);
    let query = "SELECT s.*, t.name, s.count / 2.0 AS half, count * 2 AS twice, NULL AS empty, s.id, \
                 CASE s.id WHEN 1 THEN 0.5 ELSE 9007199254740992 END AS mixed \
                 FROM sale s JOIN town t ON t.id = s.town ORDER BY s.id";
    for format in ["parquet", "arrow"] {
        let file = format!("out.{format}");
        let said = succeed(dir, &["sql", "a.annals", query, "--format", format, "-o", &file], "");
        assert_eq!(said, "");
        let batch = one(&dir.join(&file), format);
        let schema = batch.schema();
        let types: Vec<_> = schema.fields().iter().map(|it| it.data_type().to_string()).collect();
        let names: Vec<_> = schema.fields().iter().map(|it| it.name().as_str()).collect();
        assert_eq!(
            names.join(" "),
            "id town count large price day time paid ratio kind raw key name half twice empty id:2 mixed"
        );
        assert_eq!(
            types.join(" "),
            "Int64 Int64 Int64 UInt64 Decimal128(38, 2) Date32 Timestamp(µs, \"UTC\") Boolean Float64 Utf8 Binary Utf8 \
             Utf8 Float64 Int64 Null Int64 Float64",
            "{format}"
        );
        let column = |name: &str| batch.column_by_name(name).unwrap();
        assert_eq!(column("large").as_primitive::<UInt64Type>().values()[..2], [u64::MAX, 5]);
        assert_eq!(
            column("price").as_primitive::<Decimal128Type>().values()[..2],
            [-1250, 9900],
            "{format}"
        );
        // The day 2024-02-29, and 44 years before the year 0.
        assert_eq!(column("day").as_primitive::<Date32Type>().values()[..2], [19_782, -735_525]);
        assert!(column("ratio").as_primitive::<Float64Type>().value(0).is_nan());
        assert_eq!(column("kind").as_string::<i32>().value(0), "card");
        assert_eq!(column("raw").as_binary::<i32>().value(0), [0, 255]);
        assert_eq!(column("name").as_string::<i32>().value(2), "Élan | \"x\"");
        assert_eq!(column("twice").as_primitive::<Int64Type>().values()[..], [14, -14, 2]);
        let mixed = column("mixed").as_primitive::<Float64Type>();
        assert_eq!(mixed.values()[..], [9_007_199_254_740_992.0, 0.5, 9_007_199_254_740_992.0]);
        for name in ["large", "price", "day", "time", "paid", "ratio", "kind", "raw", "key"] {
            assert!(column(name).is_null(2), "{format}: {name}");
        }
    }
}

#[test]
fn a_long_answer_has_many_batches() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows: String = (0..70_000).map(|number| format!("{number},text {number}\n")).collect();
    fs::write(dir.join("n.csv"), format!("n,s\n{rows}")).unwrap();
    fs::write(dir.join("t.schema"), "create_table t\nadd_field t n int64\nadd_field t s string\n")
        .unwrap();
    succeed(dir, &["import", "csv", "a.annals", "--schema", "t.schema", "t=n.csv"], "");
    // Columns of tables are written as they come; of an expression the type is known at the end only.
    for query in [
        "SELECT n, s FROM t ORDER BY id",
        "SELECT CASE id WHEN 69000 THEN 0.5 ELSE n END AS n, s, CASE WHEN id > 68000 THEN 1 END AS late FROM t ORDER BY id",
    ] {
        for format in ["parquet", "arrow"] {
            succeed(dir, &["sql", "a.annals", query, "--format", format, "--output", "out"], "");
            let batches: Vec<_> = read(&dir.join("out"), format).map(Result::unwrap).collect();
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows, 70_000, "{format}: {query}");
            if format == "arrow" {
                assert_eq!(batches.len(), 2, "{query}");
            }
            let (first, last) = (&batches[0], &batches[batches.len() - 1]);
            assert_eq!(first.column(1).as_string::<i32>().value(5), "text 5");
            let texts = last.column(1).as_string::<i32>();
            assert_eq!(texts.value(texts.len() - 1), "text 69999");
            if query.contains("late") {
                assert_eq!(first.column(0).as_primitive::<Float64Type>().value(5), 5.0);
                let late = last.column(2).as_primitive::<Int64Type>();
                assert!(first.column(2).is_null(5) && late.value(late.len() - 1) == 1);
            }
        }
    }
}

#[test]
fn an_output_has_one_answer_or_is_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    create(dir);
    fs::write(dir.join("out"), "as it was").unwrap();
    for (query, said) in [
        ("SELECT 1; SELECT 2", "has one answer"),
        ("BEGIN; COMMIT", "no statement has an answer"),
        (
            "SELECT 1 AS x UNION ALL SELECT 'a'",
            "column \"x\" has whole numbers and, in row 1 of the answer, the text \"a\"",
        ),
        ("SELECT count FROM sale UNION ALL SELECT 0.5", "CAST(count AS TEXT)"),
        ("SELECT day FROM sale UNION ALL SELECT 'tomorrow'", "the text \"tomorrow\""),
        ("SELECT CAST(x'ff' AS TEXT) AS x", "isn't UTF-8"),
        ("SELECT missing", "no such column"),
        (".mode csv\nSELECT 1;\n.mode arrow\nSELECT 2", "has another answer or a text already"),
    ] {
        let output = run(dir, &["sql", "a.annals", query, "--format", "parquet", "-o", "out"], b"");
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{query}: {error}");
        assert!(error.contains(said), "{query}: {error}");
        assert_eq!(fs::read_to_string(dir.join("out")).unwrap(), "as it was", "{query}");
    }
    let output = run(dir, &["sql", "a.annals", "SELECT 1", "-o", "a.annals"], b"");
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is a database"), "{output:?}");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 2, "nothing is left over");
}

#[test]
fn a_pipe_and_a_file_have_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    create(dir);
    let query = "SELECT * FROM sale WHERE id < 2";
    for format in ["parquet", "arrow", "csv", "markdown", "json"] {
        succeed(dir, &["sql", "a.annals", query, "--format", format, "-o", "out"], "");
        let piped = run(dir, &["sql", "a.annals", query, "--format", format], b"");
        assert!(piped.status.success());
        assert_eq!(fs::read(dir.join("out")).unwrap(), piped.stdout, "{format}");
    }
    let script = format!(".mode arrow\n.once \"one file\"\n{query};\n.mode csv\nSELECT 1 AS x;\n");
    assert_eq!(succeed(dir, &["sql", "a.annals"], &script), "x\n1\n");
    assert_eq!(one(&dir.join("one file"), "arrow").num_rows(), 2);
    let piped = run(dir, &["sql", "a.annals", "SELECT 1 AS x", "--format", "arrow"], b"").stdout;
    assert_eq!(ipc::read(Cursor::new(piped)).unwrap().next().unwrap().unwrap().num_rows(), 1);
}

#[cfg(unix)]
#[test]
fn a_terminal_gets_no_bytes() {
    use rexpect::session::{Options, spawn_with_options};
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    create(dir);
    let start = |arguments: &[&str]| {
        let mut command = crate::program::annals(dir, arguments);
        command.env("TERM", "xterm").env("XDG_STATE_HOME", dir.join("state"));
        let options = Options::new().timeout_ms(Some(20_000)).strip_ansi_escape_codes(true);
        spawn_with_options(command, options).unwrap()
    };
    let mut refused = start(&["sql", "a.annals", "SELECT 1", "--format", "parquet"]);
    refused.exp_string("parquet is binary, and this is a terminal").unwrap();
    assert!(!refused.exp_eof().unwrap().contains("PAR1"));
    let mut dialog = start(&["sql", "a.annals"]);
    for (line, said) in [
        (".mode arrow", "annals> "),
        ("SELECT name FROM town;", "--output FILE"),
        (".once town.arrows", "annals> "),
        ("SELECT name FROM town;", "annals> "),
        (".mode list", "annals> "),
        ("SELECT name, 1 FROM town;", "Lille|1"),
    ] {
        dialog.exp_string("annals> ").unwrap();
        dialog.send(&format!("{line}\r")).unwrap();
        dialog.flush().unwrap();
        dialog.exp_string(line).unwrap();
        if said != "annals> " {
            dialog.exp_string(said).unwrap();
        }
    }
    dialog.exp_string("annals> ").unwrap();
    dialog.send_control('d').unwrap();
    dialog.exp_eof().unwrap();
    assert_eq!(one(&dir.join("town.arrows"), "arrow").num_rows(), 2);
}
