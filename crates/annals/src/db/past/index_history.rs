//! Extending the history index, when a backfill is about to write the image.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::Result;
use crate::db::past::history::current::Current;
use crate::db::past::history::files::Files;
use crate::db::present::snapshot::Published;
use crate::db::write::core::Core;
use crate::journal::lock;
use crate::store::history::HistoryIndex;

/// When a database is closed, no more of the journal than this is read for the index.
const MOST_AT_CLOSE: u64 = 16 << 20;

/// Returns the history index up to a published state; or the one that is there, if it can't be extended. A problem
/// is noted, and nothing depends on it.
///
/// Cost: reads the journal after the index, which is in the page cache.
pub(in crate::db) fn newest(core: &Core, published: &Published) -> Arc<HistoryIndex> {
    let there = published.view.history_index();
    let is_closing = core.history.is_closing.load(Ordering::Relaxed);
    if !core.history.keeps || (is_closing && Current::lag(published) > MOST_AT_CLOSE) {
        return Arc::clone(there);
    }
    let _alone = core.history.pause();
    extended(core, published, is_closing).unwrap_or_else(|error| {
        *lock(&core.history.problem) = Some(error.to_string());
        Arc::clone(there)
    })
}

/// Returns how often nodes of the index in the image were found damaged.
fn damaged(core: &Core) -> usize {
    core.image().map_or(0, |image_state| image_state.damage().spares())
}

/// True if nodes of the index were found damaged, and no other one was made since.
pub(in crate::db) fn is_damaged(core: &Core) -> bool {
    core.history.keeps && damaged(core) != core.history.damaged.load(Ordering::Relaxed)
}

fn extended(core: &Core, published: &Published, is_closing: bool) -> Result<Arc<HistoryIndex>> {
    let files = Files::open(published)?;
    let (damaged, len) = (damaged(core), published.file.reach(published.point.position));
    let is_cheap = !is_closing || len <= MOST_AT_CLOSE;
    if is_cheap && damaged != core.history.damaged.load(Ordering::Relaxed) {
        // Noted in place of the one in the image until it is stored.
        let made = Current::anew(&files, published)?;
        core.history.damaged.store(damaged, Ordering::Relaxed);
        return Ok(made.index);
    }
    let first = files.first().segment;
    let current = Current::up_to(&files, published).and_then(|it| it.without_forgotten(first));
    let schema = published.view.schema();
    let current = match current {
        // For other tables the whole journal is read once.
        Ok(current) if current.is_of(&files) => match current.is_unwanted(schema) {
            true if !is_closing || current.len() <= MOST_AT_CLOSE => {
                Current::made_of(&files, published)?
            }
            _ => current,
        },
        Ok(_) => Current::made_of(&files, published)?,
        Err(error) => {
            *lock(&core.history.problem) = Some(format!("making the history index anew: {error}"));
            Current::made_of(&files, published)?
        }
    };
    Ok(current.index)
}
