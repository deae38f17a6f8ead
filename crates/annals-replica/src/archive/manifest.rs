//! The list of what an archive holds, and its numbers.

use annals::{Cursor, Error, Result};
use annals_storage::bytes::hash;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::bucket::Bucket;
use crate::frames::{SegmentStart, last_clock_time};

/// The version of this list. A reader refuses a newer one.
const FORMAT: u32 = 1;

/// What an archive holds, as of one manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub(super) format: u32,
    /// Its number: one more than that of the manifest before it.
    pub number: u64,
    /// How many uploaders there were, this one included.
    pub epoch: u64,
    /// A random name of the uploader.
    pub writer: String,
    /// The id of the journal.
    pub journal: String,
    /// When it was made, RFC 3339.
    pub time: String,
    /// How often the history was written again, by erasures, since the archive was begun; the first has 1.
    #[serde(default = "first")]
    pub generation: u64,
    /// Ranges of the journal, without a gap, the oldest first.
    pub ranges: Vec<Range>,
    /// The newest state, as pages that lazy readers fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageEntry>,
    /// The ranges of the next generation, until they are complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) building: Option<Building>,
    /// Objects that are in no list any more, with the number of the manifest that left them out.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

const fn first() -> u64 {
    1
}

/// The next generation, as far as it was uploaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Building {
    pub(super) generation: u64,
    pub(super) ranges: Vec<Range>,
}

/// The image of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageEntry {
    /// The name of the object with the list of its chunks.
    pub name: String,
    /// XXH3-64 of that object.
    pub hash: String,
    /// Which root of which image file it is.
    pub tag: String,
    /// The transaction of its state.
    pub txid: u64,
    /// How many bytes the image has.
    pub bytes: u64,
    /// How many bytes of the journal the archive had then.
    pub journal: u64,
}

/// A range of a journal: whole transactions, or the border of two segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The name of its object.
    pub name: String,
    /// The cursor before it; `None`: it begins with the header of the oldest segment.
    pub after: Option<Text>,
    /// The cursor after it.
    pub next: Text,
    /// How many bytes it has.
    pub bytes: u64,
    /// XXH3-64 of them, as 16 hexadecimal digits.
    pub hash: String,
    /// True if it is the seal of a segment, and the state that the next one begins with, if it does.
    #[serde(default)]
    pub is_seal: bool,
    /// The segment that begins in it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<Begins>,
    /// When its last transaction was committed by the clock of who wrote it, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
}

/// A segment that begins in a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    /// Its header, in hexadecimal digits.
    pub header: String,
    /// How many of the range's bytes end the segment before it.
    pub seal: u64,
    /// How many of the range's bytes are before its first frame.
    pub before: u64,
}

/// A cursor, as its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text(pub Cursor);

impl Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// An object that is in no list any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// The manifest that left it out.
    pub by: u64,
    /// True if it is removed without waiting for readers: it holds what was erased.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_once: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A manifest with a hash over its text.
#[derive(Serialize, Deserialize)]
struct Sealed<'m> {
    #[serde(borrow)]
    manifest: &'m RawValue,
    hash: String,
}

pub(super) fn hex(bytes: &[u8]) -> String {
    format!("{:016x}", hash(bytes))
}

/// Returns the folder of a generation's objects.
pub(super) fn folder(of: &str, generation: u64) -> String {
    match generation {
        1 => of.to_owned(),
        generation => format!("{of}-{generation}"),
    }
}

/// Bytes of a journal between two cursors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    pub(super) generation: u64,
    pub(super) after: Option<Cursor>,
    pub(super) next: Cursor,
    pub(super) is_seal: bool,
}

impl Range {
    /// Describes bytes of a journal.
    pub(super) fn of(between: Between, bytes: &[u8]) -> Self {
        let Between { generation, after, next, is_seal } = between;
        let first = after.map_or(0, |after| after.txid.0);
        let seal = if is_seal { "-seal" } else { "" };
        let from = after.map_or(0, |after| after.chain);
        let folder = folder("frames", generation);
        let name = format!(
            "{folder}/{first:020}-{:020}-{from:016x}-{:016x}{seal}",
            next.txid.0, next.chain
        );
        let begins = match after.is_none() || is_seal {
            true => SegmentStart::of(bytes, is_seal).map(|start| Begins {
                header: start.header.iter().map(|byte| format!("{byte:02x}")).collect(),
                seal: start.seal,
                before: start.before,
            }),
            false => None,
        };
        let frames = begins.as_ref().map_or(0, |begins: &Begins| begins.before);
        let frames = usize::try_from(frames).ok().and_then(|at| bytes.get(at..));
        let time = frames.and_then(last_clock_time);
        let (after, next, len) = (after.map(Text), Text(next), bytes.len() as u64);
        Self { name, after, next, bytes: len, hash: hex(bytes), is_seal, begins, time }
    }

