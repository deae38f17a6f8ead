//! Shared mode: loading commits of other processes, and writing in turn with them.
//!
//! ```text
//! begin:   take the turn; see that the name still leads to the file; bring in what follows; recover if
//!          whoever wrote last was interrupted or marked the file as suspect
//! commit:  as ever, up to its acknowledgement; tell the live block; let go of the turn
//! ```
//!
//! While a commit is flushed, other threads of the process write theirs in the same turn, and share flushes
//! as in exclusive mode. The last of them ends the turn. None joins once another process waits for its own.
//!
//! If the name refers to another file now, the journal may continue there; see `follow`.
//!
//! The journal can also be read without the turn: frames after the last known commit are loaded as far as they verify
//! and count.

use std::io;
use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use annals_storage::step;

use crate::db::engine::core::Writing;
use crate::db::handle::database::Database;
use crate::db::handle::sharing::Sharing;
use crate::db::present::segment::Segment;
use crate::db::present::snapshot::Snapshot;
use crate::db::present::turns::Turns;
use crate::db::progress::Watched;
use crate::db::replay::forward::{Caught, replay_between};
use crate::db::replay::scan::survey;
use crate::db::threads::this_thread;
use crate::journal::format::FRAME_HEADER_LEN;
use crate::journal::segments::Maker;
use crate::journal::{self, Head, Point, Recovered, Rule, Survey, Verdict, lock, segments};
use crate::storage::{Hold, Lock};
use crate::{Error, ErrorKind, Result};

/// How often a process follows a journal that is restarted repeatedly.
const TRIES: usize = 100;

/// A thread whose commit is written, but not acknowledged: the turn lasts at least as long.
pub(in crate::db) struct Staying<'db>(&'db Database);

impl Drop for Staying<'_> {
    fn drop(&mut self) {
        let Some(sharing) = self.0.sharing() else { return };
        sharing.users.leave(|is_last| {
            if is_last {
                self.0.end_turn_now();
            } else {
                // Read-only processes learn of it from this. If this fails, the end of the turn retries.
                let _ = self.0.checkpoints().tell();
            }
        });
    }
}

impl Database {
    /// Loads the commits of other processes since, and returns a snapshot of them. Takes no lock of the file; it
    /// waits while another thread has a transaction of this handle open, or waits for its turn. In exclusive mode
    /// there is nothing to load.
    ///
    /// Cost: reads the new part of the journal, and replays it.
    ///
    /// # Errors
    /// `Invalid` in a thread that has a transaction open; `NotFound` if the file was removed or replaced. `Unapplied`
    /// if a commit doesn't apply: all before it was loaded. `SchemaMismatch` if another program upgraded the schema
    /// that this one's code relies on; `Corrupt`; `Io`.
    pub fn pull(&self) -> Result<Snapshot> {
        if let Some(sharing) = self.sharing() {
            self.refuse_nesting()?;
            self.refuse_unapplied()?;
            let mut writing = lock(self.writing());
            sharing.check_schema()?;
            if sharing.users.are_any() {
                // Another thread waits for its commit: no other process has written since its turn began.
                return Ok(self.read());
            }
            if !self.is_linked()? {
                self.follow(&mut writing, sharing)?;
            }
            let (file, from) = (self.file(), writing.writer.committed());
            let ahead = Survey::since_now(&*file.storage, &file.name, from)?;
            self.bring_in(&mut writing, sharing, ahead.end, ahead.last_clock_time)?;
            self.checkpoints().adopt(ahead.end, &ahead.head, ahead.len);
            self.follow_the_image(&mut writing);
        }
        Ok(self.read())
    }

    /// Returns the recoveries since the database was opened, in shared mode: when this process began a transaction,
    /// another one had been killed, or its flush had failed.
    #[must_use]
    pub fn recoveries(&self) -> Vec<Recovered> {
        lock(self.later_recoveries()).clone()
    }

    /// Refuses to wait for a transaction of the same thread.
    pub(in crate::db) fn refuse_nesting(&self) -> Result<()> {
        if self.owner() != this_thread() {
            return Ok(());
        }
        Err(Error::invalid(
            "this thread has a transaction open already: use that one, or end it first \
             (transactions don't nest)",
        ))
    }

