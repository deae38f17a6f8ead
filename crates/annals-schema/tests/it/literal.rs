//! Values as text, in both directions.

use annals_schema::{OnDelete, TableNumber, Token, Type, Value, parse_value, tokenize};

const REFERENCE: Type = Type::Reference(TableNumber(0), OnDelete::Dangle);

fn token(text: &str) -> Token<'_> {
    tokenize(text).unwrap().remove(0)
}

fn parse(ty: Type, text: &str) -> Result<Value, String> {
    parse_value(ty, &token(text))
}

/// A small generator of random numbers (splitmix64), so that a failure can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number of any size: as many small ones as large ones.
    pub(crate) fn any(&mut self) -> i64 {
        let number = self.next().cast_signed();
        number >> (self.next() % 64)
    }

    fn string(&mut self) -> String {
        let character = |random: &mut Self| {
            let bits = random.next() % 21;
            char::from_u32(u32::try_from(random.next() & ((1 << bits) - 1)).unwrap())
        };
        (0..self.next() % 20).filter_map(|_| character(self)).collect()
    }
}

/// Returns a random value of a type.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "any bits of a random number will do"
)]
fn random_value(random: &mut Random, ty: Type) -> Value {
    let any = random.any();
    match ty {
        Type::Float32 => Value::Float32(f32::from_bits(any as u32)),
        Type::Float64 => Value::Float64(f64::from_bits(random.next())),
        Type::String => Value::String(random.string()),
        Type::Bytes => Value::Bytes(random.string().into_bytes()),
        ty => ty.sample(any),
    }
}

#[test]
fn text_of_any_value_reads_as_that_value() {
    let mut random = Random(1);
    for round in 0..3000 {
        for ty in Type::samples().into_iter().chain([REFERENCE]) {
            let value = random_value(&mut random, ty);
            let text = value.to_string();
            assert_eq!(text.lines().count(), 1, "round {round}: {text}");
            assert!(!text.chars().any(char::is_control), "round {round}: {text}");
            let tokens = tokenize(&text).unwrap();
            assert_eq!(tokens.len(), 1, "round {round}: {text}");
            let again = parse_value(ty, &tokens[0]).unwrap();
            assert_eq!(again, value, "round {round}: {text}");
            assert_eq!(again.to_string(), text, "round {round}: one text for one value");
        }
    }
}

