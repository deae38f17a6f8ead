//! A session of the shell: it runs one line after the other against an open database.
//!
//! Invariants
//! 1. In a script there is a transaction from the first change (or `begin`) on until `commit`,
//!    `rollback` or the end. With [`Commits::EachLine`] there is one from `begin` on only; without
//!    it, none is left when a line has run.
//! 2. `begun` says that `begin` was said in the present transaction.
//! 3. A line that fails has changed nothing, and the transaction that was pending still is; only a
//!    commit that fails has rolled it back.
//! 4. A session that is dropped rolls back.

use annals::{Commit, Database, Error, Level, Result, Schema, Snapshot, Timestamp, Transaction};
use annals_schema::Token;

use super::command::Run;
use super::savepoints::Savepoints;
use super::screen::Screen;
use super::words::Words;
use super::{catalog, help, image};
use crate::language;
use crate::present::Present;
use crate::remote::Opened;

/// When a session commits changes that no `begin` precedes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commits {
    /// Where `commit` is said, and at the end.
    WhenSaid,
    /// After each line that changes something.
    EachLine,
}

/// The target of a session.
#[derive(Clone)]
pub(crate) enum Base<'db> {
    /// A database that it may change.
    Database(&'db Database),
    /// A read-only file.
    ReadOnly(&'db Opened),
}

impl Base<'_> {
    fn read(&self) -> Snapshot {
        match self {
            Base::Database(database) => database.read(),
            Base::ReadOnly(reader) => reader.read(),
        }
    }

    fn pull(&self) -> Result<Snapshot> {
        match self {
            Base::Database(database) => database.pull(),
            Base::ReadOnly(reader) => reader.pull(),
        }
    }
}

impl<'db> Base<'db> {
    fn database(&self) -> Result<&'db Database> {
        match self {
            Base::Database(database) => Ok(database),
            Base::ReadOnly(_) => Err(Error::invalid(
                "the file is open read-only, so nothing was done; leave out --read-only to change it",
            )),
        }
    }
}

/// The result of a line that didn't fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its output.
    Done,
    /// It has made a commit.
    Committed(Commit),
    /// It asks for the end of the session.
    Quit,
}

impl Answer {
    /// Reports a commit, at once.
    pub(crate) fn tell(self, screen: &mut Screen) -> Result<()> {
        match self {
            Self::Committed(commit) => screen.tell(commit),
            Self::Done | Self::Quit => Ok(()),
        }
    }
}

/// Runs the lines of a script, or of a person.
pub(crate) struct Session<'db> {
    base: Base<'db>,
    transaction: Option<Transaction<'db>>,
    begun: bool,
    savepoints: Savepoints,
    level: Level,
    commits: Commits,
}

impl<'db> Session<'db> {
    /// Begins a session whose commits have the level, where they don't say another.
    pub(crate) fn new(base: Base<'db>, level: Level, commits: Commits) -> Self {
        let savepoints = Savepoints::default();
        Self { base, transaction: None, begun: false, savepoints, level, commits }
    }

    /// Runs one line.
    pub(crate) fn run(&mut self, line: &str, screen: &mut Screen) -> Result<Answer> {
        let tokens =
            annals_schema::tokenize(line).map_err(|error| Error::invalid(error.to_string()))?;
        if tokens.is_empty() {
            return Ok(Answer::Done);
        }
        let command = catalog::command_of(&tokens)?;
        let words = Words { usage: command.words(), line, tokens: &tokens };
        match command.run {
            Run::Change(change) => self.change(|transaction| change(transaction, &words, screen)),
            Run::Look(look) => {
                self.look(|present| look(present, &words, screen)).map(|()| Answer::Done)
            }
            Run::Help => help::help(&words, screen).map(|()| Answer::Done),
            Run::Begin => self.begin(&words),
            Run::Commit => {
                let (level, time) = commit_arguments(&words)?;
                self.commit(level, time)
            }
            Run::SoftCheckpoint => {
                let [] = words.exactly()?;
                let answer = self.commit(Some(Level::Soft), None)?;
                self.base.database()?.soft_checkpoint().map(|_| answer)
            }
            Run::HardCheckpoint => {
                let [] = words.exactly()?;
                let answer = self.commit(Some(Level::TwoPhase), None)?;
                self.base.database()?.hard_checkpoint().map(|_| answer)
            }
            Run::Checkpoint => {
                let [] = words.exactly()?;
                self.commit(None, None)
            }
            Run::Rollback => {
                let [] = words.exactly()?;
                self.rollback().map(|()| Answer::Done)
            }
            Run::Savepoint => self.in_transaction(&words, Savepoints::set),
            Run::RollbackTo => self.in_transaction(&words, Savepoints::roll_back_to),
            Run::Release => self.in_transaction(&words, Savepoints::release),
            Run::Abort => {
                let [] = words.exactly()?;
                self.rollback()?;
                Err(Error::invalid("aborted: what was pending was rolled back"))
            }
            Run::Pull => {
                let [] = words.exactly()?;
                self.pull(screen).map(|()| Answer::Done)
            }
            Run::Backfill => {
                let database = self.base.database()?;
                image::backfill(database, &words, self.is_open(), screen).map(|()| Answer::Done)
            }
            Run::Quit => {
                let [] = words.exactly()?;
                Ok(Answer::Quit)
            }
        }
    }

