//! Conditions of SQL as bounds of values of a column.
//!
//! SQLite checks each condition again, by its own rules of comparison. So bounds may let through more rows than the
//! condition does, never fewer.

use std::ops::{Bound, Range};

use annals::model::{AnyDecimal, TypeClass};
use annals::{Date, RowId, Type, Uuid, Value, ValueRef};

use crate::forms::read_large;
use crate::host::{Form, Op};

/// The values that may fulfil a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seek {
    /// Any: the condition doesn't narrow the search.
    All,
    /// None: no value fulfils it.
    Nothing,
    /// This one.
    Equal(Value),
    /// Those in the bounds, never null.
    Between(Bound<Value>, Bound<Value>),
}

/// The largest number that all kinds of SQLite's numbers hold exactly, with room for one more.
const EXACT: f64 = 4_503_599_627_370_496.0;

/// Numbers whose texts have no exponent in SQLite.
const PLAIN: Range<f64> = 1e-4..1e14;

/// The row that a condition on the id means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OneRow {
    /// Any: the condition doesn't say.
    Any,
    /// No row has such an id.
    Nothing,
    Of(RowId),
}

impl OneRow {
    /// Returns the row that equals a value.
    pub(crate) fn equal(argument: &Form<'_>) -> Self {
        let id = match seek(Type::UInt64, false, Op::Equal, argument) {
            Seek::All => return Self::Any,
            Seek::Equal(Value::UInt64(id)) => Some(id),
            Seek::Between(Bound::Included(first), Bound::Included(last)) if first == last => {
                if let Value::UInt64(id) = first {
                    Some(id)
                } else {
                    None
                }
            }
            _ => None,
        };
        let id = id.map(RowId).filter(|id| *id <= RowId::MAX);
        id.map_or(Self::Nothing, Self::Of)
    }

    /// Returns the row that fulfils both conditions.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, other) | (other, Self::Any) => other,
            (one, other) if one == other => one,
            _ => Self::Nothing,
        }
    }
}

/// Returns the values of a column that may fulfil a comparison.
pub(crate) fn seek(ty: Type, is_nullable: bool, op: Op, argument: &Form<'_>) -> Seek {
    let found = match (op, argument) {
        // An erased value is null, also where the schema doesn't allow that.
        (Op::Is | Op::IsNull, Form::Null) => {
            if is_nullable {
                Seek::Equal(Value::Null)
            } else {
                Seek::All
            }
        }
        (_, Form::Null) => Seek::Nothing,
        (Op::Like | Op::Glob | Op::IsNull | Op::Unequal, _) => Seek::All,
        _ => compare(ty, op, argument),
    };
    let fits = |value: &Value| ty.accepts(is_nullable, value.as_ref());
    let is_possible = |bound: &Bound<Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => fits(value),
        Bound::Unbounded => true,
    };
    match found {
        Seek::Equal(value) if !fits(&value) => Seek::Nothing,
        Seek::Between(lower, upper) if !is_possible(&lower) || !is_possible(&upper) => Seek::All,
        found => found,
    }
}

fn compare(ty: Type, op: Op, argument: &Form<'_>) -> Seek {
    match (ty.class(), argument) {
        (TypeClass::Bool, Form::Integer(value @ (0 | 1))) if is_equality(op) => {
            Seek::Equal(Value::Bool(*value == 1))
        }
        (TypeClass::Integer { .. } | TypeClass::Timestamp | TypeClass::Reference, _) => {
            integers(ty, op, argument)
        }
        (TypeClass::Float32 | TypeClass::Float64, _) => floats(ty, op, argument),
        (TypeClass::String, Form::Text(text)) => {
            exact(op, Value::String(text.clone().into_owned()))
        }
        (TypeClass::Bytes, Form::Blob(bytes)) => exact(op, Value::Bytes(bytes.to_vec())),
        (TypeClass::Written, _) => written(ty, op, argument),
        _ => Seek::All,
    }
}

