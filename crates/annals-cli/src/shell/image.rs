//! The shell's command for the image.

use annals::reports::BackfillOutcome;
use annals::{BackfillMode, Database, Error, Result};

use super::screen::Screen;
use super::words::Words;
use crate::{language, progress};

/// Updates the image to the newest commit; pending changes aren't part of it.
pub(super) fn backfill(
    database: &Database,
    words: &Words<'_>,
    is_open: bool,
    screen: &mut Screen,
) -> Result<()> {
    let mode = match words.arguments() {
        [] => BackfillMode::Passive,
        [mode] if !mode.quoted => language::backfill_mode(&mode.text)?,
        _ => return Err(words.misused()),
    };
    if is_open && mode != BackfillMode::Passive {
        return Err(Error::invalid(format!(
            "`backfill {}` would wait for the transaction that is open here; end it with commit or \
             rollback first",
            mode.name()
        )));
    }
    let done = database.backfill_watched(mode, &mut progress::of_backfill())?;
    if done.outcome == BackfillOutcome::Postponed {
        return Err(Error::invalid(
            "the transaction that is open began before the last backfill ended; end it with commit or \
             rollback first",
        ));
    }
    let (txid, position, pages, bytes) = (done.txid, done.position, done.pages, done.bytes);
    screen
        .output
        .line(&format!("backfilled txid={txid} position={position} pages={pages} bytes={bytes}"))
}
