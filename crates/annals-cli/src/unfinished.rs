//! Files under temporary names, which an interrupt (Ctrl-C) removes: it ends the program, and they would stay.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use annals::storage::Interrupts;

/// How often it is looked whether there was an interrupt.
const PAUSE: Duration = Duration::from_millis(20);

/// The status of a program that an interrupt ended: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// Those that aren't complete.
static ALL: Mutex<Vec<Files>> = Mutex::new(Vec::new());

/// Files of a folder whose names begin so, but for those that were there before: they are another process's.
#[derive(Clone, PartialEq)]
struct Files {
    folder: PathBuf,
    temporary: String,
    others: Vec<OsString>,
}

/// Files that aren't complete, until this is dropped.
pub(crate) struct Unfinished(Files);

impl Unfinished {
    /// Begins; all in the folder of `target` whose names begin with `temporary` are meant.
    pub(crate) fn new(target: &Path, temporary: &str) -> Self {
        Self::begin(Files::beside(target, temporary))
    }

    /// Begins, before they are there, with the files of an operation of the library that makes `target`, under the names
    /// that it gives them (see [`Names`](annals_tools::Names)). An interrupt from now on removes them.
    pub(crate) fn of(target: &Path, operation: &str) -> Self {
        remove_at_interrupt();
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let mut files = Files::beside(target, &format!("{name}.{operation}-"));
        files.others = files.found();
        Self::begin(files)
    }

    fn begin(files: Files) -> Self {
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(files.clone());
        Self(files)
    }
}

impl Files {
    fn beside(target: &Path, temporary: &str) -> Self {
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        Self { folder, temporary: temporary.to_owned(), others: Vec::new() }
    }

    fn found(&self) -> Vec<OsString> {
        let all = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = all.map(|found| found.file_name());
        names
            .filter(|name| name.as_encoded_bytes().starts_with(self.temporary.as_bytes()))
            .collect()
    }

    /// Removes them. One that can't be removed is harmless.
    fn remove(&self) {
        for name in self.found().iter().filter(|name| !self.others.contains(name)) {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|files| *files != self.0);
    }
}

/// Lets an interrupt from now on remove what isn't complete, and end the program. Only for commands that don't catch
/// interrupts themselves.
pub(crate) fn remove_at_interrupt() {
    static CATCHES: Once = Once::new();
    CATCHES.call_once(catch);
}

fn catch() {
    let interrupts = Interrupts::catch();
    thread::spawn(move || {
        while !interrupts.take() {
            thread::park_timeout(PAUSE);
        }
        // Nothing new begins while this is locked.
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(Files::remove);
        exit(INTERRUPTED)
    });
}
