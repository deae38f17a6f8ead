//! Where the lines that a person typed are kept.
//!
//! `ANNALS_HISTORY` names the file, or is empty for none. Else it is `annals/history` in the state
//! folder: `$XDG_STATE_HOME` or `~/.local/state`, on macOS `~/Library/Application Support`, on
//! Windows `%LOCALAPPDATA%`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::output::say;

/// Larger files are none that a shell has written, in bytes.
const LARGEST: u64 = 64 << 20;

/// Returns the path of the history file; `None` if history is off, or no path is usable. Creates its folder.
pub(crate) fn file() -> Option<PathBuf> {
    let path = path(|name| std::env::var_os(name))?;
    if let Ok(there) = std::fs::metadata(&path) {
        let why = match (there.is_file(), there.len()) {
            // Other programs also use this to remember nothing.
            (false, _) if path == Path::new("/dev/null") => return None,
            (false, _) => "is not a regular file",
            (true, len) if len > LARGEST => "is too large for a history",
            (true, _) => return Some(path),
        };
        say(&format!("note: what you type is not remembered: {} {why}", path.display()));
        return None;
    }
    if let Some(folder) = path.parent() {
        // If it can't be made, using the file says so.
        let _ = std::fs::create_dir_all(folder);
    }
    Some(path)
}

fn path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(file) = variable("ANNALS_HISTORY") {
        return (!file.is_empty()).then(|| file.into());
    }
    let folder = |name: &str| {
        let folder = variable(name).map(PathBuf::from);
        // A folder that isn't given in full would be another one in each place.
        folder.filter(|folder| folder.is_absolute())
    };
    let state = folder("XDG_STATE_HOME").or_else(|| {
        if cfg!(windows) {
            folder("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            folder("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            folder("HOME").map(|home| home.join(".local/state"))
        }
    })?;
    Some(state.join("annals").join("history"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where() {
        let with = |variables: &[(&str, &str)]| {
            let value = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into())
            };
            path(value)
        };
        assert_eq!(with(&[("ANNALS_HISTORY", "/a/b"), ("HOME", "/h")]), Some("/a/b".into()));
        assert_eq!(with(&[("ANNALS_HISTORY", ""), ("HOME", "/h")]), None);
        let state = [("XDG_STATE_HOME", "/s"), ("HOME", "/h")];
        assert_eq!(with(&state), Some("/s/annals/history".into()));
        if cfg!(target_os = "linux") {
            let relative = [("XDG_STATE_HOME", "s"), ("HOME", "/h")];
            assert_eq!(with(&relative), Some("/h/.local/state/annals/history".into()));
        }
        assert_eq!(with(&[]), None);
    }
}
