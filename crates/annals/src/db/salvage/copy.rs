//! Writing the new journal: it has the name that was asked for only when it is whole and on permanent
//! storage.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;

use super::report::Salvaged;
use super::transactions::Salvage;
use crate::db::options::{Options, locate};
use crate::db::progress::Watched;
use crate::db::scan::open_to_read;
use crate::history::history_name;
use crate::image::image_name;
use crate::journal::{Copies, Walk};
use crate::replica;
use crate::storage::{Access, Clock, Directory, Storage, SystemClock};
use crate::{Error, ErrorKind, Result};

impl Options {
    /// Writes a new journal `to` with all that verifies in the journal `from`, which is not changed. The
    /// transactions keep their order, times (as explicit ones) and levels, and get new txids.
    ///
    /// Behind damage a transaction is kept if all its frames verify and it fits what was kept before it.
    /// If a schema change was lost, rows behind it may have been written in another form; what doesn't
    /// fit is left out, but look at the rest.
    ///
    /// Cost: reads the old file once, writes as much; memory for the state.
    ///
    /// # Errors
    /// `InUse` if there is a file `to`; `Unsupported` if a newer version wrote `from`; `NotFound`; `Io`;
    /// `NotAJournal` if neither a header, nor a slot, nor a frame verifies.
    pub fn salvage(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Salvaged> {
        let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
        self.salvage_in((&*from.0, &from.1), (to.0, &to.1), Arc::new(SystemClock))
    }

    /// As [`Self::salvage`], in any directories, with any clock.
    ///
    /// # Errors
    /// As [`Self::salvage`].
    pub fn salvage_in(
        &self,
        (from, name): (&dyn Directory, &str),
        (to, new_name): (Arc<dyn Directory>, &str),
        clock: Arc<dyn Clock>,
    ) -> Result<Salvaged> {
        let (storage, shown) = open_to_read(from, name)?;
        let to = replica::like((from, name), to, new_name)?;
        let shown_new = to.display(new_name);
        if to.open(new_name, Access::Read).is_ok() {
            return Err(exists(&shown_new));
        }
        let temporary = format!("{new_name}.salvage-{:016x}", clock.random());
        let watched = Watched::new(&*storage, self.watch.as_ref());
        let written = write_all(&watched, &shown, (Arc::clone(&to), &temporary, &shown_new), clock)
            .map_err(|error| watched.explain(error, &shown));
        let linked = written.and_then(|salvaged| {
            let linked = to.link(&temporary, new_name).and_then(|()| to.flush());
            linked.map(|()| salvaged).map_err(|error| match error.kind() {
                IoKind::AlreadyExists => exists(&shown_new),
                _ => Error::io(format!("{shown_new}: can't be given its name"), error),
            })
        });
        // It has its name, or is of no use.
        let _ = to.remove(&temporary);
        // Closing may have made these.
        let _ = to.remove(&image_name(&temporary));
        let _ = to.remove(&history_name(&temporary));
        linked
    }
}

fn exists(shown: &str) -> Error {
    let message = format!("{shown}: there is such a file already; choose another name");
    Error::new(ErrorKind::InUse, message)
}

/// Writes everything into a new journal, and closes it.
fn write_all(
    storage: &Watched<'_>,
    shown: &str,
    (directory, name, shown_new): (Arc<dyn Directory>, &str, &str),
    clock: Arc<dyn Clock>,
) -> Result<Salvaged> {
    let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
    let copies = Copies::read(storage).map_err(io)?;
    let mut walk = Walk::new(storage, &copies).map_err(io)?;
    let database = Options::new()
        .background(false)
        .open_in(directory, name, clock)
        .map_err(|error| error.within(format_args!("{shown_new}: nothing was written")))?;
    let mut salvage = Salvage::new(&database, &copies);
    while let Some(step) = walk.next().map_err(io)? {
        salvage.step(&step)?;
    }
    let rest = walk.rest(storage.len().map_err(io)?).map_err(io)?;
    salvage.skip(rest);
    let report = salvage.finish(&copies)?;
    if report.runs.is_empty() && copies.is_empty() {
        let message =
            format!("{shown}: neither a header nor a frame of a journal is there; check the path");
        return Err(Error::new(ErrorKind::NotAJournal, message));
    }
    database.close().map(|()| report)
}
