//! The feature `serde`: what ids, rows and values look like in JSON, and what is refused.
//!
//! That generated code compiles without the feature is tested by the packages of `compiler.rs`.

use annals::{Blob, RowId, Timestamp, Txid, Value, ValueRef};
use serde_json::{Error, from_str, from_value, json, to_string, to_value};

use crate::generated::types::{defaults, nullable, plain, target};
use crate::generated::{collisions, tutorial};
use tutorial::{city, person};

fn refused<T: std::fmt::Debug>(read: Result<T, Error>) -> String {
    read.unwrap_err().to_string()
}

#[test]
fn a_row_leaves_as_json_and_comes_back() {
    let db = tutorial::Database::in_memory().unwrap();
    let body = r#"{"name": "Saint-\"Omer\"", "unknown": [1, {}]}"#;
    let sent: city::City = from_str(body).unwrap();
    let home = db.write(|tx| Ok(tx.insert(&sent)?)).unwrap();
    let body = json!({"first_name": "Rémi", "last_name": "Coulom", "home": home});
    let sent: person::Person = from_value(body.clone()).unwrap();
    let remi = db.write(|tx| Ok(tx.insert(&sent)?)).unwrap();

    let now = db.read();
    let person = now.person().require(remi).unwrap();
    assert_eq!(to_value(person.to_owned()).unwrap(), body);
    assert_eq!(now.city().require(home).unwrap().name(), "Saint-\"Omer\"");

    let moved = person::Person { home: None, ..person.to_owned() };
    db.write(|tx| Ok(tx.update(remi, &moved)?)).unwrap();
    assert_eq!(db.read().person().require(remi).unwrap().to_owned(), moved);
}

