//! What the program adds to an error about a file that it was given.

use std::io::Read as _;
use std::path::Path;

use annals::{Error, ErrorKind};

use crate::files;
use crate::output::{plain, say};

/// Prints an error, and what to do about it, if only the program knows that.
pub(crate) fn tell(error: &Error) {
    let hint = hint(error).map_or_else(String::new, |hint| format!("; {hint}"));
    say(&plain(&format!("error: {error}{hint}")));
}

/// Returns what a file is that is no database, or which one may be meant.
fn hint(error: &Error) -> Option<String> {
    let message = error.to_string();
    let path = |what: &str| message.split_once(what).map(|(path, _)| path);
    match error.kind() {
        ErrorKind::NotAJournal => {
            let path = path(": not an Annals journal")?;
            begins(path, b"SQLite format 3\0").then(|| {
                format!("it is one of SQLite: `annals import sqlite {path} NEW.annals` takes it in")
            })
        }
        ErrorKind::NotFound => {
            let whole = format!("{}.annals", path(": there is no such file")?);
            Path::new(&whole).is_file().then(|| format!("did you mean {whole}?"))
        }
        ErrorKind::PageLost => {
            Some("or delete the image, which the journal can make again".to_owned())
        }
        _ => None,
    }
}

fn begins(path: &str, with: &[u8]) -> bool {
    let mut start = Vec::new();
    let file = files::open_plain(Path::new(path));
    file.is_ok_and(|file| file.take(with.len() as u64).read_to_end(&mut start).is_ok())
        && start == with
}
