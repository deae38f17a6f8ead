//! Checks that a program registers: each commit must pass them all.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::db::write::changed::RowChange;
use crate::db::write::rows::row_change;
use crate::db::write::touched::Touched;
use crate::journal::lock;
use crate::store::{Store, View};
use crate::{Error, ErrorKind, Result};

/// The result of a check: an error of any kind refuses the commit.
pub type Checked = std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;

type Check = Box<dyn Fn(&Proposed<'_>) -> Checked + Send + Sync>;

/// The checks of a database, in the order in which they were registered.
#[derive(Default)]
pub(in crate::db) struct Checks {
    all: Mutex<Vec<(String, Check)>>,
    is_any: AtomicBool,
}

impl Checks {
    /// Returns where a transaction notes the rows that it touches; `None` if nothing is checked.
    pub(in crate::db) fn watch(&self) -> Option<Touched> {
        self.is_any.load(Ordering::Relaxed).then(Touched::default)
    }

    /// Adds a check. The caller holds the writer, so that no transaction is open.
    pub(in crate::db) fn add(&self, name: &str, check: Check) -> Result<()> {
        let mut all = lock(&self.all);
        if all.iter().any(|(other, _)| other == name) {
            return Err(Error::invalid(format!(
                "there is a check `{name}` already: give this one another name"
            )));
        }
        all.push((name.to_owned(), check));
        self.is_any.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Runs all checks on a transaction that is about to be committed, after those of the schema.
    pub(in crate::db) fn pass(&self, store: &Store, mut touched: Touched) -> Result<()> {
        store.check_constraints()?;
        let (before, after) = (&**store.published(), store.view());
        touched.merge();
        let proposed = Proposed { touched, before, after };
        let all = lock(&self.all);
        all.iter()
            .try_for_each(|(name, check)| check(&proposed).map_err(|error| refused(name, error)))
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(lock(&self.all).iter().map(|(name, _)| name)).finish()
    }
}

/// Returns the error of a commit that a check refused. An error of the database itself keeps its kind.
#[cold]
fn refused(name: &str, error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error.within(format!("check `{name}`, the transaction is rolled back")),
        Err(error) => Error::with_source(
            ErrorKind::Refused,
            format!("check `{name}` refuses the commit, the transaction is rolled back"),
            std::io::Error::other(error),
        ),
    }
}

/// A transaction that is about to be committed, as a [check](crate::Database::check_commits) sees it.
pub struct Proposed<'a> {
    /// Each row is in one of its runs.
    touched: Touched,
    before: &'a View,
    after: &'a View,
}

impl fmt::Debug for Proposed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proposed").finish_non_exhaustive()
    }
}

impl Proposed<'_> {
    /// Returns the rows that differ between the states before and after the transaction, each once, by table and id.
    ///
    /// Rows of a table that it drops are left out, and so are rows that differ only by a field that it adds.
    ///
    /// Cost: reads each row that the transaction touched, before and after it.
    pub fn changes(&self) -> impl Iterator<Item = Result<RowChange>> + '_ {
        let change = |key| row_change(self.before, self.after, key).transpose();
        self.touched.rows().filter_map(change)
    }

    /// Returns the state before the transaction.
    #[must_use]
    pub const fn before(&self) -> &View {
        self.before
    }

    /// Returns the state after it.
    #[must_use]
    pub const fn after(&self) -> &View {
        self.after
    }
}
