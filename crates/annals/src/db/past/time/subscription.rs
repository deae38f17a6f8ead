//! Subscriptions: new commits, in order.
//!
//! A subscription reads the journal from its own point on, so it misses nothing, however slow it is; the writer only
//! wakes it. The old values of a row come from the state at that point, which is the last snapshot as long as the
//! subscription keeps up.

use annals_schema::Txid;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::db::follow::segments::Since;
use crate::db::past::reader::{Pulling, Reader};
use crate::db::past::time::changes::{BATCH, ChangesBeginning, KEPT, state_after, state_of};
use crate::db::past::time::cursor::{End, JournalCursor, state_at};
use crate::db::present::snapshot::Published;
use crate::db::write::changed::Changed;
#[cfg(feature = "tokio")]
use crate::db::write::feed::Waiter;
use crate::db::write::feed::{Feed, Slot, Standing};
use crate::db::write::rows::weight_of;
use crate::db::write::sharing::outdated;
use crate::db::{Database, Options};
use crate::debug::brief;
use crate::journal::lock;
use crate::storage::{Clock, Directory, Origin, SystemClock};
use crate::{Error, ErrorKind, Result};

/// The polling interval of a file that other processes write.
pub(super) const INTERVAL: Duration = Duration::from_millis(10);

/// The commits from some transaction on, each once, in the order of txids: see [`Database::subscribe`].
///
/// As an iterator it waits for the next one; [`try_next`](Self::try_next) doesn't wait, and
/// [`next_timeout`](Self::next_timeout) waits up to a timeout. It ends when the database is closed or the reader is
/// dropped, after all commits up to then. After an error it ends too: begin another one after [`txid`](Self::txid).
///
/// Waiting blocks the thread. For async programs `into_stream`, of the feature `tokio`, makes it a stream.
pub struct Subscription {
    source: CommitSource,
    slot: Arc<Slot>,
    cursor: JournalCursor,
    /// How many bytes of rows are kept, about, before the state is looked up again.
    kept: usize,
    /// Transactions that were read, and not returned yet.
    ready: VecDeque<Changed>,
    /// The last transaction that was given.
    txid: u64,
    /// True if it has nothing in memory, and reads on after that transaction.
    is_released: bool,
    is_over: bool,
    failure: Option<Error>,
    origin: Origin,
    /// The place of the task that waits for the next commit.
    #[cfg(feature = "tokio")]
    waiter: Option<Waiter>,
}

brief!(Subscription, "Subscription", "txid": |it| it.txid);

/// The source of commits.
#[derive(Debug)]
enum CommitSource {
    /// From this process alone.
    Own(Arc<Feed>),
    /// From a file that others write, as long as there is this reader.
    Reader(Weak<Pulling>),
    /// From a file that this process writes in turn with others: read through a reader, since a handle loads commits
    /// of others only when requested. A program relies on the commands of its schema, which are so many.
    Shared {
        feed: Arc<Feed>,
        place: (Arc<dyn Directory>, String),
        reader: Option<Reader>,
        commands: Option<usize>,
    },
}

/// What wakes a task that waits for a commit.
#[cfg(feature = "tokio")]
pub(super) enum Wake {
    /// The commit, of this process.
    ByCommit,
    /// Nothing: the file is written by others.
    ByPolling,
    /// There is a commit already.
    AtOnce,
}

/// The end up to which it can be read.
struct Latest {
    published: Arc<Published>,
    /// Where the last transaction ends that its writer acknowledged.
    position: u64,
    /// True if nothing will follow.
    is_last: bool,
}

/// The result of reading a part.
#[derive(PartialEq, Eq)]
enum Read {
    Some,
    Nothing,
    Over,
}

