//! Converting: the same bytes in another form, compressed or not. Of a journal that is being written, or wasn't closed, a
//! backup is converted.

use std::io;
use std::path::Path;
use std::sync::Arc;

use annals::event::Event;
use annals::internals::{locate, watch};
use annals::{Error, ErrorKind, Options, Result, Sink};
use annals_journal::segments::kept_name;
use annals_journal::{Committed, Recovery, Rule, Survey, Verdict};
use annals_schema::Schema;
use annals_storage::{Access, Clock, Hold, Lock, Storage, SystemClock};

use super::source::{Part, Source};
use super::{Meter, push_in};
use crate::names::Names;

/// The report of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// How many files the journal has.
    pub segments: u64,
    /// How many bytes those have, not compressed.
    pub plain: u64,
    /// How many bytes the new files have.
    pub written: u64,
    /// The number of transactions left out, as they weren't known to be on permanent storage yet: of a journal that
    /// is being written, or wasn't closed.
    pub soft: u64,
}

/// Writes a database into the new file `to` in the newest version of the format, its whole history with all segments:
/// compressed, if `compress` says so (with the feature `zstd`), else not. A compressed file can be read like any
/// database, without unpacking it to a disk, but not written; converted again, it has the same bytes as before.
/// Others may write `from` meanwhile. As with [`backup`](super::backup()), the part known to be on permanent storage
/// is converted, and [`Converted::soft`] counts the transactions after that.
///
/// Cost: reads `from` twice and the output once, and verifies it all. Where `from` is being written, or wasn't
/// closed, a backup beside `to` is made first. Reading compressed files keeps 2 MiB of them unpacked.
///
/// # Errors
/// `InUse` if there is a file `to`, or one of its kept segments; `NotFound`; `NotAJournal`; `Corrupt`;
/// `Unsupported`; `Cancelled`; `Io`. Nothing is left of the new file then.
pub fn convert(
    options: &Options,
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    compress: bool,
) -> Result<Converted> {
    let ((from, name), (to, new_name)) = (locate(from.as_ref())?, locate(to.as_ref())?);
    let (name, new_name) = (name.as_str(), new_name.as_str());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut source = Source::new(Arc::clone(&from), name);
    let to = source.like(to, new_name)?;
    let names = Names::new(&to, new_name, "convert", &*clock)?;
    let mut parts = source.look(None)?;
    let (backup, mut soft) = (Names::new(&to, new_name, "backup", &*clock)?, 0);
    if !parts.last().map_or(Ok(true), |newest| is_at_rest(&source, newest))? {
        let mut push = push_in(options, from, name, Arc::clone(&to), backup.temporary(), clock);
        soft = push.bring_up()?.soft;
        push.close()?;
        parts = Source::new(Arc::clone(&to), backup.temporary()).look(None)?;
    }
    let mut converted = Converted { segments: parts.len() as u64, plain: 0, written: 0, soft };
    for part in &parts {
        converted.plain += part.len()?;
    }
    let mut meter = Meter::new(watch(options));
    meter.begin(2 * converted.plain);
    for part in &parts {
        let temporary = match part.successor {
            Some(_) => kept_name(names.temporary(), part.header().segment),
            None => names.temporary().to_owned(),
        };
        let io = |error| Error::io(format!("{}: can't be written", to.display(new_name)), error);
        let file = to.create(&temporary).map_err(io)?;
        match compress {
            true => pack(part, &*file, &mut meter, &io)?,
            false => copy(part, &*file, &mut meter, &io)?,
        }
        file.flush().map_err(io)?;
        converted.written += file.len().map_err(io)?;
        let written = to.open(&temporary, Access::Read).map_err(io)?;
        compare(part, &*written, &mut meter)?;
    }
    crate::scan_in(&Options::new(), &*to, names.temporary(), &mut Nothing)
        .map_err(|error| names.explain(error))?;
    names.give()?;
    Ok(converted)
}

/// Takes the verified events of a scan, and ignores them.
struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _: &Schema, _: &Event<'_>) -> Result<()> {
        Ok(())
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}

/// True if no process writes the journal, and it was closed. Then no process can open it for exclusive writing as
/// long as it is open.
fn is_at_rest(source: &Source, newest: &Part) -> Result<bool> {
    let Part { storage, shown, .. } = newest;
    let io = |error| Error::io(format!("{shown}: can't be locked"), error);
    if !storage.try_lock(Lock::Head, Hold::Shared).map_err(io)? {
        return Ok(false);
    }
    let survey = Survey::make(&**storage, shown, Rule::new(Recovery::Checked), |_, _| Ok(()))?;
    if survey.verdict() == Verdict::Damaged {
        return Err(survey.damage(shown));
    }
    source.check_end(newest, &survey)?;
    if !survey.is_closed() {
        // A program may open it meanwhile.
        storage.unlock(Lock::Head).map_err(io)?;
    }
    Ok(survey.is_closed())
}

#[cfg(feature = "zstd")]
fn pack(
    part: &Part,
    to: &dyn Storage,
    meter: &mut Meter,
    io: &dyn Fn(io::Error) -> Error,
) -> Result<()> {
    /// Which of both went wrong.
    enum Failed {
        File(io::Error),
        Program(Error),
    }
    impl From<io::Error> for Failed {
        fn from(error: io::Error) -> Self {
            Self::File(error)
        }
    }
    let packed = annals_storage::compress(&*part.storage, to, |bytes| {
        meter.add(bytes).map_err(Failed::Program)
    });
    packed.map_err(|failed| match failed {
        Failed::File(error) => io(error),
        Failed::Program(error) => error,
    })
}

#[cfg(not(feature = "zstd"))]
fn pack(_: &Part, _: &dyn Storage, _: &mut Meter, _: &dyn Fn(io::Error) -> Error) -> Result<()> {
    let message = "this program was built without the feature `zstd` of Annals, and can't compress";
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// So much is read at once.
const STEP: usize = 1 << 20;

fn copy(
    part: &Part,
    to: &dyn Storage,
    meter: &mut Meter,
    io: &dyn Fn(io::Error) -> Error,
) -> Result<()> {
    each_piece(part, |at, bytes| {
        to.write_at(at, bytes).map_err(io)?;
        meter.add(bytes.len() as u64)
    })
}

/// Reads both again: one may have been written meanwhile, or a disk be wrong.
fn compare(part: &Part, written: &dyn Storage, meter: &mut Meter) -> Result<()> {
    let unreadable = |error| Error::io(format!("{}: its copy can't be read", part.shown), error);
    let mut ours = vec![0; STEP];
    let mut is_same = written.len().map_err(unreadable)? == part.len()?;
    each_piece(part, |at, bytes| {
        let ours = ours.get_mut(..bytes.len()).unwrap_or_default();
        is_same &= written.read_at(at, ours).map_err(unreadable)? == bytes.len() && ours == bytes;
        meter.add(bytes.len() as u64)
    })?;
    match is_same {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Busy,
            format!("{}: was written while it was converted: try again", part.shown),
        )),
    }
}

fn each_piece(part: &Part, mut take: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let (mut at, mut bytes) = (0, vec![0; STEP]);
    loop {
        let read = part.storage.read_at(at, &mut bytes).map_err(|error| part.unreadable(error))?;
        if read == 0 {
            return Ok(());
        }
        take(at, bytes.get(..read).unwrap_or_default())?;
        at += read as u64;
    }
}
