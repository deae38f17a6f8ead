//! `annals check` of an archive.

use annals::{Error, Result};
use annals_replica::archive::{self, Archive, Bucket};

use crate::output::{Output, count, plain, say};
use crate::{Outcome, progress};

/// What is asked of an archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) race: bool,
    pub(super) drill: bool,
}

/// Compares all of an archive; or shows whether its store creates an object once.
pub(super) fn run(url: &str, asked: Asked) -> Result<Outcome> {
    let mut output = Output::new();
    if asked.race {
        let raced = archive::race(&Bucket::open(url)?)?;
        if raced.kept < raced.rounds {
            say(&format!(
                "error: {url}: of {} races for an object only {} had one winner: this store can't keep two uploaders apart",
                raced.rounds, raced.kept
            ));
            return Ok(Outcome::Damaged);
        }
        output.line(&format!("ok: {} races, each with one winner", raced.rounds))?;
        output.flush()?;
        return Ok(Outcome::Done);
    }
    let checked = archive::check(&Archive::new(Bucket::open(url)?))?;
    if !checked.damage.is_empty() {
        checked.damage.iter().for_each(|it| say(&format!("error: {url}: {}", plain(it))));
        return Ok(Outcome::Damaged);
    }
    if asked.drill {
        let folder = tempfile::tempdir();
        let folder =
            folder.map_err(|error| Error::io("cannot create a temporary folder", error))?;
        let path = folder.path().join("drill.annals");
        let archive = Archive::new(Bucket::open(url)?);
        let restored = archive::restore(archive, &path, None, &progress::options())?;
        let inspection = annals_tools::inspect(&annals::Options::new(), &path)?;
        if let Some(damage) = &inspection.damage {
            say(&format!("error: {url}: what was restored is damaged: {}", plain(damage)));
            return Ok(Outcome::Damaged);
        }
        if inspection.end.chain != restored.end.chain || restored.end != checked.end {
            say(&format!("error: {url}: what was restored isn't what was archived"));
            return Ok(Outcome::Damaged);
        }
    }
    for orphan in &checked.orphans {
        output.line(&plain(&format!("note: {orphan} is in no list")))?;
    }
    let drilled = if asked.drill { "; restored and compared" } else { "" };
    let (objects, manifests) =
        (count(checked.objects, "object"), count(checked.manifests, "manifest"));
    output.line(&format!(
        "ok: {objects} of {} bytes, {manifests}, up to transaction {}{drilled}",
        checked.bytes, checked.end.txid
    ))?;
    output.flush()?;
    Ok(Outcome::Done)
}
