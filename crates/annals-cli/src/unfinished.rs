//! Files under temporary names, which an interrupt (Ctrl-C) removes: it ends the program, and they would stay.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use annals::storage::Interrupts;

/// How often it is looked whether there was an interrupt.
const PAUSE: Duration = Duration::from_millis(20);

/// The status of a program that an interrupt ended: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// The folders and the beginnings of names of files that aren't complete.
static ALL: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// Files that aren't complete, until this is dropped.
pub(crate) struct Unfinished(PathBuf, String);

impl Unfinished {
    /// Begins, before the files are there; all in the folder of `target` whose names begin with `temporary` are meant.
    pub(crate) fn new(target: &Path, temporary: &str) -> Self {
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let entry = (folder, temporary.to_owned());
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
        Self(entry.0, entry.1)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(folder, temporary)| (folder, temporary) != (&self.0, &self.1));
    }
}

/// Lets an interrupt from now on remove what isn't complete, and end the program. Only for commands that don't catch
/// interrupts themselves.
pub(crate) fn remove_at_interrupt() {
    let interrupts = Interrupts::catch();
    thread::spawn(move || {
        while !interrupts.take() {
            thread::park_timeout(PAUSE);
        }
        // Nothing new begins while this is locked.
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        for (folder, temporary) in all.iter() {
            remove(folder, temporary);
        }
        exit(INTERRUPTED)
    });
}

/// Removes files. One that can't be removed is harmless.
fn remove(folder: &Path, temporary: &str) {
    for found in fs::read_dir(folder).into_iter().flatten().flatten() {
        if found.file_name().as_encoded_bytes().starts_with(temporary.as_bytes()) {
            let _ = fs::remove_file(found.path());
        }
    }
}
