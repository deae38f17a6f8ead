//! A past state that is made when it is read, under a lazy view.

use std::fmt;
use std::ops::Range as Ids;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use annals_schema::{RowId, TableNumber, Value};

use crate::index::tree::IndexTree;
use crate::view::View;
use crate::{Error, ErrorKind, Result};

/// Knows a past state.
pub trait Past: Send + Sync + fmt::Debug {
    /// Returns the whole state.
    ///
    /// # Errors
    /// It can't be made any more: the journal or the image can't be read.
    fn whole(&self) -> Result<Arc<View>>;

    /// Returns the first row of a table in a range of ids; or that making the whole state is better.
    ///
    /// # Errors
    /// The journal or the image can't be read.
    fn row(&self, table: TableNumber, ids: &Ids<u64>) -> Result<PastRow>;
}

/// A row of a past state.
#[derive(Clone, Debug, PartialEq)]
pub enum PastRow {
    /// There was none with these ids.
    Absent,
    /// It had that id and these values, in the order of the fields.
    There(RowId, Vec<Value>),
    /// Finding out takes longer than making the whole state.
    Unknown,
}

/// The state that a lazy view shows.
#[derive(Debug)]
pub(super) struct Lazy {
    pub(super) past: Arc<dyn Past>,
    pub(super) whole: OnceLock<Arc<View>>,
    /// Why the whole state can't be made.
    pub(super) failed: OnceLock<(ErrorKind, String)>,
    /// Stands for its indexes, if the whole state can't be made.
    pub(super) unreadable: OnceLock<IndexTree>,
    /// How many rows were looked up.
    pub(super) rows: AtomicU32,
}

impl Lazy {
    /// Returns the view of the whole state.
    ///
    /// # Errors
    /// It can't be made. Another try is made only if another machine didn't answer.
    pub(super) fn whole(&self) -> Result<&View> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        if let Some((kind, message)) = self.failed.get() {
            return Err(Error::new(*kind, message.clone()));
        }
        match self.past.whole() {
            Ok(whole) => Ok(self.whole.get_or_init(|| whole)),
            Err(error) if error.is_remote() => Err(error),
            Err(error) => {
                let failed = || (error.kind(), error.to_string());
                let (kind, message) = self.failed.get_or_init(failed);
                Err(Error::new(*kind, message.clone()))
            }
        }
    }
}
