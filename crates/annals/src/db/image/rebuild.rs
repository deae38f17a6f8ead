//! Making objects of an image anew from the journal.
//!
//! An entry of the image's directory says after which transaction its object was written, and what its
//! checksum is. The journal is replayed into a store of its own up to there; what that store would hand over
//! to a backfill, the object is among it. Which one it is its checksum tells, and proves: so nothing has to
//! be known of where it lies in the store, and what isn't reproduced bit by bit is never taken for it.
//!
//! That may happen: where history was forgotten, the journal begins with the state, from which rows get other
//! slots; and what a transaction that was rolled back left behind rows means nothing, but has a checksum.

use std::collections::HashMap;
use std::sync::Arc;

use crate::db::past::{Opened, Past};
use crate::db::scan::Replay;
use crate::image::{Source, Stored};
use crate::journal::{Frame, FrameReader, Head};
use crate::storage::Directory;
use crate::store::{Keep, Pager, Piece, View};
use crate::{Error, Result};

/// What was made anew, by its place in the image.
pub(super) type Rebuilt = HashMap<u64, (Stored, Arc<[u8]>)>;

/// Makes objects anew, as far as that can be done.
///
/// Cost: a replay of the journal up to the last transaction that is wanted, in memory for the whole store; and
/// the checksums of what has the length of something wanted.
///
/// # Errors
/// The journal can't be read, or is damaged before that.
pub(super) fn rebuild(
    directory: &dyn Directory,
    journal: &str,
    mut wanted: Vec<Stored>,
) -> Result<Rebuilt> {
    wanted.sort_unstable_by_key(|stored| std::cmp::Reverse(stored.txid));
    let mut search = Search { replay: Replay::default(), wanted, found: Rebuilt::new() };
    let Opened { storage, shown, past } = Opened::new(directory, journal, Past::needed)?;
    let past = past?;
    let read = past.read(
        None,
        &mut search,
        |search, kept| search.replay.begin(&kept.header()),
        |search, frame, (shown, is_repeated)| search.frame(frame, shown, is_repeated),
    );
    // What comes behind all that was wanted may be as it likes.
    if search.wanted.is_empty() {
        return Ok(search.found);
    }
    read?;
    search.replay.begin(past.header());
    let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
    let head = Head::read(&*storage, &shown)?;
    let mut reader = FrameReader::new(&*storage, head.start(), storage.len().map_err(io)?);
    while !search.wanted.is_empty() {
        let Some(frame) = reader.next().map_err(io)? else { break };
        search.frame(&frame, &shown, past.is_repeated(&frame))?;
    }
    Ok(search.found)
}

/// A replay that stops where something is wanted.
struct Search {
    replay: Replay,
    /// What comes next is the last.
    wanted: Vec<Stored>,
    found: Rebuilt,
}

impl Search {
    fn frame(&mut self, frame: &Frame<'_>, shown: &str, is_repeated: bool) -> Result<()> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        match is_repeated {
            true => self.replay.repeated(frame, shown)?,
            // Nothing is wanted that didn't commit.
            false => drop(self.replay.frame(frame, u64::MAX, shown)?),
        }
        let txid = frame.header.txid;
        let is_due = |wanted: &Stored| wanted.txid <= txid;
        if !frame.header.is_commit() || !self.wanted.last().is_some_and(is_due) {
            return Ok(());
        }
        let due = self.wanted.iter().rposition(|wanted| !is_due(wanted)).map_or(0, |at| at + 1);
        let wanted = self.wanted.split_off(due);
        look(&self.replay.published(), &wanted, &mut self.found)
    }
}

/// Looks for what is wanted among all that a view would store.
fn look(view: &View, wanted: &[Stored], found: &mut Rebuilt) -> Result<()> {
    let mut looking = Looking { wanted, found };
    let pager = Arc::new(Pager::new(Arc::new(Nowhere), 0, false));
    view.save(&pager, &mut looking).map(drop)
}

/// Keeps of what is stored only what is wanted.
struct Looking<'w> {
    wanted: &'w [Stored],
    found: &'w mut Rebuilt,
}

impl Keep for Looking<'_> {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        let bytes = piece.as_ref();
        for wanted in self.wanted {
            let is_it = wanted.len as usize == bytes.len()
                && !self.found.contains_key(&wanted.place)
                && wanted.sum == Stored::sum_of(wanted.place, bytes);
            if is_it {
                self.found.insert(wanted.place, (*wanted, Arc::from(bytes)));
            }
        }
        Ok(Stored { len: 1, ..Stored::default() })
    }

    fn leave(&mut self, _: Stored) {}
}

/// What a store that was only replayed is read from: nothing of it lies anywhere else.
#[derive(Debug)]
struct Nowhere;

impl Source for Nowhere {
    fn read(&self, _: &Stored, _: &mut [u8]) -> Result<()> {
        Err(Error::corrupt("there is nothing to load of a store that was replayed"))
    }
}
