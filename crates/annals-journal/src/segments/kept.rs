//! A kept segment: sealed, and read whenever history is, or the state from before the next one.

use annals_schema::Txid;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::names::{erased_name, journal_of, kept_name};
use crate::format::{Header, Point};
use crate::head::Head;
use crate::reader::{Frame, FrameReader};
use crate::seal::Seal;
use crate::{Error, Result};
use annals_storage::{Access, Clock, Directory, Hold, Lock, Storage, SystemClock, step};

/// A sealed segment that is open for reading.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The open file.
    pub storage: Arc<dyn Storage>,
    /// Its name in messages.
    pub shown: String,
    /// The contents of its first 16 KiB.
    pub head: Head,
    /// Its length in bytes.
    pub len: u64,
    /// The names that it may have.
    pub(super) names: Vec<String>,
}

impl Kept {
    /// Opens the segment before the one with this header, at `name`; `None` if there is none. It isn't removed as
    /// long as it is open.
    pub fn before(
        directory: &dyn Directory,
        name: &str,
        successor: &Header,
    ) -> Result<Option<Self>> {
        let Some(number) = successor.segment.checked_sub(1) else { return Ok(None) };
        let kept = kept_name(journal_of(name, successor.segment), number);
        // Until an erasure is complete, the segment that it wrote has another name.
        let erased = successor.last_erasure().map(|erasure| erased_name(&kept, erasure));
        let mut opened = None;
        let names: Vec<_> = erased.into_iter().chain([kept]).collect();
        for name in &names {
            let shown = directory.display(name);
            match directory.open(name, Access::Read) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Error::io(format!("{shown}: can't open this segment"), error));
                }
                Ok(storage) => {
                    opened = Some((storage, shown));
                    break;
                }
            }
        }
        let Some((storage, shown)) = opened else { return Ok(None) };
        let io = |error| Error::io(format!("{shown}: can't open this segment"), error);
        if !hold(&*storage, &SystemClock).map_err(io)? {
            return Ok(None); // it is being removed
        }
        let head = Head::read(&*storage, &shown)?;
        if head.header.journal_id != successor.journal_id || head.header.segment != number {
            return Err(Error::corrupt(format!(
                "{shown}: is not segment {number} of this journal, but has its name: put the right \
                 file there"
            )));
        }
        let len = storage.len().map_err(io)?;
        Ok(Some(Self { storage, shown, head, len, names }))
    }

    /// Returns the error that the segment before the one with this header is missing.
    pub fn missing(directory: &dyn Directory, name: &str, successor: &Header) -> Error {
        let number = successor.segment.saturating_sub(1);
        let kept = kept_name(journal_of(name, successor.segment), number);
        Error::corrupt(format!(
            "{}: segment {number} of the journal is missing, and the state can't be known without it: \
             put the file back",
            directory.display(&kept)
        ))
    }

    /// Returns the segment's header.
    #[inline]
    pub const fn header(&self) -> Header {
        self.head.header
    }

    /// Reads from a point to the seal, verifying each frame, and that the segment with this header
    /// follows. `storage` is the file, or watches it.
    pub fn follow(
        &self,
        storage: &dyn Storage,
        from: Point,
        successor: &Header,
        visit: &mut dyn FnMut(&Frame<'_>) -> Result<()>,
    ) -> Result<()> {
        let io = |error| Error::io(format!("{}: can't read this segment", self.shown), error);
        let mut reader = FrameReader::new(storage, self.head.hash, from, self.len);
        let mut end = from;
        while let Some(frame) = reader.next().map_err(io)? {
            frame.header.check_known(&self.shown)?;
            if frame.header.is_seal() {
                let seal = Seal::of(&frame).filter(|_| frame.header.position == end.position);
                let follows = seal.is_some_and(|seal| seal.is_followed_by(successor));
                return match step!(BorderNotVerified, follows, else true) {
                    true => Ok(()),
                    false => Err(self.foreign(frame.header.position)),
                };
            }
            visit(&frame)?;
            if frame.header.is_commit() {
                end = Point {
                    position: frame.end,
                    txid: Txid(frame.header.txid),
                    chain: frame.chain,
                };
            }
        }
        Err(self.damaged(reader.position()))
    }

    /// Verifies that the segment with a header follows the seal of this one.
    #[inline]
    pub fn check_seal(&self, seal: &Frame<'_>, successor: &Header) -> Result<()> {
        match Seal::of(seal).is_some_and(|seal| seal.is_followed_by(successor)) {
            true => Ok(()),
            false => Err(self.foreign(seal.header.position)),
        }
    }

    fn foreign(&self, at: u64) -> Error {
        Error::corrupt(format!(
            "{}: its seal at position {at} is followed by another segment than the one that is there: \
             the files belong to different histories; put the right ones beside each other",
            self.shown
        ))
    }

    fn damaged(&self, at: u64) -> Error {
        Error::corrupt(format!(
            "{}: damaged at position {at}: this segment of the journal was sealed, but from there on it \
             doesn't verify (the file has {} bytes); restore it from a backup",
            self.shown, self.len
        ))
    }
}

