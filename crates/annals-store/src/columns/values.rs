//! Runs of values of one field, as a program passes them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use annals_schema::{Type, ValueRef};

use crate::Result;
use crate::columns::primitive::{Primitive, to_cells};
use annals_event::{MAX_VECTOR, Vector, width};

/// The values of one field in consecutive rows, borrowed from a program's slice.
///
/// A slice of numbers is taken as a whole: its values aren't visited one by one if the field can
/// hold any. Values of other types are turned into [`ValueRef`]s a thousand at a time.
pub struct Values<'a> {
    source: ValueSource<'a>,
    /// Which types it is for; `None`: it will be seen from the values.
    fits: Option<fn(Type) -> bool>,
}

enum ValueSource<'a> {
    /// As in [`Vector::Cells`].
    Cells(Cow<'a, [u8]>),
    Slice(&'a [ValueRef<'a>]),
    /// The number of values, and the source of a part of them.
    Made(usize, Box<Make<'a>>),
}

type Make<'a> = dyn Fn(Range<usize>, &mut Vec<ValueRef<'a>>) + 'a;

/// How many values are made at a time: as many as stay in the processor's cache.
const MADE: usize = 1024;
/// A piece has at most this many bytes, unless it is one value.
const PIECE: usize = 1 << 20;

impl<'a> Values<'a> {
    /// Takes the results of a function for each item.
    fn made<T>(items: &'a [T], value: impl Fn(&'a T) -> ValueRef<'a> + 'a) -> Self {
        let make = move |range: Range<usize>, out: &mut Vec<ValueRef<'a>>| {
            // A loop, as there is a copy of this for each referenced table: an iterator takes ten
            // times as long to compile.
            if let Some(items) = items.get(range) {
                for item in items {
                    out.push(value(item));
                }
            }
        };
        Self { source: ValueSource::Made(items.len(), Box::new(make)), fits: None }
    }

    /// Takes values that are turned into untyped ones.
    #[must_use]
    pub fn each_of<T: Copy + Into<ValueRef<'static>>>(values: &'a [T]) -> Self {
        fn untyped<'a, T: Copy + Into<ValueRef<'static>>>(value: &'a T) -> ValueRef<'a> {
            (*value).into()
        }
        Self::made(values, untyped)
    }

    /// Takes strings, owned or borrowed.
    #[must_use]
    pub fn strings<S: AsRef<str>>(values: &'a [S]) -> Self {
        Self::made(values, |value| ValueRef::String(value.as_ref()))
    }

    /// Takes strings of bytes, owned or borrowed.
    #[must_use]
    pub fn bytes<B: AsRef<[u8]>>(values: &'a [B]) -> Self {
        Self::made(values, |value| ValueRef::Bytes(value.as_ref()))
    }

    /// Returns the number of values of a field of this type; `None` if they aren't of that type.
    #[must_use]
    pub fn len(&self, ty: Type) -> Option<usize> {
        match &self.source {
            _ if self.fits.is_some_and(|fits| !fits(ty)) => None,
            ValueSource::Cells(cells) => Vector::Cells(cells).len(ty),
            ValueSource::Slice(values) => Some(values.len()),
            ValueSource::Made(len, _) => Some(*len),
        }
    }

    /// True if code of the program makes the values each time they are read, and so might return
    /// different ones after the check.
    #[doc(hidden)]
    #[inline]
    pub const fn may_change(&self) -> bool {
        matches!(self.source, ValueSource::Made(..))
    }

    /// Passes the values in a range to `take` in pieces of events, in order, each with the place of its first value.
    #[doc(hidden)]
    #[inline]
    pub fn each_piece(
        &self,
        ty: Type,
        range: Range<usize>,
        mut take: impl FnMut(usize, Vector<'_>) -> Result<()>,
    ) -> Result<()> {
        self.each(ty, range, |at, values| match values {
            Vector::Cells(_) => take(at, values),
            Vector::Values(values) => in_parts(at, values, &mut take),
        })
    }

    /// Passes the values in a range to `take`, some at a time, for any length.
    pub(crate) fn each(
        &self,
        ty: Type,
        range: Range<usize>,
        mut take: impl FnMut(usize, Vector<'_>) -> Result<()>,
    ) -> Result<()> {
        let first = range.start;
        match &self.source {
            ValueSource::Cells(cells) => {
                let width = width(ty).unwrap_or(PIECE);
                let each = (PIECE / width).max(1);
                let cells = cells.get(range.start * width..range.end * width);
                let mut pieces = cells.unwrap_or_default().chunks(each * width).enumerate();
                pieces.try_for_each(|(at, piece)| take(first + at * each, Vector::Cells(piece)))
            }
            ValueSource::Slice(values) => {
                let values = values.get(range).unwrap_or_default();
                let mut pieces = values.chunks(MADE).enumerate();
                pieces.try_for_each(|(at, piece)| take(first + at * MADE, Vector::Values(piece)))
            }
            ValueSource::Made(_, make) => {
                let mut piece = Vec::with_capacity(MADE.min(range.len()));
                range.clone().step_by(MADE).try_for_each(|at| {
                    piece.clear();
                    make(at..(at + MADE).min(range.end), &mut piece);
                    take(at, Vector::Values(&piece))
                })
            }
        }
    }
}

const _: () = assert!(PIECE as u64 <= MAX_VECTOR && MADE as u64 <= MAX_VECTOR);

/// Parts values so that none of the parts has too many bytes.
fn in_parts(
    first: usize,
    values: &[ValueRef<'_>],
    take: &mut impl FnMut(usize, Vector<'_>) -> Result<()>,
) -> Result<()> {
    let (mut begin, mut bytes) = (0, 0);
    for (at, value) in values.iter().enumerate() {
        let len = match value {
            ValueRef::String(text) => text.len(),
            ValueRef::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        if bytes + len > PIECE && at > begin {
            take(first + begin, Vector::Values(values.get(begin..at).unwrap_or_default()))?;
            (begin, bytes) = (at, 0);
        }
        bytes += len;
    }
    take(first + begin, Vector::Values(values.get(begin..).unwrap_or_default()))
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            ValueSource::Cells(cells) => write!(f, "Values({} bytes of cells)", cells.len()),
            ValueSource::Slice(values) => write!(f, "Values({} values)", values.len()),
            ValueSource::Made(len, _) => write!(f, "Values({len} values)"),
        }
    }
}

/// Numbers and ids, none of them null.
impl<'a, T: Primitive> From<&'a [T]> for Values<'a> {
    fn from(values: &'a [T]) -> Self {
        Self { source: ValueSource::Cells(to_cells(values)), fits: Some(T::fits) }
    }
}

impl<'a> From<&'a [bool]> for Values<'a> {
    fn from(values: &'a [bool]) -> Self {
        let cells = values.iter().map(|&value| u8::from(value)).collect();
        Self { source: ValueSource::Cells(Cow::Owned(cells)), fits: Some(|ty| ty == Type::Bool) }
    }
}

/// Values of any type, of which `None` is null.
impl<'a, T: Copy + Into<ValueRef<'a>>> From<&'a [Option<T>]> for Values<'a> {
    fn from(values: &'a [Option<T>]) -> Self {
        Self::made(values, |&value| value.into())
    }
}

impl<'a, 's: 'a> From<&'a [&'s str]> for Values<'a> {
    fn from(values: &'a [&'s str]) -> Self {
        Self::strings(values)
    }
}

impl<'a> From<&'a [String]> for Values<'a> {
    fn from(values: &'a [String]) -> Self {
        Self::strings(values)
    }
}

impl<'a, 's: 'a> From<&'a [&'s [u8]]> for Values<'a> {
    fn from(values: &'a [&'s [u8]]) -> Self {
        Self::bytes(values)
    }
}

impl<'a, 's: 'a, const LEN: usize> From<&'a [&'s [u8; LEN]]> for Values<'a> {
    fn from(values: &'a [&'s [u8; LEN]]) -> Self {
        Self::bytes(values)
    }
}

impl<'a> From<&'a [Vec<u8>]> for Values<'a> {
    fn from(values: &'a [Vec<u8>]) -> Self {
        Self::bytes(values)
    }
}

/// Values as an event has them.
impl<'a> From<Vector<'a>> for Values<'a> {
    fn from(vector: Vector<'a>) -> Self {
        let source = match vector {
            Vector::Cells(cells) => ValueSource::Cells(Cow::Borrowed(cells)),
            Vector::Values(values) => ValueSource::Slice(values),
        };
        Self { source, fits: None }
    }
}
