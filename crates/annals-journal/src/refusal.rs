//! The reasons for refusing a journal, and the advice for each.

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
        Some(pid) if pid == annals_storage::process_id() => {
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

/// Explains that a device isn't blank, and holds no journal either.
pub(super) fn not_blank(name: &str) -> Error {
    Error::new(
        ErrorKind::NotAJournal,
        format!(
            "{name}: the device holds no Annals journal, but something else: check the path. If nothing \
             on it is needed, wipe its head, and a database can be created there: dd if=/dev/zero \
             of={name} bs=4096 count=4"
        ),
    )
}

/// Returns the advice for a damaged file.
pub(super) fn salvage_advice(name: &str) -> String {
    format!(
        "restore it from a backup, or write all that verifies into a new file with `annals recover {} \
         --salvage NEW`",
        shown_path(name)
    )
}

/// Writes a path as it is typed in a shell.
pub fn shown_path(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:@+,=\\".contains(c);
    match path.chars().all(is_plain) && !path.is_empty() {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}
