//! The files of a state, for those who pass on their bytes.

use std::sync::Arc;

use crate::Result;
use crate::db::follow::segments::Past;
use crate::db::follow::witness::identity;
use crate::db::present::snapshot::Snapshot;
use crate::image::{Exposed, Image, image_name};
use crate::journal::{Cursor, Head};
use crate::storage::{Storage, SystemClock};

/// One file of a journal, to be read up to an end.
#[derive(Clone, Debug)]
pub struct JournalPart {
    /// The open file. If it is sealed, it isn't removed as long as this exists.
    pub storage: Arc<dyn Storage>,
    /// Its name in messages.
    pub shown: String,
    /// The contents of its first 16 KiB.
    pub head: Head,
    /// Where the state ends, if it is the newest; else its length, with the seal.
    pub end: u64,
    /// True for the last one.
    pub is_newest: bool,
}

/// Returns the files of the kept history up to a state, the oldest first: only the newest, if `since` is in it.
///
/// Cost: opens those files, and reads their heads.
///
/// # Errors
/// `Io`, `Corrupt`.
pub fn files_of(state: &Snapshot, since: Option<Cursor>) -> Result<Vec<JournalPart>> {
    let published = &state.published;
    let file = &published.file;
    let head = file.head()?.clone();
    let newest = JournalPart {
        storage: Arc::clone(&file.storage),
        shown: file.name.clone(),
        head,
        end: published.point.position,
        is_newest: true,
    };
    let begins_after = newest.head.start().txid;
    if since.is_some_and(|since| since.txid > begins_after) {
        // The state at its beginning has the number of a transaction that is also in the segment before.
        let is_state = newest.head.header.begins_with_state();
        if !is_state || since.is_some_and(|since| since.txid > begins_after + 1) {
            return Ok(vec![newest]);
        }
    }
    let past = Past::whole(&*file.directory, &file.journal, &newest.head.header)?;
    let kept = past.segments().iter().map(|kept| JournalPart {
        storage: Arc::clone(&kept.storage),
        shown: kept.shown.clone(),
        head: kept.head.clone(),
        end: kept.len,
        is_newest: false,
    });
    Ok(kept.chain([newest]).collect())
}

/// Pins the newest root of the image beside the journal of a state, until that continues in another segment; `None` if
/// there is none that can be used.
///
/// # Errors
/// `Io`; `Busy` if there is a newer root each time.
pub fn expose_image(state: &Snapshot) -> Result<Option<Exposed>> {
    let file = &state.published.file;
    if file.storage.has_fixed_len() {
        return Ok(None);
    }
    let (identity, name) = (identity(file.head()?), image_name(&file.journal));
    let exposed = Image::expose(&file.directory, &name, &identity, &SystemClock)?;
    exposed.iter().for_each(|exposed| file.images.exposed.add(&exposed.pin));
    Ok(exposed)
}
