//! Continuing in another view of the same state, when a page of a view is lost.
//!
//! ```text
//! a read ─► a page is lost ─► who can rebuild the view is asked, and waits ─► the read again, there
//!                                                                   └► the deadline is over: an error
//! ```
//!
//! Invariants
//! 1. Both views show the same state; only the memory and the layout differ.
//! 2. A view is replaced at most once, so that borrows from both stay valid.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use crate::pages::refresh::Refresh;
use crate::view::View;
use crate::{Error, ErrorKind, Result};

/// Which state a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The last transaction.
    pub txid: u64,
    /// True if it is read through the present schema, not the one of that time.
    pub is_adapted: bool,
}

/// Rebuilds views.
pub trait Rescue: Send + Sync + fmt::Debug {
    /// Returns a view of the state that `lost` shows, from an older root of the image or the journal. Waits for
    /// that until a deadline.
    ///
    /// # Errors
    /// `PageLost`: it couldn't be rebuilt in time.
    fn rebuilt(&self, lost: &View, shown: Shown) -> Result<Arc<View>>;
}

/// Where a view continues if a page of it is lost.
#[derive(Default)]
pub(super) struct Successor {
    rescue: OnceLock<(Weak<dyn Rescue>, Shown)>,
    view: OnceLock<Arc<View>>,
}

impl fmt::Debug for Successor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Successor").field("is_there", &self.view.get().is_some()).finish()
    }
}

impl Clone for Successor {
    /// Makes the successor of another view, which may later show another state.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Successor {
    /// True if it is known who can rebuild the view.
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        self.rescue.get().is_some()
    }
}

impl Refresh for Successor {
    #[inline]
    fn refresh(&mut self, _: &Self) {
        if self.is_known() {
            *self = Self::default();
        }
    }
}

impl View {
    /// Sets who can rebuild the view, and which state it shows. Later calls have no effect.
    #[doc(hidden)]
    #[inline]
    pub fn rescued_by(&self, rescue: &Weak<dyn Rescue>, shown: Shown) {
        if self.pin.is_some() {
            self.successor.rescue.get_or_init(|| (Weak::clone(rescue), shown));
        }
    }

    /// True if pages of it may be in an image, and so be lost.
    #[doc(hidden)]
    #[inline]
    pub fn lies_over_image(&self) -> bool {
        self.pin.is_some()
    }

    /// Returns the view that took the place of this one, or itself.
    #[inline]
    pub(super) fn current(&self) -> &Self {
        self.successor.view.get().map_or(self, |next| next.last())
    }

    #[cold]
    fn last(&self) -> &Self {
        let mut view = self;
        while let Some(next) = view.successor.view.get() {
            view = next;
        }
        view
    }

    /// Returns the view to continue in after an error, if that is of a lost page.
    ///
    /// # Errors
    /// The error itself, or that the view couldn't be rebuilt.
    #[cold]
    #[inline(never)]
    pub(super) fn instead(&self, error: Error) -> Result<&Self> {
        if error.kind() != ErrorKind::PageLost {
            return Err(error);
        }
        if let Some(next) = self.successor.view.get() {
            return Ok(next.last());
        }
        let Some((rescue, shown)) = self.successor.rescue.get() else { return Err(error) };
        let Some(rescue) = rescue.upgrade() else {
            return Err(error.advising("its database was closed: open it again"));
        };
        let next = rescue.rebuilt(self, *shown)?;
        Ok(self.successor.view.get_or_init(|| next))
    }

    /// Reads something, in another view where a page is lost.
    #[inline]
    pub(super) fn again<'v, T>(&'v self, read: impl Fn(&'v Self) -> Result<T>) -> Result<T> {
        let mut view = self.current();
        loop {
            match read(view) {
                Err(error) => view = view.instead(error)?,
                done => return done,
            }
        }
    }
}
