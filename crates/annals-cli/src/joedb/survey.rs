//! Looks through a file before anything is made of it: which part of it counts, and whether that can be read.

use std::io::{BufRead, Read, Seek, SeekFrom};

use annals::{Error, ErrorKind, Result, Timestamp};

use super::format::{Entry, HEAD, Head, Kind, SIGNATURE, VERSION};
use super::reader::Reader;
use crate::output::count;

/// Up to where a file counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Until {
    /// Up to the last checkpoint, hard or soft, as joedb opens it
    #[default]
    Checkpoint,
    /// Up to the last hard checkpoint: what was flushed to the disk
    Hard,
    /// Up to the last entry that is whole, whatever the checkpoints say
    End,
}

/// What there is in a file.
#[derive(Debug)]
pub(super) struct Survey {
    /// Where what counts ends.
    pub(super) end: u64,
    /// Up to where a checkpoint says that it counts.
    pub(super) checkpoint: u64,
    /// The time of the first timestamp.
    pub(super) first_time: Option<Timestamp>,
    /// What a person should know.
    pub(super) notes: Vec<String>,
}

/// Reads the head and, once, all entries that count.
///
/// # Errors
/// `NotAJournal`: it is no joedb file; `Unsupported`: it is one of another version; `Corrupt`: it is shorter than it
/// says, or something in it is no entry.
pub(super) fn survey(input: &mut (impl BufRead + Seek), until: Until) -> Result<Survey> {
    let unreadable = |error| Error::io("can't be read", error);
    let len = input.seek(SeekFrom::End(0)).map_err(unreadable)?;
    input.rewind().map_err(unreadable)?;
    let mut bytes = Vec::new();
    Read::take(&mut *input, HEAD).read_to_end(&mut bytes).map_err(unreadable)?;
    let head = parse(&bytes)?;
    let mut notes = Vec::new();
    let checkpoint = head.hard().max(head.soft(len));
    let end = match until {
        Until::End => len,
        Until::Hard => head.hard(),
        Until::Checkpoint => checkpoint,
    };
    if end > len {
        return Err(Error::corrupt(format!(
            "it has {len} bytes, but its checkpoint is at {end}: its end is missing; --until end takes what is there"
        )));
    }
    if end == HEAD && len > HEAD {
        let what = if until == Until::Hard { "hard checkpoint" } else { "checkpoint" };
        return Err(Error::corrupt(format!(
            "its head knows of no {what}, but {} behind it; --until end takes what of that can be read",
            there(len - HEAD)
        )));
    }
    if end < len {
        notes.push(format!(
            "behind the checkpoint at position {end} {}, and nothing of it was taken; --until end takes it",
            there(len - end)
        ));
    }
    let mut looked = Looked { whole: HEAD, first_time: None };
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
    Ok(Survey { end, checkpoint, first_time: looked.first_time, notes })
}

/// Says how many bytes there are.
fn there(bytes: u64) -> String {
    format!("{} {} there", count(bytes, "byte"), if bytes == 1 { "is" } else { "are" })
}

/// Says how much at the end isn't taken.
pub(super) fn left_out(bytes: u64) -> String {
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

/// How far it has looked.
struct Looked {
    /// Where the last whole entry ends.
    whole: u64,
    first_time: Option<Timestamp>,
}

impl Looked {
    fn through(&mut self, reader: &mut Reader<impl BufRead>) -> Result<()> {
        while let Some(entry) = reader.next()? {
            match entry {
                Entry::Timestamp(seconds) => {
                    self.first_time.get_or_insert(Timestamp::from_seconds(seconds));
                }
                Entry::Blob { size } => reader.skip(size)?,
                Entry::UpdateVector { kind, count, .. } => skip_values(reader, kind, count)?,
                _ => {}
            }
            self.whole = reader.position();
        }
        Ok(())
    }
}

fn skip_values(reader: &mut Reader<impl BufRead>, kind: Kind, count: u64) -> Result<()> {
    match kind.width() {
        Some(width) if kind != Kind::Bool => reader.skip(count * width as u64),
        _ => (0..count).try_for_each(|_| reader.value(kind).map(drop)),
    }
}
