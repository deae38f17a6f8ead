//! The files of a journal, from the beginning of the kept history up to a commit.

use std::sync::Arc;

use crate::db::follow::segments::{Past, Since};
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::Published;
use crate::journal::format::Header;
use crate::journal::segments::Kept;
use crate::journal::{Frame, FrameReader, Head, Point, Singles};
use crate::storage::Storage;
use crate::{Error, Result};

/// All files of a journal that are left, up to the end of a commit in the last. None is removed meanwhile.
#[derive(Debug)]
pub(in crate::db) struct Files {
    past: Past,
    pub(in crate::db) file: Arc<JournalFile>,
    head: Head,
    /// The end in the last file.
    pub(in crate::db) end: Point,
}

/// One of them.
struct SegmentFile<'f> {
    storage: &'f dyn Storage,
    shown: &'f str,
    header: &'f Header,
    /// The hash of the header.
    hash: u64,
    /// The end up to which it is read.
    len: u64,
    /// The one after it.
    next: Option<(&'f Header, Point)>,
    kept: Option<&'f Kept>,
}

/// A frame, and whether it only repeats the state with which its segment begins.
pub(in crate::db) struct Seen<'f> {
    pub(in crate::db) frame: &'f Frame<'f>,
    pub(in crate::db) segment: u64,
    pub(in crate::db) is_state: bool,
}

impl Files {
    /// Opens the files up to the published state.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(in crate::db) fn open(published: &Published) -> Result<Self> {
        let file = Arc::clone(&published.file);
        let head = file.head()?.clone();
        let past = Past::whole(&*file.directory, &file.journal, &head.header)?;
        Ok(Self { past, file, head, end: published.point })
    }

    /// Returns the segment in which the files end.
    pub(in crate::db) const fn segment(&self) -> u64 {
        self.head.header.segment
    }

    /// Returns the beginning of the kept history.
    pub(in crate::db) fn first(&self) -> Since {
        let head = self.past.segments().first().map_or(&self.head, |kept| &kept.head);
        Since { segment: head.header.segment, point: head.start() }
    }

    fn heads(&self) -> impl Iterator<Item = &Head> {
        self.past.segments().iter().map(|kept| &kept.head).chain([&self.head])
    }

    fn part(&self, segment: u64) -> Result<SegmentFile<'_>> {
        let kept = self.past.segments().iter().find(|kept| kept.head.header.segment == segment);
        let next = self.heads().find(|head| head.header.segment == segment + 1);
        let next = next.map(|head| (&head.header, head.start()));
        match kept {
            Some(kept) => Ok(SegmentFile {
                storage: &*kept.storage,
                shown: &kept.shown,
                header: &kept.head.header,
                hash: kept.head.hash,
                len: kept.len,
                next,
                kept: Some(kept),
            }),
            None if segment == self.segment() => Ok(SegmentFile {
                storage: &*self.file.storage,
                shown: &self.file.name,
                header: &self.head.header,
                hash: self.head.hash,
                len: self.end.position,
                next: None,
                kept: None,
            }),
            None => Err(Error::corrupt(format!(
                "{}: its segment {segment} is not among its files",
                self.file.name
            ))),
        }
    }

    /// Reads frames from a position on, until `most` bytes were read or a segment ends; returns the position where it
    /// continues, or nothing at the end.
    ///
    /// # Errors
    /// `Corrupt` if a frame doesn't verify, or the position isn't in this history; `Unsupported`; `Io`; and errors of
    /// `visit`.
    pub(in crate::db) fn read(
        &self,
        since: Since,
        most: u64,
        visit: &mut dyn FnMut(&Seen<'_>) -> Result<()>,
    ) -> Result<Option<Since>> {
        let part = self.part(since.segment)?;
        let io = |error| Error::io(format!("{}: can't read the journal", part.shown), error);
        let mut reader = FrameReader::new(part.storage, part.hash, since.point, part.len);
        while let Some(frame) = reader.next().map_err(io)? {
            if let (true, Some(kept), Some((next, start))) =
                (frame.header.is_seal(), part.kept, part.next)
            {
                kept.check_seal(&frame, next)?;
                return Ok(Some(Since { segment: next.segment, point: start }));
            }
            part.see(&frame, visit)?;
            let (read, is_inside) = (frame.end - since.point.position, frame.header.has_more());
            let point = reader.point();
            if read >= most && !is_inside && (part.kept.is_some() || point != self.end) {
                return Ok(Some(Since { segment: since.segment, point }));
            }
        }
        match part.kept.is_none() && reader.point() == self.end {
            true => Ok(None),
            false => Err(part.damaged(reader.position())),
        }
    }

    /// Returns a segment for reading single frames of it.
    ///
    /// # Errors
    /// `Corrupt`: it isn't among the files.
    pub(in crate::db) fn singles(&self, segment: u64) -> Result<Singles<'_>> {
        let SegmentFile { storage, hash, len: position, .. } = self.part(segment)?;
        Ok(Singles::new(storage, hash, Point { position, ..self.end }))
    }

    /// Returns a segment, and the hash of its header.
    ///
    /// # Errors
    /// As [`Self::singles`].
    pub(in crate::db) fn source(&self, segment: u64) -> Result<(&dyn Storage, u64)> {
        let SegmentFile { storage, hash, .. } = self.part(segment)?;
        Ok((storage, hash))
    }

    /// Returns the name of a segment in messages.
    ///
    /// # Errors
    /// As [`Self::singles`].
    pub(in crate::db) fn shown_of(&self, segment: u64) -> Result<&str> {
        Ok(self.part(segment)?.shown)
    }
}

impl SegmentFile<'_> {
    fn see(&self, frame: &Frame<'_>, visit: &mut dyn FnMut(&Seen<'_>) -> Result<()>) -> Result<()> {
        frame.header.check_known(self.shown)?;
        let is_state =
            self.header.begins_with_state() && frame.header.txid == self.header.first_txid;
        visit(&Seen { frame, segment: self.header.segment, is_state })
            .map_err(|error| error.within(self.shown))
    }

    #[cold]
    fn damaged(&self, at: u64) -> Error {
        Error::corrupt(format!(
            "{}: from position {at} on it doesn't verify, though transactions were committed there: check it with \
             `annals check`, and restore it from a backup",
            self.shown
        ))
    }
}
