//! A backup: a copy that is made under a name of its own, and gets the one that was asked for once it is whole.

use std::io;
use std::sync::Arc;

use super::push::{Copied, Pushing};
use crate::history::history_name;
use crate::image::image_name;
use crate::journal::segments::{kept_name, number_in};
use crate::progress::Watch;
use crate::storage::{Access, Clock, Directory, Hold, Lock};
use crate::{Error, ErrorKind, Result};

/// Makes a copy of all of a journal that is on permanent storage, while others may write it.
pub(crate) fn backup(
    source: (Arc<dyn Directory>, &str),
    (directory, name): (Arc<dyn Directory>, &str),
    clock: Arc<dyn Clock>,
    watch: Option<Watch>,
) -> Result<Copied> {
    let names = Names::new(&directory, name, ("backup", &*clock))?;
    let to = (Arc::clone(&directory), names.temporary.as_str());
    let mut pushing = Pushing::new(source, to, clock, watch);
    let copied = pushing.bring_up()?;
    // It keeps its lock until it has its name: so nobody takes it for what a failure left.
    pushing.close()?;
    names.give()?;
    Ok(copied)
}

/// The files of a journal under a temporary name, which go with this unless they were given their names.
#[derive(Debug)]
pub(crate) struct Names {
    directory: Arc<dyn Directory>,
    name: String,
    pub(crate) temporary: String,
}

impl Names {
    /// Chooses a temporary name; refuses one that is taken. Removes what earlier attempts left that came to
    /// their end before they were done; `what` is the middle of those names.
    pub(crate) fn new(
        directory: &Arc<dyn Directory>,
        name: &str,
        (what, clock): (&str, &dyn Clock),
    ) -> Result<Self> {
        let io = |error| Error::io(format!("{}: can't be created", directory.display(name)), error);
        let found = directory.list().map_err(io)?;
        let is_taken = |found: &&String| *found == name || number_in(found, name).is_some();
        if let Some(taken) = found.iter().find(is_taken) {
            return Err(taken_already(&**directory, taken));
        }
        remove_leftovers(&**directory, &found, &format!("{name}.{what}-"));
        let temporary = format!("{name}.{what}-{:016x}", clock.random());
        Ok(Self { directory: Arc::clone(directory), name: name.to_owned(), temporary })
    }

    /// Gives all files their names, durably, those of kept segments first; they are whole, and flushed. Image and
    /// history index, if there are any, come with them.
    pub(crate) fn give(self) -> Result<()> {
        let mut given = Vec::new();
        let done = self.link_all(&mut given);
        if done.is_ok() {
            for cache in [image_name, history_name] {
                // Without them the database is whole, too. An older file of that name stays.
                let _ = self.directory.link(&cache(&self.temporary), &cache(&self.name));
            }
        }
        if done.is_err() {
            for name in given {
                // What is left is in the way of the next attempt, which says so.
                let _ = self.directory.remove(&name);
            }
        }
        done
    }

    fn link_all(&self, given: &mut Vec<String>) -> Result<()> {
        let Self { directory, name, temporary } = self;
        let io = |error| {
            Error::io(format!("{}: can't be given its name", directory.display(name)), error)
        };
        let numbers = self.numbers().map_err(io)?;
        let kept =
            numbers.iter().map(|&number| (kept_name(temporary, number), kept_name(name, number)));
        let is_alone = numbers.is_empty();
        for (place, (from, to)) in kept.chain([(temporary.clone(), name.clone())]).enumerate() {
            if place == numbers.len() && !is_alone {
                // Who finds the newest finds all.
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

    /// Gives the numbers of the kept segments that were made.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let found = self.directory.list()?;
        let mut numbers: Vec<_> =
            found.iter().filter_map(|found| number_in(found, &self.temporary)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

impl Drop for Names {
    /// Removes the temporary names: the files have others, or are of no use.
    fn drop(&mut self) {
        for number in self.numbers().unwrap_or_default() {
            let _ = self.directory.remove(&kept_name(&self.temporary, number));
        }
        let _ = self.directory.remove(&self.temporary);
        // Closing may have made these.
        let _ = self.directory.remove(&image_name(&self.temporary));
        let _ = self.directory.remove(&history_name(&self.temporary));
    }
}

fn taken_already(directory: &dyn Directory, name: &str) -> Error {
    let shown = directory.display(name);
    let message =
        format!("{shown}: there is such a file already; remove it, or choose another name");
    Error::new(ErrorKind::InUse, message)
}

/// Removes the files of attempts that nobody goes on with: whose newest segment isn't locked, or missing.
fn remove_leftovers(directory: &dyn Directory, found: &[String], prefix: &str) {
    const DIGITS: usize = 16;
    for name in found {
        let Some(id) = name.strip_prefix(prefix).and_then(|rest| rest.get(..DIGITS)) else {
            continue;
        };
        if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        let main = directory.open(&format!("{prefix}{id}"), Access::Write);
        let is_held =
            main.is_ok_and(|main| !main.try_lock(Lock::Head, Hold::Exclusive).unwrap_or(true));
        if !is_held {
            // What can't be removed is in nobody's way.
            let _ = directory.remove(name);
        }
    }
}
