//! The ranges of an archive as the files of a journal: which bytes of which object are at which place of which segment.

use annals::{Cursor, Txid};
use annals_journal::format::FRAMES_AT;

use super::manifest::{Manifest, Range};
use crate::frames::SegmentStart;

/// A segment of an archived journal.
#[derive(Debug)]
pub(super) struct Segment<'m> {
    pub(super) start: SegmentStart,
    /// Where its bytes are, after the head.
    pub(super) parts: Vec<Part<'m>>,
    /// The length that its file has.
    pub(super) len: u64,
    /// Where its last transaction ends, without the seal.
    pub(super) position: u64,
    /// The cursor there.
    pub(super) end: Cursor,
    /// The place of the range that it begins in.
    pub(super) range: usize,
}

/// Bytes of a segment in one object.
#[derive(Debug)]
pub(super) struct Part<'m> {
    /// Their position in the segment.
    pub(super) from: u64,
    pub(super) len: u64,
    pub(super) range: &'m Range,
    /// How many bytes of the object are before them.
    pub(super) skipped: u64,
}

/// Returns the segments of an archive, the oldest first; `None` if its manifest doesn't say where they begin.
pub(super) fn segments(manifest: &Manifest) -> Option<Vec<Segment<'_>>> {
    let mut segments: Vec<Segment<'_>> = Vec::new();
    for (place, range) in manifest.ranges.iter().enumerate() {
        let mut skipped = 0;
        if let Some(begins) = &range.begins {
            if let Some(before) = segments.last_mut() {
                before.parts.push(Part { from: before.len, len: begins.seal, range, skipped: 0 });
                before.len += begins.seal;
            }
            let start = range.start()?;
            let end = Cursor { txid: Txid(start.first_txid.saturating_sub(1)), chain: start.hash };
            let (parts, len, position) = (Vec::new(), FRAMES_AT, FRAMES_AT);
            segments.push(Segment { start, parts, len, position, end, range: place });
            skipped = begins.before;
        } else if range.is_seal {
            return None;
        }
        let segment = segments.last_mut()?;
        let len = range.bytes.checked_sub(skipped)?;
        if len > 0 {
            segment.parts.push(Part { from: segment.len, len, range, skipped });
            segment.len += len;
            (segment.position, segment.end) = (segment.len, range.next.0);
        }
    }
    Some(segments)
}