const fn is_equality(op: Op) -> bool {
    matches!(op, Op::Equal | Op::Is)
}

/// Returns the bounds of a comparison with a value of the type itself.
fn exact(op: Op, value: Value) -> Seek {
    match op {
        Op::Equal | Op::Is => Seek::Equal(value),
        Op::Greater => Seek::Between(Bound::Excluded(value), Bound::Unbounded),
        Op::GreaterOrEqual => Seek::Between(Bound::Included(value), Bound::Unbounded),
        Op::Less => Seek::Between(Bound::Unbounded, Bound::Excluded(value)),
        Op::LessOrEqual => Seek::Between(Bound::Unbounded, Bound::Included(value)),
        Op::Like | Op::Glob | Op::IsNull | Op::Unequal => Seek::All,
    }
}

/// Returns bounds that hold all values of a comparison, from values that are surely not above and not below it.
fn around(op: Op, below: Value, above: Value) -> Seek {
    match op {
        Op::Equal | Op::Is => Seek::Between(Bound::Included(below), Bound::Included(above)),
        Op::Greater | Op::GreaterOrEqual => Seek::Between(Bound::Included(below), Bound::Unbounded),
        Op::Less | Op::LessOrEqual => Seek::Between(Bound::Unbounded, Bound::Included(above)),
        Op::Like | Op::Glob | Op::IsNull | Op::Unequal => Seek::All,
    }
}

/// Returns a whole number as a value of an integer type, a time or a reference, if the type has it.
fn whole(ty: Type, number: i128) -> Option<Value> {
    match ty.class() {
        TypeClass::Timestamp => i64::try_from(number).ok().map(Value::Timestamp),
        TypeClass::Reference => {
            let id = u64::try_from(number).ok().map(RowId).filter(|id| *id <= RowId::MAX)?;
            Some(Value::Reference(id))
        }
        _ => ty.parse_integer(&number.to_string()),
    }
}

fn integers(ty: Type, op: Op, argument: &Form<'_>) -> Seek {
    let number = match argument {
        Form::Integer(number) => i128::from(*number),
        Form::Blob(bytes) if ty == Type::UInt64 => match read_large(bytes) {
            Some(number) => number.into(),
            None => return Seek::All,
        },
        // SQLite makes a number of such a text, when it is compared with a column of numbers.
        Form::Text(text) => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => return Seek::All,
        },
        Form::Real(number) if number.abs() < EXACT => return fractions(ty, op, *number),
        _ => return Seek::All,
    };
    match whole(ty, number) {
        Some(value) => exact(op, value),
        None if is_equality(op) => Seek::Nothing,
        None => Seek::All,
    }
}

/// Compares integers with a number that may have a fraction.
fn fractions(ty: Type, op: Op, number: f64) -> Seek {
    #[expect(clippy::cast_possible_truncation, reason = "its size was checked")]
    let [floor, ceil] = [number.floor(), number.ceil()].map(|number| number as i128);
    match (whole(ty, floor), whole(ty, ceil)) {
        (Some(below), Some(above)) => around(op, below, above),
        _ => Seek::All,
    }
}

fn floats(ty: Type, op: Op, argument: &Form<'_>) -> Seek {
    #[expect(clippy::cast_precision_loss, reason = "the nearest float isn't beyond the next one")]
    let number = match argument {
        Form::Integer(number) => *number as f64,
        Form::Real(number) => *number,
        Form::Text(text) if text == "NaN" && is_equality(op) => f64::NAN,
        _ => return Seek::All,
    };
    #[expect(clippy::cast_possible_truncation, reason = "as before")]
    let value = match ty {
        Type::Float32 => Value::Float32(number as f32),
        _ => Value::Float64(number),
    };
    around(op, value.clone(), value)
}

