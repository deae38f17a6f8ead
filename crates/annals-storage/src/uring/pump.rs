//! Keeps a queue of writes full until all runs are written.
//!
//! Invariants:
//!
//! 1. The parts of writes under way are in `slots`, from before they are pushed until the queue has reported that
//!    they are done. A pump that ends early, also by a panic, waits for all that is under way.
//! 2. At most as many writes are pushed as there are slots, and [`MOST_WRITEBACKS`] besides: the queue,
//!    and that of its results, has room for them.
//! 3. A new write is pushed as soon as any is done, not when all are.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::time::Duration;

use crate::batch::Run;
use crate::rest::Rest;

/// The number of parts whose write to the disk is started at a time.
pub(super) const MOST_WRITEBACKS: usize = 4;

/// How many bytes are written before the disk is asked to have them.
pub(super) const STEP: usize = 8 << 20;

/// A queue whose writes continue by themselves.
///
/// # Safety
/// It returns [`Done::Write`] with a number only when nothing reads the parts any more that were pushed with it.
pub(super) unsafe trait Queue {
    /// Pushes a write, which begins with one of the next calls of [`enter`](Self::enter).
    ///
    /// # Safety
    /// The parts, and the bytes that they refer to, stay in place and unchanged until the write is done.
    unsafe fn write(&mut self, number: usize, offset: u64, parts: &[IoSlice<'_>])
    -> io::Result<()>;

    /// Pushes a hint to start writing these bytes to the disk.
    fn write_back(&mut self, part: Range<u64>) -> io::Result<()>;

    /// Submits the pushed entries, and waits until one is done.
    fn enter(&mut self) -> io::Result<()>;

    /// Returns something that is done, once.
    fn done(&mut self) -> Option<Done>;

    /// Returns how much was pushed and hasn't begun.
    fn waiting(&mut self) -> usize;
}

/// A completion.
#[derive(Debug)]
pub(super) enum Done {
    /// The write with this number: how many bytes, or why not.
    Write(usize, io::Result<usize>),
    /// A hint. The result doesn't matter, since a flush reports errors.
    Writeback,
}

/// Why a batch wasn't written.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The queue doesn't work; the batch may be written in another way.
    Ring,
    /// A write failed.
    Write(io::Error),
}

pub(super) struct Pump<'q, 'r, 'a, Q: Queue> {
    queue: &'q mut Q,
    slots: Vec<Option<Rest<'r, 'a>>>,
    free: Vec<usize>,
    /// How much was pushed and isn't done.
    pushed: usize,
    writes: u64,
    writebacks: usize,
    /// Where bytes were written that the disk wasn't asked to have, and how many.
    dirty: Option<Range<u64>>,
    dirty_bytes: usize,
}

impl<'q, 'r, 'a, Q: Queue> Pump<'q, 'r, 'a, Q> {
    pub(super) fn new(queue: &'q mut Q, depth: usize) -> Self {
        Self {
            queue,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            pushed: 0,
            writes: 0,
            writebacks: 0,
            dirty: None,
            dirty_bytes: 0,
        }
    }

    /// Writes all runs; returns how many writes that took. After the first error it begins no more.
    pub(super) fn write(mut self, runs: &'r [Run<'a>]) -> Result<u64, Trouble> {
        let mut runs = runs.iter();
        loop {
            while !self.free.is_empty()
                && let Some(run) = runs.next()
            {
                let rest = Rest::of(run).map_err(Trouble::Write)?;
                self.push(rest)?;
            }
            if self.pushed == 0 {
                return Ok(self.writes);
            }
            match self.queue.enter() {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(Trouble::Ring);
                }
                _ => {}
            }
            while let Some(done) = self.queue.done() {
                self.pushed -= 1;
                match done {
                    Done::Write(number, result) => self.end(number, result)?,
                    Done::Writeback => self.writebacks -= 1,
                }
            }
        }
    }

    /// Pushes a write of the rest, in a free slot.
    fn push(&mut self, rest: Rest<'r, 'a>) -> Result<(), Trouble> {
        let number = self.free.pop().ok_or(Trouble::Ring)?;
        let rest = self.slots.get_mut(number).ok_or(Trouble::Ring)?.insert(rest);
        // SAFETY: the parts stay in the slot, whose contents don't move when it does, until `end`, or
        // until `drop` has waited; their bytes are borrowed for longer than this lives.
        unsafe { self.queue.write(number, rest.offset(), rest.parts()) }
            .map_err(|_| Trouble::Ring)?;
        self.pushed += 1;
        self.writes += 1;
        Ok(())
    }

    /// Continues when a write is done: with its rest.
    fn end(&mut self, number: usize, result: io::Result<usize>) -> Result<(), Trouble> {
        let Some(rest) = self.slots.get_mut(number).and_then(Option::take) else {
            return Err(Trouble::Ring);
        };
        self.free.push(number);
        match result {
            Ok(written) => {
                self.note_dirty(rest.offset(), written)?;
                match rest.without(written).map_err(Trouble::Write)? {
                    Some(rest) => self.push(rest),
                    None => Ok(()),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.push(rest),
            Err(error) if is_ring_s_own(&error) => Err(Trouble::Ring),
            Err(error) => Err(Trouble::Write(error)),
        }
    }

    /// Hints the disk from time to time to start writing.
    fn note_dirty(&mut self, offset: u64, written: usize) -> Result<(), Trouble> {
        let end = offset + written as u64;
        let dirty = self.dirty.take().unwrap_or(offset..end);
        let dirty = dirty.start.min(offset)..dirty.end.max(end);
        self.dirty_bytes += written;
        if self.dirty_bytes < STEP || self.writebacks == MOST_WRITEBACKS {
            self.dirty = Some(dirty);
            return Ok(());
        }
        self.queue.write_back(dirty).map_err(|_| Trouble::Ring)?;
        self.dirty_bytes = 0;
        self.pushed += 1;
        self.writebacks += 1;
        Ok(())
    }
}

/// True for errors by which a ring refuses a write, permanently or for now. (It cancels writes when a signal arrives
/// just as it needs another thread.) Then `pwritev` is tried, which shows whether the write itself is impossible.
fn is_ring_s_own(error: &io::Error) -> bool {
    let own = [libc::EAGAIN, libc::ECANCELED, libc::EINVAL, libc::EOPNOTSUPP, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| own.contains(&code))
}

impl<Q: Queue> Drop for Pump<'_, '_, '_, Q> {
    /// Waits for all that is under way: the kernel reads from memory that is freed next.
    fn drop(&mut self) {
        loop {
            while self.queue.done().is_some() {
                self.pushed -= 1;
            }
            if self.pushed <= self.queue.waiting() {
                return;
            }
            if self.queue.enter().is_err() {
                #[allow(clippy::disallowed_methods, reason = "waiting for the kernel alone")]
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
