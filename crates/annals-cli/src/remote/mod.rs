//! Databases on servers, where a command takes a file or a URL.

#[cfg(not(feature = "net"))]
mod absent;
#[cfg(feature = "net")]
mod copy;
#[cfg(feature = "net")]
pub(crate) mod log;

use std::path::Path;
use std::time::Duration;

#[cfg(not(feature = "net"))]
pub(crate) use absent::{Access, Local};
#[cfg(feature = "net")]
pub(crate) use copy::{Access, Local};

/// The polling interval of a file that is followed.
const INTERVAL: Duration = Duration::from_millis(20);

/// Returns the URL of a server that a path is, if it is one.
pub(crate) fn url(path: &Path) -> Option<&str> {
    let schemes = ["http://", "https://", "ssh://"];
    path.to_str().filter(|path| schemes.iter().any(|scheme| path.starts_with(scheme)))
}
