//! Retention: rules for the length of the kept history, and the removable part.
//!
//! History can only be forgotten up to a segment that begins with the state itself. So the rules say two
//! things: up to which of those all may be removed, and whether it is time to make another one.

use annals_schema::Txid;
use std::time::Duration;

/// How much history is to be kept. History is kept if any of the rules keeps it; without a rule, all is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// At least this many bytes of the journal, without the state at the beginning of a segment.
    pub bytes: Option<u64>,
    /// At least the commits of this last period.
    pub time: Option<Duration>,
    /// At least this many transactions.
    pub transactions: Option<u64>,
}

/// The number of pieces in which history beyond the rules is removed.
const PIECES: u32 = 4;

/// Facts of a segment without reading all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Its number.
    pub number: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The number of its first transaction. If the segment begins with a copy of the whole state, that copy isn't
    /// counted.
    pub first_txid: Txid,
    /// The number of its last transaction; one less than the first if it has none.
    pub last_txid: Txid,
    /// When it was begun, in microseconds since 1970.
    pub begun: i64,
    /// True if its first transaction is the state itself.
    pub begins_with_state: bool,
    /// True if it has readers, so that it can't be removed.
    pub is_pinned: bool,
}

/// The actions that the rules allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// All segments with a lower number may be removed.
    pub forget_before: Option<u64>,
    /// The next segment should begin with the state itself.
    pub begin_with_state: bool,
}

impl Retention {
    /// Returns which segments of a journal may be forgotten, and whether the next segment should begin with the
    /// state; the segments are oldest first, the newest one included.
    ///
    /// Both only where it pays: the forgotten history, or the history before the new state, has at least the size of
    /// the live state. A state is written only when the journal has grown since the last one by a quarter of what
    /// each rule keeps: with so many states, history is removed in pieces. `live` is that size in bytes, `now` the
    /// time in microseconds since 1970.
    #[must_use]
    pub fn plan(&self, segments: &[SegmentFacts], live: u64, now: i64) -> Plan {
        if *self == Self::default() {
            return Plan::default();
        }
        let last_txid = segments.last().map_or(0, |newest| newest.last_txid.0);
        let history = |facts: &SegmentFacts| match facts.begins_with_state {
            true => facts.bytes.saturating_sub(live),
            false => facts.bytes,
        };
        let mut kept = 0;
        let mut forget_before = None;
        let mut begin_with_state = None;
        for (place, base) in segments.iter().enumerate().rev() {
            kept += history(base);
            if !base.begins_with_state && place > 0 {
                continue;
            }
            let since = Since {
                bytes: kept,
                micros: now.saturating_sub(base.begun),
                transactions: (last_txid + 1).saturating_sub(base.first_txid.0),
            };
            begin_with_state
                .get_or_insert(kept > 0 && kept >= live && self.divided(PIECES).has_enough(&since));
            let older = segments.get(..place).unwrap_or_default();
            let forgotten: u64 = older.iter().map(|facts| facts.bytes).sum();
            let is_free = older.iter().all(|facts| !facts.is_pinned);
            if !older.is_empty() && is_free && self.has_enough(&since) && forgotten >= live {
                forget_before = Some(base.number);
                break;
            }
        }
        Plan { forget_before, begin_with_state: begin_with_state.unwrap_or(false) }
    }

    /// True if the history since then is all that any of the rules keeps.
    fn has_enough(&self, since: &Since) -> bool {
        self.bytes.is_none_or(|bytes| since.bytes >= bytes)
            && self.time.is_none_or(|time| since.micros >= micros(time))
            && self.transactions.is_none_or(|count| since.transactions >= count)
    }

    /// Returns the rules that ask for such a part of it.
    fn divided(&self, by: u32) -> Self {
        Self {
            bytes: self.bytes.map(|bytes| bytes / u64::from(by)),
            time: self.time.map(|time| time / by),
            transactions: self.transactions.map(|count| count / u64::from(by)),
        }
    }
}

/// The history since a segment was begun, that one included.
struct Since {
    /// Without the states that segments begin with.
    bytes: u64,
    micros: i64,
    transactions: u64,
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six segments of 100 bytes, ten transactions and one second each; some begin with the state.
    fn segments(states: &[u64]) -> Vec<SegmentFacts> {
        let facts = |number| SegmentFacts {
            number,
            bytes: 100,
            first_txid: Txid(number * 10 + 1),
            last_txid: Txid(number * 10 + 10),
            begun: i64::try_from(number).unwrap() * 1_000_000,
            begins_with_state: states.contains(&number),
            is_pinned: false,
        };
        (0..6).map(facts).collect()
    }

