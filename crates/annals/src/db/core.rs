//! What the threads of an open database share: the writer's side, what is published, the image.

use std::sync::{Arc, Mutex};

use super::group::Group;
use super::image::{BackfillMode, Imager};
use crate::journal::{Checkpoints, Writer, lock};
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// The tail that is worth a backfill while the database is open, in bytes: a few hundredths of a second of
/// replay.
const TAIL: u64 = 4 << 20;
/// The tail that is worth one when it is closed: a fraction of a millisecond of replay.
const TAIL_AT_CLOSE: u64 = 16 << 10;
/// A journal that is shorter gets no image when it is closed: it would be several times as long.
const FIRST_AT_CLOSE: u64 = 128 << 10;

/// What only the writer touches.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) writer: Writer,
    pub(super) store: Store,
}

/// What the threads of an open database share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) group: Group,
    pub(super) writing: Mutex<Writing>,
    pub(super) checkpoints: Arc<Checkpoints>,
    /// None where there can be no image.
    imager: Option<Arc<Imager>>,
    /// What went wrong with the image in the background.
    image_error: Mutex<Option<String>>,
}

impl Core {
    pub(super) fn new(
        group: Group,
        writing: Writing,
        checkpoints: Arc<Checkpoints>,
        imager: Option<Arc<Imager>>,
    ) -> Self {
        let (writing, image_error) = (Mutex::new(writing), Mutex::default());
        Self { group, writing, checkpoints, imager, image_error }
    }

    /// Gives what is known of the image.
    ///
    /// # Errors
    /// `Unsupported`: there can be none.
    pub(super) fn imager(&self) -> Result<&Imager> {
        self.image().ok_or_else(|| {
            let name = &self.checkpoints.name;
            Error::new(
                ErrorKind::Unsupported,
                format!("{name}: a journal on a device has no image beside it: opening replays it"),
            )
        })
    }

    /// Gives what is known of the image, if there can be one.
    #[inline]
    pub(super) fn image(&self) -> Option<&Imager> {
        self.imager.as_deref()
    }

    /// Notes what went wrong with the image in the background.
    pub(super) fn note_image_error(&self, error: &Error) {
        *lock(&self.image_error) = Some(error.to_string());
    }

    /// Gives what went wrong with the image in the background, if anything did since the last backfill.
    pub(super) fn image_error(&self) -> Option<String> {
        lock(&self.image_error).clone()
    }

    /// Forgets it.
    pub(super) fn forget_image_error(&self) {
        *lock(&self.image_error) = None;
    }

    /// Tells up to where the image stands for the journal, and how many bytes the last backfill wrote.
    fn image_state(&self) -> Option<(u64, u64)> {
        self.image().map(Imager::state)
    }

    /// Tells at which end of the journal a backfill is worth its writes.
    pub(super) fn image_due(&self) -> u64 {
        let due = |(position, wrote): (u64, u64)| position.saturating_add(TAIL.max(wrote / 4));
        self.image_state().map_or(u64::MAX, due)
    }

    /// Tells how many bytes of changes in memory alone are worth one.
    pub(super) fn unsaved_due(&self) -> usize {
        self.image().map_or(usize::MAX, Imager::unsaved_due)
    }

    /// Tells at which end of the journal a backfill is tried again that has failed.
    pub(super) fn image_due_later(&self) -> u64 {
        let end = self.checkpoints.acknowledged().position;
        let tail = end.saturating_sub(self.image_state().map_or(end, |(position, _)| position));
        end.saturating_add(TAIL.max(tail))
    }

    /// Brings the image forward if replaying the tail would make the next opening noticeably longer.
    pub(super) fn backfill_at_close(&self) -> Result<()> {
        let Some((position, _)) = self.image_state() else { return Ok(()) };
        match self.is_backfill_worth_it_at_close(position) {
            true => self.backfill(BackfillMode::Passive)?,
            false => return Ok(()),
        };
        self.imager()?.shrink()
    }

    /// Tells whether an image that stands at this position, 0 if there is none, would make the next opening
    /// noticeably longer.
    pub(super) fn is_backfill_worth_it_at_close(&self, position: u64) -> bool {
        let end = self.checkpoints.acknowledged().position;
        let worth = if position == 0 { FIRST_AT_CLOSE } else { TAIL_AT_CLOSE };
        end.saturating_sub(position) >= worth
    }
}
