//! Checks whether an open file is still the one at a path: another may have been renamed over it,
//! or it was removed.

#![allow(clippy::disallowed_methods, reason = "this room touches the machine")]
#![cfg_attr(
    windows,
    allow(unsafe_code, reason = "the standard library doesn't tell a file's number here")
)]

use std::fs::File;
use std::io;
use std::path::Path;

/// Returns true if `path` refers to this open file; false if it doesn't exist.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let here = system::of_file(file)?;
    match system::of_path(path) {
        Ok(there) => Ok(here == there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
mod system {
    //! The device and the number of the inode.
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use crate::interrupted::retry;

    pub(super) fn of_file(file: &File) -> io::Result<(u64, u64)> {
        Ok(number(&retry(|| file.metadata())?))
    }

    pub(super) fn of_path(path: &Path) -> io::Result<(u64, u64)> {
        Ok(number(&retry(|| std::fs::metadata(path))?))
    }

    fn number(metadata: &Metadata) -> (u64, u64) {
        (metadata.dev(), metadata.ino())
    }
}

#[cfg(windows)]
mod system {
    //! The serial number of the volume and the index of the file there.
    use std::fs::File;
    use std::io;
    use std::os::windows::io::AsRawHandle;
    use std::path::Path;

    use windows_sys::Win32::Storage::FileSystem::{
        BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle,
    };

    pub(super) fn of_file(file: &File) -> io::Result<(u32, u32, u32)> {
        let mut found = BY_HANDLE_FILE_INFORMATION::default();
        // SAFETY: the handle is open, since `file` is borrowed, and `found` is a whole structure
        // that the call only writes to.
        let result = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) };
        if result == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((found.dwVolumeSerialNumber, found.nFileIndexHigh, found.nFileIndexLow))
    }

    pub(super) fn of_path(path: &Path) -> io::Result<(u32, u32, u32)> {
        of_file(&File::open(path)?)
    }
}

#[cfg(not(any(unix, windows)))]
mod system {
    //! Files can't be distinguished here: returns only whether the path exists.
    use std::fs::File;
    use std::io;
    use std::path::Path;

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(super) fn of_file(_file: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn of_path(path: &Path) -> io::Result<()> {
        std::fs::metadata(path).map(drop)
    }
}

#[cfg(test)]
#[cfg(any(unix, windows))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_path_is_followed_to_the_file_that_it_leads_to_now() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("a"), folder.path().join("b"));
        let file = File::create(&path).unwrap();
        assert!(is_at(&file, &path).unwrap());
        fs::rename(&path, &aside).unwrap();
        assert!(!is_at(&file, &path).unwrap(), "nothing is there");
        let other = File::create(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap(), "another file is there");
        assert!(is_at(&other, &path).unwrap());
        assert!(is_at(&file, &aside).unwrap(), "it was only renamed");
        fs::hard_link(&aside, folder.path().join("c")).unwrap();
        assert!(is_at(&file, &folder.path().join("c")).unwrap(), "a second name");
    }
}
