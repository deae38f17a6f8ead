//! Many writes at once: pieces of bytes, joined into runs.
//!
//! Invariants:
//!
//! 1. [`join`] alone makes runs. So each has a part, none of its parts is empty, and it has at most [`MOST_PARTS`]
//!    parts and [`LONGEST_RUN`] bytes: the limit of one system call.
//! 2. A run that is written is written wholly, whatever the system does at a time: see [`Rest`].

use std::fmt;
use std::io::{self, IoSlice};

/// The most bytes of a run. Longer ones are no faster, and the system's own work is then harder to spread; the
/// measurements are in `docs/decisions/18-batches.md`.
pub const LONGEST_RUN: usize = 1 << 20;

/// The most parts of a run: the system's `IOV_MAX`.
pub const MOST_PARTS: usize = 1024;

/// Bytes that are contiguous in a file, though not in memory. [`join`] makes them.
pub struct Run<'a> {
    offset: u64,
    len: usize,
    parts: Vec<IoSlice<'a>>,
}

impl<'a> Run<'a> {
    fn new(offset: u64, part: &'a [u8]) -> Self {
        Self { offset, len: part.len(), parts: vec![IoSlice::new(part)] }
    }

    /// Returns where the run begins in its file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how many bytes the run has: 1 to [`LONGEST_RUN`].
    #[expect(clippy::len_without_is_empty, reason = "no run is empty")]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the parts in order: 1 to [`MOST_PARTS`], none of them empty.
    #[must_use]
    pub fn parts(&self) -> &[IoSlice<'a>] {
        &self.parts
    }

    /// True if a part of this length at this offset makes the run longer.
    fn takes(&self, offset: u64, len: usize) -> bool {
        self.offset.checked_add(self.len as u64) == Some(offset)
            && self.len + len <= LONGEST_RUN
            && self.parts.len() < MOST_PARTS
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, len) = (self.offset, self.len);
        write!(f, "Run({offset}, {len} bytes in {} parts)", self.parts.len())
    }
}

/// The engine that wrote a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Linux's `io_uring`: many writes are under way at a time.
    Uring,
    /// `pwritev`: one write for each run.
    Vectored,
    /// [`write_at`](super::Storage::write_at), once for each run.
    OneByOne,
}

/// The result of [`Storage::write_batch`](super::Storage::write_batch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batched {
    /// How many writes were requested of the system: more than runs if some were short.
    pub writes: u64,
    /// How many bytes were written.
    pub bytes: u64,
    /// The engine that wrote them.
    pub engine: Engine,
}

impl Batched {
    /// Describes runs that were written wholly.
    pub(super) fn of(runs: &[Run<'_>], writes: u64, engine: Engine) -> Self {
        Self { writes, bytes: runs.iter().map(|run| run.len as u64).sum(), engine }
    }
}

/// Sorts pieces by their offsets and joins adjacent ones; a piece that is longer than [`LONGEST_RUN`] becomes several
/// runs. Pieces may be in any order and be empty, but no two of them may overlap: the contents of the file would then
/// be undefined. Costs a sort, and no copy of the bytes.
#[must_use]
pub fn join<'a>(pieces: impl IntoIterator<Item = (u64, &'a [u8])>) -> Vec<Run<'a>> {
    let mut pieces: Vec<_> = pieces.into_iter().collect();
    pieces.sort_unstable_by_key(|(offset, _)| *offset);
    let mut runs: Vec<Run<'a>> = Vec::new();
    for (offset, piece) in pieces {
        let mut at = offset;
        for part in piece.chunks(LONGEST_RUN) {
            match runs.last_mut().filter(|run| run.takes(at, part.len())) {
                Some(run) => {
                    run.len += part.len();
                    run.parts.push(IoSlice::new(part));
                }
                None => runs.push(Run::new(at, part)),
            }
            // Beyond the last offset nothing can be written, which is found out when it is tried.
            at = at.saturating_add(part.len() as u64);
        }
    }
    debug_assert!(
        runs.windows(2)
            .all(|pair| pair[0].offset.saturating_add(pair[0].len as u64) <= pair[1].offset),
        "pieces overlap"
    );
    runs
}

