//! Batches by Linux's `io_uring`: a queue of writes that is kept full, through the page cache.
//!
//! Invariants:
//!
//! 1. A ring lives as long as one batch. So it belongs to one thread, and nothing of the file is in the
//!    kernel's hands when the batch has ended.
//! 2. A forked child doesn't get the ring's memory, and can't use its descriptor. The ring could only close it.
//! 3. Buffers are freed only after the kernel has reported that it is done with them ([`pump`]).
//! 4. A ring that can't be made, or fails, is no failure of the disk: the batch is written in another way,
//!    once nothing of it is under way. Where no ring can be made it isn't tried again for the same file.
//!
//! While the rest of a batch is written, the kernel starts writing the finished parts to the disk, so that the
//! caller's flush waits less. That doesn't affect the guarantees of a flush.

#![allow(unsafe_code, reason = "the kernel reads memory that the compiler doesn't know it reads")]

mod pump;

use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use io_uring::{IoUring, opcode, types};

use self::pump::{Done, Pump, Queue, Trouble};
use super::batch::{Batched, Engine, Run};
use super::interrupted::retry;

/// How many writes are under way at most.
const DEPTH: usize = 64;

/// The number of entries of a ring: also one for each part whose write to the disk was started.
const ENTRIES: u32 = 128;

const _: () = assert!(DEPTH + pump::MOST_WRITEBACKS <= ENTRIES as usize);

/// A batch of fewer bytes takes no ring: nothing of it would be written back before the flush.
const SMALLEST: usize = pump::STEP;

/// Runs that are shorter on average are written without a ring: the kernel hands each to a worker, which takes
/// longer than to write it.
const SHORT_RUNS: usize = 64 << 10;

/// Marks an entry that starts writing a part to the disk, instead of the number of a write.
const WRITEBACK: u64 = u64::MAX;

/// The availability of rings for a file.
#[derive(Debug, Default)]
pub(super) struct Uring {
    is_missing: AtomicBool,
}

impl Uring {
    /// Writes a batch, unless it is small and that isn't `forced`; returns nothing if it didn't.
    pub(super) fn write(
        &self,
        file: &File,
        runs: &[Run<'_>],
        forced: bool,
    ) -> Option<io::Result<Batched>> {
        let bytes = runs.iter().map(Run::len).sum::<usize>();
        let is_small = bytes < SMALLEST || bytes < SHORT_RUNS * runs.len();
        if (is_small && !forced) || self.is_missing.load(Ordering::Relaxed) {
            return None;
        }
        let Ok(mut kernel) = Kernel::new(file) else {
            self.is_missing.store(true, Ordering::Relaxed);
            return None;
        };
        match Pump::new(&mut kernel, DEPTH).write(runs) {
            Ok(writes) => Some(Ok(Batched::of(runs, writes, Engine::Uring))),
            Err(Trouble::Write(error)) => Some(Err(error)),
            Err(Trouble::Ring) => None,
        }
    }
}

/// A ring, and the file that it writes.
struct Kernel<'f> {
    ring: IoUring,
    file: &'f File,
}

impl<'f> Kernel<'f> {
    /// Makes a ring. There is none before Linux 5.19, which introduced waiting for many writes without an
    /// interruption for each; nor if a filter of calls, a limit or the administrator refuses it.
    fn new(file: &'f File) -> io::Result<Self> {
        let ring = retry(|| IoUring::builder().dontfork().setup_coop_taskrun().build(ENTRIES))?;
        Ok(Self { ring, file })
    }

    fn push(&mut self, entry: &io_uring::squeue::Entry) -> io::Result<()> {
        // SAFETY: `Queue::write` requires its caller to keep a write's parts, and no other entry has any. The file is
        // borrowed, and the kernel holds it from when it takes the entry.
        unsafe { self.ring.submission().push(entry) }.map_err(io::Error::other)
    }
}

// SAFETY: the kernel is done with an entry when it has reported its result, and `push` gives each entry the number
// that is returned with that.
unsafe impl Queue for Kernel<'_> {
    unsafe fn write(
        &mut self,
        number: usize,
        offset: u64,
        parts: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let count = u32::try_from(parts.len()).map_err(io::Error::other)?;
        // `IoSlice` has the layout of `iovec`, as its documentation says.
        let write = opcode::Writev::new(self.descriptor(), parts.as_ptr().cast(), count);
        self.push(&write.offset(offset).build().user_data(number as u64))
    }

    fn write_back(&mut self, part: Range<u64>) -> io::Result<()> {
        let len = u32::try_from(part.end.saturating_sub(part.start)).unwrap_or(u32::MAX);
        let begin = opcode::SyncFileRange::new(self.descriptor(), len);
        let begin = begin.offset(part.start).flags(libc::SYNC_FILE_RANGE_WRITE);
        self.push(&begin.build().user_data(WRITEBACK))
    }

    fn enter(&mut self) -> io::Result<()> {
        self.ring.submit_and_wait(1).map(drop)
    }

    fn done(&mut self) -> Option<Done> {
        let entry = self.ring.completion().next()?;
        let result = match entry.result() {
            error @ ..0 => Err(io::Error::from_raw_os_error(-error)),
            written => Ok(usize::try_from(written).unwrap_or_default()),
        };
        match entry.user_data() {
            WRITEBACK => Some(Done::Writeback),
            number => Some(Done::Write(usize::try_from(number).unwrap_or(usize::MAX), result)),
        }
    }

    fn waiting(&mut self) -> usize {
        self.ring.submission().len()
    }
}

impl Kernel<'_> {
    fn descriptor(&self) -> types::Fd {
        types::Fd(self.file.as_raw_fd())
    }
}
