//! The source of a lazy replica: a place that has the files of a journal, and sends ranges of them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use annals::{Cursor, Result};

/// A place with the files of one journal: a server, a web server, an object store.
///
/// Nothing that it sends is believed: each page and each frame is verified when it is used. So it needs to promise only
/// that a file with the same tag has the same bytes.
pub trait Ranges: Debug + Send + Sync {
    /// Names the place in messages, as a person would write it: a URL.
    fn place(&self) -> String;

    /// Returns the files that are there now. It looks for the image before it looks for the newest segment: so the
    /// journal has the point that the image stands for.
    ///
    /// # Errors
    /// `NotFound`, `Unreachable`, `Unauthenticated`, `Forbidden`; `Unsupported`: it has no ranges.
    fn look(&self) -> Result<Contents>;

    /// Looks for a kept segment that the [contents](Contents::kept) don't name; `None` if it isn't there.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    fn kept(&self, _number: u64) -> Result<Option<Object>> {
        Ok(None)
    }

    /// Reads a range of a file, which is inside it.
    ///
    /// # Errors
    /// `Unreachable`: no answer, or one that was cut off: it is tried again.
    fn read(&self, object: &Object, range: Range<u64>) -> Result<Piece>;
}

/// Something that a lazy replica can read: [`Ranges`], those in an [`Arc`], or a URL.
///
/// The URLs are those of [`IntoConnection`](crate::IntoConnection), but for shared logs, and `https://HOST/../NAME.annals`: a file on any web
/// server that sends ranges.
pub trait IntoRanges {
    /// Returns the source of ranges. Nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid`: it is no such URL; `Unsupported`: the feature for such URLs is off.
    fn into_ranges(self) -> Result<Arc<dyn Ranges>>;
}

impl<R: Ranges + 'static> IntoRanges for R {
    fn into_ranges(self) -> Result<Arc<dyn Ranges>> {
        Ok(Arc::new(self))
    }
}

impl<R: Ranges + 'static> IntoRanges for Arc<R> {
    fn into_ranges(self) -> Result<Arc<dyn Ranges>> {
        Ok(self)
    }
}

impl IntoRanges for Arc<dyn Ranges> {
    fn into_ranges(self) -> Result<Self> {
        Ok(self)
    }
}

/// The files of a journal at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The newest segment, which has the journal's name.
    pub newest: Object,
    /// The image as of its newest root; `None` if there is none: then all of the journal is read.
    pub image: Option<Object>,
    /// The kept segments by their numbers, as far as the place has a list of them.
    pub kept: BTreeMap<u64, Object>,
    /// The end of the newest segment, if the place knows it: then the slots of that needn't say it, and may be those of
    /// a new file.
    pub end: Option<Cursor>,
}

/// A file there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Where it is, as the place understands it.
    pub path: String,
    /// Its length in bytes.
    pub len: u64,
    /// Proves which version of the file it is (`ETag`). As long as it is the same, no byte changes, but bytes may be
    /// added at the end. `None` if the place has no such thing.
    pub tag: Option<String>,
}

/// The answer to a request for a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The bytes.
    Bytes(Vec<u8>),
    /// The file isn't there any more, or has another tag.
    Replaced,
}
