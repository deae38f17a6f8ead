//! An archive as a source of ranges: the files of a journal, put together from its objects, of which only parts are read.

use std::ops::Range as Bytes;

use annals::{Error, ErrorKind, Result};
use annals_journal::format::FRAMES_AT;

use super::bucket::Wanted;
use super::manifest::{Manifest, damaged};
use super::pull::Archive;
use super::segments::{Segment, segments};
use crate::Ranges;
use crate::frames::head_up_to;
use crate::lazy::{Contents, Object, Piece};

fn path(segment: &Segment<'_>) -> Object {
    let path = format!("segments/{}", segment.start.number);
    Object { path, len: segment.len, tag: Some(format!("{:016x}", segment.start.hash)) }
}

/// Returns the bytes of a segment that no range has.
fn head(segment: &Segment<'_>) -> Vec<u8> {
    head_up_to(&segment.start.header, segment.position, segment.end).unwrap_or_default()
}

fn place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Archive {
    fn segments_of<'m>(&self, manifest: &'m Manifest) -> Result<Vec<Segment<'m>>> {
        segments(manifest).filter(|segments| !segments.is_empty()).ok_or_else(|| {
            let message = format!(
                "{}: its manifest doesn't say where segments begin: `annals restore` or `annals clone` it",
                self.bucket().name()
            );
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    /// Reads a part of a segment; `None` if an object isn't there any more.
    fn read_segment(&self, segment: &Segment<'_>, bytes: &Bytes<u64>) -> Result<Option<Vec<u8>>> {
        let mut read = Vec::new();
        if bytes.start < FRAMES_AT {
            let head = head(segment);
            let until = place(bytes.end).min(head.len());
            read.extend_from_slice(head.get(place(bytes.start)..until).unwrap_or_default());
        }
        let mut wanted = Vec::new();
        for part in &segment.parts {
            let from = bytes.start.max(part.from);
            let to = bytes.end.min(part.from + part.len);
            if from < to {
                let at = |position: u64| position - part.from + part.skipped;
                wanted.push(Wanted { name: &part.range.name, range: Some(at(from)..at(to)) });
            }
        }
        for piece in self.bucket().get_parts(&wanted)? {
            let Some(piece) = piece else { return Ok(None) };
            read.extend_from_slice(&piece);
        }
        Ok(Some(read))
    }
}

impl Ranges for Archive {
    fn place(&self) -> String {
        self.bucket().name().to_owned()
    }

    fn look(&self) -> Result<Contents> {
        let manifest = self.manifest()?;
        if manifest.ranges.is_empty() {
            let message = format!("{}: the archive is empty", self.bucket().name());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let segments = self.segments_of(&manifest)?;
        let (newest, kept) = segments.split_last().ok_or_else(|| Error::invalid("no segment"))?;
        let image = manifest.image.as_ref().map(|image| Object {
            path: image.name.clone(),
            len: image.bytes,
            tag: Some(image.tag.clone()),
        });
        Ok(Contents {
            newest: path(newest),
            image,
            kept: kept.iter().map(|segment| (segment.start.number, path(segment))).collect(),
            end: Some(newest.end),
        })
    }

    fn read(&self, object: &Object, bytes: Bytes<u64>) -> Result<Piece> {
        if !object.path.starts_with("segments/") {
            let read = self.read_image(&object.path, &bytes)?;
            return Ok(read.map_or(Piece::Replaced, Piece::Bytes));
        }
        let known = self.known();
        let mut manifest = match known {
            Some(manifest) => manifest,
            None => self.manifest()?,
        };
        for is_new in [false, true] {
            let segments = self.segments_of(&manifest)?;
            let segment = segments.iter().find(|segment| path(segment).tag == object.tag);
            if let Some(segment) = segment.filter(|segment| bytes.end <= segment.len) {
                if let Some(read) = self.read_segment(segment, &bytes)? {
                    return Ok(Piece::Bytes(read));
                }
                if is_new {
                    let range = segment.parts.first().map(|part| part.range);
                    return range.map_or(Ok(Piece::Replaced), |it| Err(damaged(self.bucket(), it)));
                }
            } else if is_new {
                break;
            }
            // Its ranges may have been joined since, or there is another history.
            manifest = self.manifest()?;
        }
        Ok(Piece::Replaced)
    }
}
