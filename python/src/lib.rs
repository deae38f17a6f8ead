//! The Python package `annals`: its compiled part.
//!
//! In reading order: `errors` and `values` convert; `arrow` is the capsules of Arrow's interface for Python; `rows`,
//! `table` and `snapshot` read; `held` keeps a transaction open between calls, and `transaction` writes; `past` is
//! versions, changes and subscriptions; `sql` asks with SQL; `remote` opens URLs; `database` is the handle.

mod arrow;
mod database;
mod errors;
mod held;
mod past;
mod remote;
mod rows;
mod snapshot;
mod sql;
mod table;
mod transaction;
mod values;

#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use crate::arrow::Changeset;
    #[pymodule_export]
    use crate::database::{Database, in_memory, open};
    #[pymodule_export]
    use crate::past::{Blame, Change, Changed, Feed, Version};
    #[pymodule_export]
    use crate::rows::{Row, RowIterator, Rows};
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::sql::Answer;
    #[pymodule_export]
    use crate::table::{Index, Table};
    #[pymodule_export]
    use crate::transaction::{Savepoint, Transaction, WritableTable};
}
