//! Joins on columns without an index visit each row some times, not once for each row of the other table.

use annals::model::AnyDecimal;
use annals::{Database, TableNumber, Uuid, Value};
use annals_event::testing::decoded_events;
use annals_sql::Connection;
use rusqlite::StatementStatus;

use crate::shop::{Random, text};

/// The rows of the tables.
const FEW: u64 = 60;
const MANY: u64 = 1500;
const MORE: u64 = 300;
/// The steps of SQLite's machine for each row of a table or an answer. A step is no time: the number is always the same.
const STEPS: u64 = 40;

const SCHEMA: &str = "
create_table few
add_field few k string null
add_field few f float64 null
add_field few d decimal(2) null
add_field few day date null
add_field few code uuid null
add_field few big uint64 null
add_field few size enum(s,m,l) null
add_field few at timestamp null
add_field few h bytes null
add_field few n int64 null
create_table many
add_field many k string null
add_field many f float32 null
add_field many d decimal(2) null
add_field many day date null
add_field many code uuid null
add_field many big uint64 null
add_field many size enum(s,m,l) null
add_field many at timestamp null
add_field many h bytes null
add_field many n int16 null
create_table more
add_field more k string null
add_field more n int32 null
";

/// Returns a value of the type of a field, of a few dozens, null now and then.
fn value(field: &annals::Field, random: &mut Random) -> Value {
    let number = random.below(50);
    if random.is(8) {
        return Value::Null;
    }
    let signed = number.cast_signed();
    let float = match number {
        0..=5 => -0.0,
        6..=10 => 0.0,
        11 => f64::NAN,
        number => number as f64 / 4.0,
    };
    match field.ty {
        annals::Type::String => Value::String(format!("K{number}")),
        annals::Type::Float64 => Value::Float64(float),
        annals::Type::Float32 => Value::Float32(float as f32),
        annals::Type::Decimal(scale) => Value::Decimal(AnyDecimal::new(signed.into(), scale)),
        annals::Type::Date => Value::Date(annals::Date(signed as i32)),
        annals::Type::Uuid => Value::Uuid(Uuid::from_u128(number.into())),
        annals::Type::UInt64 => Value::UInt64(u64::MAX - number),
        annals::Type::Enum(variants) => Value::Enum(variants.get(number as u16 % 3).unwrap()),
        annals::Type::Timestamp => Value::Timestamp(signed),
        annals::Type::Bytes => Value::Bytes(vec![number as u8; 3]),
        annals::Type::Int64 => Value::Int64(signed),
        annals::Type::Int16 => Value::Int16(signed as i16),
        annals::Type::Int32 => Value::Int32(signed as i32),
        other => unreachable!("{other}"),
    }
}

