//! The segments beside a file: those before it that the state or the whole history needs, and the one in which the
//! journal continued.

use annals_schema::Txid;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use crate::db::follow::witness::image_witnesses;
use crate::db::present::segment::JournalFile;
use crate::image::Witness;
use crate::journal::format::Header;
use crate::journal::segments::{Chain, Kept, journal_of, number_in};
use crate::journal::{Frame, Head, Point, SegmentFacts};
use crate::storage::{Access, Directory, Lock, Storage};
use crate::{Error, ErrorKind, Result};

/// How often a file is opened again that was replaced meanwhile.
pub(in crate::db) const TRIES: usize = 100;

/// A file that is open for reading, and the segments before it.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub storage: Arc<dyn Storage>,
    /// Its name in messages.
    pub shown: String,
    /// An error if a needed segment is missing or wrong.
    pub past: Result<Past>,
    /// The points that the image proves, read before it.
    pub witnesses: Vec<Witness>,
}

impl Opened {
    /// Opens a file, and by `find` the files needed before it.
    ///
    /// # Errors
    /// `NotFound`, `NotAJournal`, `Unsupported`, `Corrupt`: its head; `Io`.
    pub fn new(
        directory: &dyn Directory,
        name: &str,
        find: impl Fn(&dyn Directory, &str, &Header) -> Result<Past>,
    ) -> Result<Self> {
        let find = |storage: &Arc<dyn Storage>, shown: &str| {
            let head = Head::read(&**storage, shown)?;
            let witnesses = image_witnesses(directory, name, &head);
            Ok((find(directory, name, &head.header), witnesses))
        };
        let (storage, shown, (past, witnesses)) =
            open_moving(directory, name, find, |(past, _)| past.is_ok())?;
        Ok(Self { storage, shown, past, witnesses })
    }
}

/// Opens a file for reading.
///
/// # Errors
/// `NotFound`; `Io`.
pub fn open_to_read(directory: &dyn Directory, name: &str) -> Result<(Arc<dyn Storage>, String)> {
    let shown = directory.display(name);
    let storage = directory
        .open(name, Access::Read)
        .map_err(|error| crate::journal::cannot_open(&shown, Access::Read, error))?;
    Ok((storage, shown))
}

/// Opens a file, and by `find` the files that belong to it. Another process may continue the journal in another
/// segment meanwhile, and forget some: unless it `is_whole`, it starts over then.
pub(in crate::db) fn open_moving<T>(
    directory: &dyn Directory,
    name: &str,
    find: impl Fn(&Arc<dyn Storage>, &str) -> Result<T>,
    is_whole: impl Fn(&T) -> bool,
) -> Result<(Arc<dyn Storage>, String, T)> {
    let mut tries = 0;
    loop {
        let (storage, shown) = open_to_read(directory, name)?;
        let found = find(&storage, &shown);
        tries += 1;
        let is_whole = found.as_ref().is_ok_and(&is_whole);
        if is_whole || tries == TRIES || storage.is_linked().unwrap_or(true) {
            return found.map(|found| (storage, shown, found));
        }
    }
}

/// Adds a segment that is older than the last, which needn't stay open if there are many.
fn add(kept: &mut Vec<Kept>, before: Kept, chain: &mut Chain, directory: &dyn Directory) {
    if let (Some(resting), Some(last)) = (chain.add(&before, directory), kept.last_mut()) {
        last.storage = resting;
    }
    kept.push(before);
}

/// Where replay begins: at the end of a commit in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The number of the segment.
    pub segment: u64,
    /// The commit.
    pub point: Point,
}

/// Consecutive sealed segments, and then a file.
#[derive(Debug)]
pub struct Past {
    /// The oldest first.
    kept: Vec<Kept>,
    /// The header of the file that follows.
    header: Header,
    /// Where the first of them is read from, if not from its beginning.
    pub(super) since: Option<Since>,
    /// Which of them are open.
    chain: Chain,
}

