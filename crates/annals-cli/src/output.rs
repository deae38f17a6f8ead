//! Standard output: buffered, and every error of writing is one of the command.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use annals::storage::Interrupts;
use annals::{Error, ErrorKind, Result};
use flate2::Crc;

/// Formats a number of items: "1 row", "2 rows", "2 indexes".
pub(crate) fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("{number} {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None if noun.ends_with('x') => format!("{number} {noun}es"),
        None => format!("{number} {noun}s"),
    }
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints a text on standard error. If standard error is closed, the note is lost.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The bytes that are written at once.
const BUFFER: usize = 1 << 16;

/// Set if the program was given no standard output.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Records that the program was given no standard output: all output is discarded.
pub(crate) fn close() {
    IS_CLOSED.store(true, Ordering::Relaxed);
}

/// Set if the reader of standard output closed it.
static HAS_LOST_READER: AtomicBool = AtomicBool::new(false);

/// True if the reader of standard output closed it before all was written, as in `annals log F | head`.
pub(crate) fn has_lost_reader() -> bool {
    HAS_LOST_READER.load(Ordering::Relaxed)
}

/// What was written to standard output. Its beginning is held back until somebody waits for it, so that a command that
/// failed can be run again; what can't be taken back any more must come again then, and isn't written twice.
struct Standard {
    /// What isn't there yet; `None`: something is.
    held: Option<Vec<u8>>,
    /// How much is there, in bytes, and its checksum.
    there: (u64, Crc),
    /// Of a second run: how much of that must still come, and the checksum of what came.
    again: (u64, Crc),
    /// True if something else came: nothing more is written.
    differs: bool,
}

static STANDARD: LazyLock<Mutex<Standard>> = LazyLock::new(|| {
    let held = Some(Vec::new());
    let (there, again) = ((0, Crc::new()), (0, Crc::new()));
    Mutex::new(Standard { held, there, again, differs: false })
});

fn standard() -> MutexGuard<'static, Standard> {
    STANDARD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Standard {
    /// Returns how much of it is held back, in bytes.
    fn most_held() -> usize {
        if io::stdout().is_terminal() { BUFFER } else { 16 * BUFFER }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.differs {
            return Err(io::Error::other(DIFFERS));
        }
        if self.again.0 > 0 {
            return self.compare(bytes);
        }
        match &mut self.held {
            Some(held) if held.len() + bytes.len() <= Self::most_held() => {
                held.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            _ => self.pass()?,
        }
        let written = io::stdout().write(bytes)?;
        self.note(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    /// Takes what was written by the first run.
    fn compare(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (left, seen) = &mut self.again;
        let len = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
        seen.update(bytes.get(..len).unwrap_or(bytes));
        *left -= len as u64;
        self.differs = *left == 0 && seen.sum() != self.there.1.sum();
        if self.differs {
            return Err(io::Error::other(DIFFERS));
        }
        Ok(len)
    }

    fn note(&mut self, bytes: &[u8]) {
        self.there.0 += bytes.len() as u64;
        self.there.1.update(bytes);
    }

    fn pass(&mut self) -> io::Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        io::stdout().write_all(&held)?;
        self.note(&held);
        Ok(())
    }
}

const DIFFERS: &str = "a page of the image was lost in the middle of the output, and what came before is not what is \
                       read now, perhaps because the database was written meanwhile: run the command again";

/// Standard output, as a writer.
struct ToStandard;

impl Write for ToStandard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        standard().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        standard().pass()?;
        io::stdout().flush()
    }
}

/// Takes back what was written, for a second run of the command; what can't be taken back is left out of that.
pub(crate) fn begin_again() {
    let mut standard = standard();
    standard.again = (standard.there.0, Crc::new());
    if let Some(held) = &mut standard.held {
        held.clear();
    }
}

/// Writes what is held back yet. Fails if a second run wrote less than the first.
pub(crate) fn let_go() -> Result<()> {
    let _ = ToStandard.flush();
    match standard().again.0 {
        0 => Ok(()),
        _ => Err(Error::io("can't write to standard output", io::Error::other(DIFFERS))),
    }
}

/// Standard output; or its replacement.
pub(crate) struct Output {
    writer: BufWriter<Box<dyn Write>>,
    interrupts: Option<Rc<Interrupts>>,
    shown: String,
    is_standard: bool,
    is_terminal: bool,
    contents: Contents,
}

/// What an output has got so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Nothing,
    Text,
    /// A file in a format of its own: nothing may follow it.
    Binary,
}

