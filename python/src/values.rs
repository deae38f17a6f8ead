//! Values of fields as Python's, and back.

use std::ops::RangeInclusive;
use std::str::FromStr;

use annals::model::AnyDecimal;
use annals::{Blob, Date, Field, RowId, Table, Timestamp, Type, Uuid, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString};

use crate::errors::{OrRaise as _, invalid};

/// What other modules of Python have, imported when it is first needed.
struct Classes {
    datetime: Py<PyAny>,
    date: Py<PyAny>,
    timedelta: Py<PyAny>,
    epoch: Py<PyAny>,
    microsecond: Py<PyAny>,
    decimal: PyOnceLock<Py<PyAny>>,
    uuid: PyOnceLock<Py<PyAny>>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
/// The day 1970-01-01, as Python counts days.
const EPOCH_DAY: i64 = 719_163;

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let (datetime, timedelta) = (module.getattr("datetime")?, module.getattr("timedelta")?);
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let epoch = datetime.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        Ok(Classes {
            date: module.getattr("date")?.unbind(),
            microsecond: timedelta.call1((0, 0, 1))?.unbind(),
            datetime: datetime.unbind(),
            timedelta: timedelta.unbind(),
            epoch: epoch.unbind(),
            decimal: PyOnceLock::new(),
            uuid: PyOnceLock::new(),
        })
    })
}

fn decimal_class<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    let class = classes(py)?.decimal.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("decimal")?.getattr("Decimal")?.unbind())
    })?;
    Ok(class.bind(py))
}

fn uuid_class<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    let class = classes(py)?
        .uuid
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("uuid")?.getattr("UUID")?.unbind()))?;
    Ok(class.bind(py))
}

/// The years that Python's `date` and `datetime` have.
const YEARS: RangeInclusive<i32> = 1..=9999;

/// Returns a time as a `datetime` with the zone UTC; as a text if its year isn't one of [`YEARS`].
pub(crate) fn time(py: Python<'_>, time: Timestamp) -> PyResult<Py<PyAny>> {
    if !YEARS.contains(&time.date().year()) {
        return Ok(PyString::new(py, &time.to_string()).into_any().unbind());
    }
    let classes = classes(py)?;
    let since = classes.timedelta.bind(py).call1((0, 0, time.0))?;
    Ok(classes.epoch.bind(py).call_method1("__add__", (since,))?.unbind())
}

/// Reads a time from a `datetime`, which must have a zone.
pub(crate) fn to_time(value: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    if !is_time(value)? {
        return Err(invalid(format!("{} is no time: write a datetime", value.repr()?)));
    }
    instant(value)?.map_err(invalid)
}

