//! Why a journal can't be opened.

use std::io;

use crate::{Error, ErrorKind};
use annals_storage::{self, Access};

/// Explains why an existing file can't be opened.
pub fn cannot_open(shown: &str, access: Access, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::NotFound, format!("{shown}: there is no such file"))
        }
        io::ErrorKind::PermissionDenied => {
            let advice = match access {
                Access::Read => "ask its owner",
                Access::Write => "ask its owner, or open it read-only",
            };
            Error::io(format!("{shown}: no permission to open it; {advice}"), error)
        }
        io::ErrorKind::ReadOnlyFilesystem => Error::io(
            format!("{shown}: can't write there; copy it elsewhere, or open it read-only"),
            error,
        ),
        _ => Error::io(format!("{shown}: can't open it"), error),
    }
}

/// Explains that another holder, if known that process, has a journal open.
pub fn busy(shown: &str, holder: Option<u32>) -> Error {
    let who = match holder {
        Some(pid) if pid == std::process::id() => {
            format!("this process (pid {pid}) has it open already; share that handle")
        }
        Some(pid) if annals_storage::is_alive(pid) => {
            format!("process {pid} has it open for writing; end it, or open read-only")
        }
        Some(pid) => format!(
            "it is open for writing, but not by process {pid} of this machine, as it says: by one in \
             another container or on another machine, or by one that is just opening it; end that, \
             try again, or open read-only"
        ),
        None => "another process is just opening or closing it; try again".to_owned(),
    };
    Error::new(ErrorKind::Busy, format!("{shown}: {who}"))
}
