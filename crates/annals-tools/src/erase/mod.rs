//! Erasing values from history, in three steps: a scan finds them, the segments that hold them are written again with
//! null in their places, and the new segments take the place of the old ones.
//!
//! `search` finds the values, `edit` changes events of the `payload` of frames, and `write` makes segments by
//! `rewrite`. `generation` puts these in place, up to step 3 of `annals::internals::erasure`; the library does the
//! rest, for it also ends what a crash interrupted.

mod edit;
mod generation;
mod payload;
mod report;
mod rewrite;
mod search;
mod write;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use annals::internals::locate;
use annals::{Options, Result, Schema};
use annals_storage::{Clock, Directory, SystemClock};

use self::generation::{Generation, Removable};
pub use self::report::{Erase, Erased};
use self::search::{Others, Search, Target};
use self::write::Writing;

/// What was found, and is to be written.
struct Plan {
    target: Target,
    erased: Erased,
    /// The place of the first segment that is written again, and the schema at its beginning.
    first: usize,
    schema: Arc<Schema>,
    /// The ends of transactions whose chains earlier marks name.
    marked: BTreeSet<u64>,
    removable: Removable,
}

/// Erases values from history: all segments of the journal, from the first that holds one of them, are written
/// again without them, with other chains. Everything that is made of them, the image and saved tails, is
/// removed. The values are null from then on, as if they always had been. Nothing else changes, but one
/// transaction is added, which marks the erasure.
///
/// A server keeps its answers to requests with a key. If such a request wrote an erased value, its answer and the hash
/// of the request are erased, too. The key stays, so that the request never runs again. Comments stay unless
/// [`Erase`] names them. The schema and other rows stay, even if they have the same value. A field's default, and zeros
/// that `insert_vector` made, were never written to the row, and stay. Programs that have the old files open continue
/// to see them. File systems and disks may keep the bytes of removed files, unless these are to be overwritten and the
/// medium does that in place. Copies elsewhere stay as they are.
///
/// A crash leaves the old history or the new one, as a whole. The next opening for writing removes what is left.
///
/// Cost: opens the journal as [`Options::open`] does, reads all history once, what is written again twice, and all
/// once more if there are blobs. As much free space as is written again; memory for a few frames and for the
/// opening.
///
/// # Errors
/// `NotFound`: no such file, table or field, or nothing to erase; `Busy`: another process, or this, has it open
/// for writing; `Invalid`: a file beside it has the name of a segment that isn't one of this history;
/// `Unsupported`: a raw device; `Corrupt`; `Io`. Then nothing was changed, unless an error says otherwise.
pub fn erase(options: &Options, path: impl AsRef<Path>, what: &Erase) -> Result<Erased> {
    let (directory, name) = locate(path.as_ref())?;
    erase_in(options, &directory, &name, &(Arc::new(SystemClock) as _), what)
}

/// As [`erase`], in any directory, with any clock.
///
/// # Errors
/// As [`erase`].
pub fn erase_in(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
    clock: &Arc<dyn Clock>,
    what: &Erase,
) -> Result<Erased> {
    let journal = match what.dry_run {
        true => Generation::look(options, directory, name)?,
        false => Generation::hold(options, directory, name, clock)?,
    };
    let plan = plan(&journal, what)?;
    if !what.dry_run {
        let mut writing = Writing::new(&plan, &journal, &**clock);
        journal.replace(writing.id, &plan.removable, what.overwrite, &mut |create| {
            writing.all(&plan, what, create)
        })?;
    }
    Ok(plan.erased)
}

/// Reads all of history, and looks at the files beside it.
fn plan(journal: &Generation, what: &Erase) -> Result<Plan> {
    let segments = journal.facts();
    let mut search = Search::new(what, &segments);
    journal.scan(&mut search)?;
    let (mut target, found, left) =
        search.target().map_err(|error| error.within(journal.shown()))?;
    let comments = search.comments(&mut target, &found);
    let mut txids: BTreeSet<u64> = comments.keys().chain(target.answers.keys()).copied().collect();
    txids.extend(found.iter().flat_map(|(_, values)| &values.txids));
    let held = (txids.first().copied().unwrap_or(0), txids.last().copied().unwrap_or(0));
    let mut first_txid = held.0;
    let blobs: BTreeSet<_> = found.iter().flat_map(|(_, values)| &values.blobs).copied().collect();
    if !blobs.is_empty() {
        let mut others = Others::new(&target, blobs);
        journal.scan(&mut others)?;
        // The bytes of a blob may lie in a segment before that of the first value that refers to it.
        first_txid = others.first_txid().map_or(first_txid, |bytes| bytes.min(first_txid));
        target.blobs = others.blobs;
    }
    let first =
        segments.iter().rposition(|segment| segment.first_txid.0 <= first_txid).unwrap_or(0);
    // The state that history begins with is nowhere else: its transaction has another chain, too.
    let rewritten = segments.get(first).map_or(1, |facts| match first {
        0 => facts.first_txid.0 - u64::from(facts.begins_with_state),
        _ => facts.first_txid.0,
    });
    let last = segments.last().map_or(0, |facts| facts.last_txid.0);
    let removable = journal.removable()?;
    let erased = Erased {
        fields: found.iter().map(|(name, _)| name.clone()).collect(),
        values: found.iter().map(|(_, values)| values.count).sum(),
        comments: comments.values().sum(),
        answers: target.answers.values().map(|it| it.left).sum(),
        blobs: target.blobs.len() as u64,
        held,
        rewritten: (rewritten, last),
        segments: (segments.len() - first) as u64,
        bytes: segments.iter().skip(first).map(|facts| facts.bytes).sum(),
        mark: last + 1,
        left,
        removed: removable.removed.clone(),
        unproven: removable.unproven.clone(),
    };
    let before = first.checked_sub(1).and_then(|before| segments.get(before));
    let schema = before.map(|facts| search.schema_at(facts.last_txid.0)).unwrap_or_default();
    Ok(Plan { target, erased, first, schema, marked: search.marked, removable })
}
