//! Databases on servers, where a command takes a file or a URL.

#[cfg(not(feature = "net"))]
mod absent;
#[cfg(feature = "net")]
mod access;
#[cfg(feature = "net")]
mod copy;
#[cfg(feature = "net")]
mod lazy;
#[cfg(feature = "net")]
pub(crate) mod log;
#[cfg(feature = "net")]
pub(crate) mod shared_log;

use std::path::Path;
use std::time::Duration;

use annals::{Error, Result};

#[cfg(not(feature = "net"))]
pub(crate) use absent::{Access, Local, Opened, refuse_partial};
#[cfg(feature = "net")]
pub(crate) use access::{Access, Authority, Place};
#[cfg(feature = "net")]
pub(crate) use copy::Local;
#[cfg(feature = "net")]
pub(crate) use lazy::{Opened, copy_all, lazily, refuse_partial};

/// The polling interval of a file that is followed.
const INTERVAL: Duration = Duration::from_millis(20);

/// Refuses a URL where a file is written.
pub(crate) fn refuse_url(path: &Path) -> Result<()> {
    let Some(url) = url(path) else { return Ok(()) };
    Err(Error::invalid(format!(
        "{url}: a database elsewhere is read with --read-only; to write it, name a copy of it and `--replica-of {url}`"
    )))
}

/// Returns the URL of a server or an archive that a path is, if it is one.
pub(crate) fn url(path: &Path) -> Option<&str> {
    let schemes = ["http://", "https://", "ssh://"];
    let is_server = |path: &&str| schemes.iter().any(|scheme| path.starts_with(scheme));
    path.to_str().filter(is_server).or_else(|| archive(path))
}

/// Returns the URL of an archive that a path is, if it is one.
pub(crate) fn archive(path: &Path) -> Option<&str> {
    let schemes = ["file://", "s3://", "gs://", "az://"];
    path.to_str().filter(|path| schemes.iter().any(|scheme| path.starts_with(scheme)))
}
