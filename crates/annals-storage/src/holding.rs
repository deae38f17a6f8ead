//! Which process holds a lock of a file: for messages, since locks of open files have no owner.
//!
//! On Linux the system lists the locks of each open file of each process that this one may examine
//! (`/proc/<pid>/fdinfo`). Other systems have no such list.

#![allow(clippy::disallowed_methods, reason = "this room touches the machine")]

use std::fs::File;

use super::Lock;

/// Returns a process that holds a lock of this file, through whatever handle. A process of another user, or in
/// another container, isn't found.
pub(super) fn holder(file: &File, lock: Lock) -> Option<u32> {
    system::holder(file, lock)
}

#[cfg(all(
    target_os = "linux",
    any(target_pointer_width = "64", target_env = "gnu", target_env = "musl")
))]
mod system {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use crate::Lock;
    use crate::lock::byte_of;

    pub(super) fn holder(file: &File, lock: Lock) -> Option<u32> {
        let own = file.metadata().ok()?;
        let is_same = |path: &Path| {
            fs::metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino()))
        };
        let byte = byte_of(lock);
        let holds = |process: &Path| {
            // A process that can't be examined, or has ended meanwhile, isn't found.
            let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            files.filter(|open| is_same(&open.path())).any(|open| {
                let told = process.join("fdinfo").join(open.file_name());
                fs::read_to_string(told).is_ok_and(|told| tells(&told, byte))
            })
        };
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut numbered = processes.filter_map(|process| {
            let number = process.file_name().to_str()?.parse().ok()?;
            Some((number, process.path()))
        });
        numbered.find(|(_, path)| holds(path)).map(|(number, _)| number)
    }

    /// True if the `/proc/<pid>/fdinfo` text of an open file lists an OFD lock that covers the byte: `lock: 1:
    /// OFDLCK ADVISORY READ -1
    /// fe:00:9980170 4611686018427387909 4611686018427387910`.
    pub(super) fn tells(told: &str, byte: i64) -> bool {
        let locks = told.lines().filter_map(|line| line.strip_prefix("lock:"));
        locks.filter(|lock| lock.contains("OFDLCK")).any(|lock| {
            let mut words = lock.split_whitespace().rev();
            let (end, start) = (words.next(), words.next());
            let end = if end == Some("EOF") { Some(i64::MAX) } else { number(end) };
            number(start).zip(end).is_some_and(|(start, end)| (start..=end).contains(&byte))
        })
    }

    fn number(word: Option<&str>) -> Option<i64> {
        word?.parse().ok()
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_pointer_width = "64", target_env = "gnu", target_env = "musl")
)))]
mod system {
    use std::fs::File;

    use crate::Lock;

    pub(super) const fn holder(_file: &File, _lock: Lock) -> Option<u32> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::system::tells;

    #[test]
    fn what_the_system_says_is_understood() {
        let said = "pos:\t0\nlock:\t1: OFDLCK ADVISORY  READ -1 fe:00:1 4611686018427387909 4611686018427387910\n";
        let first = 4_611_686_018_427_387_909;
        assert_eq!(
            [first - 1, first, first + 1, first + 2].map(|at| tells(said, at)),
            [false, true, true, false]
        );
        assert!(tells("lock:\t1: OFDLCK  ADVISORY  WRITE -1 fe:00:1 5 EOF", i64::MAX));
        assert!(!tells("lock:\t1: POSIX  ADVISORY  WRITE 77 fe:00:1 0 EOF", 7));
        assert!(!tells("lock:\nlock:\t1: OFDLCK x y\n", 7));
    }
}