impl CommitSource {
    /// Returns the end of the readable journal; `None` if nothing will follow. All up to transaction `read` was read.
    fn latest(&mut self, read: u64) -> Result<Option<Latest>> {
        let (latest, is_last) = match self {
            Self::Own(feed) => {
                let (published, is_last) = feed.latest();
                let latest = published.map(|published| {
                    let position = published.point.position;
                    Latest { published, position, is_last }
                });
                return Ok(latest);
            }
            Self::Reader(reader) => match reader.upgrade() {
                Some(reader) => (reader.acknowledged(read)?, false),
                None => return Ok(None),
            },
            Self::Shared { feed, place: (directory, name), reader, commands } => {
                let (_, is_last) = feed.latest();
                let reader = match reader {
                    Some(reader) => reader,
                    None => reader.insert(Options::new().open_read_only_in(&**directory, name)?),
                };
                let latest = reader.pulling().acknowledged(read)?;
                let now = latest.0.view.schema().commands().len();
                if commands.is_some_and(|commands| commands != now) {
                    return Err(outdated(&directory.display(name)));
                }
                (latest, is_last)
            }
        };
        let (published, position) = latest;
        Ok(Some(Latest { published, position, is_last }))
    }

    /// Waits up to `timeout` for a transaction after `txid`; polls for commits of other processes.
    fn wait(&self, txid: u64, timeout: Option<Duration>) {
        match self {
            Self::Own(feed) => feed.wait(txid, timeout),
            Self::Reader(_) | Self::Shared { .. } => {
                SystemClock.pause(timeout.map_or(INTERVAL, |timeout| timeout.min(INTERVAL)));
            }
        }
    }
}

impl Subscription {
    fn new(source: CommitSource, slot: Arc<Slot>, beginning: ChangesBeginning) -> Self {
        let ChangesBeginning { base, cursor } = beginning;
        let txid = cursor.txid();
        *lock(&slot) = Some(Standing::new(base, txid));
        let ready = VecDeque::new();
        let origin = Origin::here();
        Self {
            source,
            slot,
            cursor,
            kept: KEPT,
            ready,
            txid,
            is_released: false,
            is_over: false,
            failure: None,
            origin,
            #[cfg(feature = "tokio")]
            waiter: None,
        }
    }

    /// Fails at its first commit, if there is an error.
    pub(super) fn or_fail(self, failure: Option<Error>) -> Self {
        Self { is_over: failure.is_some(), failure, ..self }
    }

    /// Returns the number of the last transaction that it returned; at first of the one that it begins after.
    #[must_use]
    pub const fn txid(&self) -> Txid {
        Txid(self.txid)
    }

    /// Sets how many bytes of rows it keeps in memory, about, while it isn't up to date; 64 MiB if this isn't called. It reads
    /// ahead no more of the journal, either, but for one transaction.
    ///
    /// Cost: less memory for each of many subscriptions. More often one that lags must look up the state again, as of its
    /// position; then it keeps twice as much.
    #[must_use]
    pub fn keep_at_most(mut self, bytes: usize) -> Self {
        self.kept = bytes.max(1);
        self
    }

    /// Drops what it has read ahead, and the rows that it keeps, if they take more than so many bytes: for one who won't ask for a
    /// while, such as a server whose client doesn't read. What it returns is the same.
    ///
    /// Cost: the next transaction is read after looking up the state as of its position, as after [`keep_at_most`](Self::keep_at_most).
    pub fn shrink_to(&mut self, bytes: usize) {
        let kept = lock(&self.slot).as_ref().map_or(0, |standing| standing.rows.weight());
        let rows = self.ready.iter().flat_map(|changed| &changed.rows);
        let ahead = rows.map(|row| weight_of(&row.before) + weight_of(&row.after)).sum::<usize>();
        if !self.is_over && kept + ahead > bytes {
            self.ready = VecDeque::new();
            *lock(&self.slot) = None;
            self.is_released = true;
        }
    }

    /// Returns the next transaction if there is one already.
    ///
    /// # Errors
    /// As [`next_timeout`](Self::next_timeout).
    pub fn try_next(&mut self) -> Result<Option<Changed>> {
        self.next_within(Some(Duration::ZERO))
    }

