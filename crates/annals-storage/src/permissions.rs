//! The permissions of files: a file that is made of another gets that one's.

#![allow(clippy::disallowed_methods, reason = "this room touches the machine")]

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// The owner and the group of a file, and the rights of them and of all others.
///
/// It has them on Unix only: elsewhere a new file inherits those of its directory. Access control lists are not part
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    mode: u32,
    owner: u32,
    group: u32,
}

impl Permissions {
    /// Returns the permissions of a file, by its metadata; `None` where the system has none.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Option<Self> {
        system::of(metadata)
    }

    /// Returns these, but allows no more than the other file does: for a file that is made of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { mode: self.mode & other.mode, ..self }
    }

    /// Returns these, with all rights of others taken away.
    #[must_use]
    pub const fn private(self) -> Self {
        Self { mode: self.mode & 0o600, ..self }
    }
}

/// Creates a new file, without following a link, that has these permissions before anything can be written to it.
///
/// Rights that this process may not grant are left out: without the group, the new file's own group gets only the
/// rights of all others.
pub(super) fn create_new(path: &Path, like: Option<Permissions>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    match like {
        None => options.open(path),
        Some(like) => system::create(&mut options, path, like),
    }
}

#[cfg(unix)]
mod system {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
    use std::path::Path;

    use super::Permissions;

    /// The rights that the owner always has, so that a copy of a read-only file can be updated.
    const OWNER: u32 = 0o600;

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere there are none")]
    pub(super) fn of(metadata: &Metadata) -> Option<Permissions> {
        let (mode, owner, group) = (metadata.mode(), metadata.uid(), metadata.gid());
        // A derived file is data: it isn't executable.
        Some(Permissions { mode: mode & 0o666, owner, group })
    }

    pub(super) fn create(
        options: &mut OpenOptions,
        path: &Path,
        like: Permissions,
    ) -> io::Result<File> {
        let file = options.mode(OWNER).open(path)?;
        let metadata = file.metadata()?;
        let has_group =
            metadata.gid() == like.group || fchown(&file, None, Some(like.group)).is_ok();
        let mode = if has_group { like.mode } else { without_group(like.mode) };
        // A file system that knows no modes refuses this. Then the file is its owner's alone.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(mode | OWNER));
        if metadata.uid() != like.owner {
            // Only root may change a file's owner.
            let _ = fchown(&file, Some(like.owner), None);
        }
        Ok(file)
    }

    /// Returns the mode of a file with another group: the group gets the rights of all others.
    const fn without_group(mode: u32) -> u32 {
        mode & !0o070 | mode & (mode & 0o007) << 3
    }

    #[test]
    fn another_group_may_do_what_all_others_may() {
        for (mode, expected) in [(0o640, 0o600), (0o664, 0o644), (0o644, 0o644), (0o604, 0o604)] {
            assert_eq!(without_group(mode), expected, "{mode:o}");
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::path::Path;

    use super::Permissions;

    pub(super) const fn of(_metadata: &Metadata) -> Option<Permissions> {
        None
    }

    pub(super) fn create(
        options: &mut OpenOptions,
        path: &Path,
        _like: Permissions,
    ) -> io::Result<File> {
        options.open(path)
    }
}
