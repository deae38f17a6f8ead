//! The pump over a queue that is short, interrupted, out of order, full and broken.
//!
//! It reads the bytes when a write ends, not when it is pushed: Miri would find freed memory.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::batch::join;
use annals_simulated::Rng;

const DEPTH: usize = 4;

type Errno = i32;

enum Entry {
    Write { number: usize, offset: u64, parts: *const libc::iovec, count: usize },
    Writeback,
}

/// A queue in which one write, any of them, ends each time that it is entered.
struct Fake {
    rng: Rng,
    content: BTreeMap<u64, u8>,
    waiting: Vec<Entry>,
    under_way: Vec<Entry>,
    done: Vec<Done>,
    /// How many were under way each time.
    levels: Vec<usize>,
    written_back: Vec<Range<u64>>,
    short: bool,
    /// How many bytes each write is said to have written, though it wrote none.
    claimed: Option<usize>,
    /// The ends that fail, by their number, and their errors.
    failing: BTreeMap<usize, Errno>,
    ends: usize,
    /// The calls of `enter` that fail, and their errors.
    refusing: BTreeMap<usize, Errno>,
    panics: bool,
}

impl Fake {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            content: BTreeMap::new(),
            waiting: Vec::new(),
            under_way: Vec::new(),
            done: Vec::new(),
            levels: Vec::new(),
            written_back: Vec::new(),
            short: false,
            claimed: None,
            failing: BTreeMap::new(),
            ends: 0,
            refusing: BTreeMap::new(),
            panics: false,
        }
    }

    fn write(&mut self, runs: &[Run<'_>]) -> Result<u64, Trouble> {
        Pump::new(self, DEPTH).write(runs)
    }

    fn end(&mut self, entry: &Entry) -> Done {
        let Entry::Write { number, offset, parts, count } = *entry else { return Done::Writeback };
        self.ends += 1;
        if let Some(errno) = self.failing.get(&self.ends) {
            return Done::Write(number, Err(io::Error::from_raw_os_error(*errno)));
        }
        if let Some(count) = self.claimed {
            return Done::Write(number, Ok(count));
        }
        let mut bytes = Vec::new();
        for index in 0..count {
            // SAFETY: the pusher promised that the parts stay valid until now.
            let part = unsafe { &*parts.add(index) };
            // SAFETY: the same holds for the bytes of the parts.
            let part = unsafe { std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len) };
            bytes.extend_from_slice(part);
        }
        if self.short {
            bytes.truncate(1 + self.rng.index(bytes.len()));
        }
        self.content.extend((offset..).zip(bytes.iter().copied()));
        Done::Write(number, Ok(bytes.len()))
    }

    fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }
}

// SAFETY: it forgets a write's parts before it reports that it is done.
unsafe impl Queue for Fake {
    unsafe fn write(
        &mut self,
        number: usize,
        offset: u64,
        parts: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let (parts, count) = (parts.as_ptr().cast(), parts.len());
        self.waiting.push(Entry::Write { number, offset, parts, count });
        Ok(())
    }

    fn write_back(&mut self, part: Range<u64>) -> io::Result<()> {
        self.written_back.push(part);
        self.waiting.push(Entry::Writeback);
        Ok(())
    }

