//! Files under temporary names, until they are whole.
//!
//! ```text
//! 1. create NAME.WHAT-ID.held and lock it: as long as it is locked, nobody takes the others for leftovers
//! 2. write the files as NAME.WHAT-ID, and kept segments as NAME.WHAT-ID-segment-N, and flush them
//! 3. link the kept segments as NAME-segment-N, flush the directory, link NAME.WHAT-ID as NAME, flush the directory
//! 4. remove the temporary names, the one of step 1 last, and flush the directory
//! ```
//!
//! A new attempt removes orphans of others: all files of an ID whose first one isn't locked, and the names of step 3
//! as long as there is no NAME. A process that creates the first one and hasn't locked it yet finds it locked or
//! missing, and retries.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use annals::{Error, ErrorKind, Result};
use annals_journal::segments::{is_id, kept_name, number_in};
use annals_storage::{Access, Clock, Directory, Hold, Lock, Storage, is_same_file};
use annals_store::image::image_name;

/// The files of a journal under a temporary name, which go with this unless they were given their names.
#[derive(Debug)]
pub struct Names {
    directory: Arc<dyn Directory>,
    name: String,
    temporary: String,
    /// Its lock means that a process is at work.
    held: Option<Arc<dyn Storage>>,
}

/// The suffix that the file of step 1 has after the temporary name.
const HELD: &str = ".held";

/// The number of tries to create a file that another process takes for an orphan.
const TRIES: usize = 100;

impl Names {
    /// Chooses a temporary name; `what` is the middle of it. Removes orphans of earlier attempts.
    ///
    /// # Errors
    /// `InUse`: a file has the name, or the name of a segment kept beside it; `Io`.
    pub fn new(
        directory: &Arc<dyn Directory>,
        name: &str,
        what: &str,
        clock: &dyn Clock,
    ) -> Result<Self> {
        let io = |error| Error::io(format!("{}: can't be created", directory.display(name)), error);
        remove_leftovers(&**directory, name, &format!("{name}.{what}-")).map_err(io)?;
        let found = directory.list().map_err(io)?;
        let is_taken = |found: &&String| *found == name || number_in(found, name).is_some();
        if let Some(taken) = found.iter().find(is_taken) {
            return Err(taken_already(&**directory, taken));
        }
        for _ in 0..TRIES {
            let temporary = format!("{name}.{what}-{:016x}", clock.random());
            let file = directory.create(&format!("{temporary}{HELD}")).map_err(io)?;
            let names = Self {
                directory: Arc::clone(directory),
                name: name.to_owned(),
                temporary,
                held: Some(Arc::clone(&file)),
            };
            let is_held = file.try_lock(Lock::Head, Hold::Exclusive).map_err(io)?;
            if is_held && file.is_linked().map_err(io)? {
                return Ok(names);
            }
        }
        Err(io(io::ErrorKind::ResourceBusy.into()))
    }

    /// Returns the temporary name.
    #[must_use]
    pub fn temporary(&self) -> &str {
        &self.temporary
    }

    /// Returns an error with the name that the files will have: the temporary one means nothing to users.
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        error.renaming(&self.temporary, &self.name)
    }

    /// Returns all files their names, durably, those of kept segments first. The files are whole and flushed. An
    /// image, if there is one, is renamed with them.
    ///
    /// # Errors
    /// `InUse`: another file has a name by now; `Io`. Then none has its name.
    pub fn give(self) -> Result<()> {
        let mut given = Vec::new();
        let done = self.link_all(&mut given);
        if done.is_ok() {
            // Without it the database is whole, too. An older file of that name stays.
            let _ = self.directory.link(&image_name(&self.temporary), &image_name(&self.name));
        }
        if done.is_err() {
            for name in given {
                // The next attempt removes the rest.
                let _ = self.directory.remove(&name);
            }
        }
        done
    }

    fn link_all(&self, given: &mut Vec<String>) -> Result<()> {
        let Self { directory, name, temporary, .. } = self;
        let io = |error| {
            Error::io(format!("{}: can't be given its name", directory.display(name)), error)
        };
        let found = directory.list().map_err(io)?;
        let mut numbers: Vec<_> =
            found.iter().filter_map(|found| number_in(found, temporary)).collect();
        numbers.sort_unstable();
        let kept =
            numbers.iter().map(|&number| (kept_name(temporary, number), kept_name(name, number)));
        let is_alone = numbers.is_empty();
        for (place, (from, to)) in kept.chain([(temporary.clone(), name.clone())]).enumerate() {
            if place == numbers.len() && !is_alone {
                // A process that finds the newest finds all.
                directory.flush().map_err(io)?;
            }
            match directory.link(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(taken_already(&**directory, &to));
                }
                linked => linked.map_err(io)?,
            }
            given.push(to);
        }
        directory.flush().map_err(io)
    }
}

