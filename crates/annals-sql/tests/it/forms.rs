//! Each type has one form in SQL, which compares and sorts as the type does.

use annals::model::OnDelete;
use annals::{Command, Database, FieldNumber, TableNumber, Type, Value, ValueRef};
use annals_sql::{Connection, Parameters};

use crate::shop::text;

const TABLE: TableNumber = TableNumber(0);

/// Returns a database with one table with one indexed field of a type, and these values in this order.
fn of(ty: Type, values: &[Value]) -> Database {
    let db = Database::in_memory().unwrap();
    let mut tx = db.begin().unwrap();
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    let name = "x".to_owned();
    tx.apply_command(&Command::AddField { table: TABLE, name, ty, nullable: true, default: None })
        .unwrap();
    let (name, fields) = ("t_by_x".to_owned(), vec![FieldNumber(0)]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    })
    .unwrap();
    for value in values {
        tx.insert(TABLE, &[value.as_ref()]).unwrap();
    }
    tx.commit().unwrap();
    db
}

/// Checks that values have these forms, and that SQL compares and sorts them in their order, with the index and without.
fn check(ty: Type, texts: &[&str], forms: &[&str]) {
    let values: Vec<_> = texts
        .iter()
        .map(|text| {
            let tokens = annals_schema::tokenize(text).unwrap();
            annals_schema::parse_value(ty, &tokens[0])
                .unwrap_or_else(|error| panic!("{text}: {error}"))
        })
        .collect();
    // From the last to the first, so that ids say nothing about the order.
    let reversed: Vec<_> = values.iter().rev().cloned().chain([Value::Null]).collect();
    let mut sql = Connection::open(of(ty, &reversed)).unwrap();
    let expected: String = forms.iter().map(|form| format!("{form}\n")).collect();
    for order in ["x", "+x"] {
        let query = format!("SELECT quote(x) FROM t WHERE x IS NOT NULL ORDER BY {order}");
        assert_eq!(
            text(&mut sql, &query).replace('\'', ""),
            expected.replace('\'', ""),
            "{ty} by {order}"
        );
    }
    let query = "SELECT count(*) FROM t a JOIN t b ON a.x < b.x";
    let pairs = values.len() * (values.len() - 1) / 2;
    assert_eq!(text(&mut sql, query), format!("{pairs}\n"), "{ty}");
    let query = "SELECT count(*) FROM t a JOIN t b ON a.x = b.x";
    assert_eq!(text(&mut sql, query), format!("{}\n", values.len()), "{ty}");
    for form in forms {
        let query = format!("SELECT count(*) FROM t WHERE x = {form}");
        assert_eq!(text(&mut sql, &query), "1\n", "{ty}: {query}");
        let above = text(&mut sql, &format!("SELECT count(*) FROM t WHERE x >= {form}"));
        let below = text(&mut sql, &format!("SELECT count(*) FROM t WHERE x < {form}"));
        let sum = [above, below].map(|count| count.trim().parse::<usize>().unwrap());
        assert_eq!(sum.iter().sum::<usize>(), forms.len(), "{ty}: {form}");
    }
    // Null is the first of all, and equal to nothing.
    assert_eq!(text(&mut sql, "SELECT quote(x) FROM t ORDER BY x LIMIT 1"), "'NULL'\n");
    assert_eq!(text(&mut sql, "SELECT count(*) FROM t WHERE x IS NULL"), "1\n");
}