    /// Runs something that writes the file, in this process's turn.
    pub(in crate::db) fn in_turn<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.sharing().is_none() {
            return act();
        }
        self.refuse_nesting()?;
        let mut writing = lock(self.writing());
        self.take_turn(&mut writing)?;
        let done = act();
        self.let_go();
        done
    }

    /// Closes a journal that other processes may be writing: the last one to do so leaves it closed.
    pub(in crate::db) fn close_shared(&self) -> Result<()> {
        let Some(sharing) = self.sharing() else { return Ok(()) };
        if sharing.is_outdated.load(Ordering::Relaxed) {
            self.segment().load().take_turn()?;
            return self.close_as_it_is();
        }
        let mut writing = match self.writing().try_lock() {
            Ok(writing) => writing,
            // A transaction panicked, which rolled it back.
            Err(TryLockError::Poisoned(panicked)) => panicked.into_inner(),
            // One was forgotten (`mem::forget`): it holds this for ever, and the turn too. The next process recovers
            // its writes.
            Err(TryLockError::WouldBlock) => return self.close_as_it_is(),
        };
        self.take_turn(&mut writing)?;
        let closed = match self.is_alone() {
            Ok(is_alone) if step!(ClosedAmongOthers, is_alone, else true) => {
                if is_alone {
                    // A problem of the image doesn't prevent closing: the next opening replays more.
                    let _ = self.backfill_as_the_last(writing);
                }
                self.checkpoints().close()
            }
            // A process that has it open may write it, so it can't be left closed.
            Ok(_) => self.checkpoints().hard().map(drop),
            Err(error) => Err(self.unreadable(error)),
        };
        self.let_go();
        closed
    }

    /// Makes the commits of this handle durable, and releases the turn, without reading the rest.
    fn close_as_it_is(&self) -> Result<()> {
        let closed = self.checkpoints().harden();
        self.let_go();
        closed
    }

    /// Ends the turn; first marks it if a flush failed meanwhile.
    pub(in crate::db) fn let_go(&self) {
        let Some(sharing) = self.sharing() else { return };
        sharing.users.leave(|is_last| {
            if !is_last {
                return;
            }
            let is_failed = self.checkpoints().check_usable().is_err();
            if step!(FailedFlushNotTold, is_failed, else false) {
                let _ = self.checkpoints().tell();
            }
            self.segment().load().end_turn();
        });
    }

    /// Keeps the turn until the returned guard is dropped, whichever thread is the writer meanwhile.
    pub(in crate::db) fn stay_in_turn(&self) -> Option<Staying<'_>> {
        self.sharing()?.users.add();
        Some(Staying(self))
    }

    /// Takes the turn for a transaction, or joins the turn of other threads' commits in this process.
    pub(in crate::db) fn take_or_join_turn(&self, writing: &mut Writing) -> Result<()> {
        let Some(sharing) = self.sharing() else { return Ok(()) };
        self.checkpoints().check_usable()?;
        sharing.check_schema()?;
        let segment = self.segment().load_full();
        let may_join = || segment.turns.as_ref().is_some_and(Turns::is_unwanted);
        if sharing.users.join(may_join) { Ok(()) } else { self.take_turn(writing) }
    }

    /// Returns true if no other handle has the file open for writing. Closes the files that keep it open.
    fn is_alone(&self) -> io::Result<bool> {
        let file = self.file();
        file.storage.unlock(Lock::Head)?;
        Ok(file.storage.try_lock(Lock::Head, Hold::Exclusive)?
            && !segments::are_held(&*file.directory, &file.journal, file.segment)?)
    }

    /// Takes the turn, and loads the commits of the others. Nothing in exclusive mode.
    pub(in crate::db) fn take_turn(&self, writing: &mut Writing) -> Result<()> {
        self.take_turn_by(writing, Segment::take_turn)
    }

    /// Does what [`Self::take_turn`] does, where `take` waits for the turn.
    pub(in crate::db) fn take_turn_by(
        &self,
        writing: &mut Writing,
        take: impl Fn(&Segment) -> Result<()>,
    ) -> Result<()> {
        let Some(sharing) = self.sharing() else { return Ok(()) };
        self.checkpoints().check_usable()?;
        sharing.check_schema()?;
        sharing.users.wait_for_none();
        for _ in 0..TRIES {
            let segment = self.segment().load_full();
            take(&segment)?;
            match self.catch_up(writing, sharing) {
                Ok(true) => {
                    sharing.users.add();
                    return Ok(());
                }
                caught_up => {
                    segment.end_turn();
                    caught_up?;
                }
            }
            self.follow(writing, sharing)?;
        }
        let name = &self.file().name;
        let message = format!("{name}: goes on in a new segment again and again; try again later");
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// As [`Self::take_turn`] in shared mode, but doesn't wait: returns true if it has the turn. It hasn't if the
    /// journal continues elsewhere either, where it will look the next time.
    pub(in crate::db) fn try_to_take_turn(&self, writing: &mut Writing) -> Result<bool> {
        let Some(sharing) = self.sharing() else { return Ok(true) };
        self.checkpoints().check_usable()?;
        sharing.check_schema()?;
        let segment = self.segment().load_full();
        if sharing.users.are_any() || !segment.try_to_take_turn()? {
            return Ok(false);
        }
        let caught_up = self.catch_up(writing, sharing);
        if !matches!(caught_up, Ok(true)) {
            segment.end_turn();
            caught_up?;
            self.follow(writing, sharing)?;
            return Ok(false);
        }
        sharing.users.add();
        Ok(true)
    }

    /// Ends the turn, unless another thread of this process needs it. Nothing in exclusive mode.
    pub(in crate::db) fn end_turn(&self) {
        let Some(sharing) = self.sharing() else { return };
        sharing.users.leave(|is_last| {
            if is_last {
                self.end_turn_now();
            }
        });
    }

    /// Publishes the end of the journal, and lets the next process write.
    fn end_turn_now(&self) {
        let checkpoints = self.checkpoints();
        if checkpoints.check_usable().is_ok() {
            // If this fails, the next turn does it: nothing acknowledged depends on it.
            let _ = checkpoints.prefill();
            let _ = checkpoints.harden_lagging();
        }
        let _ = checkpoints.tell();
        self.segment().load().end_turn();
    }

    /// Loads the commits of the others; `false` if the journal continues elsewhere.
    fn catch_up(&self, writing: &mut Writing, sharing: &Sharing) -> Result<bool> {
        if !self.is_linked()? {
            return Ok(false);
        }
        self.keep_path(writing, sharing)?;
        if step!(OthersNotLookedAt, self.is_up_to_date(writing)?, else true) {
            return Ok(true);
        }
        let ahead = self.look(self.read_head()?, writing)?;
        self.bring_in(writing, sharing, ahead.end, ahead.last_clock_time)?;
        if step!(SealIgnored, ahead.sealed.is_some(), else false) {
            self.finish_restart(sharing, &ahead)?;
            return Ok(false);
        }
        if ahead.is_told() && ahead.verdict() == Verdict::Whole {
            self.checkpoints().take_over(ahead.end, &ahead.head, ahead.len);
            // The live block names this process for an error of others that wait too long for the turn.
            return self.checkpoints().tell().map(|_| true);
        }
        self.recover(writing, sharing).map(|()| true)
    }

    /// Makes the path of a segment durable that another process made, before anything is committed there.
    fn keep_path(&self, writing: &Writing, sharing: &Sharing) -> Result<()> {
        let segment = self.segment().load_full();
        if step!(RestartNotFlushed, segment.is_named.load(Ordering::Relaxed), else true) {
            return Ok(());
        }
        let ahead = self.look(self.read_head()?, writing)?;
        // The process that made an image of it had made the path durable.
        let newest = self.core().image().and_then(|imager| imager.peek());
        let is_imaged = newest.is_some_and(|root| root.segment == segment.file.segment);
        if ahead.is_empty() && !is_imaged {
            segments::keep_path(&*sharing.directory, &sharing.file, &ahead.head.header)
                .map_err(|error| self.unreadable(error))?;
        }
        segment.is_named.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the restart of a process that was interrupted in it: the segment is sealed, and has the path.
    fn finish_restart(&self, sharing: &Sharing, ahead: &Survey) -> Result<()> {
        let Some(seal) = &ahead.sealed else { return Ok(()) };
        let file = self.file();
        let by = Maker { clock: &*self.clock, shared: true };
        let Sharing { directory, file: name, .. } = sharing;
        segments::finish(&**directory, name, &*file.storage, ahead, seal, by)
    }

    /// True if a few small reads show that no process wrote since this handle did.
    fn is_up_to_date(&self, writing: &Writing) -> Result<bool> {
        let file = self.file();
        let storage = &*file.storage;
        let live = journal::live(storage).filter(|live| self.checkpoints().is_unchanged(live));
        let end = writing.writer.committed();
        let is_own = live.is_some_and(|live| live.soft == end && live.pid == std::process::id());
        let mut next = [0; FRAME_HEADER_LEN];
        let read =
            storage.read_at(end.position, &mut next).map_err(|error| self.unreadable(error))?;
        Ok(is_own && next.iter().take(read).all(|&byte| byte == 0))
    }

    /// Recovers the writes of an interrupted process. No other process writes meanwhile.
    fn recover(&self, writing: &mut Writing, sharing: &Sharing) -> Result<()> {
        let Sharing { directory, file, recovery, .. } = sharing;
        let shown = directory.display(file);
        let looks_wrong = |survey: &Survey| survey.verdict() != Verdict::Whole;
        let own = self.file();
        let (storage, rule) = (Watched::new(&*own.storage, None), Rule::new(*recovery));
        let begin = || Ok(());
        let (found, ()) = survey(&storage, &shown, rule, begin, looks_wrong, |(), _, _| Ok(()))?;
        self.bring_in(writing, sharing, found.end, found.last_clock_time)?;
        let (storage, secret) = (&*own.storage, self.clock.secret());
        let settled =
            journal::settle_among_others(storage, &**directory, file, &found, *recovery, secret)?;
        self.checkpoints().adopt_settled(found.end, &settled);
        self.checkpoints().tell()?;
        if settled.recovered.cut.is_some() {
            lock(self.later_recoveries()).push(settled.recovered);
            self.see_to_the_image(found.end);
        }
        Ok(())
    }

    /// Reads the frames after the last known commit.
    fn look(&self, head: Head, writing: &Writing) -> Result<Survey> {
        let file = self.file();
        Survey::since(&*file.storage, &file.name, head, writing.writer.committed())
    }

    /// Replays the frames after the last known commit up to `end`, and shows them.
    fn bring_in(
        &self,
        writing: &mut Writing,
        sharing: &Sharing,
        end: Point,
        last_clock_time: i64,
    ) -> Result<()> {
        let from = writing.writer.committed();
        if from == end {
            return Ok(());
        }
        let commands = writing.store.view().schema().commands().len();
        let store = std::mem::take(&mut writing.store);
        let (from, to) = (from, end.position);
        let (store, replayed) = replay_between(&self.file(), store, (from, to));
        writing.store = store;
        let Caught { view, point: end, unapplied } = replayed?;
        if self.has_fixed_schema() && view.schema().commands().len() != commands {
            return sharing.note_schema(true);
        }
        writing.writer.adopt(end, last_clock_time);
        self.group().show(view, end);
        match unapplied {
            None => Ok(()),
            Some(unapplied) => Err(self.stay_before(unapplied)),
        }
    }

    /// Locks belong to files, not to names: a file that isn't at its name any more must not be written.
    fn is_linked(&self) -> Result<bool> {
        self.file().storage.is_linked().map_err(|error| self.unreadable(error))
    }

    fn read_head(&self) -> Result<Head> {
        let file = self.file();
        Head::read(&*file.storage, &file.name)
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::io(format!("{}: can't read the journal", self.file().name), error)
    }
}