impl Drop for Names {
    /// Removes the temporary names: the files have others, or aren't needed.
    fn drop(&mut self) {
        // A file that can't be removed is harmless, and the next attempt retries.
        let _ = remove_all(&*self.directory, &self.temporary);
        self.held = None;
    }
}

/// Returns a handle of the directory of a new file that is made of a journal, and gets its permissions.
///
/// # Errors
/// `Io`: the permissions of the journal can't be read.
pub(crate) fn like(
    directory: &dyn Directory,
    journal: &str,
    to: Arc<dyn Directory>,
    name: &str,
) -> Result<Arc<dyn Directory>> {
    let permissions = directory.permissions(journal).map_err(|error| {
        let shown = directory.display(journal);
        Error::io(format!("{shown}: can't see who may use it"), error)
    })?;
    Ok(to.for_journal(name, permissions).unwrap_or(to))
}

/// Removes all files of one attempt, the locked one last, and makes that durable.
fn remove_all(directory: &dyn Directory, temporary: &str) -> io::Result<()> {
    let held = format!("{temporary}{HELD}");
    let is_of = |found: &String| {
        let rest = found.strip_prefix(temporary);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.'])) && *found != held
    };
    for found in directory.list()?.iter().filter(|found| is_of(found)) {
        directory.remove(found)?;
    }
    directory.flush()?;
    directory.remove(&held)
}

fn taken_already(directory: &dyn Directory, name: &str) -> Error {
    let shown = directory.display(name);
    let message =
        format!("{shown}: there is such a file already; remove it, or choose another name");
    Error::new(ErrorKind::InUse, message)
}

/// Removes the files of abandoned attempts.
fn remove_leftovers(directory: &dyn Directory, name: &str, prefix: &str) -> io::Result<()> {
    const DIGITS: usize = 16;
    let found = directory.list()?;
    let ids: BTreeSet<_> = found
        .iter()
        .filter_map(|found| found.strip_prefix(prefix)?.get(..DIGITS))
        .filter(|id| is_id(id))
        .collect();
    for id in ids {
        let temporary = format!("{prefix}{id}");
        // Kept until all are removed. An older version locks the newest segment.
        let locks =
            [format!("{temporary}{HELD}"), temporary.clone()].map(|it| lock(directory, &it));
        if locks.iter().any(Result::is_err) {
            continue;
        }
        if !found.iter().any(|found| found == name) {
            remove_given(directory, name, &temporary, &found)?;
        }
        // A file that can't be removed is harmless.
        let _ = remove_all(directory, &temporary);
    }
    Ok(())
}

/// Removes the names of kept segments from an interrupted attempt, as long as no file has the journal's name.
fn remove_given(
    directory: &dyn Directory,
    name: &str,
    temporary: &str,
    found: &[String],
) -> io::Result<()> {
    for number in found.iter().filter_map(|found| number_in(found, temporary)) {
        let given = kept_name(name, number);
        if found.contains(&given) && is_same_file(directory, &kept_name(temporary, number), &given)?
        {
            directory.remove(&given)?;
        }
    }
    Ok(())
}

/// Locks a file, if it exists; an error if another process has locked it.
fn lock(directory: &dyn Directory, name: &str) -> io::Result<Option<Arc<dyn Storage>>> {
    let Ok(file) = directory.open(name, Access::Write) else { return Ok(None) };
    match file.try_lock(Lock::Head, Hold::Exclusive) {
        Ok(false) => Err(io::ErrorKind::ResourceBusy.into()),
        _ => Ok(Some(file)),
    }
}
