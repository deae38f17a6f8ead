//! Answers to SQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annals_sql::{Columns, Connection, Parameters, Source, SqlError, Value, ValueRef, read_large};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator, PyList, PySlice, PyString, PyTuple};

use crate::arrow;
use crate::errors::{OrRaise as _, invalid};
use crate::html;
use crate::rows::{at, sliced};
use crate::values::{bytes_of, is_missing, is_time, to_time};
use crate::wait::blocking;

/// The answer to a query: rows as tuples, the names of the columns, and an Arrow stream.
///
/// >>> import annals
/// >>> with annals.in_memory("create_table city\nadd_field city name string\n") as db:
/// ...     with db.write() as tx:
/// ...         _ = tx.city.insert_all([{"name": "Lille"}, {"name": "Lyon"}])
/// ...     answer = db.sql("SELECT id, name FROM city WHERE name > ?", ["Li"])
/// >>> answer.columns, list(answer), answer[0]
/// (['id', 'name'], [(0, 'Lille'), (1, 'Lyon')], (0, 'Lille'))
#[pyclass(frozen, module = "annals")]
pub(crate) struct Answer {
    columns: Vec<(String, Option<String>)>,
    rows: Vec<Vec<Value>>,
}

/// Takes an answer; of several statements the last one counts.
struct Taking<'a>(&'a mut Answer);

impl annals_sql::Answer for Taking<'_> {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        *self.0 = Answer { columns: columns.to_vec(), rows: Vec::new() };
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let row = values.iter().map(|&value| {
            let wrong = || SqlError::Statement("a text of the answer isn't UTF-8".to_owned());
            Value::try_from(value).map_err(|_| wrong())
        });
        self.0.rows.push(row.collect::<Result<_, _>>()?);
        Ok(())
    }
}

/// How many steps of SQLite are between two looks whether the caller was interrupted: some milliseconds.
const STEPS: i32 = 100_000;

/// Asks; Ctrl-C ends the query.
pub(crate) fn ask(
    py: Python<'_>,
    source: Source,
    query: &str,
    parameters: Option<&Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let parameters = read_parameters(parameters)?;
    let (query, stopped) = (query.to_owned(), Arc::new(AtomicBool::new(false)));
    let is_stopped = Arc::clone(&stopped);
    let asked = blocking(py, move || {
        let mut connection = Connection::open(source)?;
        connection.refuse_files()?;
        // Without the handler, a query ends by itself.
        let look = move || is_stopped.load(Ordering::Relaxed);
        let _ = connection.inner_mut().progress_handler(STEPS, Some(look));
        let mut answer = Answer { columns: Vec::new(), rows: Vec::new() };
        connection.run(&query, &parameters, &mut Taking(&mut answer))?;
        Ok::<_, SqlError>(answer)
    });
    let asked = asked.inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
    asked.map_err(annals::Error::from).or_raise()
}

/// Reads a sequence for `?`, or a mapping for `:name`.
fn read_parameters(given: Option<&Bound<'_, PyAny>>) -> PyResult<Parameters> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(Parameters::None) };
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(invalid("params: write a list for `?`, or a dict for `:name`, not a text"));
    }
    if let Ok(named) = given.cast::<PyDict>() {
        let named = named.iter().map(|(name, value)| Ok((name.extract()?, parameter(&value)?)));
        return Ok(Parameters::Named(named.collect::<PyResult<_>>()?));
    }
    let all = given.try_iter().map_err(|_| {
        invalid(format!("params: write a list for `?`, or a dict for `:name`, not {given}"))
    })?;
    let listed = all.map(|value| parameter(&value?));
    Ok(Parameters::Listed(listed.collect::<PyResult<_>>()?))
}