    /// Returns the next transaction; waits for it up to `timeout`. `None`: there was none within that time, or it has
    /// ended, see [`is_over`](Self::is_over).
    ///
    /// # Errors
    /// `NotFound`: rules of retention forgot history that it hadn't read, and the message names the beginning of the
    /// rest; or the file was removed or replaced. `SchemaMismatch`: another program upgraded the schema that this one's code
    /// relies on. `Corrupt`; `Unsupported`; `Io`; in a forked child `Poisoned`. It is over then.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Changed>> {
        self.next_within(Some(timeout))
    }

    /// True if it has ended: the database was closed or the reader dropped, or there was an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over && self.ready.is_empty() && self.failure.is_none()
    }

    /// Returns the next transaction if it was read already.
    pub(super) fn take_ready(&mut self) -> Option<Changed> {
        let changed = self.ready.pop_front()?;
        self.txid = changed.txid.0;
        Some(changed)
    }

    /// Lets the next commit wake a task, if there is none yet that wasn't read.
    #[cfg(feature = "tokio")]
    pub(super) fn wake(&mut self, waker: &std::task::Waker) -> Wake {
        let CommitSource::Own(feed) = &self.source else { return Wake::ByPolling };
        let waiter = self.waiter.get_or_insert_with(|| feed.waiter());
        match waiter.wake_after(self.cursor.txid(), waker) {
            true => Wake::ByCommit,
            false => Wake::AtOnce,
        }
    }

    fn next_within(&mut self, timeout: Option<Duration>) -> Result<Option<Changed>> {
        let begun = SystemClock.elapsed();
        loop {
            if let Some(changed) = self.take_ready() {
                return Ok(Some(changed));
            }
            if self.is_over {
                return self.failure.take().map_or(Ok(None), Err);
            }
            match self.read_on() {
                Ok(Read::Some) => {}
                Ok(Read::Over) => self.is_over = true,
                // Transactions read before that are still returned.
                Err(error) => (self.is_over, self.failure) = (true, Some(error)),
                Ok(Read::Nothing) => {
                    let waited = SystemClock.elapsed().saturating_sub(begun);
                    let left = timeout.map(|timeout| timeout.saturating_sub(waited));
                    if left == Some(Duration::ZERO) {
                        return Ok(None);
                    }
                    self.source.wait(self.cursor.txid(), left);
                }
            }
        }
    }

    /// Reads a part of the available journal.
    fn read_on(&mut self) -> Result<Read> {
        let forked = |error| Error::io("a subscription of another process", error);
        self.origin
            .check()
            .map_err(forked)
            .map_err(|error| Error::new(ErrorKind::Poisoned, error.to_string()))?;
        let Some(latest) = self.source.latest(self.cursor.txid())? else { return Ok(Read::Over) };
        let Latest { published, position, is_last } = latest;
        let end = End { file: &published.file, position };
        if self.is_released {
            self.return_to_last(&end)?;
        }
        let before = self.cursor.since();
        let Since { segment, point } = before;
        let is_there = match segment == published.file.segment {
            true => point.position >= position,
            false => point.txid >= published.point.txid,
        };
        if is_there {
            self.stand_at(&published);
            return Ok(if is_last { Read::Over } else { Read::Nothing });
        }
        let mut standing = self.standing(&end)?;
        standing.rows.show_through(published.view.schema());
        let target = Arc::clone(standing.target.get_or_insert_with(|| Arc::clone(&published)));
        let most = BATCH.min(self.kept as u64);
        let read = self.cursor.read(&end, u64::MAX, most, &mut standing.rows);
        self.ready.append(&mut standing.rows.done);
        read?;
        let reached = Since { segment: target.file.segment, point: target.point };
        if self.cursor.since() == reached {
            standing.rows.rebase(Arc::clone(&target.view));
            standing.target = None;
        }
        standing.txid = self.cursor.txid();
        standing.is_idle = false;
        *lock(&self.slot) = Some(standing);
        // A part may only have the state with which a segment begins: then the rest is read at once.
        Ok(if self.cursor.since() == before { Read::Nothing } else { Read::Some })
    }

    /// Continues after the last transaction that was given.
    fn return_to_last(&mut self, end: &End<'_>) -> Result<()> {
        let (base, since) = state_at(end, self.txid)?;
        self.cursor = JournalCursor::behind(&base, since);
        *lock(&self.slot) = Some(Standing::new(base, self.txid));
        self.is_released = false;
        Ok(())
    }

    /// Continues from the last commit, if that is its position.
    fn stand_at(&self, published: &Published) {
        let mut slot = lock(&self.slot);
        let (txid, view) = (self.cursor.txid(), &published.view);
        match &mut *slot {
            Some(standing) => {
                standing.take_over(published);
            }
            none if published.point.txid == Txid(txid) => {
                *none = Some(Standing::new(Arc::clone(view), txid));
            }
            _ => {}
        }
    }

    /// Returns the state at the subscription's position. Looks the state up if it was released, or if too much has
    /// changed since.
    fn standing(&mut self, end: &End<'_>) -> Result<Standing> {
        let standing = lock(&self.slot).take();
        if let Some(standing) = standing {
            if standing.rows.weight() <= self.kept {
                return Ok(standing);
            }
            // So that this is done a few times only, whatever it costs.
            self.kept *= 2;
        }
        let txid = self.cursor.txid();
        let (base, _) = state_at(end, txid)?;
        Ok(Standing::new(base, txid))
    }
}

