//! The history of a row with the types of its table.

use std::marker::PhantomData;

use annals_schema::{Timestamp, Txid};

use super::{Change, Versioned};
use crate::Result;

/// One version of a row: the change by one transaction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Version<C> {
    /// The number of the transaction.
    pub txid: Txid,
    /// Its time.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// The change that it made to the row.
    pub change: C,
    /// True if it is the state at the beginning of the kept history: the row may be older, but its earlier changes
    /// were forgotten.
    pub is_beginning: bool,
}

impl<R: Versioned> Version<Change<R>> {
    /// Adds the table's types to a version of one of its rows.
    ///
    /// # Errors
    /// As [`Change::new`].
    pub fn new(version: crate::Version) -> Result<Self> {
        let crate::Version { txid, time, comments, change, is_beginning } = version;
        Ok(Self { txid, time, comments, change: Change::new(change)?, is_beginning })
    }
}

/// The history of a row, the oldest version first: an iterator, see [`History`](crate::History).
///
/// ```
/// annals::schema!("tutorial.schema");
/// use tutorial::city;
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
/// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lile" })?))?;
/// db.write(|tx| {
///     tx.comment("a typo")?;
///     tx.edit(lille)?.set_name("Lille")?;
///     Ok(())
/// })?;
///
/// let mut names = Vec::new();
/// for version in db.history_of(lille)? {
///     names.extend(version?.change.after.map(|city| city.name));
/// }
/// assert_eq!(names, ["Lile", "Lille"]);
///
/// let newest = db.history_of(lille)?.newest(1)?;
/// assert_eq!(newest[0].comments, ["a typo"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it reads only when it is stepped"]
pub struct History<R> {
    history: crate::History,
    kind: PhantomData<fn() -> R>,
}

impl<R: Versioned> History<R> {
    /// Adds the table's types to the history of one of its rows.
    pub const fn new(history: crate::History) -> Self {
        Self { history, kind: PhantomData }
    }

    /// Returns the `most` newest versions, the newest first.
    ///
    /// Cost: as [`History::newest`](crate::History::newest).
    ///
    /// # Errors
    /// As there; and as [`Change::new`].
    pub fn newest(self, most: usize) -> Result<Vec<Version<Change<R>>>> {
        self.history.newest(most)?.into_iter().map(Version::new).collect()
    }

    /// Returns the same history without the types of its schema. That history also reports how much of the journal and
    /// the history index was read.
    #[must_use]
    pub const fn as_dynamic(&self) -> &crate::History {
        &self.history
    }
}

impl<R: Versioned> Iterator for History<R> {
    type Item = Result<Version<Change<R>>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.history.next().map(|version| version.and_then(Version::new))
    }
}
