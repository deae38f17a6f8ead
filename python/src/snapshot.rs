//! Snapshots.

use std::sync::Arc;

use annals::Schema;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use crate::errors::not_found;
use crate::index::listed;
use crate::table::Table;

/// The database as of one transaction; it stays as it is. Its tables are attributes.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Snapshot(pub(crate) annals::Snapshot);

impl Snapshot {
    pub(crate) fn table(&self, name: &str) -> Option<Table> {
        let table = self.0.schema().table_named(name)?;
        Some(Table { snapshot: self.0.clone(), table: Arc::new(table.clone()) })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.schema().tables().iter().map(|table| table.name.clone()).collect()
    }

    pub(crate) fn missing(&self, name: &str) -> String {
        missing(self.0.schema(), name)
    }
}

/// Returns the message that there is no such table.
pub(crate) fn missing(schema: &Schema, name: &str) -> String {
    let names: Vec<&str> = schema.tables().iter().map(|table| table.name.as_str()).collect();
    format!("there is no table {name:?}; the tables are: {}", names.join(", "))
}

#[pymethods]
impl Snapshot {
    /// The number of the last transaction in it.
    #[getter]
    fn txid(&self) -> u64 {
        self.0.txid().0
    }

    /// The names of the tables.
    #[getter]
    fn tables(&self) -> Vec<String> {
        self.names()
    }

    /// The schema, in the schema language.
    #[getter]
    fn schema(&self) -> String {
        let lines = self.0.schema().lines();
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn __getattr__(&self, name: &str) -> PyResult<Table> {
        self.table(name).ok_or_else(|| {
            PyAttributeError::new_err(match name {
                "sql" => {
                    "a snapshot has no `sql`: db.sql(\"SELECT .. FROM T_at(MOMENT)\") asks for the past of table T".to_owned()
                }
                _ => self.missing(name),
            })
        })
    }

    fn __getitem__(&self, name: &str) -> PyResult<Table> {
        self.table(name).ok_or_else(|| not_found(self.missing(name)))
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        listed(slf, slf.get().names())
    }

    fn __repr__(&self) -> String {
        format!("<snapshot of transaction {}>", self.0.txid().0)
    }
}
