//! The view that was rebuilt last for snapshots that lie over lost pages, and making one.
//!
//! A snapshot can't change. A snapshot that needs a lost page continues in another view of the same state: the
//! database's own, if that is the same, else a replayed one, like a past state.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::time::Duration;

use crate::db::past::at::{Present, Through};
use crate::db::present::snapshot::Published;
use crate::db::progress::Watch;
use crate::image::Damage;
use crate::storage::{Clock, SystemClock};
use crate::store::{Shown, View};
use crate::{Error, ErrorKind, Result};

/// The interval of polling.
const PAUSE: Duration = Duration::from_millis(1);

/// The view that was made last: many snapshots show the same state.
#[derive(Debug, Default)]
pub(in crate::db) struct Rescued(Mutex<Option<(Shown, Weak<View>)>>);

/// The inputs for making a view.
pub(in crate::db) struct Making<'m> {
    pub(in crate::db) published: Arc<Published>,
    pub(in crate::db) clock: &'m dyn Clock,
    pub(in crate::db) budget: u64,
    pub(in crate::db) damage: &'m Arc<Damage>,
    /// By the system's clock, as others that are waited for are threads.
    pub(in crate::db) deadline: Duration,
}

impl Rescued {
    /// Returns a view of a state that isn't `lost`, until the deadline: the last one made, or another.
    pub(in crate::db) fn get(
        &self,
        lost: &View,
        shown: Shown,
        making: Making<'_>,
    ) -> Result<Arc<View>> {
        let mut last = loop {
            match self.0.try_lock() {
                Ok(last) => break last,
                Err(TryLockError::Poisoned(last)) => break last.into_inner(),
                Err(TryLockError::WouldBlock) if making.is_late() => return Err(making.too_late()),
                Err(TryLockError::WouldBlock) => SystemClock.pause(PAUSE),
            }
        };
        let known = last.as_ref().filter(|(of, _)| *of == shown).and_then(|(_, it)| it.upgrade());
        if let Some(view) = known.filter(|view| !std::ptr::eq(&raw const **view, lost)) {
            return Ok(view);
        }
        let view = making.make(shown)?;
        *last = Some((shown, Arc::downgrade(&view)));
        Ok(view)
    }
}

impl Making<'_> {
    fn is_late(&self) -> bool {
        SystemClock.elapsed() >= self.deadline
    }

    fn too_late(&self) -> Error {
        too_late(&self.published)
    }

    /// Replays the journal up to the state.
    fn make(&self, shown: Shown) -> Result<Arc<View>> {
        let deadline = self.deadline;
        let watch = Watch(Arc::new(move |_| match SystemClock.elapsed() >= deadline {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }));
        let through = if shown.is_adapted { Through::Present } else { Through::Then };
        let present = Present {
            published: Arc::clone(&self.published),
            clock: self.clock,
            budget: self.budget,
            damage: Arc::clone(self.damage),
            watch: Some(watch),
        };
        present.view_of(shown.txid, through).map_err(|error| match error.kind() {
            ErrorKind::Cancelled => self.too_late(),
            _ => {
                let name = &self.published.file.name;
                not_rebuilt(format_args!("{name}: a page of the image is damaged"), error)
            }
        })
    }
}

/// Returns the error of who needs a lost page that can't be rebuilt. An I/O error stays one: of the journal, then,
/// or of all of the disk.
pub(in crate::db) fn not_rebuilt(lost: impl Display, error: Error) -> Error {
    let lost = format!("{lost}; what it held can't be rebuilt");
    match error.kind() {
        ErrorKind::Io => error.within(lost),
        _ => Error::new(ErrorKind::PageLost, format!("{lost}: {error}")),
    }
}

pub(in crate::db) fn too_late(published: &Published) -> Error {
    Error::new(
        ErrorKind::PageLost,
        format!(
            "{}: a page of the image is damaged, and the state wasn't rebuilt in time: try again from a new \
             snapshot, or allow more time (Options::rebuild_timeout); nothing is lost",
            published.file.name
        ),
    )
}