#[test]
fn every_type_has_a_form() {
    check(Type::Bool, &["false", "true"], &["0", "1"]);
    check(Type::Int8, &["-128", "0", "127"], &["-128", "0", "127"]);
    check(
        Type::Int64,
        &["-9223372036854775808", "-1", "9223372036854775807"],
        &["-9223372036854775808", "-1", "9223372036854775807"],
    );
    check(
        Type::UInt64,
        &["0", "9223372036854775807", "9223372036854775808", "18446744073709551615"],
        &[
            "0",
            "9223372036854775807",
            "X'20393232333337323033363835343737353830380075696E74363400'",
            "X'31383434363734343037333730393535313631350075696E74363400'",
        ],
    );
    check(
        Type::Float64,
        &["-inf", "-1.5", "0", "1e300", "inf", "nan"],
        &["-9.0e+999", "-1.5", "0.0", "1.0e+300", "9.0e+999", "'NaN'"],
    );
    check(Type::Float32, &["-1.5", "0.25"], &["-1.5", "0.25"]);
    check(Type::String, &["\"\"", "\"Z\"", "\"a\"", "\"é\""], &["''", "'Z'", "'a'", "'é'"]);
    check(Type::Bytes, &["0x", "0x00", "0x00ff", "0x01"], &["X''", "X'00'", "X'00FF'", "X'01'"]);
    check(Type::FixedBytes(2), &["0x0001", "0xff00"], &["X'0001'", "X'FF00'"]);
    check(
        Type::Timestamp,
        &["1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "2024-02-29T12:00:00Z"],
        &["-1", "0", "1709208000000000"],
    );
    check(
        Type::Date,
        &["-12345-01-02", "-00044-03-15", "0000-01-01", "1990-02-03", "9999-12-31", "+10000-01-01"],
        &[
            "'-12345-01-02'",
            "'-00044-03-15'",
            "'0000-01-01'",
            "'1990-02-03'",
            "'9999-12-31'",
            "'+10000-01-01'",
        ],
    );
    check(
        Type::Uuid,
        &["00000000-0000-0000-0000-000000000001", "f0000000-0000-0000-0000-000000000000"],
        &["'00000000-0000-0000-0000-000000000001'", "'f0000000-0000-0000-0000-000000000000'"],
    );
    check(
        Type::Decimal(2),
        &["-100.5", "-9", "0.05", "9.5", "12.50", "100"],
        &["'-100.50'", "'-9.00'", "'0.05'", "'9.50'", "'12.50'", "'100.00'"],
    );
    check(
        Type::named("enum(zebra,ant,mouse)").unwrap(),
        &["zebra", "ant", "mouse"],
        &["'zebra'", "'ant'", "'mouse'"],
    );
    check(Type::Json, &["\"1\"", "\"[2]\""], &["'1'", "'[2]'"]);
    check(Type::Reference(TABLE, OnDelete::default()), &["0", "1"], &["0", "1"]);
}

#[test]
fn other_numbers_of_a_decimal_compare_by_size() {
    let values =
        [-250, 0, 950, 1250].map(|units| Value::Decimal(annals::model::AnyDecimal::new(units, 2)));
    let mut sql = Connection::open(of(Type::Decimal(2), &values)).unwrap();
    for (condition, count) in [
        ("x > 9", 2),
        ("x > 9.5", 1),
        ("x >= '9.5'", 2),
        ("x = 12.5", 1),
        ("x = '12.5'", 1),
        ("x = '012.500'", 1),
        ("x BETWEEN -2.5 AND 0", 2),
        ("x < '-2.51'", 0),
    ] {
        let query = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(text(&mut sql, &query), format!("{count}\n"), "{condition}");
    }
    assert_eq!(text(&mut sql, "SELECT max(x), min(x), sum(x) FROM t"), "'12.50'|'-2.50'|19.5\n");
}

#[test]
fn functions_translate_times_and_large_numbers() {
    let mut sql = Connection::open(of(Type::UInt64, &[Value::UInt64(u64::MAX)])).unwrap();
    let said = text(
        &mut sql,
        "SELECT annals_time(1709208000000000), annals_time('2024-02-29T12:00:00Z'), annals_time(NULL)",
    );
    assert_eq!(said, "'2024-02-29T12:00:00Z'|1709208000000000|null\n");
    let query = "SELECT annals_uint64(x) FROM t WHERE x = annals_uint64('18446744073709551615')";
    assert_eq!(text(&mut sql, query), "'18446744073709551615'\n");
    let said = text(&mut sql, "SELECT annals_time('noon')");
    assert!(said.starts_with("error: "), "{said}");
}

#[test]
fn the_bytes_of_a_blob_are_read() {
    let db = of(Type::Blob, &[]);
    let mut tx = db.begin().unwrap();
    let blob = tx.write_blob(&mut &b"long"[..]).unwrap();
    tx.insert(TABLE, &[ValueRef::Blob(blob)]).unwrap();
    tx.commit().unwrap();
    let mut sql = Connection::open(db).unwrap();
    let rows = sql.rows("SELECT x, length(x) FROM t", &Parameters::None).unwrap();
    assert_eq!(rows, [[annals_sql::Value::Blob(b"long".to_vec()), annals_sql::Value::Integer(4)]]);
}
