//! Reading frames after a cursor, as they are in the files of a journal.

use std::sync::Arc;
use std::time::Duration;

use annals::internals::{CommitNews, JournalPart, check_usable, durable, files_of, name_of};
use annals::{Cursor, Database, Error, Point, Reader, Result, Snapshot, Txid};
use annals_journal::FrameReader;
use annals_journal::format::HEADER_LEN;
use annals_journal::segments::Seal;
use annals_storage::bytes::hash;
use annals_storage::{Spool, Storage};

use super::places::{Known, damaged, number, reader, unreadable};

/// After so long a file that others write is worth another look.
#[cfg(feature = "tokio")]
const LOOKED_AFTER: Duration = Duration::from_millis(100);

/// Reads frames of an open database for others, from any cursor of its history.
///
/// Only transactions are passed on that are known to be on permanent storage: soft ones are flushed first.
#[derive(Debug)]
pub struct Source {
    of: Of,
    pub(super) known: Arc<Known>,
}

/// What it reads.
#[derive(Debug)]
enum Of {
    /// A database, whose feed of commits is kept.
    Database { database: Database, news: CommitNews },
    /// A file that is open for reading, as it was last looked at, with hard commits only.
    Reader(Reader),
    /// A state of a database that is written and flushed, and not acknowledged yet.
    Written(Snapshot),
}

/// Facts of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// Its random id, as 32 hexadecimal digits.
    pub id: String,
    /// The first transaction that is kept.
    pub first: Txid,
    /// A hash of the commands of its schema, as 16 hexadecimal digits.
    pub schema: String,
}

/// Whole transactions in a row, as bytes of files; or the end of a segment.
#[derive(Debug)]
pub struct Batch {
    /// The bytes before those of the files: the header of a segment that a new replica begins with.
    pub header: Vec<u8>,
    /// The bytes.
    pub ranges: Vec<FileRange>,
    /// The bytes of the ranges, if they were read into memory as a whole.
    pub bytes: Option<Vec<u8>>,
    /// The cursor after them.
    pub next: Cursor,
    /// How many transactions they are; 0 for the end of a segment.
    pub transactions: u64,
    /// True if the journal continues in another segment here: the bytes are a seal, the header of the next segment if
    /// that isn't the one in the seal any more, and the state with which it begins, if it does.
    pub is_seal: bool,
}

/// Consecutive bytes of a file, which don't change.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The file.
    pub storage: Arc<dyn Storage>,
    /// Where they begin.
    pub from: u64,
    /// Where they end.
    pub to: u64,
}

impl Batch {
    fn empty(next: Cursor) -> Self {
        let (header, ranges) = (Vec::new(), Vec::new());
        Self { header, ranges, bytes: None, next, transactions: 0, is_seal: false }
    }

    /// Adds its bytes to a spool.
    ///
    /// # Errors
    /// `Io`: they can't be read, or the spool can't be written.
    pub fn copy_to(&self, into: &mut Spool) -> Result<()> {
        let io = |error| Error::io("can't copy frames", error);
        into.append(&self.header).map_err(io)?;
        let mut piece = vec![0; usize::try_from(self.len()).unwrap_or(usize::MAX).min(1 << 20)];
        for range in &self.ranges {
            let mut at = range.from;
            while at < range.to {
                let wanted = usize::try_from(range.to - at).unwrap_or(usize::MAX).min(piece.len());
                let read = range.storage.read_at(at, piece.get_mut(..wanted).unwrap_or_default());
                let read = read.map_err(io)?;
                if read == 0 {
                    return Err(io(std::io::ErrorKind::UnexpectedEof.into()));
                }
                into.append(piece.get(..read).unwrap_or_default()).map_err(io)?;
                at += read as u64;
            }
        }
        Ok(())
    }

