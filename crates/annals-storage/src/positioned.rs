//! Reading and writing at a position, continued after short calls.
//!
//! The operating system may do less than requested, or be interrupted by a signal. Neither is an error, and this
//! module hides both.

#![allow(clippy::disallowed_methods, reason = "this room touches the machine")]

use std::fs::File;
use std::io;

use super::interrupted::retry;

/// Reads at `offset` until `buffer` is full or the file ends; returns how many bytes were read.
pub(super) fn read(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    read_with(|buffer, offset| once::read(file, buffer, offset), offset, buffer)
}

/// Writes all of `data` at `offset`.
pub(super) fn write(file: &File, offset: u64, data: &[u8]) -> io::Result<()> {
    write_with(|data, offset| once::write(file, data, offset), offset, data)
}

fn read_with(
    mut read_once: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    // No file reaches further; the system would call such an offset invalid.
    if i64::try_from(offset).is_err() {
        return Ok(0);
    }
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match retry(|| read_once(rest, offset + done as u64))? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

fn write_with(
    mut write_once: impl FnMut(&[u8], u64) -> io::Result<usize>,
    offset: u64,
    data: &[u8],
) -> io::Result<()> {
    if offset.checked_add(data.len() as u64).is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut done = 0;
    while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
        match retry(|| write_once(rest, offset + done as u64))? {
            // Trying again could continue for ever.
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => done += count,
        }
    }
    Ok(())
}

#[cfg(unix)]
mod once {
    //! One call of `pread` or `pwrite`.
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;

    pub(super) fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    pub(super) fn write(file: &File, data: &[u8], offset: u64) -> io::Result<usize> {
        file.write_at(data, offset)
    }
}

#[cfg(windows)]
mod once {
    //! One call of `ReadFile` or `WriteFile` with a position. They move the file's cursor, which
    //! nothing here uses.
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    pub(super) fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.seek_read(buffer, offset)
    }

    pub(super) fn write(file: &File, data: &[u8], offset: u64) -> io::Result<usize> {
        file.seek_write(data, offset)
    }
}

#[cfg(not(any(unix, windows)))]
mod once {
    //! Seek, then read or write, one at a time: the cursor is shared.
    use std::fs::File;
    use std::io::{self, Read, Seek, SeekFrom, Write};
    use std::sync::{Mutex, PoisonError};

    static CURSOR: Mutex<()> = Mutex::new(());

    pub(super) fn read(mut file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let _cursor = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }

    pub(super) fn write(mut file: &File, data: &[u8], offset: u64) -> io::Result<usize> {
        let _cursor = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.write(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupted() -> io::Error {
        io::ErrorKind::Interrupted.into()
    }

    #[test]
    fn short_and_interrupted_reads_are_gone_on_with() {
        let content = b"0123456789";
        let mut calls = 0;
        let mut buffer = [0; 8];
        let count = read_with(
            |buffer, offset| {
                calls += 1;
                if calls % 2 == 0 {
                    return Err(interrupted());
                }
                let from = usize::try_from(offset).unwrap();
                let count = buffer.len().min(3).min(content.len() - from);
                buffer[..count].copy_from_slice(&content[from..from + count]);
                Ok(count)
            },
            4,
            &mut buffer,
        );
        assert_eq!(count.unwrap(), 6);
        assert_eq!(&buffer[..6], b"456789");
        assert_eq!(calls, 5, "3, interrupted, 3, interrupted, the end");
    }

    #[test]
    fn short_and_interrupted_writes_are_gone_on_with() {
        let mut content = [0; 10];
        let mut calls = 0;
        let result = write_with(
            |data, offset| {
                calls += 1;
                if calls == 2 {
                    return Err(interrupted());
                }
                let from = usize::try_from(offset).unwrap();
                let count = data.len().min(3);
                content[from..from + count].copy_from_slice(&data[..count]);
                Ok(count)
            },
            2,
            b"abcdefgh",
        );
        result.unwrap();
        assert_eq!(&content, b"\0\0abcdefgh");
        assert_eq!(calls, 4);
    }

    #[test]
    fn a_write_that_does_not_go_on_is_an_error() {
        let error = write_with(|_, _| Ok(0), 0, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = write_with(|_, _| Err(full()), 0, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn absurd_offsets_are_no_overflow() {
        assert_eq!(read_with(|_, _| unreachable!(), u64::MAX, &mut [0; 4]).unwrap(), 0);
        let error = write_with(|_, _| unreachable!(), u64::MAX, b"xy").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
