//! The commands of the program, one file each.

use std::io::{BufRead, IsTerminal, Write as _};
use std::path::Path;
use std::time::Duration;

use annals::{Error, Options, Reader, Result};

use crate::progress;

#[cfg(feature = "net")]
pub(crate) mod archive;
pub(crate) mod backfill;
pub(crate) mod backup;
pub(crate) mod blame;
pub(crate) mod check;
#[cfg(feature = "net")]
mod check_archive;
#[cfg(feature = "net")]
pub(crate) mod clone;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod erase;
#[cfg(feature = "net")]
pub(crate) mod explore;
pub(crate) mod export;
pub(crate) mod export_joedb;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod import_changes;
pub(crate) mod import_csv;
pub(crate) mod import_joedb;
pub(crate) mod import_json;
#[cfg(feature = "arrow")]
pub(crate) mod import_parquet;
#[cfg(feature = "sqlite")]
pub(crate) mod import_sqlite;
pub(crate) mod info;
mod info_image;
mod info_json;
pub(crate) mod log;
#[cfg(feature = "net")]
pub(crate) mod log_create;
pub(crate) mod log_range;
#[cfg(feature = "net")]
pub(crate) mod log_trim;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod pack;
pub(crate) mod push;
pub(crate) mod recover;
mod recover_text;
#[cfg(feature = "net")]
pub(crate) mod restore;
pub(crate) mod retain;
pub(crate) mod revert;
mod salvage_text;
pub(crate) mod schema;
#[cfg(feature = "net")]
pub(crate) mod serve;
pub(crate) mod shell;
#[cfg(feature = "sqlite")]
pub(crate) mod sql;
#[cfg(feature = "net")]
pub(crate) mod token;
mod version_text;

/// Asks at the terminal whether to do it.
pub(crate) fn confirm() -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::invalid(
            "nothing was changed: there is no terminal to ask at; say --yes if it is to be done",
        ));
    }
    // A question that couldn't be read has no answer.
    let asked = std::io::stderr().write_all(b"Do it? [yes, no] ");
    asked.map_err(|error| Error::io("cannot ask", error))?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Error::io("cannot read the answer", error))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Opens a database to work on its files, and prints the report of opening. Waits up to `timeout` for other processes
/// that share it.
pub(crate) fn open_to_maintain(
    path: &Path,
    is_shared: bool,
    timeout: Duration,
) -> Result<annals::Database> {
    let options = progress::options().create(false).background(false);
    let database = options.shared(is_shared).lock_timeout(timeout).open(path)?;
    crate::notes::tell_recovery(&database);
    Ok(database)
}

/// Opens a database for reading. Where a commit doesn't apply it says so on standard error, and the program ends with
/// status 1.
pub(crate) fn open_to_read(options: &Options, path: &Path) -> Result<Reader> {
    let reader = options.open_read_only(path)?;
    crate::notes::note_unapplied(&reader, path);
    Ok(reader)
}

/// Reads a size.
pub(crate) fn size(text: &str) -> std::result::Result<u64, String> {
    const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let unit = UNITS.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, bits)));
    let (number, bits) = unit.unwrap_or((text, &0));
    let bytes =
        number.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << bits));
    bytes.ok_or_else(|| {
        "a size is a whole number of bytes, or one with KiB, MiB, GiB or TiB behind it".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("17", 17), ("3KiB", 3 << 10), ("2 GiB", 2 << 30)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "KiB", "-1", "1.5GiB", "1GB", "99999999TiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