impl Iterator for Subscription {
    type Item = Result<Changed>;

    /// Waits for the next transaction; `None`: there will be none any more.
    fn next(&mut self) -> Option<Self::Item> {
        self.next_within(None).transpose()
    }
}

/// Returns the state before transaction `first`, and its position.
fn before(published: &Published, first: u64) -> Result<ChangesBeginning> {
    let txid = first.saturating_sub(1);
    let Txid(newest) = published.point.txid;
    if txid > newest {
        return Err(Error::invalid(format!(
            "{}: a subscription can't begin with transaction {first}: the last one is {newest}",
            published.file.name
        )));
    }
    state_after(published, txid)
}

/// A source of commits, and the last one that it has.
pub(in crate::db) struct Feeding {
    source: CommitSource,
    slot: Arc<Slot>,
    published: Arc<Published>,
}

impl Feeding {
    pub(in crate::db) fn of_database(db: &Database) -> Self {
        let slot: Arc<Slot> = Arc::default();
        let feed = Arc::clone(db.inner().group.feed());
        let (source, published) = match &db.inner().sharing {
            None => (CommitSource::Own(feed), db.inner().group.follow(&slot)),
            Some(sharing) => {
                let place = (Arc::clone(&sharing.directory), sharing.file.clone());
                let published = db.inner().group.published();
                let commands = published.view.schema().commands().len();
                let commands = db.inner().has_fixed_schema().then_some(commands);
                (CommitSource::Shared { feed, place, reader: None, commands }, published)
            }
        };
        Self { source, slot, published }
    }

    pub(in crate::db) fn of_reader(reader: &Reader) -> Self {
        let pulling = reader.pulling();
        let (source, published) =
            (CommitSource::Reader(Arc::downgrade(pulling)), pulling.published());
        Self { source, slot: Arc::default(), published }
    }

    /// Follows the commits from now on.
    pub(in crate::db) fn now(self) -> Subscription {
        Subscription::new(self.source, self.slot, state_of(&self.published))
    }

    /// Follows the commits from transaction `first` on.
    pub(in crate::db) fn from(self, first: u64) -> Result<Subscription> {
        let before = before(&self.published, first)?;
        Ok(Subscription::new(self.source, self.slot, before))
    }
}
