//! The proven frames after a gap.
//!
//! A frame verifies by itself, whichever program wrote it: also one that was stored in a value, or one of another
//! history. So after bytes that don't verify, frames count as the journal's only if the chain links them forward to a
//! proof. These are a slot, a seal and the header of the next segment, a root of the image, or a frame with a tag
//! made with the file's secret. Frames that follow those by the chain count with them.

use std::io;

use annals::{Point, Txid};
use annals_journal::Trailer;
use annals_journal::segments::Seal;
use annals_storage::{Storage, step};

use super::parts::Parts;
use super::walk::{Link, Walk};

/// Consecutive frames, linked by the chain.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Where the first begins, and the last ends.
    from: u64,
    to: u64,
    is_proven: bool,
}

/// All frames of a file that verify.
#[derive(Debug, Default)]
pub(super) struct Proof {
    stretches: Vec<Stretch>,
}

impl Proof {
    /// Walks over a file. `storage` is the part's file, or watches it.
    pub(super) fn of(parts: &Parts, place: usize, storage: &dyn Storage) -> io::Result<Self> {
        let Some(part) = parts.all.get(place) else { return Ok(Self::default()) };
        let witnesses = parts.witnesses(part);
        let slots = part.copies.slots.iter().flatten().flatten();
        let secrets: Vec<_> = slots.map(|slot| slot.secret).collect();
        let mut proof = Self::default();
        let mut walk = Walk::new(storage, &part.copies)?;
        while let Some(step) = walk.next()? {
            let frame = &step.frame;
            let point =
                Point { position: frame.end, txid: Txid(frame.header.txid), chain: frame.chain };
            let is_sealed = frame.header.is_seal()
                && Seal::of(frame)
                    .zip(parts.after(place))
                    .is_some_and(|(seal, next)| seal.is_followed_by(next));
            let follows = step.link == Link::Follows;
            let last = match proof.stretches.last_mut().filter(|_| follows) {
                Some(last) => last,
                None => {
                    // Only the first frame can follow something other than a frame: the header.
                    let (from, is_proven) = (frame.header.position, follows);
                    proof.stretches.push(Stretch { from, to: from, is_proven });
                    let Some(last) = proof.stretches.last_mut() else { continue };
                    last
                }
            };
            last.to = frame.end;
            let trailer = Trailer::of(frame.bytes);
            let is_tagged = trailer.is_some_and(|trailer| {
                secrets.iter().any(|secret| trailer.is_proven(&frame.header, secret))
            });
            let is_proven = is_sealed || is_tagged || witnesses.contains(&point);
            last.is_proven |= step!(UnprovenTaken, is_proven, else true);
        }
        Ok(proof)
    }

    /// True if the frame at a position is proven to be of the history.
    pub(super) fn has(&self, position: u64) -> bool {
        let after = self.stretches.partition_point(|stretch| stretch.to <= position);
        self.stretches.get(after).is_some_and(|it| it.from <= position && it.is_proven)
    }
}
