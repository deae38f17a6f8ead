//! Errors of the library as exceptions of the package.

use annals::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Returns the exception of an error: the class of `annals.errors` that has the name of its kind.
pub(crate) fn to_python(error: &Error) -> PyErr {
    Python::attach(|py| {
        let made = MODULE.get_or_try_init(py, || Ok(py.import("annals.errors")?.unbind()));
        let made = made.and_then(|module| {
            let module = module.bind(py);
            let class = module.getattr(format!("{:?}", error.kind()).as_str());
            class.or_else(|_| module.getattr("Error"))?.call1((error.to_string(),))
        });
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Results of the library as results of Python.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or raises the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for annals::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| to_python(&error))
    }
}

/// Returns the exception of a wrong argument.
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    to_python(&Error::invalid(message))
}

/// Returns the exception of something that another thread has.
pub(crate) fn busy(message: impl Into<String>) -> PyErr {
    to_python(&Error::new(annals::ErrorKind::Busy, message))
}

/// Returns the exception of something that isn't there.
pub(crate) fn not_found(message: impl Into<String>) -> PyErr {
    to_python(&Error::new(annals::ErrorKind::NotFound, message))
}
