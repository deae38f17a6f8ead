//! The turns of nodes to append, as far as a node can see them in the messages that it sends and reads.
//!
//! A log accepts the first append that arrives. A node that has just appended would be first again: the others must
//! read its message, and run their transactions again. So its turn ends after some appends. Then it waits for a moment
//! until another node has appended, or not at all if nobody else writes. A change of turns costs more than an append,
//! so a turn has several appends. A node that lost a race waits until the other's turn is over, which its appends would
//! only delay.
//!
//! A node that lost several races in a row reserves the next turn by a fence. If the last message is another node's
//! fence, or a part of a message without its end, a node waits for a moment for the next message.
//!
//! Turns don't decide which messages count: a node that doesn't wait only wins or loses a race.

use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals_storage::{Clock as _, SystemClock};

use super::place::Place;
use super::reading::Read;

/// After so many conflicts in a row a node reserves a turn.
pub(super) const CONFLICTS: u32 = 3;
/// How long a reserved turn lasts: its node reads, runs its transaction again and appends it. A node also tries this
/// long to reserve one.
pub(super) const RESERVED: Duration = Duration::from_millis(250);
/// After this many waits in which nobody appended, a node waits no more until it sees another node.
const IN_VAIN: u32 = 3;
/// A turn lasts as long as this many appends.
const APPENDS: u32 = 16;
/// The longest turn, and the longest wait for others after it.
const LONGEST: Duration = Duration::from_millis(200);

/// No messages.
pub(super) const NONE: RangeInclusive<u64> = RangeInclusive::new(1, 0);

#[derive(Debug)]
pub(super) struct Turns(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The messages of this node that are on their way, or were appended last, one after the other.
    own: RangeInclusive<u64>,
    /// When the turn of this node began, if it has one.
    turn_since: Option<Duration>,
    /// How long the last append took.
    took: Duration,
    /// The last message of another that was read, and when.
    others: (u64, Duration),
    /// The approximate time from one of those to the next: `took` may be out of date.
    pace: Duration,
    /// Until when others may come first.
    polite_until: Duration,
    /// How often in a row others were waited for in vain.
    in_vain: u32,
    conflicts: u32,
    /// A fence, or a part without its end, and until when this node waits for the next message, unless it is its own.
    /// Only later does it know that of one in a place to which it was about to append.
    reserved: (u64, Duration),
}

impl Default for Turns {
    fn default() -> Self {
        let (own, in_vain) = (NONE, IN_VAIN);
        let (turn_since, took, others, pace) = Default::default();
        let (polite_until, conflicts, reserved) = Default::default();
        let turn = State {
            own,
            turn_since,
            took,
            others,
            pace,
            polite_until,
            in_vain,
            conflicts,
            reserved,
        };
        Self(Mutex::new(turn))
    }
}

impl State {
    /// Returns until when a place is another's.
    fn reserved_at(&self, place: Place) -> Duration {
        let is_reserved = self.reserved.0 == place.tail && !self.own.contains(&place.tail);
        if is_reserved { self.reserved.1 } else { Duration::ZERO }
    }

    /// Returns until when the turn of the node that came first may last: until no message has come for longer than an
    /// append takes, here or there.
    fn ends_at(&self, place: Place) -> Duration {
        let has_lost = self.conflicts > 0 && self.others.0 == place.tail;
        if has_lost {
            self.others.1 + LONGEST.min(self.took.min(self.pace) * 3 / 2)
        } else {
            Duration::ZERO
        }
    }
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that messages of this node are on their way.
    pub(super) fn sending(&self, own: RangeInclusive<u64>) {
        let mut state = self.state();
        let begin = match state.own.end() + 1 == *own.start() && !state.own.is_empty() {
            true => *state.own.start(),
            false => *own.start(),
        };
        state.own = begin..=*own.end();
    }

    /// Notes that they are in the log; sending them took so long.
    pub(super) fn sent(&self, took: Duration) {
        let mut state = self.state();
        (state.conflicts, state.took) = (0, took);
        let now = SystemClock.elapsed();
        let since = *state.turn_since.get_or_insert_with(|| now.saturating_sub(took));
        if now.saturating_sub(since) >= LONGEST.min(took * APPENDS) {
            state.turn_since = None;
            // Another reads it, runs a transaction, and appends that.
            state.polite_until = now + LONGEST.min(took * 3 + Duration::from_millis(1));
        }
    }

    /// Notes that another has their place; returns how often in a row that was so.
    pub(super) fn lost(&self) -> u32 {
        let mut state = self.state();
        state.own = NONE;
        state.turn_since = None;
        state.in_vain = 0;
        state.conflicts += 1;
        state.conflicts
    }

    /// Notes what was read.
    pub(super) fn note_read(&self, read: &Read) {
        let mut state = self.state();
        if read.counted > 0 && !state.own.contains(read.sequences.end()) {
            let now = SystemClock.elapsed();
            state.pace = (state.pace + now.saturating_sub(state.others.1).min(LONGEST)) / 2;
            state.others = (*read.sequences.end(), now);
            state.turn_since = None;
            state.in_vain = 0;
        }
        if let Some(open) = read.open.filter(|open| *open != state.reserved.0) {
            state.reserved = (open, SystemClock.elapsed() + RESERVED);
        }
    }

    /// Returns how long a node that has read up to a place is to wait for others.
    pub(super) fn wait(&self, place: Place) -> Duration {
        let state = self.state();
        let is_own = *state.own.end() == place.tail && state.in_vain < IN_VAIN;
        let of_others = state.reserved_at(place).max(state.ends_at(place));
        let until = if is_own { state.polite_until } else { of_others };
        until.saturating_sub(SystemClock.elapsed())
    }

    /// True if the place after what a node has read is another's.
    pub(super) fn is_reserved(&self, place: Place) -> bool {
        SystemClock.elapsed() < self.state().reserved_at(place)
    }

    /// Notes whether others came while they were waited for, after the last message of this node.
    pub(super) fn waited(&self, place: Place, in_vain: bool) {
        let mut state = self.state();
        if *state.own.end() == place.tail {
            state.in_vain = if in_vain { state.in_vain + 1 } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use annals::{Cursor, Txid};

    use super::*;

    #[test]
    fn one_whose_last_append_took_long_does_not_wait_longer_than_others_take() {
        let turns = Turns::default();
        turns.sending(1..=1);
        turns.sent(LONGEST);
        turns.lost();
        let mut place = Place::after(1);
        for sequence in 2..10 {
            SystemClock.pause(Duration::from_millis(2));
            let next = Cursor { txid: Txid(sequence), chain: 0 };
            place = Place::after(sequence);
            let (places, sequences) = (vec![(next, place)], sequence..=sequence);
            turns.note_read(&Read { next, places, counted: 1, sequences, open: None });
        }
        assert!(turns.wait(place) < LONGEST / 2, "{:?}", turns.wait(place));
    }
}
