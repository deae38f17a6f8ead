//! Arguments of calls: an error names the argument, and says what it takes.

use std::sync::Arc;
use std::time::Duration;

use annals::Table;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::errors::invalid;

/// An argument that may be left out.
pub(crate) type Argument<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

fn refused(name: &str, takes: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let kind = given.get_type();
    let kind = kind.name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let shown: String = given.repr().map_or_else(|_| "?".into(), |text| text.to_string());
    let shown: String = shown.chars().take(100).collect();
    invalid(format!("{name}: write {takes}, not {shown} ({kind})"))
}

/// Reads a text.
pub(crate) fn text(name: &str, given: Argument<'_, '_>) -> PyResult<Option<String>> {
    let read = |given: &Bound<'_, PyAny>| {
        let text = given.cast::<PyString>().map_err(|_| refused(name, "a text", given))?;
        // Halves of surrogate pairs have no UTF-8.
        let text = text.to_str().map_err(|_| refused(name, "a text of whole characters", given))?;
        Ok(text.to_owned())
    };
    given.map(read).transpose()
}

/// Reads which fields of a table are wanted, by their names: one, or several. Returns the table with these alone.
pub(crate) fn select(table: &Arc<Table>, given: Argument<'_, '_>) -> PyResult<Arc<Table>> {
    let Some(given) = given else { return Ok(Arc::clone(table)) };
    let names: Vec<String> = match text("select", Some(given)) {
        Ok(Some(name)) => vec![name],
        _ => given.extract().map_err(|_| refused("select", "names of fields", given))?,
    };
    let only = table.only(names.iter().map(String::as_str));
    only.map(Arc::new).map_err(|error| invalid(format!("select: {error}")))
}

/// Reads a number of things, or of a transaction.
pub(crate) fn count(name: &str, given: Argument<'_, '_>) -> PyResult<Option<u64>> {
    let read = |given: &Bound<'_, PyAny>| {
        let count = if given.is_instance_of::<PyBool>() { None } else { given.extract().ok() };
        count.ok_or_else(|| refused(name, "a whole number from 0 on", given))
    };
    given.map(read).transpose()
}

/// Reads a time that passes, in units of so many seconds.
pub(crate) fn duration(
    name: &str,
    units: &str,
    seconds: f64,
    given: Argument<'_, '_>,
) -> PyResult<Option<Duration>> {
    let read = |given: &Bound<'_, PyAny>| {
        let count = if given.is_instance_of::<PyBool>() { None } else { given.extract().ok() };
        let read = count.and_then(|count: f64| Duration::try_from_secs_f64(count * seconds).ok());
        read.ok_or_else(|| refused(name, &format!("a number of {units} from 0 on"), given))
    };
    given.map(read).transpose()
}

/// Reads a number of seconds.
pub(crate) fn timeout(given: Argument<'_, '_>) -> PyResult<Option<Duration>> {
    duration("timeout", "seconds", 1.0, given)
}
