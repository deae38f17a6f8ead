//! Space ahead of the journal's end that is filled with zeros, so that commits needn't make the file
//! grow: a flush must then store metadata too.
//!
//! Invariants
//! 1. Only zeros were ever written at or after `zeroed_to`. If the length is fixed, a slot with this end was flushed,
//!    and the bytes after it may be anything (see `ahead`).
//! 2. Only the holder of `moving` writes zeros and advances `zeroed_to`; so zeros never overwrite frames.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use annals_storage::Storage;
use annals_storage::sync::lock;

/// How much is filled at a time: a commit that needs the space waits for this much, and larger
/// writes make later small ones dearer (see `docs/decisions`).
const STEP: u64 = 64 << 10;
/// The least space that is enough.
const ENOUGH: u64 = 32 << 10;
/// The same where flushed commits are fastest.
const ENOUGH_AT_MOST: u64 = 1 << 20;

/// The zeroed end of a file, and the rate at which zeros are used up.
#[derive(Debug)]
pub(super) struct Space {
    zeroed_to: AtomicU64,
    moving: Mutex<()>,
    looked: Mutex<Look>,
}

/// The end of the commits when space was last checked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// Where the last one ended.
    pub(super) end: u64,
    /// How many there were.
    pub(super) commits: u64,
    /// True if one of them was flushed since the look before.
    pub(super) flushing: bool,
}

impl Space {
    pub(super) fn new(zeroed_to: u64) -> Self {
        Self {
            zeroed_to: AtomicU64::new(zeroed_to),
            moving: Mutex::default(),
            looked: Mutex::default(),
        }
    }

    pub(super) fn zeroed_to(&self) -> u64 {
        self.zeroed_to.load(Ordering::Acquire)
    }

    /// Makes sure that no zeros land before `end`.
    pub(super) fn claim(&self, end: u64) {
        if end > self.zeroed_to() {
            let _moving = lock(&self.moving);
            self.zeroed_to.fetch_max(end, Ordering::AcqRel);
        }
    }

    /// Keeps all others from moving the end of the zeros meanwhile.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.moving)
    }

    /// Sets the zeroed end; the caller [holds](Self::hold) it.
    pub(super) fn set_held(&self, _held: &MutexGuard<'_, ()>, end: u64) {
        self.zeroed_to.store(end, Ordering::Release);
    }

    /// Sets the zeroed end after the file was cut, or another process wrote it.
    pub(super) fn set(&self, end: u64) {
        let _moving = lock(&self.moving);
        self.zeroed_to.store(end, Ordering::Release);
    }

    /// Fills space ahead unless there is enough; returns whether it did.
    ///
    /// Enough is twice the space of flushed commits since the last check, within limits. Commits that are longer than
    /// a step, or aren't flushed, are written as fast as zeros are: for them it is the least.
    pub(super) fn fill(&self, storage: &dyn Storage, look: Look) -> io::Result<bool> {
        let last = std::mem::replace(&mut *lock(&self.looked), look);
        let taken = look.end.saturating_sub(last.end);
        let commits = look.commits.saturating_sub(last.commits);
        let is_fast = look.flushing && last.commits > 0 && taken <= commits.saturating_mul(STEP);
        let enough = match is_fast {
            true => (2 * taken).clamp(ENOUGH, ENOUGH_AT_MOST),
            false => ENOUGH,
        };
        if look.commits < 2 || self.zeroed_to() >= look.end + enough {
            return Ok(false);
        }
        // Commits wait longer while something else is flushed too, so it should be seldom.
        let goal = if enough > ENOUGH { look.end + 2 * enough } else { look.end };
        while self.fill_step(storage)? < goal {}
        Ok(true)
    }

    /// Fills up to the next multiple of a step; returns the new zeroed end.
    fn fill_step(&self, storage: &dyn Storage) -> io::Result<u64> {
        let _moving = lock(&self.moving);
        let from = self.zeroed_to();
        let to = from + STEP - from % STEP;
        zero(storage, from, to)?;
        self.zeroed_to.store(to, Ordering::Release);
        Ok(to)
    }
}

/// Writes zeros from `from` to `to`.
pub(super) fn zero(storage: &dyn Storage, mut from: u64, to: u64) -> std::io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    while from < to {
        let step = (to - from).min(ZEROS.len() as u64);
        let zeros = usize::try_from(step).ok().and_then(|step| ZEROS.get(..step));
        storage.write_at(from, zeros.unwrap_or(&ZEROS))?;
        from += step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_storage::{Directory, MemoryDirectory};

    const ROUND: u64 = 100;

    /// Returns how much is zeroed ahead after each of some rounds with commits of this length.
    fn ahead(length: u64, flushing: bool) -> Vec<u64> {
        let storage = MemoryDirectory::new().create("journal").unwrap();
        let space = Space::new(0);
        let mut look = Look { end: 0, commits: 0, flushing };
        let mut round = |_| {
            look.end += ROUND * length;
            look.commits += ROUND;
            space.claim(look.end);
            space.fill(&*storage, look).unwrap();
            assert_eq!(storage.len().unwrap().max(look.end), space.zeroed_to());
            space.zeroed_to() - look.end
        };
        (0..10).map(&mut round).collect()
    }

    #[test]
    fn what_is_flushed_finds_space_until_the_next_round() {
        for length in [96, 400, 1000, 4096] {
            let ahead = ahead(length, true);
            let after_two = ahead.get(1..).unwrap();
            assert!(after_two.iter().all(|&space| space >= ROUND * length), "{length}: {ahead:?}");
        }
    }

    #[test]
    fn space_ahead_is_bounded() {
        let at_most = |length, flushing| ahead(length, flushing).into_iter().max().unwrap();
        assert!(at_most(STEP, true) <= 2 * ENOUGH_AT_MOST + STEP);
        assert!(at_most(STEP + 1, true) <= ENOUGH + STEP, "longer than a step");
        assert!(at_most(4096, false) <= ENOUGH + STEP, "not flushed");
        assert!(at_most(96, true) <= ENOUGH + STEP, "slow");
    }

    #[test]
    fn zeros_never_land_on_frames() {
        let storage = MemoryDirectory::new().create("journal").unwrap();
        let space = Space::new(0);
        space.claim(1000);
        storage.write_at(0, &[1; 1000]).unwrap();
        assert!(space.fill(&*storage, Look { end: 1000, commits: 2, flushing: true }).unwrap());
        let mut found = [0; 1001];
        storage.read_at(0, &mut found).unwrap();
        assert_eq!(found.iter().filter(|&&byte| byte == 1).count(), 1000);
        assert_eq!(space.zeroed_to(), STEP);
    }
}
