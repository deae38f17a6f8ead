//! Batches by `pwritev`: one run after the other, each with one call.

#![allow(unsafe_code, reason = "the standard library has no call that writes parts at a position")]

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd as _;

use super::batch::{Batched, Engine, MOST_PARTS, Run};
use super::interrupted::retry;
use super::rest::Rest;

const _: () = assert!(MOST_PARTS <= libc::UIO_MAXIOV as usize);

/// Writes all runs; the first error ends it.
pub(super) fn write(file: &File, runs: &[Run<'_>]) -> io::Result<Batched> {
    write_with(|offset, parts| write_once(file, offset, parts), runs)
}

fn write_with(
    mut write_once: impl FnMut(u64, &[IoSlice<'_>]) -> io::Result<usize>,
    runs: &[Run<'_>],
) -> io::Result<Batched> {
    let mut writes = 0;
    for run in runs {
        let mut next = Some(Rest::of(run)?);
        while let Some(rest) = next {
            let written = retry(|| {
                writes += 1;
                write_once(rest.offset(), rest.parts())
            })?;
            next = rest.without(written)?;
        }
    }
    Ok(Batched::of(runs, writes, Engine::Vectored))
}

/// One call of `pwritev`.
fn write_once(file: &File, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let count = i32::try_from(parts.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `IoSlice` has the layout of `iovec`, as its documentation says; there are `count` of them,
    // whose bytes are borrowed until the call returns, and it only reads them.
    let written =
        unsafe { libc::pwritev64(file.as_raw_fd(), parts.as_ptr().cast(), count, offset) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{join, together};

    /// A file that writes three bytes at a time, is interrupted before each, and has an end.
    struct Fake {
        content: Vec<u8>,
        calls: u64,
    }

    impl Fake {
        fn write(&mut self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let (from, data) = (usize::try_from(offset).unwrap(), together(parts));
            let count = data.len().min(3).min(self.content.len().saturating_sub(from));
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.content[from..from + count].copy_from_slice(&data[..count]);
            Ok(count)
        }
    }

    #[test]
    fn short_and_interrupted_writes_are_gone_on_with() {
        let runs = join([(1, &b"ab"[..]), (3, b"cdefg"), (8, b"h"), (10, b"xy")]);
        let mut fake = Fake { content: vec![b'.'; 12], calls: 0 };
        let batched = write_with(|offset, parts| fake.write(offset, parts), &runs).unwrap();
        assert_eq!(fake.content, b".abcdefgh.xy");
        assert_eq!(batched, Batched { writes: 8, bytes: 10, engine: Engine::Vectored });
    }

    #[test]
    fn a_full_disk_ends_the_batch_in_the_middle() {
        let runs = join([(0, &b"abcd"[..]), (4, b"efgh"), (20, b"i")]);
        let mut fake = Fake { content: vec![b'.'; 5], calls: 0 };
        let error = write_with(|offset, parts| fake.write(offset, parts), &runs).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((fake.content, fake.calls), (b"abcde".to_vec(), 6));
    }

    #[test]
    fn a_write_that_does_not_go_on_is_an_error() {
        let runs = join([(0, &b"abcd"[..])]);
        let error = write_with(|_, _| Ok(0), &runs).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it has no `pwritev`")]
    #[allow(clippy::disallowed_methods, reason = "this room touches the machine")]
    fn a_file_takes_as_many_parts_as_a_run_has() {
        let bytes: Vec<u8> = (0..2500_u32).map(|byte| byte.to_le_bytes()[0]).collect();
        let pieces = bytes.chunks(1).enumerate().map(|(at, byte)| (at as u64, byte));
        let file = tempfile::tempfile().unwrap();
        let batched = write(&file, &join(pieces)).unwrap();
        assert_eq!((batched.writes, batched.bytes), (3, 2500));
        let mut content = vec![0; 2500];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut content, 0).unwrap();
        assert_eq!(content, bytes);
    }
}