fn build() -> Database {
    let db = Database::in_memory().unwrap();
    let schema = annals_schema::parse(SCHEMA).unwrap().schema;
    db.upgrade(&schema, &mut |_, _| unreachable!()).unwrap();
    let mut random = Random(3);
    db.write(|tx| {
        for (table, rows) in schema.tables().iter().zip([FEW, MANY, MORE]) {
            for _ in 0..rows {
                let values = table.fields.iter().map(|field| value(field, &mut random));
                let values: Vec<_> = values.collect();
                tx.insert(table.number, &values.iter().map(Value::as_ref).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    })
    .unwrap();
    db
}

/// Asks; returns the number that is the answer, and the steps that it took.
fn ask(sql: &Connection, query: &str) -> (i64, u64) {
    let mut statement =
        sql.inner().prepare(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let found = statement.query_row([], |row| row.get(0)).unwrap();
    (found, u64::try_from(statement.get_status(StatementStatus::VmStep)).unwrap())
}

/// Checks a join: what is compared begins with `@`.
fn check(sql: &Connection, query: &str) {
    let (found, steps) = ask(sql, &query.replace('@', ""));
    // A plus keeps SQLite from passing on the comparison.
    let (truth, all_steps) = ask(sql, &query.replace('@', "+"));
    assert_eq!(found, truth, "{query}");
    assert!(found > 0, "{query} finds something");
    let most = (FEW + MANY + MORE + found.unsigned_abs()) * STEPS;
    assert!(steps < most, "{query}: {steps} steps for {found} rows, more than {most}");
    assert!(
        all_steps > steps * 2,
        "{query}: each row with each takes {all_steps} steps, not {steps}"
    );
}

#[test]
fn joins_of_all_types_are_not_quadratic() {
    let db = build();
    let sql = Connection::open(db).unwrap();
    for name in ["k", "f", "d", "day", "code", "big", "size", "at", "h", "n"] {
        for kind in ["JOIN", "LEFT JOIN"] {
            check(
                &sql,
                &format!("SELECT count(*) FROM few a {kind} many b ON @b.{name} = @a.{name}"),
            );
        }
        check(
            &sql,
            &format!(
                "SELECT count(*) FROM few a WHERE EXISTS (SELECT 1 FROM many b WHERE @b.{name} = @a.{name} AND b.n > 30)"
            ),
        );
    }
    for query in [
        "SELECT count(*) FROM few a JOIN many b ON @b.k = @a.k JOIN more c ON @c.k = @b.k",
        "SELECT count(*) FROM few a LEFT JOIN many b ON @b.k = @a.k LEFT JOIN more c ON @c.n = @b.n",
        "SELECT count(*) FROM few a JOIN many b ON @b.k = @a.k AND @b.f = @a.f",
        "SELECT count(*) FROM few a JOIN many b ON @b.k = @a.k AND b.n > 40",
        "SELECT count(*) FROM few a RIGHT JOIN many b ON @b.k = @a.k",
        "SELECT count(*) FROM few a FULL JOIN many b ON @b.k = @a.k",
        "SELECT count(*) FROM few_at(2) a JOIN many_at(2) b ON @b.k = @a.k",
        "SELECT count(*) FROM few_as_it_was(2) a LEFT JOIN many_as_it_was(2) b ON @b.k = @a.k",
        "SELECT count(*) FROM (SELECT DISTINCT k FROM few) a LEFT JOIN many b ON @b.k = @a.k",
        "SELECT count(*) FROM few a LEFT JOIN many b ON @b.n = @CAST(substr(a.k, 2) AS INTEGER)",
    ] {
        check(&sql, query);
    }
}

#[test]
fn zeros_are_equal_and_nulls_and_nothing_else() {
    let sql = Connection::open(build()).unwrap();
    let count = |condition: &str| {
        ask(&sql, &format!("SELECT count(*) FROM few a JOIN many b ON a.f = b.f WHERE {condition}"))
            .0
    };
    let of = |table: &str, condition: &str| {
        ask(&sql, &format!("SELECT count(*) FROM {table} WHERE {condition}")).0
    };
    assert_eq!(count("a.f = 0"), of("few", "f = 0") * of("many", "f = 0"));
    assert_eq!(count("a.f = 'NaN'"), of("few", "f = 'NaN'") * of("many", "f = 'NaN'"));
    assert!(of("few", "f = 0") > 5 && of("many", "f = 'NaN'") > 5);
    assert_eq!(count("a.f IS NULL OR b.f IS NULL"), 0);
}

/// Returns a connection to a table with a history of so many transactions.
fn with_history(transactions: u64) -> Connection {
    let db = build();
    for number in 0..transactions {
        let id = annals::RowId(number % MORE);
        let value = annals::ValueRef::Int32(number as i32 + 100);
        db.write(|tx| tx.update(TableNumber(2), id, annals::FieldNumber(1), value)).unwrap();
    }
    Connection::open(db).unwrap()
}

#[test]
fn the_history_and_the_log_are_joined_in_linear_time() {
    let decoded = |transactions: u64, query: &str| {
        let mut sql = with_history(transactions);
        let before = decoded_events();
        let said = text(&mut sql, query);
        assert_eq!(said, format!("{}\n", transactions + MORE), "{query}");
        decoded_events() - before
    };
    let (few, many) = (200, 1600);
    for query in [
        "SELECT count(*) FROM more_history h JOIN annals_log l USING (txid)",
        "SELECT count(*) FROM annals_log l JOIN more_history h USING (txid)",
        "SELECT count(*) FROM annals_log l CROSS JOIN more_history h USING (txid)",
        "SELECT count(*) FROM more_history h LEFT JOIN annals_log l USING (txid)",
        "SELECT count(l.time) FROM more_history h LEFT JOIN annals_log l ON l.txid = h.txid",
        "SELECT count(l.changes) FROM more_history h LEFT JOIN annals_log l ON l.txid = h.txid",
    ] {
        let [few_events, many_events] = [few, many].map(|number| decoded(number, query));
        assert!(few_events > few, "{query}: {few_events} events are counted");
        assert!(
            many_events < few_events * (many / few) * 2,
            "{query}: {few_events} events of {few} transactions, {many_events} of {many}"
        );
    }
}