/// Returns a value in the form that SQLite compares with those of fields.
fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if is_missing(value)? {
        return Ok(Value::Null);
    }
    // Those of numpy are, too.
    if let Ok(truth) = value.extract::<bool>() {
        return Ok(Value::Integer(truth.into()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        let whole = |_| invalid("params: a text has half a character, which has no UTF-8");
        return Ok(Value::Text(text.to_str().map_err(whole)?.to_owned()));
    }
    if value.is_instance_of::<pyo3::types::PyInt>() || value.hasattr("__index__")? {
        return match (value.extract::<i64>(), value.extract::<u64>()) {
            (Ok(number), _) => Ok(Value::Integer(number)),
            (_, Ok(number)) => Ok(Value::Blob(annals_sql::large(number))),
            _ => Err(invalid(format!("params: {value} is too large"))),
        };
    }
    if value.is_instance_of::<pyo3::types::PyFloat>() {
        return Ok(real(value.extract()?));
    }
    if let Some(bytes) = bytes_of(value)? {
        return Ok(Value::Blob(bytes));
    }
    if is_time(value)? {
        return Ok(Value::Integer(to_time(value)?.0));
    }
    let class = value.get_type().name()?.to_string();
    match class.as_str() {
        // Others could have more digits than there is memory.
        "Decimal" if value.call_method0("is_finite")?.is_truthy()? && has_few_digits(value)? => {
            Ok(Value::Text(value.call_method1("__format__", ("f",))?.str()?.to_str()?.to_owned()))
        }
        "date" | "UUID" => Ok(Value::Text(value.str()?.to_str()?.to_owned())),
        "float16" | "float32" => Ok(real(value.extract()?)),
        _ => Err(invalid(format!("params: {class} isn't a type of SQLite's values"))),
    }
}

/// True if a `Decimal` written without an exponent has few digits: those of fields have 39.
fn has_few_digits(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let exponent: i64 = value.call_method0("as_tuple")?.getattr("exponent")?.extract()?;
    let first: i64 = value.call_method0("adjusted")?.extract()?;
    Ok((-1000..=1000).contains(&exponent) && first <= 1000)
}

/// Returns a float as those of fields are: SQLite has no NaN.
fn real(number: f64) -> Value {
    if number.is_nan() { Value::Text("NaN".to_owned()) } else { Value::Real(number) }
}

impl Answer {
    fn tuple<'py>(&self, py: Python<'py>, row: &[Value]) -> PyResult<Bound<'py, PyTuple>> {
        let values = row.iter().map(|value| {
            Ok(match value {
                Value::Null => py.None().into_bound(py),
                Value::Integer(number) => number.into_pyobject(py)?.into_any(),
                Value::Real(number) => number.into_pyobject(py)?.into_any(),
                Value::Text(text) => PyString::new(py, text).into_any(),
                Value::Blob(bytes) => match read_large(bytes) {
                    Some(number) => number.into_pyobject(py)?.into_any(),
                    None => PyBytes::new(py, bytes).into_any(),
                },
            })
        });
        PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }
}

/// The columns and rows of an answer, as they are pickled.
type Parts<'py> = (Vec<(String, Option<String>)>, Vec<Bound<'py, PyTuple>>);

/// Returns an answer that was pickled.
#[pyfunction]
#[pyo3(name = "_answer")]
pub(crate) fn unpickled(
    columns: Vec<(String, Option<String>)>,
    rows: Vec<Bound<'_, PyTuple>>,
) -> PyResult<Answer> {
    let rows = rows.iter().map(|row| row.iter().map(|value| parameter(&value)).collect());
    Ok(Answer { columns, rows: rows.collect::<PyResult<_>>()? })
}

#[pymethods]
impl Answer {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row at a place, or a list of those of a slice.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let row = |row: &Vec<Value>| self.tuple(py, row);
        if let Ok(slice) = place.cast::<PySlice>() {
            let all: Vec<_> = self.rows.iter().collect();
            let rows = sliced(&all, slice)?.into_iter().map(row).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(py, rows)?.into_any());
        }
        let found = self.rows.get(at(place, self.rows.len())?).map(row).transpose()?;
        Ok(found.into_pyobject(py)?.into_any())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let rows = self.rows.iter().map(|row| self.tuple(py, row));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let rows = self.rows.iter().map(|row| {
            let values = self.tuple(py, row)?;
            values.iter().map(|value| Ok(value.str()?.to_string())).collect()
        });
        html::table(self.columns().into_iter(), rows, self.rows.len() as u64)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let rows = self.rows.iter().map(|row| self.tuple(py, row)).collect::<PyResult<_>>()?;
        let make = py.import("annals._core")?.getattr("_answer")?;
        Ok((make, (self.columns.clone(), rows)))
    }

    fn __repr__(&self) -> String {
        format!("<answer of {} rows: {}>", self.rows.len(), self.columns().join(", "))
    }

    /// The answer as an Arrow stream. Each column has one type: that of the table's column, or of its values.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        use annals_sql::Answer as _;
        let _ = requested_schema;
        let made = py.detach(|| {
            let mut columns = Columns::new(u64::MAX);
            columns.begin(&self.columns)?;
            for row in &self.rows {
                let values: Vec<_> = row.iter().map(ValueRef::from).collect();
                columns.row(&values)?;
            }
            columns.into_reader()
        });
        arrow::stream(py, made.map_err(annals::Error::from).or_raise()?)
    }
}