    /// Ends the session: commits pending changes, if there are any.
    pub(crate) fn end(mut self) -> Result<Answer> {
        match self.transaction.take() {
            Some(transaction) if !transaction.is_empty() => {
                transaction.commit().map(Answer::Committed)
            }
            Some(transaction) => transaction.rollback().map(|()| Answer::Done),
            None => Ok(Answer::Done),
        }
    }

    /// Rolls back pending changes, if there are any.
    pub(crate) fn rollback(&mut self) -> Result<()> {
        self.begun = false;
        self.transaction.take().map_or(Ok(()), Transaction::rollback)
    }

    /// True if a transaction has begun.
    pub(crate) const fn is_open(&self) -> bool {
        self.transaction.is_some()
    }

    /// True if there are changes that are not committed.
    pub(crate) fn has_changes(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| !transaction.is_empty())
    }

    /// Returns the schema as the session sees it.
    pub(crate) fn schema(&self) -> std::sync::Arc<Schema> {
        self.look(|present| present.schema().clone())
    }

    /// Loads the commits of others, and prints the last one.
    fn pull(&self, screen: &mut Screen) -> Result<()> {
        if self.is_open() {
            return Err(Error::invalid(
                "a transaction has begun, and sees all that was committed before it did; end it with \
                 commit or rollback first",
            ));
        }
        let txid = self.base.pull()?.txid();
        screen.output.line(&format!("pulled up to txid={txid}"))
    }

    /// Reads the present state, pending changes included.
    fn look<T>(&self, how: impl FnOnce(&Present<'_>) -> T) -> T {
        match &self.transaction {
            Some(transaction) => how(&Present::Pending(transaction)),
            None => how(&Present::Committed(self.base.read())),
        }
    }

    fn change(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'db>) -> Result<()>,
    ) -> Result<Answer> {
        let done = statement(self.pending()?);
        if self.begun || self.commits == Commits::WhenSaid {
            return done.map(|()| Answer::Done);
        }
        match (done, self.transaction.take()) {
            (Ok(()), Some(transaction)) => transaction.commit().map(Answer::Committed),
            (Ok(()), None) => Ok(Answer::Done),
            (Err(error), transaction) => {
                // The error is the statement's; if the cut fails, the next transaction tries again.
                drop(transaction);
                Err(error)
            }
        }
    }

    /// Runs a command for savepoints. In a script each line is in a transaction.
    fn in_transaction(
        &mut self,
        words: &Words<'_>,
        command: fn(&mut Savepoints, &mut Transaction<'_>, &Words<'_>) -> Result<()>,
    ) -> Result<Answer> {
        if self.commits == Commits::EachLine && !self.begun {
            return Err(Error::invalid(format!(
                "no transaction has begun, so it can have no savepoint: say `begin` before `{}`",
                words.usage.name
            )));
        }
        self.pending()?;
        if let Some(transaction) = &mut self.transaction {
            command(&mut self.savepoints, transaction, words)?;
        }
        Ok(Answer::Done)
    }

    fn pending(&mut self) -> Result<&mut Transaction<'db>> {
        let transaction = match self.transaction.take() {
            Some(transaction) => transaction,
            None => {
                self.savepoints.clear();
                let mut transaction = self.base.database()?.begin()?;
                transaction.set_level(self.level);
                transaction
            }
        };
        Ok(self.transaction.insert(transaction))
    }

    fn begin(&mut self, words: &Words<'_>) -> Result<Answer> {
        let [] = words.exactly()?;
        if self.begun {
            let message = "this transaction has begun already; end it with commit or rollback";
            return Err(Error::invalid(message));
        }
        self.pending()?;
        self.begun = true;
        Ok(Answer::Done)
    }

    fn commit(&mut self, level: Option<Level>, time: Option<Timestamp>) -> Result<Answer> {
        let pending = self.pending()?;
        if let Some(level) = level {
            pending.set_level(level);
        }
        if let Some(time) = time {
            pending.set_time(time);
        }
        self.begun = false;
        match self.transaction.take() {
            Some(transaction) => transaction.commit().map(Answer::Committed),
            None => Ok(Answer::Done),
        }
    }
}

fn commit_arguments(words: &Words<'_>) -> Result<(Option<Level>, Option<Timestamp>)> {
    let texts: Vec<&str> = words.arguments().iter().map(text).collect();
    let (level, rest) = match texts.split_first() {
        Some((&first, rest)) if first != "at" => {
            let level = Level::named(first).ok_or_else(|| {
                Error::invalid(format!(
                    "unknown level {:?}; the levels are: {}",
                    annals_schema::shorten(first),
                    language::levels()
                ))
            })?;
            (Some(level), rest)
        }
        _ => (None, texts.as_slice()),
    };
    match rest {
        [] => Ok((level, None)),
        ["at", time] => Ok((level, Some(language::time(time)?))),
        _ => Err(Error::invalid("expected `commit [LEVEL] [at TIME]`")),
    }
}

fn text<'t>(token: &'t Token<'_>) -> &'t str {
    token.text.as_ref()
}
