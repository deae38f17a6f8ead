//! Writing the new journal: it has the name that was asked for only when it is whole and on permanent
//! storage.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;

use super::parts::Parts;
use super::proof::Proof;
use super::report::Salvaged;
use super::transactions::{From, Salvage};
use crate::db::options::{Options, locate};
use crate::db::progress::Watched;
use crate::history::history_name;
use crate::image::image_name;
use crate::journal::Walk;
use crate::storage::{Access, Clock, Directory, SystemClock};
use crate::{Error, ErrorKind, Result};

impl Options {
    /// Writes a new journal `to` with all that verifies in the journal `from`, in all its segments; they aren't
    /// changed. The transactions keep their order, times (as explicit ones) and levels, and get new txids.
    ///
    /// After damage a transaction is kept if all its frames verify, if the chain proves that they are of this history
    /// ([`unproven`](Self::unproven)), and if it fits what was kept before it. If a schema change was lost, rows after
    /// it may have been written in another form; what doesn't fit is left out, but look at the rest.
    ///
    /// Where transactions are lost, and the image stands for a later one, or a segment begins with a later state, one
    /// transaction brings the new journal to that state, after those that were kept up to there; its comment says so.
    ///
    /// Cost: reads the old files twice, and writes as much; memory for the state.
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
        let shown = from.display(name);
        let shown_new = to.display(new_name);
        if to.open(new_name, Access::Read).is_ok() {
            return Err(exists(&shown_new));
        }
        let parts = Parts::find(from, name)?;
        let temporary = format!("{new_name}.salvage-{:016x}", clock.random());
        let source = From {
            parts: &parts,
            directory: from.again(),
            memory: self.budget(),
            unproven: self.unproven,
        };
        let new = (Arc::clone(&to), temporary.as_str(), shown_new.as_str());
        let written = self.write_all(source, &shown, new, clock);
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

    /// Writes everything into a new journal, and closes it.
    fn write_all(
        &self,
        from: From<'_>,
        shown: &str,
        (directory, name, shown_new): (Arc<dyn Directory>, &str, &str),
        clock: Arc<dyn Clock>,
    ) -> Result<Salvaged> {
        let parts = from.parts;
        let unwritable = |error: Error| match error.kind() {
            ErrorKind::Cancelled => error,
            _ => error.within(format_args!("{shown_new}: nothing was written")),
        };
        let database = Self::new()
            .background(false)
            .open_in(Arc::clone(&directory), name, clock)
            .map_err(unwritable)?;
        let mut salvage = Salvage::new(&database, from);
        for (place, part) in parts.all.iter().enumerate() {
            let io = |error| part.unreadable(error);
            let watched = Watched::new(&*part.storage, self.watch.as_ref());
            let mut read = || {
                let proof = Proof::of(parts, place, &watched).map_err(io)?;
                watched.read_again();
                salvage.begin_part(place, proof)?;
                let mut walk = Walk::new(&watched, &part.copies).map_err(io)?;
                while let Some(step) = walk.next().map_err(io)? {
                    salvage.step(&step)?;
                }
                let rest = walk.rest(part.storage.len().map_err(io)?).map_err(io)?;
                salvage.skip(rest);
                Ok(())
            };
            read().map_err(|error| watched.explain(error, &part.shown))?;
        }
        let report = salvage.finish()?;
        let is_empty = parts.all.iter().all(|part| part.copies.is_empty());
        if report.runs.is_empty() && report.restored.is_empty() && is_empty {
            let message = format!(
                "{shown}: neither a header nor a frame of a journal is there; check the path"
            );
            return Err(Error::new(ErrorKind::NotAJournal, message));
        }
        database.close().map(|()| report)
    }
}

fn exists(shown: &str) -> Error {
    let message = format!("{shown}: there is such a file already; choose another name");
    Error::new(ErrorKind::InUse, message)
}