    const NOW: i64 = 6_000_000;

    fn forgets(states: &[u64], live: u64, rules: Retention) -> Option<u64> {
        rules.plan(&segments(states), live, NOW).forget_before
    }

    fn keep_bytes(bytes: u64) -> Retention {
        Retention { bytes: Some(bytes), ..Retention::default() }
    }

    #[test]
    fn nothing_is_forgotten_without_a_rule() {
        assert_eq!(Retention::default().plan(&segments(&[1, 3]), 1, NOW), Plan::default());
    }

    #[test]
    fn history_is_forgotten_up_to_a_state_that_leaves_enough() {
        // Segments 4 and 5, and the part after the state of 10 bytes in 3.
        assert_eq!(forgets(&[2, 3], 10, keep_bytes(290)), Some(3));
        assert_eq!(forgets(&[2, 3], 10, keep_bytes(291)), Some(2));
        assert_eq!(forgets(&[2, 3], 10, keep_bytes(381)), None);
        assert_eq!(forgets(&[], 10, keep_bytes(0)), None, "without a state");
        assert_eq!(forgets(&[0], 10, keep_bytes(0)), None, "nothing is older");

        let time = |seconds| Retention {
            time: Some(Duration::from_secs(seconds)),
            ..Retention::default()
        };
        assert_eq!(forgets(&[2, 3], 10, time(3)), Some(3));
        assert_eq!(forgets(&[2, 3], 10, time(4)), Some(2));
        assert_eq!(forgets(&[2, 3], 10, time(u64::MAX)), None);

        let transactions = |count| Retention { transactions: Some(count), ..Retention::default() };
        assert_eq!(forgets(&[2, 3], 10, transactions(30)), Some(3));
        assert_eq!(forgets(&[2, 3], 10, transactions(31)), Some(2));
        assert_eq!(forgets(&[2, 3], 10, transactions(41)), None);
    }

    #[test]
    fn what_any_rule_asks_for_is_kept() {
        let rules = Retention { time: Some(Duration::from_secs(4)), ..keep_bytes(0) };
        assert_eq!(forgets(&[2, 3], 10, rules), Some(2));
        assert_eq!(forgets(&[2, 3], 10, keep_bytes(0)), Some(3));
    }

    #[test]
    fn forgetting_has_to_pay() {
        assert_eq!(forgets(&[2], 200, keep_bytes(0)), Some(2));
        assert_eq!(forgets(&[2], 201, keep_bytes(0)), None);
    }

    #[test]
    fn what_is_being_read_stays_and_all_that_is_newer() {
        for (pinned, forgotten) in [(0, None), (2, Some(2)), (1, None), (4, Some(3))] {
            let mut segments = segments(&[2, 3]);
            segments.get_mut(pinned).unwrap().is_pinned = true;
            let plan = keep_bytes(0).plan(&segments, 10, NOW);
            assert_eq!(plan.forget_before, forgotten, "segment {pinned} is being read");
        }
    }

    #[test]
    fn a_state_is_written_once_as_much_was_written_since_the_last() {
        let begins = |states: &[u64], live| {
            keep_bytes(0).plan(&segments(states), live, NOW).begin_with_state
        };
        assert!(begins(&[], 600) && !begins(&[], 601), "all of it");
        assert!(
            begins(&[4], 100) && !begins(&[4], 101),
            "since segment 4, but for the state itself"
        );
    }

    #[test]
    fn a_state_is_written_for_each_quarter_of_what_a_rule_asks_for() {
        let begins = |rules: Retention| rules.plan(&segments(&[4]), 10, NOW).begin_with_state;
        // Since segment 4: 190 bytes without the state, 20 transactions, 2 seconds.
        assert!(begins(keep_bytes(760)) && !begins(keep_bytes(764)));
        let transactions = |count| Retention { transactions: Some(count), ..Retention::default() };
        assert!(begins(transactions(80)) && !begins(transactions(84)));
        let time = |seconds| Retention {
            time: Some(Duration::from_secs(seconds)),
            ..Retention::default()
        };
        assert!(begins(time(8)) && !begins(time(9)) && !begins(time(u64::MAX)));
        assert!(
            !begins(Retention { bytes: Some(0), ..transactions(84) }),
            "what any rule asks for"
        );
    }
}