/// Compares values that are texts in SQL.
fn written(ty: Type, op: Op, argument: &Form<'_>) -> Seek {
    let text = match argument {
        Form::Text(text) => text,
        Form::Integer(_) | Form::Real(_) => return decimals(ty, op, argument),
        _ => return Seek::All,
    };
    let is_same = |value: &dyn std::fmt::Display| value.to_string() == **text;
    let value = match ty {
        Type::Date => text.parse().ok().filter(|date: &Date| is_same(date)).map(Value::Date),
        Type::Uuid => text.parse().ok().filter(|uuid: &Uuid| is_same(uuid)).map(Value::Uuid),
        Type::Enum(variants) => variants.named(text).map(Value::Enum),
        // Decimals are equal to others with more or fewer zeros.
        Type::Decimal(scale) => match AnyDecimal::parse(text, scale) {
            Ok(number) => return exact(op, Value::Decimal(number)),
            Err(_) => return Seek::All,
        },
        _ => None,
    };
    match value {
        Some(value) => exact(op, value),
        // A past value may be a variant that was dropped since.
        None if is_equality(op) && !matches!(ty, Type::Enum(_)) => Seek::Nothing,
        None => Seek::All,
    }
}

/// Compares decimals with a number. It may be compared as the nearest float: so the bounds are one wider. It may also
/// be compared as its text, which is no decimal if it has an exponent.
fn decimals(ty: Type, op: Op, argument: &Form<'_>) -> Seek {
    let Type::Decimal(scale) = ty else { return Seek::All };
    #[expect(clippy::cast_precision_loss, reason = "its size is checked next")]
    let number = match argument {
        Form::Integer(number) => *number as f64,
        Form::Real(number) if *number == 0.0 || PLAIN.contains(&number.abs()) => *number,
        _ => return Seek::All,
    };
    if number.abs() >= EXACT {
        return Seek::All;
    }
    #[expect(clippy::cast_possible_truncation, reason = "as was checked")]
    let bound = |number: f64| {
        let text = (number as i64).to_string();
        AnyDecimal::parse(&text, scale).ok().map(Value::Decimal)
    };
    match (bound(number.floor() - 1.0), bound(number.ceil() + 1.0)) {
        (Some(below), Some(above)) => around(op, below, above),
        _ => Seek::All,
    }
}

/// The most letters of a prefix that are looked for in both cases.
const LETTERS: usize = 3;

/// Returns the prefixes that texts of a pattern have, in ascending order; `None` if they may begin with anything.
pub(crate) fn prefixes(op: Op, pattern: &str) -> Option<Vec<String>> {
    let wild: &[char] = if op == Op::Like { &['%', '_'] } else { &['*', '?', '['] };
    let fixed = pattern.split(wild).next().unwrap_or_default();
    if op == Op::Glob {
        return (!fixed.is_empty()).then(|| vec![fixed.to_owned()]);
    }
    // LIKE takes small and capital letters of ASCII for the same.
    let (mut all, mut letters) = (vec![String::new()], 0);
    for c in fixed.chars() {
        if c.is_ascii_alphabetic() {
            letters += 1;
            if letters > LETTERS {
                break;
            }
            let both = [c.to_ascii_uppercase(), c.to_ascii_lowercase()];
            all = all.iter().flat_map(|start| both.map(|c| format!("{start}{c}"))).collect();
        } else {
            all.iter_mut().for_each(|start| start.push(c));
        }
    }
    (all.iter().all(|start| !start.is_empty())).then_some(all)
}

/// Returns bounds by references to their values.
pub(crate) fn bound(bound: &Bound<Value>) -> Bound<ValueRef<'_>> {
    bound.as_ref().map(Value::as_ref)
}

/// Returns the narrower of two bounds that both hold, if one of them is unbounded; else the first: SQLite checks the
/// other.
pub(crate) fn both(first: Bound<Value>, second: Bound<Value>) -> Bound<Value> {
    match first {
        Bound::Unbounded => second,
        bounded => bounded,
    }
}