impl Past {
    /// Opens the segments needed for the state: from the last one on that begins with it.
    pub(in crate::db) fn needed(
        directory: &dyn Directory,
        name: &str,
        header: &Header,
    ) -> Result<Self> {
        let name = journal_of(name, header.segment);
        let (mut kept, mut chain): (Vec<Kept>, _) = (Vec::new(), Chain::default());
        loop {
            let first = kept.last().map_or(header, |kept| &kept.head.header);
            if first.is_base() {
                break;
            }
            match Kept::before(directory, name, first)? {
                Some(before) => add(&mut kept, before, &mut chain, directory),
                None => return Err(Kept::missing(directory, name, first)),
            }
        }
        kept.reverse();
        Ok(Self { kept, header: *header, since: None, chain })
    }

    /// Checks that the segments needed for the state exist: by their names, and by the seal of the last one. Only
    /// without an image more of them are needed.
    ///
    /// # Errors
    /// `Corrupt`: one is missing, or isn't followed by this one.
    pub(in crate::db) fn check_there(
        directory: &dyn Directory,
        name: &str,
        header: &Header,
        shown: &str,
    ) -> Result<()> {
        if header.is_base() {
            return Ok(());
        }
        let journal = journal_of(name, header.segment);
        let Some(last) = Kept::before(directory, journal, header)? else {
            return Err(Kept::missing(directory, journal, header));
        };
        let from = last.head.newest_slot().map_or(last.head.start(), |slot| slot.point);
        last.follow(&*last.storage, from, header, &mut |_| Ok(()))?;
        let io = |error| Error::io(format!("{shown}: can't list the files beside it"), error);
        let names = directory.list().map_err(io)?;
        let there: BTreeSet<_> = names.iter().filter_map(|it| number_in(it, journal)).collect();
        let gap = (0..header.segment).rev().find(|number| !there.contains(number));
        let after = Header { segment: gap.map_or(1, |gap| gap + 2), ..*header };
        let first = Kept::before(directory, journal, &after);
        match matches!(first, Ok(Some(first)) if first.head.header.is_base()) {
            true => Ok(()),
            // Only their headers show where the state begins.
            false => Self::needed(directory, name, header).map(drop),
        }
    }

    /// Opens the segments needed to continue from a commit; `None` if some in between are missing.
    ///
    /// # Errors
    /// `Corrupt`: one is missing that nothing else stands for; `Io`.
    pub fn since(
        directory: &dyn Directory,
        name: &str,
        header: &Header,
        since: Since,
    ) -> Result<Option<Self>> {
        let name = journal_of(name, header.segment);
        let (mut kept, mut chain): (Vec<Kept>, _) = (Vec::new(), Chain::default());
        loop {
            let first = kept.last().map_or(header, |kept| &kept.head.header);
            if first.segment <= since.segment {
                break;
            }
            match Kept::before(directory, name, first)? {
                Some(before) => add(&mut kept, before, &mut chain, directory),
                // The state at its beginning is newer.
                None if first.is_base() => return Ok(None),
                None => return Err(Kept::missing(directory, name, first)),
            }
        }
        kept.reverse();
        Ok(Some(Self { kept, header: *header, since: Some(since), chain }))
    }

    /// Needs nothing, since all that was before a commit in the file, or before the file, is known.
    pub(in crate::db) fn known(header: &Header, since: Since) -> Self {
        let (kept, chain) = (Vec::new(), Chain::default());
        Self { kept, header: *header, since: Some(since), chain }
    }

    /// Opens the whole kept history.
    ///
    /// # Errors
    /// `Corrupt`: a segment is missing that the state needs; `Io`.
    pub fn whole(directory: &dyn Directory, name: &str, header: &Header) -> Result<Self> {
        let name = journal_of(name, header.segment);
        let mut past = Self::needed(directory, name, header)?;
        past.kept.reverse();
        loop {
            let first = past.kept.last().map_or(header, |kept| &kept.head.header);
            match Kept::before(directory, name, first)? {
                Some(before) => add(&mut past.kept, before, &mut past.chain, directory),
                None => break,
            }
        }
        // A segment that doesn't begin with the state can't be understood without earlier ones.
        while past.kept.last().is_some_and(|kept| !kept.head.header.is_base()) {
            past.kept.pop();
        }
        // The oldest holds the lock, which it may have lost to another.
        let newer = past.kept.iter().rev().nth(1).map_or(header, |kept| &kept.head.header);
        if let Some(held) = Kept::before(directory, name, newer)?
            && let Some(oldest) = past.kept.last_mut()
        {
            *oldest = held;
        }
        past.kept.reverse();
        Ok(past)
    }

