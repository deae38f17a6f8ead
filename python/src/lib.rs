//! The Python package `annals`: its compiled part.
//!
//! In reading order: `errors`, `values` and `arguments` convert; `arrow` is the capsules of Arrow's interface for Python; `wait`
//! handles signals meanwhile; `source` is where rows are read, by `rows`, `table`, `index` and `snapshot`, which `html`
//! shows; `turn` says whose turn it is to write, `held` keeps a transaction open between calls, and `transaction`,
//! `writable` and `put` write; `past` is versions, changes and subscriptions; `sql` asks with SQL; `remote` opens URLs;
//! `files` copies and checks; `database` is the handle.

mod arguments;
mod arrow;
mod database;
mod errors;
mod files;
mod held;
mod html;
mod index;
mod past;
mod put;
mod remote;
mod rows;
mod snapshot;
mod source;
mod sql;
mod table;
mod transaction;
mod turn;
mod values;
mod wait;
mod writable;

#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::arrow::Changeset;
    #[pymodule_export]
    use crate::database::{Database, in_memory, open};
    #[pymodule_export]
    use crate::files::check;
    #[pymodule_export]
    use crate::index::Index;
    #[pymodule_export]
    use crate::past::Feed;
    #[pymodule_export]
    use crate::rows::{Row, RowIterator, Rows, unpickled};
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::sql::{Answer, unpickled as unpickled_answer};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::transaction::{Savepoint, Transaction};
    #[pymodule_export]
    use crate::writable::WritableTable;
}