    /// Returns the number of all its bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        let ranges = self.ranges.iter().map(|range| range.to - range.from);
        self.header.len() as u64 + ranges.sum::<u64>()
    }

    /// True if nothing is new.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Source {
    /// Reads from an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        let news = CommitNews::of(&database);
        Self { of: Of::Database { database, news }, known: Arc::default() }
    }

    /// Reads from a file that is open for reading, up to the commit that its reader shows: that should show only hard
    /// ones ([`Options::hard_only`](annals::Options::hard_only)).
    #[must_use]
    pub fn of_reader(reader: Reader) -> Self {
        Self { of: Of::Reader(reader), known: Arc::default() }
    }

    /// Reads up to a commit that is written and flushed, and not acknowledged yet.
    #[must_use]
    pub fn of_written(written: &Snapshot, known: &Arc<Known>) -> Self {
        Self { of: Of::Written(written.clone()), known: Arc::clone(known) }
    }

    /// Notes a place of the history, from which later ones are found.
    pub(crate) fn knowing(self, segment: u64, point: Point) -> Self {
        self.known.note(segment, point);
        self
    }

    /// Returns the place after a transaction of the present segment.
    pub(crate) fn point_after(&self, txid: Txid) -> Result<Option<Point>> {
        let parts = files_of(&self.shown(), Some(Cursor { txid, chain: 0 }))?;
        let newest = parts.iter().rev().take(1);
        newest.map(|part| self.known.end_of(part, txid)).next().transpose().map(Option::flatten)
    }

    /// Returns the name of its file in messages.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(&self.shown()).to_owned()
    }

    fn shown(&self) -> Snapshot {
        match &self.of {
            Of::Database { database, .. } => database.read(),
            Of::Reader(reader) => reader.read(),
            Of::Written(state) => state.clone(),
        }
    }

    /// Returns the last state; of a file that others write, with what they have committed by now.
    pub(super) fn pulled(&self) -> Result<Snapshot> {
        match &self.of {
            Of::Reader(reader) => reader.pull(),
            Of::Database { .. } | Of::Written(_) => Ok(self.shown()),
        }
    }

    /// Returns facts of the journal.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; those of [`Reader::pull`].
    pub fn facts(&self) -> Result<SourceFacts> {
        let state = self.pulled()?;
        let parts = files_of(&state, None)?;
        let header = parts.first().map(|part| part.head.header);
        let header = header.ok_or_else(|| Error::invalid("a journal has a segment"))?;
        let id = header.journal_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let commands = state.schema().commands();
        let text: String = commands.iter().map(|command| format!("{command:?}\n")).collect();
        let schema = format!("{:016x}", hash(text.as_bytes()));
        Ok(SourceFacts { id, first: Txid(header.first_own_txid()), schema })
    }

    /// Waits until a transaction after this one is committed, or the database is closed, up to `timeout`.
    pub fn wait(&self, after: Txid, timeout: Duration) {
        if let Of::Database { news, .. } = &self.of {
            news.wait(after, timeout);
        }
    }

    /// Returns a future that ends once a transaction after this one is committed, or no more will follow; of a file that others
    /// write after a moment, since nobody tells of their commits. Dropping it is safe at any time. It waits in no thread.
    #[cfg(feature = "tokio")]
    pub fn news(&self, after: Txid) -> impl Future<Output = ()> + Send + use<> {
        let news = match &self.of {
            Of::Database { news, .. } => Some(news.after(after)),
            Of::Reader(_) | Of::Written(_) => None,
        };
        let pause = matches!(self.of, Of::Reader(_)).then_some(LOOKED_AFTER);
        async move {
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            if let Some(news) = news {
                news.await;
            }
        }
    }

    /// Returns the chain after a transaction; `None` if it isn't in the kept history.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `Closed`.
    pub fn chain(&self, txid: Txid) -> Result<Option<u64>> {
        let state = self.hard()?;
        if txid == state.txid() {
            return Ok(Some(state.point().chain));
        }
        if txid > state.txid() {
            return Ok(None);
        }
        self.known.chain(&files_of(&state, None)?, txid)
    }

    /// Returns the last transaction that others may have, having flushed soft ones.
    pub(super) fn hard(&self) -> Result<Snapshot> {
        match &self.of {
            Of::Database { database, .. } => durable(database),
            Of::Reader(_) | Of::Written(_) => self.pulled(),
        }
    }

    /// Returns the cursor after the last transaction.
    ///
    /// # Errors
    /// `Io`, `Poisoned`: soft commits can't be flushed; `Closed`.
    pub fn end(&self) -> Result<Cursor> {
        Ok(self.hard()?.point().into())
    }

    /// Fails if a database that was opened for writing takes no transactions any more: a flush failed, or its file was
    /// removed or replaced.
    ///
    /// # Errors
    /// `Poisoned`, `Closed`.
    pub fn check_usable(&self) -> Result<()> {
        match &self.of {
            Of::Database { database, .. } => check_usable(database),
            Of::Reader(_) | Of::Written(_) => Ok(()),
        }
    }

    /// True if a cursor is in this history.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `Closed`.
    pub fn has(&self, cursor: Cursor) -> Result<bool> {
        let state = self.hard()?;
        if cursor == state.point().into() {
            return Ok(true);
        }
        if cursor.txid > state.txid() {
            return Ok(false);
        }
        let parts = files_of(&state, Some(cursor))?;
        Ok(self.known.find(&parts, cursor)?.is_some())
    }

    /// Returns transactions after a cursor: at most `most` bytes, or one transaction; without a cursor the
    /// first ones, after the header of their segment.
    ///
    /// Cost: reads and verifies what it returns. The first time also frames between the cursor and the last point
    /// that it knows before.
    ///
    /// # Errors
    /// `Diverged`: the cursor isn't in this history; `Forgotten`: what follows it isn't kept any more; `Io`,
    /// `Corrupt`, `Closed`.
    pub fn after(&self, cursor: Option<Cursor>, most: u64) -> Result<Batch> {
        self.after_into(cursor, most, |_| None)
    }

    /// Does what [`after`](Self::after) does, and keeps the bytes that it verifies if `room` returns a buffer for so
    /// many, whatever that holds: so they needn't be read again. Some may come as ranges all the same.
    ///
    /// # Errors
    /// As there.
    pub fn after_into(
        &self,
        cursor: Option<Cursor>,
        most: u64,
        room: impl FnOnce(usize) -> Option<Vec<u8>>,
    ) -> Result<Batch> {
        let state = self.hard()?;
        if cursor == Some(state.point().into()) {
            return Ok(Batch::empty(state.point().into()));
        }
        let parts = files_of(&state, cursor)?;
        let Some(cursor) = cursor else {
            let first = parts.first().ok_or_else(|| Error::invalid("a journal has a segment"))?;
            let header = first.head.header.encode().to_vec();
            let batch = self.read(first, first.head.start(), most)?;
            return Ok(Batch { header, ..batch });
        };
        let Some((place, from)) = self.known.find(&parts, cursor)? else {
            return Err(self.missing(&state, &parts, cursor)?);
        };
        let part = parts.get(place).ok_or_else(|| Error::invalid("a journal has a segment"))?;
        match self.read_into(part, from, most, room) {
            Ok(batch) if batch.is_seal => match parts.get(place + 1) {
                Some(next) => self.continued(batch, seal_at(part, from)?.as_ref(), next),
                None => Ok(Batch::empty(cursor)),
            },
            batch => batch,
        }
    }

    /// Returns a seal with the beginning of the segment that follows it.
    fn continued(
        &self,
        mut batch: Batch,
        seal: Option<&Seal>,
        next: &JournalPart,
    ) -> Result<Batch> {
        let start = next.head.start();
        (batch.next, batch.bytes) = (start.into(), None);
        if seal.is_none_or(|seal| seal.next != next.head.header) {
            // It was written again since: by an erasure, or after a restart that was interrupted.
            let storage = Arc::clone(&next.storage);
            batch.ranges.push(FileRange { storage, from: 0, to: HEADER_LEN as u64 });
        }
        if next.head.header.begins_with_state() {
            let state = self.read(next, start, 0)?;
            batch.ranges.extend(state.ranges);
            batch.next = state.next;
        }
        Ok(batch)
    }

    /// Reads whole transactions of a file after a point into memory, if there is room for them.
    fn read_into(
        &self,
        part: &JournalPart,
        from: Point,
        most: u64,
        room: impl FnOnce(usize) -> Option<Vec<u8>>,
    ) -> Result<Batch> {
        let end = part.end.min(from.position.saturating_add(most));
        let wanted = usize::try_from(end.saturating_sub(from.position)).ok();
        let Some(buffer) = wanted.filter(|&wanted| wanted > 0).and_then(room) else {
            return self.read(part, from, most);
        };
        let reader = reader(part, from).at_once(end, buffer);
        let mut reader = reader.map_err(|error| unreadable(part, error))?;
        let mut batch = self.take(part, &mut reader, most, end)?;
        if batch.transactions == 0 {
            // One that is longer, a damaged one, or a seal.
            return self.read(part, from, most);
        }
        let (at, mut bytes) = reader.into_window();
        bytes.truncate(usize::try_from(batch.len()).unwrap_or(usize::MAX));
        batch.bytes = (at == from.position && bytes.len() as u64 == batch.len()).then_some(bytes);
        Ok(batch)
    }

    /// Reads whole transactions of a file after a point, at most `most` bytes or one; or only its seal, if that is next.
    fn read(&self, part: &JournalPart, from: Point, most: u64) -> Result<Batch> {
        self.take(part, &mut reader(part, from), most, part.end)
    }

    /// Takes from a reader that reads up to an end, where a frame may be cut off unless it is that of the file.
    fn take(
        &self,
        part: &JournalPart,
        reader: &mut FrameReader<'_>,
        most: u64,
        readable: u64,
    ) -> Result<Batch> {
        let from = reader.point();
        let (mut end, mut transactions, mut seal) = (from, 0, None);
        while end.position < part.end {
            let at = reader.position();
            let Some(frame) = reader.next().map_err(|error| unreadable(part, error))? else {
                if readable < part.end {
                    break;
                }
                return Err(damaged(part, at));
            };
            if frame.header.is_seal() {
                seal = Some(frame.end);
                break;
            }
            if transactions > 0 && frame.end - from.position > most {
                break;
            }
            if frame.header.is_commit() {
                end = reader.point();
                transactions += 1;
            }
        }
        let is_seal = transactions == 0 && seal.is_some();
        let to = seal.filter(|_| is_seal).unwrap_or(end.position);
        self.known.note(number(part), end);
        let range = FileRange { storage: Arc::clone(&part.storage), from: from.position, to };
        let ranges = if to > from.position { vec![range] } else { Vec::new() };
        Ok(Batch { ranges, transactions, is_seal, ..Batch::empty(end.into()) })
    }

    /// Forgets places in files: after an erasure, which replaced them.
    pub fn forget_places(&self) {
        self.known.forget();
    }
}

/// Returns the seal at a point of a file, if that is next.
fn seal_at(part: &JournalPart, at: Point) -> Result<Option<Seal>> {
    let mut reader = reader(part, at);
    let frame = reader.next().map_err(|error| unreadable(part, error))?;
    Ok(frame.as_ref().and_then(Seal::of))
}