    /// Returns the header of the file that follows.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns how many bytes the segments before the file have.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.kept.iter().map(|kept| kept.len).sum()
    }

    /// Returns the segments, the oldest first.
    #[must_use]
    pub fn segments(&self) -> &[Kept] {
        &self.kept
    }

    /// Allows others to remove the segments, which were read.
    pub fn let_go(&self) {
        for kept in &self.kept {
            // It could fail only if the file weren't open; and then the lock is released too.
            let _ = kept.storage.unlock(Lock::History);
        }
    }

    /// Returns facts of all segments without reading them; `end` is the end of the last one, and the last transaction
    /// there.
    #[must_use]
    pub fn facts(&self, end: (u64, u64)) -> Vec<SegmentFacts> {
        let kept = self.kept.iter().map(|kept| (kept.header(), kept.len));
        let all: Vec<_> = kept.chain(std::iter::once((self.header, end.0))).collect();
        let next = all.iter().skip(1).map(|(header, _)| header.first_own_txid() - 1);
        let facts = all.iter().zip(next.chain(std::iter::once(end.1)));
        facts
            .map(|((header, bytes), last_txid)| SegmentFacts {
                number: header.segment,
                bytes: *bytes,
                first_txid: Txid(header.first_own_txid()),
                last_txid: Txid(last_txid),
                begun: header.created,
                begins_with_state: header.begins_with_state(),
                is_pinned: false,
            })
            .collect()
    }

    /// True if a frame of the file is of the transaction with which that repeats the state, which is known before.
    pub(super) fn is_repeated(&self, frame: &Frame<'_>) -> bool {
        let Header { segment, first_txid, .. } = self.header;
        let is_before =
            |since: Since| since.segment < segment || since.point.txid < Txid(first_txid);
        frame.header.txid == first_txid
            && self.header.begins_with_state()
            && self.since.map_or(!self.kept.is_empty(), is_before)
    }

    /// Returns where the file is to be read from, if not from its beginning.
    pub(in crate::db) fn point(&self) -> Option<Point> {
        self.since.filter(|since| since.segment == self.header.segment).map(|since| since.point)
    }
}

/// The segment in which a journal continued: the file at the path now.
pub(in crate::db) struct Successor {
    pub(in crate::db) storage: Arc<dyn Storage>,
    pub(in crate::db) head: Head,
}

/// Opens the file at the path, if it is of the same journal and after the old one. (Or a replacement of it: a segment
/// without commits may have lost the path again. If the path refers to the earlier segment, there is no new one, and
/// no new commits.)
pub(in crate::db) fn find_successor(
    old: &JournalFile,
    id: [u8; 16],
    txid: u64,
    access: Access,
) -> Result<Option<Successor>> {
    let storage = match old.directory.open(&old.journal, access) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(gone(&old.name)),
        opened => opened.map_err(|error| crate::journal::cannot_open(&old.name, access, error))?,
    };
    let head = Head::read(&*storage, &old.name)?;
    let header = &head.header;
    let is_behind = header.segment > old.segment;
    let is_in_its_place = header.segment == old.segment && header.first_own_txid() == txid + 1;
    if header.journal_id == id && header.segment + 1 == old.segment {
        return Ok(None);
    }
    if header.journal_id != id || !(is_behind || is_in_its_place) {
        return Err(gone(&old.name));
    }
    Ok(Some(Successor { storage, head }))
}

/// Returns the error that the path refers to no continuation of this journal.
pub(in crate::db) fn gone(shown: &str) -> Error {
    let message =
        format!("{shown}: the file was removed or replaced while it was open: open it again");
    Error::new(ErrorKind::NotFound, message)
}
