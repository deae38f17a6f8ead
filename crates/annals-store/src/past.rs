//! A past state that is made when it is read, under a lazy view.

use std::fmt;
use std::ops::Range as Ids;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use annals_schema::{RowId, TableNumber, Value};

use crate::image::{Source, Stored};
use crate::pages::keep::{Keep, Piece};
use crate::pages::pager::Pager;
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
    pub(super) present: Arc<View>,
    pub(super) whole: OnceLock<Arc<View>>,
    /// How many rows were looked up.
    pub(super) rows: AtomicU32,
}

impl Lazy {
    /// Returns the view of the whole state.
    pub(super) fn whole(&self) -> &View {
        self.whole.get_or_init(|| self.past.whole().unwrap_or_else(|error| self.failing(error)))
    }

    /// Returns a view with the tables of the schema, of which every read is an error.
    #[cold]
    fn failing(&self, error: Error) -> Arc<View> {
        let kind = match error.kind() {
            ErrorKind::PageLost => ErrorKind::Corrupt,
            kind => kind,
        };
        let pager = Arc::new(Pager::new(Arc::new(Failing(kind, error.to_string())), 0, false));
        let view = self.present.save(&pager, &mut Nowhere);
        let view = view.and_then(|saved| View::load(&saved.metadata, &saved.roots, &pager));
        Arc::new(
            view.unwrap_or_else(|_| View {
                schema: Arc::clone(&self.present.schema),
                ..View::new()
            }),
        )
    }
}

/// Returns an error for every read.
#[derive(Debug)]
struct Failing(ErrorKind, String);

impl Source for Failing {
    fn read(&self, _: &Stored, _: &mut [u8]) -> Result<()> {
        Err(Error::new(self.0, self.1.clone()))
    }

    fn holds(&self, _: &Stored) -> Result<()> {
        Ok(())
    }
}

/// Keeps nothing.
#[derive(Debug)]
struct Nowhere;

impl Keep for Nowhere {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        let len = u32::try_from(piece.as_ref().len()).unwrap_or(u32::MAX);
        Ok(Stored { len: len.max(1), ..Stored::default() })
    }

    fn leave(&mut self, _: Stored) {}
}