/// How long to retry a segment that another process has locked: to remove it, or just for a moment, to check for
/// readers. Both take microseconds, but the system may suspend the holder of the lock.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pauses between two tries: each is twice as long as the one before, up to the second.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(5)];

/// Keeps a segment from being removed as long as it is open. Returns false if it is being removed, which is assumed
/// if the lock is held longer than the patience. Where the system has no such locks an open file stays readable,
/// removed or not.
fn hold(storage: &dyn Storage, clock: &dyn Clock) -> io::Result<bool> {
    let deadline = clock.elapsed().saturating_add(PATIENCE);
    let [mut pause, longest] = PAUSES;
    loop {
        let is_held = match storage.try_lock(Lock::History, Hold::Shared) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => true,
            held => held?,
        };
        let is_linked = storage.is_linked()?;
        if is_held || !is_linked || clock.elapsed() >= deadline {
            return Ok(is_held && is_linked);
        }
        clock.pause(pause);
        pause = longest.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_storage::MemoryDirectory;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock that only pauses move.
    #[derive(Debug, Default)]
    struct Paused {
        micros: AtomicU64,
        pauses: AtomicU64,
    }

    impl Clock for Paused {
        fn now(&self) -> i64 {
            0
        }

        fn elapsed(&self) -> Duration {
            Duration::from_micros(self.micros.load(Ordering::Relaxed))
        }

        fn pause(&self, time: Duration) {
            let micros = u64::try_from(time.as_micros()).unwrap();
            self.micros.fetch_add(micros, Ordering::Relaxed);
            self.pauses.fetch_add(1, Ordering::Relaxed);
        }

        fn random(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_segment_that_somebody_holds_is_waited_for_with_pauses_until_a_deadline() {
        let directory = MemoryDirectory::new();
        drop(directory.create("segment").unwrap());
        let remover = directory.open("segment", Access::Write).unwrap();
        assert!(remover.try_lock(Lock::History, Hold::Exclusive).unwrap());
        let reader = directory.open("segment", Access::Read).unwrap();
        let clock = Paused::default();
        assert!(!hold(&*reader, &clock).unwrap());
        assert!(clock.elapsed() >= PATIENCE && clock.pauses.into_inner() < 2000);
        remover.unlock(Lock::History).unwrap();
        assert!(hold(&*reader, &Paused::default()).unwrap());
    }

    /// A file whose locks fail in some way.
    #[derive(Debug)]
    struct Lockless(Arc<dyn Storage>, io::ErrorKind);

    impl Storage for Lockless {
        fn beneath(&self) -> Option<&dyn Storage> {
            Some(&*self.0)
        }

        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read_at(offset, buffer)
        }

        fn try_lock(&self, _lock: Lock, _hold: Hold) -> io::Result<bool> {
            Err(self.1.into())
        }
    }

    #[test]
    fn without_locks_on_parts_of_a_file_a_segment_is_held_while_it_has_its_name() {
        let directory = MemoryDirectory::new();
        let file = directory.create("segment").unwrap();
        let unsupported = Lockless(Arc::clone(&file), io::ErrorKind::Unsupported);
        assert!(hold(&unsupported, &Paused::default()).unwrap());
        let failing = Lockless(file, io::ErrorKind::PermissionDenied);
        assert!(hold(&failing, &Paused::default()).is_err());
        directory.remove("segment").unwrap();
        assert!(!hold(&unsupported, &Paused::default()).unwrap());
    }
}
