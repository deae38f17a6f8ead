//! The files of an open database, as lazy replicas read them by ranges: segments, and the image as of one root.
//!
//! Invariants
//! 1. Nothing is passed on that isn't on permanent storage.
//! 2. The secret of a file stays here: the head of a segment is made anew, with the same header, and slots that say that
//!    all of it is on permanent storage.
//! 3. The bytes of a segment don't change as long as its tag is the same; the newest one only grows.

use std::sync::Arc;

use super::places::{Part, parts};
use super::source::{FileRange, Source};
use crate::Result;
use crate::db::present::snapshot::Published;
use crate::db::replay::witness::identity;
use crate::image::{Exposed, Identity, Image, image_name};
use crate::journal::segments::{kept_name, number_in};
use crate::journal::{Cursor, Point, first_slot, head_with};
use crate::storage::{Storage, SystemClock};

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

/// Returns the number of the segment that begins with these bytes; `None` if no journal begins so.
#[must_use]
pub fn segment_number(head: &[u8]) -> Option<u64> {
    let header = head.first_chunk().and_then(crate::journal::format::Header::decode)?;
    Some(header.segment)
}

/// A file as others read it. It stays as it is while this lives.
#[derive(Debug)]
pub struct ExposedFile {
    /// The number of the segment, or of the image's root.
    pub number: u64,
    /// Its length in bytes, at this moment.
    pub len: u64,
    /// Another file, or a rewritten one, has another tag.
    pub tag: String,
    /// True if it is complete.
    pub is_sealed: bool,
    head: Vec<u8>,
    storage: Arc<dyn Storage>,
    _pinned: Option<Exposed>,
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

    /// `published` is the end of the newest segment.
    fn of_part(part: &Part, published: Point) -> Self {
        let Part { storage, head, end, is_newest, .. } = part;
        let slot = if *is_newest { Some(published) } else { head.newest_slot().map(|it| it.point) };
        Self {
            number: part.number(),
            len: *end,
            tag: format!("{:016x}", head.hash),
            is_sealed: !is_newest,
            head: head_with(
                &head.header,
                &first_slot(slot.unwrap_or_else(|| head.start()), [0; 16]),
            ),
            storage: Arc::clone(storage),
            _pinned: None,
        }
    }

    fn of_image(exposed: Exposed) -> Self {
        let number = exposed.root.number;
        Self {
            number,
            len: exposed.len,
            tag: format!("{:016x}-{number}", exposed.header),
            is_sealed: true,
            head: exposed.head.clone(),
            storage: Arc::clone(&exposed.storage),
            _pinned: Some(exposed),
        }
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
        let published = self.hard()?;
        let segments = parts(&published, None)?;
        let segments = segments.iter().map(|part| ExposedFile::of_part(part, published.point));
        let segments = segments.collect();
        Ok(ExposedFiles { end: published.point.into(), segments })
    }

    /// Returns a segment of the kept history; `None` if it isn't there.
    ///
    /// # Errors
    /// As [`expose`](Self::expose).
    pub fn expose_segment(&self, number: u64) -> Result<Option<ExposedFile>> {
        let published = self.hard()?;
        // No cursor is after the newest segment's, if it is that one.
        let since = (number == published.file.segment).then(|| published.point.into());
        let parts = parts(&published, since)?;
        let part = parts.iter().find(|part| part.number() == number);
        Ok(part.map(|part| ExposedFile::of_part(part, published.point)))
    }

    /// Returns the image as of its newest root, whose space isn't overwritten as long as this lives; `None` if there
    /// is none that can be used.
    ///
    /// # Errors
    /// `Io`, `Busy`, `Closed`.
    pub fn expose_image(&self) -> Result<Option<ExposedFile>> {
        let published = self.hard()?;
        let Published { file, .. } = &*published;
        if file.storage.has_fixed_len() {
            return Ok(None);
        }
        let identity: Identity = identity(file.head()?);
        let (directory, name) = (&file.directory, image_name(&file.journal));
        let exposed = Image::expose(directory, &name, &identity, &SystemClock)?;
        Ok(exposed.map(ExposedFile::of_image))
    }
}