/// Writes run after run with one write each, for which the parts are copied together.
pub(super) fn write_one_by_one(
    runs: &[Run<'_>],
    mut write: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<Batched> {
    let mut together = Vec::new();
    for run in runs {
        if let [part] = run.parts() {
            write(run.offset, part)?;
        } else {
            together.clear();
            run.parts().iter().for_each(|part| together.extend_from_slice(part));
            write(run.offset, &together)?;
        }
    }
    Ok(Batched::of(runs, runs.len() as u64, Engine::OneByOne))
}

/// Returns the bytes of parts.
#[cfg(test)]
pub(super) fn together(parts: &[IoSlice<'_>]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Directory as _, MemoryDirectory};
    use annals_simulated::Rng;

    /// Returns pieces that don't overlap, in any order, some of them empty. The percentage of pieces that begin after
    /// a gap.
    fn pieces<'a>(bytes: &'a [u8], gaps: u64, rng: &mut Rng) -> Vec<(u64, &'a [u8])> {
        let (mut pieces, mut at) = (Vec::new(), rng.below(3) * rng.below(1 << 40));
        for _ in 0..rng.below(3000) {
            if rng.percent(gaps) {
                at += rng.below(5000);
            }
            let len = rng.index(30);
            let from = rng.index(bytes.len() - len);
            pieces.push((at, &bytes[from..from + len]));
            at += len as u64;
        }
        // A few long ones after them.
        for _ in 0..rng.below(4) {
            let len = rng.index(bytes.len());
            pieces.push((at, &bytes[..len]));
            at += len as u64;
        }
        for index in 0..pieces.len() {
            let other = rng.index(pieces.len());
            pieces.swap(index, other);
        }
        pieces
    }

    /// Returns every byte by its place, as a naive program would write them.
    fn model(pieces: &[(u64, &[u8])]) -> BTreeMap<u64, u8> {
        let places = |(offset, piece): &(u64, &[u8])| {
            let (offset, piece) = (*offset, piece.to_vec());
            piece.into_iter().enumerate().map(move |(index, byte)| (offset + index as u64, byte))
        };
        pieces.iter().flat_map(places).collect()
    }

    #[test]
    fn runs_hold_what_the_pieces_hold() {
        let mut rng = Rng::new(1);
        let mut bytes = vec![0; 3 * LONGEST_RUN / 2];
        rng.fill(&mut bytes);
        for gaps in [0, 0, 1, 20] {
            let pieces = pieces(&bytes, gaps, &mut rng);
            let model = model(&pieces);
            let runs = join(pieces);
            let mut left = model.iter().map(|(at, byte)| (*at, *byte));
            for run in &runs {
                let (len, parts) = (run.len(), run.parts());
                assert_eq!(len, parts.iter().map(|part| part.len()).sum::<usize>());
                assert!(
                    (1..=LONGEST_RUN).contains(&len) && (1..=MOST_PARTS).contains(&parts.len())
                );
                assert!(parts.iter().all(|part| !part.is_empty()), "{run:?}");
                let placed = (run.offset()..).zip(together(parts));
                assert!(placed.eq(left.by_ref().take(len)), "{run:?} holds something else");
            }
            assert!(left.next().is_none(), "some bytes are in no run");
            for pair in runs.windows(2) {
                let end = pair[0].offset() + pair[0].len() as u64;
                assert!(end <= pair[1].offset(), "{pair:?} aren't in order");
                let is_full = pair[0].len() + pair[1].parts()[0].len() > LONGEST_RUN
                    || pair[0].parts().len() == MOST_PARTS;
                assert!(end < pair[1].offset() || is_full, "{pair:?} could be one");
            }
        }
    }

    #[test]
    fn no_piece_makes_no_run() {
        assert!(join([]).is_empty());
        assert!(join([(7, &b""[..]), (u64::MAX, b"")]).is_empty());
    }

    #[test]
    fn absurd_offsets_are_no_overflow() {
        let runs = join([(u64::MAX, &b"xy"[..]), (u64::MAX - 1, b"w")]);
        assert_eq!(runs.len(), 1, "{runs:?}");
        let file = MemoryDirectory::new().create("x").unwrap();
        assert!(file.write_batch(&runs).is_err());
    }

    #[test]
    fn a_run_is_one_write_and_the_first_error_ends_the_batch() {
        let runs = join([(0, &b"ab"[..]), (2, b"c"), (9, b"d"), (20, b"e")]);
        let mut written = Vec::new();
        let batched = write_one_by_one(&runs, |offset, data| {
            written.push((offset, data.to_vec()));
            Ok(())
        });
        assert_eq!(written, [(0, b"abc".to_vec()), (9, b"d".to_vec()), (20, b"e".to_vec())]);
        let all = Batched { writes: 3, bytes: 5, engine: Engine::OneByOne };
        assert_eq!(batched.unwrap(), all);

        let mut calls = 0;
        let error = write_one_by_one(&runs, |offset, _| {
            calls += 1;
            if offset == 9 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        });
        assert_eq!((error.unwrap_err().kind(), calls), (io::ErrorKind::StorageFull, 2));
    }
}
