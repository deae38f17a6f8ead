//! Making objects of an image anew from the journal.
//!
//! An entry of the image's directory says after which transaction its object was written, and what its
//! checksum is. The journal is replayed into a store of its own up to there; what that store would hand over
//! to a backfill, the object is among it. Which one it is its checksum tells, and proves: so nothing has to
//! be known of where it lies in the store, and what isn't reproduced bit by bit is never taken for it. That may
//! happen: where history was forgotten, the journal begins with the state, from which rows get other slots; and
//! what a transaction that was rolled back left in places that mean nothing has a checksum, too.
//!
//! A node of the directory isn't made by a store: it tells where things lie. But the objects that it leads to are
//! known from the store, by their numbers, and the image finds what else there is to know.

use std::collections::HashMap;
use std::sync::Arc;

use crate::db::past::{Opened, Past};
use crate::db::scan::Replay;
use crate::image::{
    Array, Image, NodePlace, OBJECTS_AT, Objects, Source, Stored, UNIT, decode_node,
};
use crate::journal::{Frame, FrameReader, Head};
use crate::mistakes::{Mistake, is_made};
use crate::storage::Directory;
use crate::store::{Keep, Pager, Piece, View};
use crate::{Error, Result};

/// What was made anew, by its place in the image.
pub(super) type Rebuilt = HashMap<u64, (Stored, Arc<[u8]>)>;

/// What is to be made anew.
pub(super) struct Wanted<'w> {
    pub(super) image: &'w Image,
    /// Pages and long values.
    pub(super) objects: Vec<Stored>,
    /// Nodes of the newest root, and that one's transaction.
    pub(super) nodes: (u64, Vec<NodePlace>),
}

/// Makes objects and nodes anew, as far as that can be done.
///
/// Cost: a replay of the journal up to the last transaction that is wanted, in memory for the whole store; the
/// checksums of what has the length of something wanted; for each node a read of the image.
///
/// # Errors
/// The journal can't be read, or is damaged before that.
pub(super) fn rebuild(
    directory: &dyn Directory,
    journal: &str,
    mut wanted: Wanted<'_>,
) -> Result<Rebuilt> {
    wanted.objects.sort_unstable_by_key(|stored| std::cmp::Reverse(stored.txid));
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
    if search.is_over() {
        return Ok(search.found);
    }
    read?;
    search.replay.begin(past.header());
    let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
    let head = Head::read(&*storage, &shown)?;
    let mut reader =
        FrameReader::new(&*storage, head.hash, head.start(), storage.len().map_err(io)?);
    while !search.is_over() {
        let Some(frame) = reader.next().map_err(io)? else { break };
        search.frame(&frame, &shown, past.is_repeated(&frame))?;
    }
    Ok(search.found)
}

/// A replay that stops where something is wanted.
struct Search<'w> {
    replay: Replay,
    /// The objects that come next are the last.
    wanted: Wanted<'w>,
    found: Rebuilt,
}

impl Search<'_> {
    /// Tells whether nothing is wanted any more.
    const fn is_over(&self) -> bool {
        self.wanted.objects.is_empty() && self.wanted.nodes.1.is_empty()
    }

    fn frame(&mut self, frame: &Frame<'_>, shown: &str, is_repeated: bool) -> Result<()> {
        if self.is_over() {
            return Ok(());
        }
        match is_repeated {
            true => self.replay.repeated(frame, shown)?,
            // Nothing is wanted that didn't commit.
            false => drop(self.replay.frame(frame, u64::MAX, shown)?),
        }
        if !frame.header.is_commit() {
            return Ok(());
        }
        let txid = frame.header.txid;
        let Wanted { image, objects, nodes } = &mut self.wanted;
        let is_due = |wanted: &Stored| wanted.txid <= txid;
        let due = objects.iter().rposition(|wanted| !is_due(wanted)).map_or(0, |at| at + 1);
        let objects = objects.split_off(due);
        if !objects.is_empty() {
            look(&self.replay.published(), &objects, &mut self.found)?;
        }
        if nodes.0 <= txid && !nodes.1.is_empty() {
            let nodes = std::mem::take(&mut nodes.1);
            look_below(&self.replay.published(), image, &nodes, &mut self.found)?;
        }
        Ok(())
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
                && (wanted.sum == Stored::sum_of(wanted.place, bytes)
                    || is_made(Mistake::RebuiltNotVerified));
            if is_it {
                self.found.insert(wanted.place, (*wanted, Arc::from(bytes)));
            }
        }
        Ok(Stored { len: 1, ..Stored::default() })
    }

    fn leave(&mut self, _: Stored) {}
}

/// Makes nodes anew of what the arrays of a view have below them.
fn look_below(view: &View, image: &Image, nodes: &[NodePlace], found: &mut Rebuilt) -> Result<()> {
    let mut all = All(Vec::new());
    let arrays = view.save(&Arc::new(Pager::new(Arc::new(Nowhere), 0, false)), &mut all)?.arrays();
    for node in nodes {
        let array = arrays.get(node.array);
        let Some(objects) = array.and_then(|array| all.below(array, node.first)) else { continue };
        if let Some(bytes) = image.node_of(&node.stored, &objects)? {
            found.insert(node.stored.place, (node.stored, bytes.into()));
        }
    }
    Ok(())
}

/// Keeps all that is stored: what has the number `n` as if it lay in the unit `n` behind the head of an image.
struct All(Vec<Piece>);

impl Keep for All {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        let place = OBJECTS_AT + self.0.len() as u64 * UNIT;
        let len = u32::try_from(piece.as_ref().len()).unwrap_or(u32::MAX);
        self.0.push(piece);
        Ok(Stored { place, len, ..Stored::default() })
    }

    fn leave(&mut self, _: Stored) {}
}

impl All {
    fn piece(&self, stored: &Stored) -> Option<&[u8]> {
        let number = stored.place.checked_sub(OBJECTS_AT)? / UNIT;
        self.0.get(usize::try_from(number).ok()?).map(AsRef::as_ref)
    }

    /// Gives what an array has from a number on, as far as one node leads to.
    fn below(&self, array: &Array, first: usize) -> Option<Objects<'_>> {
        let (mut node, mut height) = (array.root?, array.height);
        if height == 0 || first.checked_shr(6 * u32::from(height)).unwrap_or(0) > 0 {
            return None;
        }
        loop {
            let entries = decode_node(self.piece(&node)?, height, u64::MAX).ok()?;
            if height == 1 {
                return Some(entries.map(|entry| self.piece(&entry?)));
            }
            height -= 1;
            node = (*entries.get((first >> (6 * u32::from(height))) % entries.len())?)?;
        }
    }
}

/// What a store that was only replayed is read from: nothing of it lies anywhere else.
#[derive(Debug)]
struct Nowhere;

impl Source for Nowhere {
    fn read(&self, _: &Stored, _: &mut [u8]) -> Result<()> {
        Err(Error::corrupt("there is nothing to load of a store that was replayed"))
    }

    fn holds(&self, stored: &Stored) -> Result<()> {
        self.read(stored, &mut [])
    }
}
