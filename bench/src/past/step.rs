//! A step of `past` in a process of its own. It prints a line for each figure: its name and nanoseconds.

use std::path::Path;
use std::time::{Duration, Instant};

use super::work::{Account, Answer, Change, Failure, Question, Work};

/// An engine.
pub(crate) trait Peer {
    /// Creates the empty table in an empty folder.
    fn create(&self, folder: &Path, form: Form) -> Result<Box<dyn Store>, Failure>;

    /// Opens the table in a folder; commits don't wait for the disk.
    fn open(&self, folder: &Path) -> Result<Box<dyn Store>, Failure>;
}

/// How a table is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Commits don't wait for the disk.
    Soft,
    /// Commits wait for the disk.
    Durable,
    /// Balances have a unique index.
    Indexed,
    /// Annals keeps no key frames.
    NoKeyFrames,
}

impl Form {
    /// Returns its name as an argument, and as a folder.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Durable => "durable",
            Self::Indexed => "indexed",
            Self::NoKeyFrames => "no-key-frames",
        }
    }

    fn of(name: &str) -> Result<Self, Failure> {
        let mut all = [Self::Soft, Self::Durable, Self::Indexed, Self::NoKeyFrames].into_iter();
        all.find(|form| form.name() == name).ok_or_else(|| format!("no form {name}").into())
    }
}

/// An open table.
pub(crate) trait Store {
    /// Loads what a program has to know besides, to ask.
    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Inserts all rows, in one transaction.
    fn load(&mut self, accounts: &mut dyn Iterator<Item = Account>) -> Result<(), Failure>;

    /// Commits a change.
    fn commit(&mut self, change: &Change, comment: &str) -> Result<(), Failure>;

    /// Answers a question about the past.
    fn ask(&mut self, question: &Question) -> Result<Answer, Failure>;

    /// Returns the present balance of a row.
    fn balance(&mut self, row: u64) -> Result<i64, Failure>;

    /// Undoes a change by a new transaction.
    fn undo(&mut self, number: u64) -> Result<(), Failure>;

    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// A question is repeated so often, at least once, and until this much time has passed.
const REPEATED: usize = 11;
const LONG: Duration = Duration::from_secs(1);
/// The changes that a process undoes.
const UNDONE: usize = 21;

/// Takes the step that the arguments name: what to do, the folder, the numbers of rows and changes, and more.
pub(crate) fn take(peer: &dyn Peer, arguments: &[String]) -> Result<(), Failure> {
    let [deed, folder, rows, changes, more @ ..] = arguments else {
        return Err("a deed, a folder, numbers of rows and changes are missing".into());
    };
    let work = Work::new(rows.parse()?, changes.parse()?)?;
    let folder = Path::new(folder);
    let more = more.first().map_or("", String::as_str);
    match &**deed {
        "write" => write(peer.create(folder, Form::of(more)?)?, &work),
        "ask" => ask(peer, folder, &work, more),
        "undo" => undo(peer, folder, &work, more.parse()?),
        _ => Err(format!("there is no step {deed}").into()),
    }
}

/// Does something; returns how long it takes.
fn timed<T>(act: impl FnOnce() -> Result<T, Failure>) -> Result<(Duration, T), Failure> {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    let begun = Instant::now();
    let result = act()?;
    Ok((begun.elapsed(), result))
}

#[allow(clippy::print_stdout, reason = "the process that started this one reads it")]
fn print(name: &str, time: Duration) {
    println!("{name} {}", time.as_nanos());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn write(mut store: Box<dyn Store>, work: &Work) -> Result<(), Failure> {
    print("load", timed(|| store.load(&mut work.loaded()))?.0);
    let mut times = Vec::new();
    for change in work.changes() {
        let comment = change.comment();
        times.push(timed(|| store.commit(change, &comment))?.0);
    }
    let count = u32::try_from(times.len())?;
    print("mean", times.iter().sum::<Duration>() / count);
    print("median", median(times));
    print("close", timed(|| store.close())?.0);
    Ok(())
}

fn ask(peer: &dyn Peer, folder: &Path, work: &Work, key: &str) -> Result<(), Failure> {
    let question = work.question(key)?;
    let right = work.answer(&question);
    let (opening, mut store) = timed(|| peer.open(folder))?;
    store.prepare()?;
    let mut once = || {
        let (time, answer) = timed(|| store.ask(&question))?;
        match answer == right {
            true => Ok(time),
            false => Err(Failure::from(format!("{question:?}: wrong: {answer:?}, not {right:?}"))),
        }
    };
    let (cold, mut warm) = (once()?, Vec::new());
    while warm.is_empty() || warm.len() < REPEATED && warm.iter().sum::<Duration>() < LONG {
        warm.push(once()?);
    }
    print("opening", opening);
    print("cold", cold);
    print("warm", median(warm));
    store.close()
}

/// Undoes changes that were not undone in an earlier turn.
fn undo(peer: &dyn Peer, folder: &Path, work: &Work, turn: usize) -> Result<(), Failure> {
    let mut store = peer.open(folder)?;
    store.prepare()?;
    let mut times = Vec::new();
    for change in work.undoable().iter().skip(turn * UNDONE).take(UNDONE) {
        times.push(timed(|| store.undo(change.number))?.0);
        let (balance, right) =
            (store.balance(change.row)?, work.balance_at(change.row, change.number - 1));
        if balance != right {
            return Err(format!("row {} has {balance}, not {right}", change.row).into());
        }
    }
    print("cold", times.remove(0));
    print("warm", median(times));
    store.close()
}