/// The replacement for a missing standard output.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("it is closed"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Takes standard output.
    pub(crate) fn new() -> Self {
        match IS_CLOSED.load(Ordering::Relaxed) {
            true => Self::to(Closed),
            false => Self {
                is_standard: true,
                is_terminal: io::stdout().is_terminal(),
                ..Self::to(ToStandard)
            },
        }
    }

    /// Writes elsewhere.
    pub(crate) fn to(writer: impl Write + 'static) -> Self {
        let writer = BufWriter::with_capacity(BUFFER, Box::new(writer) as _);
        Self {
            writer,
            interrupts: None,
            shown: "standard output".to_owned(),
            is_standard: false,
            is_terminal: false,
            contents: Contents::Nothing,
        }
    }

    /// Writes to a file, as errors name it.
    pub(crate) fn to_file(writer: impl Write + 'static, shown: impl Into<String>) -> Self {
        Self { shown: shown.into(), ..Self::to(writer) }
    }

    /// Returns how many columns it has, if it is a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        self.is_terminal.then(terminal_width)
    }

    /// Sets whether an interrupt ends the output from now on.
    pub(crate) fn end_at(&mut self, interrupts: Option<&Rc<Interrupts>>) {
        self.interrupts = interrupts.map(Rc::clone);
    }

    /// Writes text as it is.
    pub(crate) fn write(&mut self, text: &str) -> Result<()> {
        if self.contents == Contents::Binary && !text.is_empty() {
            return Err(Error::invalid(format!(
                "{} has an answer in a binary format, which nothing can follow; write further answers to other files",
                self.shown
            )));
        }
        if !text.is_empty() {
            self.contents = Contents::Text;
        }
        self.write_bytes(text.as_bytes())
    }

    /// Begins an answer in a binary format: nothing else goes to this output.
    ///
    /// # Errors
    /// `Invalid`: it is a terminal, or has something already.
    pub(crate) fn begin_binary(&mut self, format: &str) -> Result<()> {
        if self.is_terminal {
            return Err(Error::invalid(format!(
                "{format} is binary, and this is a terminal: write the answer to a file with --output FILE (`.once FILE` in \
                 a dialog), or to another program with `|`"
            )));
        }
        if self.contents != Contents::Nothing {
            return Err(Error::invalid(format!(
                "{} has another answer or a text already, and {format} has one answer: ask one statement for each file",
                self.shown
            )));
        }
        self.contents = Contents::Binary;
        Ok(())
    }

    /// True if nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.contents == Contents::Nothing
    }

    /// Writes bytes as they are.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.interrupts.as_ref().is_some_and(|interrupts| interrupts.take()) {
            return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
        }
        self.writer.write_all(bytes).map_err(|error| self.cannot_write(error))
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        self.write(text)?;
        self.write("\n")
    }

    /// Flushes the output. The last call of every command: an error of a write that was buffered
    /// shows up only here.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| self.cannot_write(error))
    }

    fn cannot_write(&self, error: io::Error) -> Error {
        if self.is_standard && error.kind() == io::ErrorKind::BrokenPipe {
            HAS_LOST_READER.store(true, Ordering::Relaxed);
        }
        Error::io(format!("cannot write to {}", self.shown), error)
    }
}

/// Returns how many columns the terminal has.
pub(crate) fn terminal_width() -> usize {
    /// Where the terminal doesn't say it.
    const USUAL: usize = 80;
    terminal_size::terminal_size().map_or(USUAL, |(width, _)| usize::from(width.0))
}

/// Makes a message fit for a terminal, whatever text of the user's it repeats: control characters
/// are escaped, URLs are shown without passwords, and of a very long line only the beginning and the end are kept.
pub(crate) fn plain(message: &str) -> String {
    #[cfg(feature = "net")]
    let message = &annals_replica::redact(message);
    let lines: Vec<String> = message.split('\n').map(plain_line).collect();
    lines.join("\n")
}

fn plain_line(line: &str) -> String {
    /// Longer lines are cut, in characters.
    const LONGEST: usize = 1000;
    /// The characters kept of each end.
    const KEPT: usize = 400;
    let shown = |c: char| match c {
        '\t' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    let length = line.chars().count();
    if length <= LONGEST {
        return line.chars().map(shown).collect();
    }
    let start: String = line.chars().take(KEPT).map(shown).collect();
    let end: String = line.chars().skip(length - KEPT).map(shown).collect();
    format!("{start} .. ({} characters) .. {end}", length - 2 * KEPT)
}

#[cfg(test)]
mod tests {
    use super::{Crc, Standard, plain};

    #[test]
    fn messages_cannot_steer_a_terminal_and_are_not_endless() {
        assert_eq!(plain("a `\u{1b}[31m`\n\tb\u{85}é"), "a `\\u{1b}[31m`\n\tb\\u{85}é");
        let long = plain(&format!("no `{}`; help", "x".repeat(1_000_000)));
        assert!(long.len() < 900, "{}", long.len());
        assert!(long.starts_with("no `xxx") && long.ends_with("xxx`; help"));
        assert!(long.contains(" .. (999211 characters) .. "), "{long}");
    }

    #[test]
    fn what_comes_again_is_compared_and_another_thing_is_refused_for_ever() {
        let there = |text: &[u8]| {
            let mut sum = Crc::new();
            sum.update(text);
            let again = (text.len() as u64, Crc::new());
            Standard { held: None, there: (again.0, sum), again, differs: false }
        };
        let mut same = there(b"some text");
        assert_eq!((same.write(b"some").unwrap(), same.write(b" text and").unwrap()), (4, 5));
        assert_eq!(same.again.0, 0);
        let mut other = there(b"some text");
        assert_eq!(other.write(b"some").unwrap(), 4);
        assert!(other.write(b" test").is_err() && other.write(b" test and more").is_err());
    }
}