#[test]
fn extremes_are_written_as_expected() {
    for (ty, text) in [
        (Type::Int64, "-9223372036854775808"),
        (Type::UInt64, "18446744073709551615"),
        (Type::Float64, "0"),
        (Type::Float64, "-0"),
        (Type::Float64, "0.1"),
        (Type::Float64, "0.0000001"),
        (Type::Float64, "9.9e-8"),
        (Type::Float64, "100000000000000000000"),
        (Type::Float64, "1e21"),
        (Type::Float64, "1.7976931348623157e308"),
        (Type::Float64, "5e-324"),
        (Type::Float64, "inf"),
        (Type::Float64, "-inf"),
        (Type::Float64, "nan"),
        (Type::Float32, "0.1"),
        (Type::Float32, "3.4028235e38"),
        (Type::Bytes, "0x"),
        (Type::Bytes, "0x00ff"),
        (Type::Timestamp, "1969-12-31T23:59:59.999999Z"),
        (Type::Timestamp, "@-9223372036854775808"),
        (Type::Date, "1970-01-01"),
        (Type::Date, "0000-02-29"),
        (Type::Date, "9999-12-31"),
        (Type::Date, "+10000-01-01"),
        (Type::Date, "-00001-12-31"),
        (Type::Date, "+5881580-07-11"),
        (Type::Date, "-5877641-06-23"),
        (Type::Uuid, "00ff5504-10b1-426f-9247-bb680e5fe0c8"),
        (Type::Decimal(0), "-170141183460469231731687303715884105728"),
        (Type::Decimal(2), "0.00"),
        (Type::Decimal(2), "-0.01"),
        (Type::Decimal(2), "1701411834604692317316873037158841057.27"),
        (Type::Decimal(38), "1.00000000000000000000000000000000000001"),
        (Type::FixedBytes(2), "0x00ff"),
        (Type::Json, r#""{\"a\": [1, -0.5e+3, \"\\u00e9\\n\", true, null], \"\": {}}""#),
        (REFERENCE, "9223372036854775806"),
        (REFERENCE, "null"),
        (Type::String, r#""\"\\\n\t\r\000\033\177\u{85}\u{2028}é""#),
    ] {
        assert_eq!(parse(ty, text).unwrap().to_string(), text);
    }
}

#[test]
fn other_spellings_are_understood() {
    for (ty, text, canonical) in [
        (Type::Bool, "1", "true"),
        (Type::Bool, "0", "false"),
        (Type::Int32, "+5", "5"),
        (Type::Float64, "1E3", "1000"),
        (Type::Float64, ".5", "0.5"),
        (Type::Bytes, "0xFF", "0xff"),
        (Type::Timestamp, "@0", "1970-01-01T00:00:00Z"),
        (Type::Timestamp, "2021-11-02T22:10:25.500+01:00", "2021-11-02T21:10:25.5Z"),
        (Type::Date, "+12345-01-01", "+12345-01-01"),
        (Type::Uuid, "67E5504410B1426F9247BB680E5FE0C8", "67e55044-10b1-426f-9247-bb680e5fe0c8"),
        (Type::Decimal(2), "+5", "5.00"),
        (Type::Decimal(2), "-007.5", "-7.50"),
        (Type::Json, "[1]", "\"[1]\""),
        (REFERENCE, "-1", "null"),
        (Type::String, "word", "\"word\""),
        (Type::String, "\"null\"", "\"null\""),
        (Type::String, "null", "null"),
    ] {
        assert_eq!(parse(ty, text).unwrap().to_string(), canonical, "{text}");
    }
}

#[test]
fn wrong_values_are_named_with_what_is_right() {
    let int32 = "is not an int32: use -2147483648 to 2147483647";
    assert_eq!(parse(Type::Int32, "99999999999").unwrap_err(), format!("`99999999999` {int32}"));
    assert_eq!(parse(Type::Int32, "abc").unwrap_err(), format!("`abc` {int32}"));
    assert_eq!(
        parse(Type::Int32, "\"5\"").unwrap_err(),
        "a string is not an int32: use -2147483648 to 2147483647"
    );
    for (ty, text) in [
        (Type::Bool, "yes"),
        (Type::Int8, "128"),
        (Type::UInt8, "-1"),
        (Type::Int64, "9223372036854775808"),
        (Type::Int16, "1.5"),
        (Type::Float64, "1e309"),
        (Type::Float32, "1e39"),
        (Type::Float64, "infinity"),
        (Type::Float64, "NaN"),
        (Type::Float64, "--1"),
        (Type::Bytes, "00"),
        (Type::Bytes, "0x0"),
        (Type::Bytes, "0xgg"),
        (Type::Bytes, "0x+1"),
        (Type::Timestamp, "2021-02-29T00:00:00Z"),
        (Type::Date, "2023-02-29"),
        (Type::Date, "2023-2-01"),
        (Type::Date, "12345-01-01"),
        (Type::Date, "+5881580-07-12"),
        (Type::Date, "2023-01-01T00:00:00Z"),
        (Type::Uuid, "67e55044-10b1-426f-9247-bb680e5fe0c"),
        (Type::Uuid, "67e5504410b1-426f-9247-bb680e5fe0c8"),
        (Type::Uuid, "67e55044-10b1-426f-9247-bb680e5fe0cg"),
        (Type::Decimal(2), "1.234"),
        (Type::Decimal(2), "1."),
        (Type::Decimal(2), ".5"),
        (Type::Decimal(2), "1e3"),
        (Type::Decimal(2), "1701411834604692317316873037158841057.28"),
        (Type::FixedBytes(2), "0x00"),
        (Type::FixedBytes(2), "0x000000"),
        (Type::Json, "{"),
        (Type::Json, "[1,]"),
        (Type::Json, "01"),
        (Type::Json, "\"\""),
        (REFERENCE, "-2"),
        (REFERENCE, "9223372036854775807"),
    ] {
        assert!(parse(ty, text).unwrap_err().contains(" is not "), "{text}");
    }
}
