//! Surveys a file before anything is made of it: which part of it is valid, and whether that part can be read.

use std::io::{BufRead, Read, Seek, SeekFrom};

use annals::{Error, ErrorKind, Result};

use super::format::{Entry, HEAD, Head, Kind, SIGNATURE, VERSION};
use super::reader::Reader;
use crate::text::count;

/// Up to where a file is imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Up to the last checkpoint, hard or soft, as joedb opens it.
    #[default]
    Checkpoint,
    /// Up to the last hard checkpoint: what was flushed to the disk.
    Hard,
    /// Up to the last entry that is whole, whatever the checkpoints say.
    End,
}

/// The findings in a file.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The end of the valid part.
    pub(crate) end: u64,
    /// The end of the last checkpoint.
    pub(crate) checkpoint: u64,
    /// Where the last timestamp ends; where the entries begin if there is none.
    pub(crate) timed: u64,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// Reads the head and, once, all valid entries.
///
/// # Errors
/// `NotAJournal`: it is no joedb file; `Unsupported`: it is one of another version; `Corrupt`: it is shorter than it
/// says, or something in it is no entry.
pub(crate) fn survey(input: &mut (impl BufRead + Seek), until: Until) -> Result<Survey> {
    let (head, len) = look_at_rest(input, until)?;
    let mut notes = Vec::new();
    let checkpoint = head.hard().max(head.soft(len));
    let end = end_of(head, len, until);
    if end > len {
        return Err(Error::corrupt(format!(
            "it has {len} bytes, but its checkpoint is at {end}: its end is missing; --until end takes what is there"
        )));
    }
    if end == HEAD && len > HEAD {
        let what = if until == Until::Hard { "hard checkpoint" } else { "checkpoint" };
        return Err(Error::corrupt(format!(
            "its head knows of no {what}, but {} after it; --until end takes what of that can be read",
            there(len - HEAD)
        )));
    }
    if end < len {
        notes.push(format!(
            "{} after the checkpoint at position {end} left out. A program may be writing there: import again after \
             its next checkpoint. --until end takes what is there; use it only if no program writes the file",
            count(len - end, "byte")
        ));
    }
    let mut looked = Looked { whole: HEAD, timed: HEAD };
    input.seek(SeekFrom::Start(HEAD)).map_err(unreadable)?;
    let read = looked.through(&mut Reader::new(input, HEAD, end));
    let end = match read {
        Ok(()) => end,
        Err(error) if until == Until::End && error.kind() != ErrorKind::Io => {
            let (whole, left) = (looked.whole, len - looked.whole);
            notes.push(format!("position {whole}: {error}: {}", left_out(left)));
            whole
        }
        Err(error) => return Err(error.within(format_args!("position {}", looked.whole))),
    };
    Ok(Survey { end, checkpoint, timed: looked.timed, notes })
}

/// Surveys a file until it is the same twice, or has changed too often: a program may be writing it.
fn look_at_rest(input: &mut (impl Read + Seek), until: Until) -> Result<(Head, u64)> {
    const LOOKS: usize = 10;
    let mut seen = look(input)?;
    for _ in 1..LOOKS {
        if end_of(seen.0, seen.1, until) == seen.1 {
            break;
        }
        let now = look(input)?;
        if std::mem::replace(&mut seen, now) == seen {
            break;
        }
    }
    Ok(seen)
}

/// Reads the head, then the length. A writer extends the file before it writes the head, so that in this order no
/// checkpoint is after the end.
fn look(input: &mut (impl Read + Seek)) -> Result<(Head, u64)> {
    input.rewind().map_err(unreadable)?;
    let mut bytes = Vec::new();
    Read::take(&mut *input, HEAD).read_to_end(&mut bytes).map_err(unreadable)?;
    let head = parse(&bytes)?;
    Ok((head, input.seek(SeekFrom::End(0)).map_err(unreadable)?))
}

/// Returns the end of the valid part of a file with this head and length.
fn end_of(head: Head, len: u64, until: Until) -> u64 {
    match until {
        Until::End => len,
        Until::Hard => head.hard(),
        Until::Checkpoint => head.hard().max(head.soft(len)),
    }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::io("can't be read", error)
}

