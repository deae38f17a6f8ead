//! Shared mode: bringing in what other processes committed, and writing in turn with them.
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
//! If the name leads to another file by now, the journal may continue there; see `follow`.
//!
//! Without the turn the journal can be read as well: what follows the last known commit is brought in as
//! far as it verifies and counts.

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

/// How often a process goes after a journal that is restarted again and again.
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
                // Processes that only read know of it by this. What fails here, the end of the turn tries again.
                let _ = self.0.checkpoints().tell();
            }
        });
    }
}

impl Database {
    /// Brings in what other processes have committed since, and returns a snapshot of it. Takes no lock of
    /// the file; it waits while another thread has a transaction of this handle open, or waits for its
    /// turn. In exclusive mode there is nothing to bring in.
    ///
    /// Cost: reads what was added to the journal, and replays it.
    ///
    /// # Errors
    /// `Invalid` in a thread that has a transaction open; `NotFound` if the file was removed or
    /// replaced; `Unapplied` if a commit doesn't apply: all before it was brought in; `SchemaMismatch` if another program upgraded the schema that this one's code relies on;
    /// `Corrupt`; `Io`.
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

    /// Returns what was recovered since the database was opened, in shared mode: another process had been
    /// killed, or its flush had failed, when this one began a transaction.
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
            // One was forgotten (`mem::forget`): it holds this for ever, and the turn too. What it has
            // written is recovered by the next one.
            Err(TryLockError::WouldBlock) => return self.close_as_it_is(),
        };
        self.take_turn(&mut writing)?;
        let closed = match self.is_alone() {
            Ok(is_alone) if step!(ClosedAmongOthers, is_alone, else true) => {
                if is_alone {
                    // What goes wrong with it is no reason not to close: the next opening replays more.
                    let _ = self.backfill_as_the_last(writing);
                }
                self.checkpoints().close()
            }
            // Whoever has it open may write it, so it can't be left closed.
            Ok(_) => self.checkpoints().hard().map(drop),
            Err(error) => Err(self.unreadable(error)),
        };
        self.let_go();
        closed
    }

    /// Makes durable what this handle committed, and lets go of the turn, without looking at the rest.
    fn close_as_it_is(&self) -> Result<()> {
        let closed = self.checkpoints().harden();
        self.let_go();
        closed
    }

    /// Ends the turn; tells the next one first if a flush failed meanwhile.
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

    /// Keeps the turn until what this returns is dropped, whoever has the writer meanwhile.
    pub(in crate::db) fn stay_in_turn(&self) -> Option<Staying<'_>> {
        self.sharing()?.users.add();
        Some(Staying(self))
    }

    /// Takes the turn for a transaction, or joins the one that commits of other threads of this process keep.
    pub(in crate::db) fn take_or_join_turn(&self, writing: &mut Writing) -> Result<()> {
        let Some(sharing) = self.sharing() else { return Ok(()) };
        self.checkpoints().check_usable()?;
        sharing.check_schema()?;
        let segment = self.segment().load_full();
        let may_join = || segment.turns.as_ref().is_some_and(Turns::is_unwanted);
        if sharing.users.join(may_join) { Ok(()) } else { self.take_turn(writing) }
    }

    /// Returns true if no other handle has the file open for writing. Gives up what holds it open.
    fn is_alone(&self) -> io::Result<bool> {
        let file = self.file();
        file.storage.unlock(Lock::Head)?;
        Ok(file.storage.try_lock(Lock::Head, Hold::Exclusive)?
            && !segments::are_held(&*file.directory, &file.journal, file.segment)?)
    }

    /// Takes the turn, and brings in what the others committed. Nothing in exclusive mode.
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

    /// As [`Self::take_turn`] in shared mode, but waits for nobody: tells whether it has the turn. It hasn't if
    /// the journal continues elsewhere either, where it will look the next time.
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

    /// Lets the next process write, having told it how far the journal is.
    fn end_turn_now(&self) {
        let checkpoints = self.checkpoints();
        if checkpoints.check_usable().is_ok() {
            // What fails here, the next turn does: nothing acknowledged depends on it.
            let _ = checkpoints.prefill();
            let _ = checkpoints.harden_lagging();
        }
        let _ = checkpoints.tell();
        self.segment().load().end_turn();
    }

    /// Brings in what the others committed; `false` if the journal continues elsewhere.
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
            // Whoever waits too long for the turn is told by the live block whose it is.
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
        // Whoever made an image of it knew that the path is durable.
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

    /// True if a few small reads show that nobody wrote since this handle did.
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

    /// Recovers what a process left that was interrupted. Nobody else writes meanwhile.
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

    /// Looks at what follows the last known commit.
    fn look(&self, head: Head, writing: &Writing) -> Result<Survey> {
        let file = self.file();
        Survey::since(&*file.storage, &file.name, head, writing.writer.committed())
    }

    /// Replays what follows the last known commit up to `end`, and shows it.
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

    /// Locks belong to files, not to names: what isn't at its name any more must not be written.
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