    /// Returns the segment that begins in it, if one does.
    pub(super) fn start(&self) -> Option<SegmentStart> {
        let text = self.begins.as_ref()?.header.as_bytes();
        let (pairs, rest) = text.as_chunks::<2>();
        let one = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let header: Option<Vec<u8>> = pairs.iter().map(one).collect();
        SegmentStart::of_header(&header.filter(|_| rest.is_empty())?)
    }

    /// True if these are its bytes.
    #[must_use]
    pub fn is(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes && hex(bytes) == self.hash
    }
}

/// Returns the error that an object isn't what the manifest says.
pub(super) fn damaged(bucket: &Bucket, range: &Range) -> Error {
    Error::corrupt(format!(
        "{}: {} is missing or damaged: it should be {} bytes with the hash {}",
        bucket.name(),
        range.name,
        range.bytes,
        range.hash
    ))
}

impl Manifest {
    /// Begins the list of a journal.
    pub(super) fn first(journal: String, writer: String) -> Self {
        let (ranges, left_out) = (Vec::new(), Vec::new());
        let (number, epoch, time, generation) = (1, 1, String::new(), 1);
        let (format, image, building) = (FORMAT, None, None);
        Self {
            format,
            number,
            epoch,
            writer,
            journal,
            time,
            generation,
            ranges,
            image,
            building,
            left_out,
        }
    }

    /// Returns the ranges that an uploader adds to: those of the next generation, as long as that isn't complete.
    pub(super) fn growing(&self) -> &[Range] {
        self.building.as_ref().map_or(&self.ranges, |building| &building.ranges)
    }

    /// Returns the same, to be changed.
    pub(super) fn growing_mut(&mut self) -> &mut Vec<Range> {
        self.building.as_mut().map_or(&mut self.ranges, |building| &mut building.ranges)
    }

    /// Returns the generation whose ranges grow.
    pub(super) fn growing_generation(&self) -> u64 {
        self.building.as_ref().map_or(self.generation, |building| building.generation)
    }

    /// Returns the cursor up to which the archive has the journal; `None` if it has nothing yet.
    #[must_use]
    pub fn end(&self) -> Option<Cursor> {
        self.ranges.last().map(|range| range.next.0)
    }

    /// Returns when the newest of its transactions was committed that is in the first so many ranges, by the clock of who
    /// wrote it; `None` if that isn't known.
    pub(super) fn committed(&self, ranges: usize) -> Option<i64> {
        self.ranges.iter().take(ranges).rev().find_map(|range| range.time)
    }

    pub(super) fn name(number: u64) -> String {
        format!("manifests/{number:020}")
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // Text and numbers can always be written.
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{{\"hash\":\"{}\",\"manifest\":{text}}}\n", hex(text.as_bytes())).into_bytes()
    }

    /// Reads a manifest, which must be whole.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub(super) fn decode(place: &str, number: u64, bytes: &[u8]) -> Result<Self> {
        let damaged = |why: &str| Error::corrupt(format!("{place}: manifest {number}: {why}"));
        let sealed: Sealed<'_> =
            serde_json::from_slice(bytes).map_err(|_| damaged("it isn't one, or is cut off"))?;
        if sealed.hash != hex(sealed.manifest.get().as_bytes()) {
            return Err(damaged("it doesn't verify"));
        }
        let read = serde_json::from_str::<Self>(sealed.manifest.get());
        let manifest = read.map_err(|error| damaged(&error.to_string()))?;
        if manifest.format > FORMAT {
            let message = format!(
                "{place}: the archive has format {}, and this program knows {FORMAT}: use a newer one",
                manifest.format
            );
            return Err(Error::new(annals::ErrorKind::Unsupported, message));
        }
        if manifest.number != number {
            return Err(damaged("it has another number"));
        }
        let building = manifest.building.as_ref().map(|building| building.ranges.as_slice());
        for ranges in [Some(manifest.ranges.as_slice()), building].into_iter().flatten() {
            let mut end = None;
            for range in ranges {
                if range.after.map(|after| after.0) != end {
                    return Err(damaged("its ranges have a gap"));
                }
                end = Some(range.next.0);
            }
        }
        Ok(manifest)
    }

    /// Finds the newest manifest of an archive; `None` if it is empty. A list that comes late costs some requests more.
    ///
    /// # Errors
    /// Those of the bucket; `Corrupt`.
    pub(super) fn newest(bucket: &Bucket, known: u64) -> Result<Option<Self>> {
        let listed = bucket.list("manifests", &format!("{known:020}"))?;
        let listed = listed.iter().rev().filter_map(|(name, _)| name.parse::<u64>().ok());
        let mut newest = None;
        // The newest that is listed may be gone, or not be there yet, or there may be more.
        for number in listed.chain([known]).filter(|number| *number > 0) {
            if let Some(bytes) = bucket.get(&Self::name(number))? {
                newest = Some(Self::decode(bucket.name(), number, &bytes)?);
                break;
            }
        }
        let mut number = newest.as_ref().map_or(0, |newest: &Self| newest.number);
        while let Some(bytes) = bucket.get(&Self::name(number + 1))? {
            number += 1;
            newest = Some(Self::decode(bucket.name(), number, &bytes)?);
        }
        Ok(newest)
    }
}