#[test]
fn what_may_be_absent_has_its_default() {
    let person: person::Person = from_value(json!({"first_name": "a", "last_name": "b"})).unwrap();
    assert_eq!(person.home, None);
    let new: person::New<'_> = from_str(r#"{"last_name": "b", "first_name": "a"}"#).unwrap();
    assert_eq!((new.first_name, new.last_name, new.home), ("a", "b", None));
    let row: defaults::Defaults = from_value(json!({"number": 5})).unwrap();
    assert_eq!((row.truth, row.number, row.text.as_str(), row.raw.len()), (true, 5, "hello", 0));
    let row: nullable::Nullable = from_value(json!({})).unwrap();
    assert_eq!((row.raw, row.pointer), (Some(vec![0, 255, 34]), Some(target::Id::from_u64(5))));

    let missing = refused(from_value::<person::Person>(json!({"first_name": "a"})));
    assert!(missing.contains("missing field `last_name`"), "{missing}");
    let missing = refused(from_str::<city::New<'_>>("{}"));
    assert!(missing.contains("missing field `name`"), "{missing}");
    let null = refused(from_value::<city::City>(json!({"name": null})));
    assert!(null.contains("null"), "{null}");
    let twice = refused(from_str::<city::City>(r#"{"name": "a", "name": "b"}"#));
    assert!(twice.contains("duplicate field `name`"), "{twice}");
    let other = refused(from_str::<city::City>("5"));
    assert!(other.contains("expected the fields of a row of City"), "{other}");
}

#[test]
fn fields_without_names_are_in_the_order_of_the_schema() {
    let person: person::Person = from_value(json!(["a", "b", 7])).unwrap();
    assert_eq!((person.last_name.as_str(), person.home), ("b", Some(7.into())));
    let person: person::Person = from_value(json!(["a", "b"])).unwrap();
    assert_eq!(person.home, None, "the rest is absent");
}

#[test]
fn new_borrows_what_has_no_escapes() {
    assert_eq!(from_str::<city::New<'_>>(r#"{"name": "Lille"}"#).unwrap().name, "Lille");
    let escaped = refused(from_str::<city::New<'_>>(r#"{"name": "a\nb"}"#));
    assert!(escaped.contains("expected a borrowed string"), "{escaped}");
    let bytes = refused(from_str::<defaults::New<'_>>(r#"{"raw": "0x00"}"#));
    assert!(bytes.contains("read the owned row instead of `New`"), "{bytes}");
}

/// Values at their limits, of all types.
fn extremes() -> Vec<plain::Plain> {
    let least = plain::Plain {
        truth: false,
        tiny: i8::MIN,
        small: i16::MIN,
        medium: i32::MIN,
        large: i64::MIN,
        utiny: 0,
        usmall: 0,
        umedium: 0,
        ularge: 0,
        single: f32::NEG_INFINITY,
        double: f64::MIN_POSITIVE,
        text: String::new(),
        raw: Vec::new(),
        moment: Timestamp(i64::MIN),
        pointer: None,
    };
    let most = plain::Plain {
        truth: true,
        tiny: i8::MAX,
        small: i16::MAX,
        medium: i32::MAX,
        large: i64::MAX,
        utiny: u8::MAX,
        usmall: u16::MAX,
        umedium: u32::MAX,
        ularge: u64::MAX,
        single: f32::MAX,
        double: f64::INFINITY,
        text: "\"\\\n\u{0}é\u{10ffff}".to_owned(),
        raw: (0..=255).collect(),
        moment: Timestamp(i64::MAX),
        pointer: Some(target::Id::from(RowId::MAX)),
    };
    let between = plain::Plain {
        single: 0.1,
        double: 1e300,
        moment: Timestamp(1_500_000),
        pointer: Some(target::Id::from_u64(0)),
        ..least.clone()
    };
    vec![least, most, between]
}

#[test]
fn all_values_of_all_types_come_back() {
    for row in extremes() {
        let text = to_string(&row).unwrap();
        assert_eq!(from_str::<plain::Plain>(&text).unwrap(), row, "{text}");
    }
    let row = plain::Plain { single: f32::NAN, double: f64::NAN, ..extremes().remove(0) };
    let back: plain::Plain = from_value(to_value(row).unwrap()).unwrap();
    assert!(back.single.is_nan() && back.double.is_nan());
    let null: nullable::Nullable = from_value(json!({
        "tiny": null, "large": null, "ularge": null, "single": null, "double": null, "text": null,
        "raw": null, "moment": null, "pointer": null
    }))
    .unwrap();
    let written = to_value(null).unwrap();
    assert!(written.as_object().unwrap().values().all(serde_json::Value::is_null), "{written}");
}

#[test]
fn values_look_as_in_a_dump() {
    let written = to_value(&extremes()[2]).unwrap();
    assert_eq!(written["moment"], "1970-01-01T00:00:01.5Z");
    assert_eq!((&written["raw"], &written["single"]), (&json!("0x"), &json!(0.1_f32)));
    assert_eq!(written["pointer"], 0);
    let most = to_value(&extremes()[1]).unwrap();
    assert_eq!(most["double"], "Infinity");
    assert_eq!(most["ularge"], u64::MAX);
    for (value, expected) in [
        (ValueRef::Null, json!(null)),
        (ValueRef::UInt64(u64::MAX), json!(u64::MAX)),
        (ValueRef::Bytes(&[0, 255]), json!("0x00ff")),
        (ValueRef::Float64(f64::NEG_INFINITY), json!("-Infinity")),
        (ValueRef::Timestamp(0), json!("1970-01-01T00:00:00Z")),
        (ValueRef::Blob(Blob(7)), json!(7)),
        (ValueRef::Reference(RowId(8)), json!(8)),
    ] {
        assert_eq!(to_value(value).unwrap(), expected);
        assert_eq!(to_value(value.to_value()).unwrap(), expected);
    }
    assert_eq!(to_value(Value::String("é".to_owned())).unwrap(), "é");
}

#[test]
fn values_of_other_types_are_refused() {
    let read = |field: &str, value: serde_json::Value| {
        let mut row = to_value(&extremes()[2]).unwrap();
        row[field] = value;
        refused(from_value::<plain::Plain>(row))
    };
    for (field, value, said) in [
        ("tiny", json!(128), "128"),
        ("ularge", json!(-1), "-1"),
        ("raw", json!("00ff"), "not bytes as text, such as \"0x00ff\""),
        ("raw", json!("0x0"), "not bytes as text"),
        ("raw", json!([0]), "expected bytes as text"),
        ("double", json!("nan"), "expected a number, \"NaN\""),
        ("moment", json!("noon"), "not a timestamp"),
        ("moment", json!(5), "expected a timestamp as text"),
        ("pointer", json!(RowId::MAX.0 + 1), "not the id of a row"),
        ("pointer", json!("5"), "expected u64"),
    ] {
        let error = read(field, value.clone());
        assert!(error.contains(said), "{field} {value}: {error}");
    }
}

#[test]
fn ids_and_numbers_of_transactions_are_numbers() {
    let id = city::Id::from_u64(17);
    assert_eq!(to_string(&id).unwrap(), "17");
    assert_eq!(from_str::<city::Id>("17").unwrap(), id);
    assert_eq!(from_str::<Txid>(&to_string(&Txid(3)).unwrap()).unwrap(), Txid(3));
    let beyond = refused(from_value::<city::Id>(json!(u64::MAX)));
    assert!(
        beyond.contains("is not the id of a row: the largest is 9223372036854775806"),
        "{beyond}"
    );
    assert!(from_value::<Blob>(json!(u64::MAX)).is_err());
}

#[test]
fn fields_have_the_names_of_the_schema() {
    let row: collisions::r#type::Type =
        from_value(json!({"type": "a", "match": 1, "self": 2, "id": 3})).unwrap();
    let back = json!({"type": "a", "match": 1, "self": 2, "id": 3});
    assert_eq!(to_value(row).unwrap(), back);
}

#[test]
fn exact_values_are_texts() {
    use crate::generated_for_tests::exact::{self, payment};

    let body = json!({
        "day": "2026-02-28", "key": "0198c0f6-5a3b-7000-8000-0123456789ab", "amount": "-12.50",
        "hash": "0x00ff10a0", "note": "{\"a\": 1}"
    });
    let sent: payment::Payment = from_value(body).unwrap();
    let db = exact::Database::in_memory().unwrap();
    let id = db.write(|tx| Ok(tx.insert(&sent)?)).unwrap();
    let stored = db.read().payment().require(id).unwrap().to_owned();
    assert_eq!(stored, sent);
    let written = to_value(&stored).unwrap();
    assert_eq!(
        written,
        json!({
            "day": "2026-02-28", "key": "0198c0f6-5a3b-7000-8000-0123456789ab", "amount": "-12.50",
            "rate": "1.5000", "hash": "0x00ff10a0", "check": null, "note": "{\"a\": 1}", "due": null
        })
    );
    assert_eq!(from_value::<payment::Payment>(written.clone()).unwrap(), stored);
    for (field, value, said) in [
        ("day", json!("2026-02-30"), "2026-02-30"),
        ("key", json!("0198"), "0198"),
        ("amount", json!("0.005"), "0.005"),
        ("amount", json!(12.5), "expected a decimal as text"),
        ("hash", json!("0x00ff10"), "bytes of the field's length"),
    ] {
        let mut other = written.clone();
        other[field] = value;
        let error = refused(from_value::<payment::Payment>(other));
        assert!(error.contains(said), "{field}: {error}");
    }
}

#[test]
fn a_row_is_written_as_what_it_owns() {
    let db = tutorial::Database::in_memory().unwrap();
    db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?)).unwrap();
    let now = db.read();
    let row = now.city().iter().next().unwrap().unwrap();
    assert_eq!(to_value(&row).unwrap(), to_value(row.to_owned()).unwrap());
    assert_eq!(to_string(&row).unwrap(), r#"{"name":"Lille"}"#);
}
