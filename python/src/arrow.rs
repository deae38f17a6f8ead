//! Arrow's interface for Python: streams of record batches in capsules.
#![allow(unsafe_code, reason = "a capsule is an address, and Arrow's C interface is made of them")]

use std::sync::Mutex;

use annals_arrow::Batches;
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::errors::{OrRaise as _, invalid};

/// Returns a stream of batches as a capsule. Who takes it owns it; if nobody does, the capsule's destructor drops it.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Returns the schema of batches as a capsule.
pub(crate) fn schema<'py>(
    py: Python<'py>,
    batches: &impl RecordBatchReader,
) -> PyResult<Bound<'py, PyCapsule>> {
    let made = FFI_ArrowSchema::try_from(batches.schema().as_ref());
    let made = made.map_err(annals_arrow::from_arrow).or_raise()?;
    PyCapsule::new_with_value(py, made, c"arrow_schema")
}

/// Takes a stream from an object that has one; `None` if it has none.
pub(crate) fn incoming(data: &Bound<'_, PyAny>) -> PyResult<Option<ArrowArrayStreamReader>> {
    if !data.hasattr("__arrow_c_stream__")? {
        return Ok(None);
    }
    let capsule = data.call_method0("__arrow_c_stream__")?;
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| invalid("__arrow_c_stream__ returned no capsule"))?;
    let address = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of that name holds an initialised stream, which is moved out of it: Arrow's interface for
    // Python says so. What is left in its place is a released one.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(address.cast().as_ptr()) };
    reader.map(Some).map_err(annals_arrow::from_arrow).or_raise()
}

/// Changes of one table's rows, to be taken once as an Arrow stream.
#[pyclass(module = "annals")]
pub(crate) struct Changeset(pub(crate) Mutex<Option<Batches>>);

#[pymethods]
impl Changeset {
    /// The Arrow stream: `txid`, `time`, `comment`, `kind`, `id`, and the structs `old` and `new`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let taken = self.0.lock().map_or(None, |mut batches| batches.take());
        let batches =
            taken.ok_or_else(|| invalid("the changes were taken already; ask for them again"))?;
        let stream = FFI_ArrowArrayStream::new(batches);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