/// Reads the time of a `datetime`, or returns what is wrong with it.
fn instant(value: &Bound<'_, PyAny>) -> PyResult<Result<Timestamp, String>> {
    let classes = classes(value.py())?;
    if value.call_method0("utcoffset")?.is_none() {
        let wrong = format!("{value} has no time zone; write datetime(.., tzinfo=timezone.utc)");
        return Ok(Err(wrong));
    }
    let py = value.py();
    let since = value.call_method1("__sub__", (classes.epoch.bind(py),))?;
    let (count, rest): (i64, Bound<'_, PyAny>) =
        since.call_method1("__divmod__", (classes.microsecond.bind(py),))?.extract()?;
    // Those of pandas have nanoseconds.
    if rest.is_truthy()? {
        return Ok(Err(format!("{value} isn't a whole number of microseconds; round it")));
    }
    Ok(Ok(Timestamp(count)))
}

/// True if it is a `datetime`.
pub(crate) fn is_time(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_instance(classes(value.py())?.datetime.bind(value.py()))
}

/// Returns the place of a field whose name is a keyword of Python, which has an underscore after it there: `class_`.
pub(crate) fn keyword_field(py: Python<'_>, table: &Table, name: &str) -> PyResult<Option<usize>> {
    let Some(name) = name.strip_suffix('_') else { return Ok(None) };
    match table.fields.iter().position(|field| field.name == name) {
        Some(place) if is_keyword(py, name)? => Ok(Some(place)),
        _ => Ok(None),
    }
}

/// Returns what a field `id` of a table is called where `id` is the id of the row, as in its Arrow stream.
pub(crate) fn whole_id(table: &Table) -> Option<String> {
    table.field_named("id").map(|field| format!("{}.{}", table.name, field.name))
}

/// True if Python can't say a name as an attribute.
pub(crate) fn is_keyword(py: Python<'_>, name: &str) -> PyResult<bool> {
    py.import("keyword")?.call_method1("iskeyword", (name,))?.extract()
}

/// Where the bytes of blobs are read.
pub(crate) type Blobs<'b> = &'b dyn Fn(Blob) -> annals::Result<Vec<u8>>;

/// Returns a value as one of Python.
pub(crate) fn to_python(
    py: Python<'_>,
    value: ValueRef<'_>,
    blobs: Blobs<'_>,
) -> PyResult<Py<PyAny>> {
    macro_rules! convert {
        ($($variant:ident: $rust:ty;)*) => {
            match value {
                ValueRef::Null => Ok(py.None()),
                $(ValueRef::$variant(v) => Ok(v.into_pyobject(py)?.into_any().unbind()),)*
                ValueRef::Bool(v) => Ok(PyBool::new(py, v).to_owned().into_any().unbind()),
                ValueRef::Float32(v) => Ok(PyFloat::new(py, v.into()).into_any().unbind()),
                ValueRef::Float64(v) => Ok(PyFloat::new(py, v).into_any().unbind()),
                ValueRef::String(v) => Ok(PyString::new(py, v).into_any().unbind()),
                ValueRef::Bytes(v) => Ok(PyBytes::new(py, v).into_any().unbind()),
                ValueRef::Blob(v) => Ok(PyBytes::new(py, &blobs(v).or_raise()?).into_any().unbind()),
                ValueRef::Timestamp(v) => time(py, Timestamp(v)),
                ValueRef::Date(v) if !YEARS.contains(&v.year()) => {
                    Ok(PyString::new(py, &v.to_string()).into_any().unbind())
                }
                ValueRef::Date(v) => {
                    let day = i64::from(v.0) + EPOCH_DAY;
                    Ok(classes(py)?.date.bind(py).call_method1("fromordinal", (day,))?.unbind())
                }
                ValueRef::Uuid(v) => {
                    let none = py.None();
                    Ok(uuid_class(py)?.call1((none, PyBytes::new(py, &v.0)))?.unbind())
                }
                ValueRef::Decimal(v) => Ok(decimal_class(py)?.call1((v.to_string(),))?.unbind()),
                ValueRef::Enum(v) => Ok(PyString::new(py, v.name()).into_any().unbind()),
                ValueRef::Reference(v) => Ok(v.0.into_pyobject(py)?.into_any().unbind()),
            }
        };
    }
    annals_schema::column_types!(integers, convert)
}

/// A value, or the bytes of a blob that must be written first.
pub(crate) enum Given {
    Value(Value),
    Blob(Vec<u8>),
}

/// Reads the value of a field.
pub(crate) fn of_python(field: &Field, value: &Bound<'_, PyAny>) -> PyResult<Given> {
    if field.ty == Type::Timestamp && is_time(value)? && !is_missing(value)? {
        let time = instant(value)?.map(|time| Given::Value(Value::Timestamp(time.0)));
        return time.map_err(|wrong| invalid(format!("field `{}`: {wrong}", field.name)));
    }
    let read = read(field.ty, value)?;
    read.ok_or_else(|| {
        let kind = value.get_type();
        let name = kind.name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        let shown: String = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        let shown: String = shown.chars().take(100).collect();
        invalid(format!("field `{}` is {}: {shown} ({name}) isn't one", field.name, field.ty))
    })
}

/// Returns the bytes of `bytes`, a `bytearray` or a `memoryview` of single bytes. Much else can be seen as bytes: times of
/// numpy, and arrays, whose bytes differ between machines.
pub(crate) fn bytes_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return Ok(Some(bytes.to_vec()));
    }
    let Ok(view) = value.cast::<PyMemoryView>() else { return Ok(None) };
    if view.getattr("itemsize")?.extract::<usize>()? != 1 {
        return Ok(None);
    }
    Ok(Some(view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// Reads a date or a time of a year that Python's classes don't have.
fn far<T: FromStr>(text: Option<&str>, year: impl Fn(&T) -> i32) -> Option<T> {
    text?.parse().ok().filter(|far| !YEARS.contains(&year(far)))
}

/// True if it is what pandas has in the place of a value that is missing: `pd.NA` or `pd.NaT`.
pub(crate) fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none() {
        return Ok(true);
    }
    let name = value.get_type().name()?;
    Ok(["NAType", "NaTType"].contains(&name.to_str()?)
        && value.get_type().module()?.to_str()?.starts_with("pandas."))
}

/// Reads a number as a float, if that is the same number.
fn float(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let Ok(number) = value.extract::<f64>() else { return Ok(None) };
    if value.is_exact_instance_of::<PyFloat>() || number.is_nan() {
        return Ok(Some(number));
    }
    // One of numpy would be compared as a float.
    if let Some(whole) = whole(value) {
        return Ok((number as i128 == whole).then_some(number));
    }
    Ok(value.eq(number)?.then_some(number))
}

/// Reads a row's id; `None` if no row can have it.
///
/// # Errors
/// It isn't a whole number.
pub(crate) fn row_id(value: &Bound<'_, PyAny>) -> PyResult<Option<RowId>> {
    let is_bool = value.is_instance_of::<PyBool>();
    let id = if is_bool { None } else { whole(value) };
    let id = id.ok_or_else(|| {
        let shown = value.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
        invalid(format!("{shown} is no row's id: write a whole number"))
    })?;
    Ok(u64::try_from(id).ok().map(RowId).filter(|id| *id <= RowId::MAX))
}

/// Reads a whole number: an `int`, or one of numpy.
fn whole(value: &Bound<'_, PyAny>) -> Option<i128> {
    if value.is_instance_of::<PyInt>() {
        return value.extract().ok();
    }
    value.call_method0("__index__").ok()?.extract().ok()
}

/// Returns how many units of the last of so many decimals a `Decimal` is, if it is a whole number of them.
fn units_of(value: &Bound<'_, PyAny>, scale: u8) -> PyResult<Option<i128>> {
    let parts = value.call_method0("as_tuple")?;
    let (is_negative, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) = parts.extract()?;
    // Infinities and those that are no numbers have a letter there.
    let Ok(mut exponent) = exponent.extract::<i64>() else { return Ok(None) };
    let mut text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    while text.len() > 1 && text.ends_with('0') {
        text.pop();
        exponent += 1;
    }
    let sign = if is_negative == 1 { "-" } else { "" };
    let Ok(number) = format!("{sign}{text}").parse::<i128>() else { return Ok(None) };
    Ok(if number == 0 { Some(0) } else { scaled(number, exponent + i64::from(scale)) })
}

/// Returns a number times a power of ten, if that is a whole number that fits.
fn scaled(number: i128, by: i64) -> Option<i128> {
    number.checked_mul(10_i128.checked_pow(u32::try_from(by).ok()?)?)
}

fn read(ty: Type, value: &Bound<'_, PyAny>) -> PyResult<Option<Given>> {
    if is_missing(value)? {
        return Ok(Some(Given::Value(Value::Null)));
    }
    // Those of numpy are, too.
    let truth = value.extract::<bool>().ok();
    let is_bool = truth.is_some();
    let text = value.cast::<PyString>().ok();
    let whole = || if is_bool { None } else { whole(value) };
    let text = || text.and_then(|text| text.to_str().ok());
    let read = match ty {
        Type::Bool => truth.map(Value::Bool),
        Type::Float32 | Type::Float64 => {
            let number = if is_bool || text().is_some() { None } else { float(value)? };
            let is_whole = whole().is_some();
            match ty {
                // A float is rounded, but doesn't become infinite; a whole number isn't rounded.
                Type::Float32 => number
                    .filter(|number| !number.is_finite() || (*number as f32).is_finite())
                    .filter(|number| !is_whole || f64::from(*number as f32) == *number)
                    .map(|number| Value::Float32(number as f32)),
                _ => number.map(Value::Float64),
            }
        }
        Type::String | Type::Json => text().map(|text| Value::String(text.to_owned())),
        Type::Bytes | Type::FixedBytes(_) => bytes_of(value)?.map(Value::Bytes),
        Type::Blob => return Ok(bytes_of(value)?.map(Given::Blob)),
        Type::Timestamp => {
            far(text(), |time: &Timestamp| time.date().year()).map(|time| Value::Timestamp(time.0))
        }
        Type::Date => {
            let is_day = value.is_instance(classes(value.py())?.date.bind(value.py()))?;
            let day = if is_day && !is_time(value)? {
                Some(value.call_method0("toordinal")?.extract::<i64>()? - EPOCH_DAY)
            } else {
                None
            };
            let day = day.and_then(|day| i32::try_from(day).ok()).map(Date);
            day.or_else(|| far(text(), |day: &Date| day.year())).map(Value::Date)
        }
        Type::Uuid => match value.is_instance(uuid_class(value.py())?)? {
            true => {
                let bytes = bytes_of(&value.getattr("bytes")?)?.unwrap_or_default();
                bytes.try_into().ok().map(|bytes| Value::Uuid(Uuid(bytes)))
            }
            false => text().and_then(|text| text.parse().ok()).map(Value::Uuid),
        },
        Type::Decimal(scale) => {
            let units = match value.is_instance(decimal_class(value.py())?)? {
                true => units_of(value, scale)?,
                false => whole().and_then(|whole| scaled(whole, scale.into())),
            };
            units.map(|units| Value::Decimal(AnyDecimal::new(units, scale)))
        }
        Type::Enum(variants) => text().and_then(|text| variants.named(text)).map(Value::Enum),
        Type::Reference(..) => {
            let id = whole().and_then(|id| u64::try_from(id).ok()).map(RowId);
            id.filter(|id| *id <= RowId::MAX).map(Value::Reference)
        }
        ty => whole().and_then(|number| ty.integer(number)),
    };
    Ok(read.map(Given::Value))
}