/// Describes a number of bytes.
fn there(bytes: u64) -> String {
    format!("{} {} there", count(bytes, "byte"), if bytes == 1 { "is" } else { "are" })
}

/// Describes how many bytes at the end are skipped.
pub(crate) fn left_out(bytes: u64) -> String {
    match bytes {
        1 => "the last byte was left out".to_owned(),
        _ => format!("the last {bytes} bytes were left out"),
    }
}

fn parse(bytes: &[u8]) -> Result<Head> {
    let not_one = || Error::new(ErrorKind::NotAJournal, "it is no joedb file: check the path");
    let (positions, rest) = bytes.split_at_checked(32).ok_or_else(not_one)?;
    let (version, signature) = rest.split_at_checked(4).ok_or_else(not_one)?;
    if signature != SIGNATURE {
        return Err(not_one());
    }
    let version = version.try_into().map_or(0, u32::from_le_bytes);
    if version != VERSION {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "it has version {version} of joedb's format, and only version {VERSION} is known: convert it with \
                 joedb's own tools"
            ),
        ));
    }
    let mut head = Head([0; 4]);
    for (position, bytes) in head.0.iter_mut().zip(positions.chunks_exact(8)) {
        *position = bytes.try_into().map_or(0, i64::from_le_bytes);
    }
    Ok(head)
}

/// The position of the survey.
struct Looked {
    /// Where the last whole entry ends.
    whole: u64,
    /// Where the last timestamp ends.
    timed: u64,
}

impl Looked {
    fn through(&mut self, reader: &mut Reader<impl BufRead>) -> Result<()> {
        while let Some(passed) = pass(reader)? {
            self.whole = reader.position();
            if passed.is_some() {
                self.timed = self.whole;
            }
        }
        Ok(())
    }
}

/// Passes over an entry, with its values or bytes. Returns the seconds if it is a timestamp; the outer option is
/// `None` at the end.
pub(crate) fn pass(reader: &mut Reader<impl BufRead>) -> Result<Option<Option<i64>>> {
    let Some(entry) = reader.next()? else { return Ok(None) };
    let mut seconds = None;
    match entry {
        Entry::Timestamp(found) => seconds = Some(found),
        Entry::Blob { size } => reader.skip(size)?,
        Entry::UpdateVector { kind, count, .. } => skip_values(reader, kind, count)?,
        _ => {}
    }
    Ok(Some(seconds))
}

fn skip_values(reader: &mut Reader<impl BufRead>, kind: Kind, count: u64) -> Result<()> {
    match kind.width() {
        Some(width) if kind != Kind::Bool => reader.skip(count * width as u64),
        _ => (0..count).try_for_each(|_| reader.value(kind).map(drop)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufReader, Cursor};

    use super::*;

    /// A file that a program writes: each question for its length finds a transaction more, and a checkpoint of it.
    struct Growing {
        file: Cursor<Vec<u8>>,
        /// The number of following transactions.
        left: usize,
    }

    impl Growing {
        fn new(left: usize) -> Self {
            let mut bytes = Head([41, 41, 41, 41]).encode().to_vec();
            bytes.push(0x0e);
            let mut growing = Self { file: Cursor::new(bytes), left };
            growing.checkpoint();
            growing
        }

        /// Writes a soft checkpoint at the end.
        fn checkpoint(&mut self) {
            let bytes = self.file.get_mut();
            let end = i64::try_from(bytes.len()).unwrap();
            bytes.splice(24..32, (-end).to_le_bytes());
        }
    }

    impl Read for Growing {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.file.read(bytes)
        }
    }

    impl Seek for Growing {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let at = self.file.seek(to)?;
            if to == SeekFrom::End(0) && self.left > 0 {
                self.left -= 1;
                self.file.get_mut().push(0x0e);
                self.checkpoint();
            }
            Ok(at)
        }
    }

    #[test]
    fn a_file_that_is_being_written_has_no_checkpoint_after_its_end() {
        for left in 0..20 {
            let found = survey(&mut BufReader::new(Growing::new(left)), Until::Checkpoint).unwrap();
            assert_eq!(found.notes, [] as [String; 0], "{left} transactions came meanwhile");
            assert_eq!(found.end, found.checkpoint);
        }
    }
}
