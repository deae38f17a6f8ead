//! The unwritten rest of a run.
//!
//! The system may write less than requested, also in the middle of a part. The rest is then requested again; a write
//! that doesn't continue at all is an error.

use std::borrow::Cow;
use std::io::{self, IoSlice};

use super::batch::Run;

/// The unwritten rest of a run. It is never empty.
#[derive(Debug)]
pub(super) struct Rest<'r, 'a> {
    offset: u64,
    len: usize,
    parts: Cow<'r, [IoSlice<'a>]>,
}

impl<'r, 'a> Rest<'r, 'a> {
    /// Begins with a whole run.
    ///
    /// # Errors
    /// `FileTooLarge` if no file reaches that far.
    pub(super) fn of(run: &'r Run<'a>) -> io::Result<Self> {
        let end = run.offset().checked_add(run.len() as u64);
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Self { offset: run.offset(), len: run.len(), parts: Cow::Borrowed(run.parts()) })
    }

    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the parts. They stay where they are in memory until the next step, also when this moves.
    pub(super) fn parts(&self) -> &[IoSlice<'a>] {
        &self.parts
    }

    /// Removes the written part; returns the rest, or nothing.
    ///
    /// # Errors
    /// `WriteZero` if nothing was written: trying again could continue for ever.
    pub(super) fn without(self, written: usize) -> io::Result<Option<Self>> {
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        if written >= self.len {
            return Ok(None);
        }
        let mut parts = self.parts.into_owned();
        let mut left = &mut parts[..];
        IoSlice::advance_slices(&mut left, written);
        let count = left.len();
        parts.drain(..parts.len() - count);
        let (offset, len) = (self.offset + written as u64, self.len - written);
        Ok(Some(Self { offset, len, parts: Cow::Owned(parts) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{join, together};

    #[test]
    fn what_is_left_begins_anywhere() {
        let runs = join([(10, &b"abc"[..]), (13, b"d"), (14, b"ef")]);
        for first in 1..6 {
            let rest = Rest::of(&runs[0]).unwrap().without(first).unwrap().unwrap();
            assert_eq!((rest.offset(), rest.len), (10 + first as u64, 6 - first));
            assert!(rest.parts().iter().all(|part| !part.is_empty()), "after {first}");
            assert_eq!(together(rest.parts()), b"abcdef"[first..]);
            for second in 1..rest.len {
                let rest = Rest::of(&runs[0]).unwrap().without(first).unwrap().unwrap();
                let rest = rest.without(second).unwrap().unwrap();
                assert_eq!(together(rest.parts()), b"abcdef"[first + second..]);
            }
            assert!(rest.without(6 - first).unwrap().is_none());
        }
    }

    #[test]
    fn nothing_written_is_an_error_and_so_is_an_absurd_offset() {
        let runs = join([(0, &b"abc"[..]), (i64::MAX as u64, b"x")]);
        let error = Rest::of(&runs[0]).unwrap().without(0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        assert_eq!(Rest::of(&runs[1]).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
