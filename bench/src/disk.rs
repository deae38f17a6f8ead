//! The size of a folder on disk, and the bytes that this process wrote.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::engines::Failure;

/// Returns all files below a folder.
fn files(folder: &Path) -> Result<Vec<(PathBuf, Metadata)>, Failure> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        match metadata.is_dir() {
            true => found.extend(files(&entry.path())?),
            false => found.push((entry.path(), metadata)),
        }
    }
    Ok(found)
}

/// Returns the length of all files below a folder.
pub(crate) fn length(folder: &Path) -> Result<u64, Failure> {
    Ok(files(folder)?.iter().map(|(_, metadata)| metadata.len()).sum())
}

/// Returns the space that the file system has given to the files below a folder: less than their length
/// where they have holes, more where it has blocks ready beyond their end.
pub(crate) fn allocated(folder: &Path) -> Result<u64, Failure> {
    Ok(files(folder)?.iter().map(|(_, metadata)| blocks(metadata)).sum())
}

#[cfg(unix)]
fn blocks(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn blocks(metadata: &Metadata) -> u64 {
    metadata.len()
}

/// Reads all files below a folder, so that the page cache has them.
pub(crate) fn warm(folder: &Path) -> Result<(), Failure> {
    for (path, _) in files(folder)? {
        #[allow(clippy::disallowed_methods, reason = "nobody's storage is involved")]
        let mut file = std::fs::File::open(path)?;
        std::io::copy(&mut file, &mut std::io::sink())?;
    }
    Ok(())
}

/// Returns how many bytes of files this process has dirtied so far, its threads included; none where the
/// operating system doesn't count them.
pub(crate) fn written() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/self/io").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}
