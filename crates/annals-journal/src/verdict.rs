//! The verdict on a journal: the conclusion of a survey, and its text.

use annals_storage::step;

use super::format::{Live, Slot};
use super::outcome::Recovery;
use super::refusal::salvage_advice;
use super::survey::Survey;
use crate::Error;

/// The conclusion of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Only zeros follow the last commit.
    Whole,
    /// Something follows that never was known to be durable.
    Tail,
    /// Something that was durable doesn't verify any more.
    Damaged,
}

impl Survey {
    /// Returns the verdict: damage if the end is before what is known to be durable, or no slot verifies.
    pub fn verdict(&self) -> Verdict {
        let lacks = step!(DamageCut, self.end.position < self.hard, else false);
        let is_slotless = step!(SlotlessWritten, self.head.newest_slot().is_none(), else false);
        if lacks || is_slotless {
            Verdict::Damaged
        } else if self.may_hold_a_commit() || self.uncommitted_frames > 0 {
            Verdict::Tail
        } else {
            Verdict::Whole
        }
    }

    /// True if the last writer noted all its commits in the live block, and no failure. Or else it was interrupted,
    /// perhaps after a flush that failed: then the frames are whole, but no later flush covers them.
    #[inline]
    pub fn is_told(&self) -> bool {
        let is_told = |live: Live| !live.suspect && live.soft == self.end;
        step!(SuspectTrusted, self.head.live.is_some_and(is_told), else true)
    }

    /// True if a commit may be in the bytes after the end.
    #[inline]
    pub fn may_hold_a_commit(&self) -> bool {
        self.tail.is_some() || self.left_out.is_some()
    }

    /// Returns the property that the excluded commits lack.
    pub(super) fn missing_proof(&self) -> &'static str {
        match self.rule().recovery {
            Recovery::ToSoft => {
                "they were acknowledged or flushed, and all that isn't known to be was to be cut"
            }
            _ => "they were flushed, and all that isn't known to be was to be cut",
        }
    }

    /// True if the journal was closed properly: a slot reaches its end, nothing follows, and nothing of
    /// the head is damaged or half written.
    pub fn is_closed(&self) -> bool {
        let nothing_follows = match self.has_fixed_len {
            false => self.len == self.sealed.map_or(self.end.position, |seal| seal.end),
            // Zeros that follow may be in the page cache alone, unless the last one that wrote closed it.
            true => {
                self.verdict() == Verdict::Whole
                    && self.head.live.is_some_and(|live| live.pid == 0 && !live.suspect)
            }
        };
        self.head.newest_slot().is_some_and(|slot| slot.point == self.end)
            && nothing_follows
            && self.wrong_chains.is_empty()
            && self.head.torn_slots() == [false; 2]
            && self.head.damaged_headers == [false; 3]
    }

    /// Returns the process that has it open for writing, as the live block says.
    pub fn holder(&self) -> Option<u32> {
        self.head.live.map(|live| live.pid).filter(|&pid| pid != 0)
    }

    /// True if a process of that number exists on this machine (always true if unknown).
    pub fn holder_lives(&self) -> bool {
        self.holder().is_some_and(annals_storage::is_alive)
    }

    /// Returns how many copies of the header are damaged, of 3.
    pub fn damaged_headers(&self) -> usize {
        self.head.damaged_headers.iter().filter(|&&damaged| damaged).count()
    }

    /// Returns the end of a frame with a wrong stored chain, if all else confirms the right one. Opening the file for
    /// writing repairs it.
    pub fn wrong_chain(&self) -> Option<u64> {
        self.wrong_chains.first().map(|point| point.position)
    }

    /// True if anything would be cut off if the file were opened for writing.
    pub fn has_tail(&self) -> bool {
        self.may_hold_a_commit() || self.uncommitted_frames > 0
    }

    /// True if a copy of the header or of a slot doesn't verify, the copies of a slot differ, or a stored chain is
    /// wrong. Nothing is lost by that, and opening the file for writing repairs it.
    pub fn has_damaged_copy(&self) -> bool {
        let differs = |[first, second]: &[Option<Slot>; 2]| first.is_none() || first != second;
        self.damaged_headers() > 0
            || !self.wrong_chains.is_empty()
            || self.head.slots.iter().any(differs)
    }

    /// Describes the damage, with the lost transactions and the advice.
    pub fn damage(&self, name: &str) -> Error {
        let advice = format!("The file was not changed: {}", salvage_advice(name));
        if self.head.newest_slot().is_none() {
            return Error::corrupt(format!(
                "{name}: damaged: both slots are, which tell how far the journal had reached \
                 permanent storage; transactions up to {} (position {}) are whole, but whether \
                 others followed can't be told. {advice}",
                self.end.txid, self.end.position
            ));
        }
        let reached = self.reached().txid.0;
        let slot_txid = self.head.newest_slot().map_or(0, |slot| slot.point.txid.0);
        let last = self.tail.map_or(0, |tail| tail.last_txid).max(slot_txid);
        let lost = if last > reached {
            match reached + 1 {
                first if first == last => format!("transaction {first} can't be read"),
                first => format!("transactions {first} to {last} can't be read"),
            }
        } else {
            format!("what followed transaction {reached} can't be read")
        };
        let whole = match reached.saturating_sub(self.head.header.first_txid.saturating_sub(1)) {
            0 => "no transaction is whole before that".to_owned(),
            _ => format!("transactions up to {reached} are whole"),
        };
        Error::corrupt(format!(
            "{name}: damaged at position {}: all up to position {} had reached permanent storage, \
             but from there on it does not verify (the file has {} bytes); {lost}, {whole}. {advice}",
            self.verified_to, self.hard, self.len
        ))
    }
}
