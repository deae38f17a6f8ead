//! The files of an open database, as lazy replicas read them by ranges: segments, and the image as of one root.
//!
//! Invariants
//! 1. Nothing is passed on that isn't on permanent storage.
//! 2. The secret of a file stays here: the head of a segment is made anew, with the same header. The slots of the newest
//!    one say nothing, since its bytes must not change: who reads it knows its end from elsewhere ([`head_up_to`]).
//! 3. The bytes of a segment don't change as long as its tag is the same; the newest one only grows.

use std::sync::Arc;

use annals::internals::{JournalPart, expose_image, files_of};
use annals::{Cursor, Point, Result, Txid};
use annals_journal::format::Header;
use annals_journal::segments::{kept_name, number_in};
use annals_journal::{first_slot, head_with};
use annals_storage::Storage;
use annals_storage::sync::lock;
use annals_store::image::{Exposed, ExposedPin, image_name};

use super::places::number;
use super::source::{FileRange, Source};

/// Which file of a journal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JournalFileKind {
    /// The newest segment, which has the journal's name.
    Newest,
    /// A kept segment, by its number.
    Kept(u64),
    /// The image.
    Image,
}

impl JournalFileKind {
    /// Returns which file of a journal has a name; `None` if none has.
    #[must_use]
    pub fn of(name: &str, journal: &str) -> Option<Self> {
        match name {
            _ if name == journal => Some(Self::Newest),
            _ if name == image_name(journal) => Some(Self::Image),
            _ => number_in(name, journal).map(Self::Kept),
        }
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(self, journal: &str) -> String {
        match self {
            Self::Newest => journal.to_owned(),
            Self::Kept(number) => kept_name(journal, number),
            Self::Image => image_name(journal),
        }
    }
}

/// Returns the head of a segment with this one that ends at a position, with a cursor, all of it on permanent storage;
/// `None` if it is none.
pub(crate) fn head_up_to(head: &[u8], position: u64, end: Cursor) -> Option<Vec<u8>> {
    let header = head.first_chunk().and_then(Header::decode)?;
    let Cursor { txid, chain } = end;
    Some(head_with(&header, &first_slot(Point { position, txid, chain }, [0; 16])))
}

/// A file as others read it. It stays as it is as long as it [is kept](Self::is_kept).
#[derive(Debug)]
pub struct ExposedFile {
    /// The number of the segment, or of the image's root.
    pub number: u64,
    /// The last transaction in an image; of a segment, its first.
    pub txid: Txid,
    /// Its length in bytes, at this moment.
    pub len: u64,
    /// Another file, or a rewritten one, has another tag.
    pub tag: String,
    /// True if it is complete.
    pub is_sealed: bool,
    head: Vec<u8>,
    storage: Arc<dyn Storage>,
    pin: Option<Arc<ExposedPin>>,
}

impl ExposedFile {
    /// Returns the bytes in a range that is inside the file: those of the head, and where the others are.
    #[must_use]
    pub fn range(&self, from: u64, to: u64) -> (Vec<u8>, Option<FileRange>) {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.head.len());
        let head = self.head.get(place(from)..place(to)).unwrap_or_default().to_vec();
        let from = from.max(self.head.len() as u64);
        let rest = FileRange { storage: Arc::clone(&self.storage), from, to };
        (head, Some(rest).filter(|rest| rest.from < rest.to))
    }

    /// True if its bytes don't change: the root of an image is pinned until this is dropped, or until the database can't
    /// wait any longer, since it continues in another segment.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.pin.as_ref().is_none_or(|pin| lock(pin).is_some())
    }

    fn of_part(part: &JournalPart) -> Self {
        let JournalPart { storage, head, end, is_newest, .. } = part;
        let slot = head.newest_slot().filter(|_| !is_newest).map(|slot| slot.point);
        Self {
            number: number(part),
            txid: Txid(head.header.first_txid),
            len: *end,
            tag: format!("{:016x}", head.hash),
            is_sealed: !is_newest,
            head: head_with(
                &head.header,
                &first_slot(slot.unwrap_or_else(|| head.start()), [0; 16]),
            ),
            storage: Arc::clone(storage),
            pin: None,
        }
    }

    fn of_image(exposed: Exposed) -> Self {
        let Exposed { root, header, head, storage, len, pin } = exposed;
        let (number, txid, is_sealed) = (root.number, root.point.txid, true);
        let (tag, pin) = (format!("{header:016x}-{number}"), Some(pin));
        Self { number, txid, len, tag, is_sealed, head, storage, pin }
    }
}

/// The files of a journal at a moment.
#[derive(Debug)]
pub struct ExposedFiles {
    /// The last transaction in them.
    pub end: Cursor,
    /// The segments of the kept history, the oldest first.
    pub segments: Vec<ExposedFile>,
}

impl Source {
    /// Returns the files of the kept history up to the last transaction.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `Closed`.
    pub fn expose(&self) -> Result<ExposedFiles> {
        let state = self.hard()?;
        let segments = files_of(&state, None)?.iter().map(ExposedFile::of_part).collect();
        Ok(ExposedFiles { end: state.point().into(), segments })
    }

    /// Returns a segment of the kept history; `None` if it isn't there.
    ///
    /// # Errors
    /// As [`expose`](Self::expose).
    pub fn expose_segment(&self, segment: u64) -> Result<Option<ExposedFile>> {
        let state = self.hard()?;
        // No cursor is after the newest segment's, if it is that one.
        let mut parts = files_of(&state, Some(state.point().into()))?;
        if parts.iter().all(|part| number(part) != segment) {
            parts = files_of(&state, None)?;
        }
        Ok(parts.iter().find(|part| number(part) == segment).map(ExposedFile::of_part))
    }

    /// Returns the image as of its newest root, whose space isn't overwritten as long as it [is
    /// kept](ExposedFile::is_kept); `None` if there is none that can be used.
    ///
    /// # Errors
    /// `Io`, `Busy`, `Closed`.
    pub fn expose_image(&self) -> Result<Option<ExposedFile>> {
        Ok(expose_image(&self.hard()?)?.map(ExposedFile::of_image))
    }
}