    fn enter(&mut self) -> io::Result<()> {
        if let Some(errno) = self.refusing.get(&self.levels.len()) {
            let errno = *errno;
            self.levels.push(0);
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.under_way.append(&mut self.waiting);
        self.levels.push(self.under_way.len());
        assert!(self.under_way.len() <= DEPTH + MOST_WRITEBACKS);
        let entry = self.under_way.swap_remove(self.rng.index(self.under_way.len()));
        let done = self.end(&entry);
        self.done.push(done);
        Ok(())
    }

    fn done(&mut self) -> Option<Done> {
        if self.panics && self.ends == 3 {
            self.panics = false;
            panic!("in the middle");
        }
        self.done.pop()
    }

    fn waiting(&mut self) -> usize {
        self.waiting.len()
    }
}

/// Returns pieces of which some are adjacent.
fn pieces(bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let pieces = bytes.chunks(7).enumerate();
    pieces.map(|(at, piece)| (at as u64 * 7 + at as u64 / 5 * 3, piece)).collect()
}

fn model(pieces: &[(u64, &[u8])]) -> BTreeMap<u64, u8> {
    pieces.iter().flat_map(|(at, piece)| (*at..).zip(piece.iter().copied())).collect()
}

fn bytes() -> Vec<u8> {
    let count = if cfg!(miri) { 350_u32 } else { 700 };
    (0..count).map(|number| number.to_le_bytes()[0]).collect()
}

#[test]
fn short_and_interrupted_writes_are_gone_on_with_in_any_order() {
    let bytes = bytes();
    let pieces = pieces(&bytes);
    // Miri takes seconds for one.
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let mut fake = Fake::new(seed);
        fake.short = true;
        fake.failing = [(2, libc::EINTR), (3, libc::EINTR), (9, libc::EINTR)].into();
        fake.refusing = [(0, libc::EINTR), (7, libc::EINTR)].into();
        let writes = fake.write(&join(pieces.clone())).unwrap();
        assert_eq!(fake.content, model(&pieces));
        assert_eq!(writes, fake.ends as u64);
        assert!(fake.is_idle() && fake.waiting.is_empty());
    }
}

#[test]
fn the_queue_is_full_until_no_run_is_left() {
    let bytes = bytes();
    let runs = join(pieces(&bytes));
    let mut fake = Fake::new(1);
    assert_eq!(fake.write(&runs).unwrap(), runs.len() as u64);
    let (full, last) = fake.levels.split_at(runs.len() - DEPTH + 1);
    assert!(full.iter().all(|level| *level == DEPTH), "{:?}", fake.levels);
    assert_eq!(last, [3, 2, 1]);
}

#[test]
fn the_first_error_is_given_once_all_has_ended() {
    let bytes = bytes();
    let runs = join(pieces(&bytes));
    let mut fake = Fake::new(2);
    fake.failing = [(6, libc::ENOSPC), (7, libc::EIO)].into();
    let Err(Trouble::Write(error)) = fake.write(&runs) else { panic!("the disk was full") };
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert!(fake.is_idle());
    assert_eq!(fake.ends, 6 + DEPTH - 1, "nothing was begun after the error");
}

#[test]
fn a_write_that_does_not_go_on_is_an_error() {
    let runs = join([(0, &b"abc"[..])]);
    let mut fake = Fake::new(1);
    fake.claimed = Some(0);
    let Err(Trouble::Write(error)) = fake.write(&runs) else { panic!("nothing was written") };
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}

#[test]
fn a_ring_that_fails_is_no_failed_write_and_is_waited_for() {
    let bytes = bytes();
    let runs = join(pieces(&bytes));
    for errno in [libc::ECANCELED, libc::EAGAIN, libc::EINVAL] {
        let mut fake = Fake::new(3);
        fake.failing = [(2, errno)].into();
        assert!(matches!(fake.write(&runs), Err(Trouble::Ring)));
        assert!(fake.is_idle());
    }
    for first in [0, 3] {
        let mut fake = Fake::new(4);
        // Also while it is waited for.
        fake.refusing = (first..first + 3).map(|call| (call, libc::EBUSY)).collect();
        assert!(matches!(fake.write(&runs), Err(Trouble::Ring)));
        assert!(fake.is_idle());
        assert_eq!(fake.ends == 0, first == 0, "what hadn't begun isn't begun by waiting");
    }
}

#[test]
fn a_panic_waits_for_what_is_under_way() {
    let bytes = bytes();
    let runs = join(pieces(&bytes));
    let mut fake = Fake::new(5);
    fake.panics = true;
    assert!(catch_unwind(AssertUnwindSafe(|| fake.write(&runs))).is_err());
    assert!(fake.is_idle() && fake.ends > 3);
}

#[test]
fn the_disk_is_asked_to_have_what_was_written_in_steps() {
    let page = vec![7; 1 << 20];
    let runs = join((0..20).map(|at| (at << 21, &page[..])));
    let mut fake = Fake::new(6);
    fake.claimed = Some(1 << 20);
    assert_eq!(fake.write(&runs).unwrap(), 20);
    assert_eq!(fake.written_back.len(), 2, "{:?}", fake.written_back);
    for part in &fake.written_back {
        assert!(part.end - part.start >= 8 << 20, "{part:?}");
    }
    assert!(fake.is_idle());
}
