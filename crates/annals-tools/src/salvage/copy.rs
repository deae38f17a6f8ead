//! Writing the new journal: it gets the requested name only when it is whole and on permanent storage.

use std::path::Path;
use std::sync::Arc;

use annals::internals::{Watched, locate, takes_unproven, watch};
use annals::{Error, ErrorKind, Options, Result};
use annals_storage::{Clock, Directory, SystemClock};

use super::parts::Parts;
use super::proof::Proof;
use super::report::Salvaged;
use super::transactions::{From, Salvage};
use super::walk::Walk;
use crate::names::{Names, like};

/// Writes a new journal `to` with all that verifies in the journal `from`, in all its segments; they aren't
/// changed. The transactions keep their order, times (as explicit ones) and levels, and get new txids.
///
/// After damage a transaction is kept if all its frames verify, and it fits the kept state before it. The chain must
/// also prove that the frames are of this history ([`Options::unproven`]). If a schema change was lost, rows after it
/// may have been written in another form; unfit ones are left out, but check the rest.
///
/// If transactions are lost, a later state may be in the image, or at the beginning of a segment. Then one
/// transaction changes the new journal to that state, after those kept up to there. Its comment says so.
///
/// Cost: reads the old files twice, and writes as much; memory for the state.
///
/// # Errors
/// `InUse` if there is a file `to`; `Unsupported` if a newer version wrote `from`; `NotFound`; `Io`;
/// `NotAJournal` if neither a header, nor a slot, nor a frame verifies.
pub fn salvage(
    options: &Options,
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
) -> Result<Salvaged> {
    let (from, to) = (locate(from.as_ref())?, locate(to.as_ref())?);
    salvage_in(options, &*from.0, &from.1, to.0, &to.1, Arc::new(SystemClock))
}

/// Does what [`salvage`] does, with directories and a clock that the caller passes.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_in(
    options: &Options,
    from: &dyn Directory,
    name: &str,
    to: Arc<dyn Directory>,
    new_name: &str,
    clock: Arc<dyn Clock>,
) -> Result<Salvaged> {
    let shown = from.display(name);
    let parts = Parts::find(from, name)?;
    let to = like(from, &parts.newest_name(from, name), to, new_name)?;
    let names = Names::new(&to, new_name, "salvage", &*clock)?;
    let source = From {
        parts: &parts,
        directory: from.again(),
        memory: options.budget(),
        unproven: takes_unproven(options),
    };
    let salvaged = write_all(options, source, &shown, to, names.temporary(), clock);
    let salvaged = salvaged.map_err(|error| names.explain(error))?;
    names.give()?;
    Ok(salvaged)
}

/// Writes everything into a new journal, and closes it.
fn write_all(
    options: &Options,
    from: From<'_>,
    shown: &str,
    directory: Arc<dyn Directory>,
    name: &str,
    clock: Arc<dyn Clock>,
) -> Result<Salvaged> {
    let parts = from.parts;
    let shown_new = directory.display(name);
    let database = Options::new()
        .background(false)
        .open_in(directory, name, clock)
        .map_err(|error| error.within(format_args!("{shown_new}: nothing was written")))?;
    let mut salvage = Salvage::new(&database, from);
    let watch = watch(options);
    for (place, part) in parts.all.iter().enumerate() {
        let io = |error| part.unreadable(error);
        let watched = Watched::new(&*part.storage, watch.as_ref());
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
    let mut report = salvage.finish()?;
    report.missing.extend(parts.following);
    report.replaced.clone_from(&parts.replaced);
    let is_empty = parts.all.iter().all(|part| part.copies.is_empty());
    if report.runs.is_empty() && report.restored.is_empty() && is_empty {
        let message =
            format!("{shown}: neither a header nor a frame of a journal is there; check the path");
        return Err(Error::new(ErrorKind::NotAJournal, message));
    }
    database.close().map(|()| report)
}
