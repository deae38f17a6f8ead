//! The row map against a map from ids to slots.

use std::collections::{BTreeMap, VecDeque};

use annals_schema::RowId;

use super::{RowIter, RowMap};
use crate::store::pages::page::Epoch;

struct Case {
    map: RowMap,
    model: BTreeMap<u64, usize>,
    epoch: Epoch,
}

impl Case {
    fn new() -> Self {
        Self { map: RowMap::new(), model: BTreeMap::new(), epoch: Epoch::first() }
    }

    fn moved(&mut self, moves: &[(usize, usize)]) {
        let new: BTreeMap<_, _> = moves.iter().copied().collect();
        self.model.values_mut().for_each(|slot| *slot = new.get(slot).copied().unwrap_or(*slot));
    }

    fn insert(&mut self, id: u64) {
        let slot = self.map.insert(RowId(id), &self.epoch);
        assert!(self.model.values().all(|&other| other != slot), "slot {slot} has a row");
        assert_eq!(self.model.insert(id, slot), None);
        let moves = self.map.crowd(RowId(id), slot, &self.epoch);
        self.moved(&moves);
    }

    fn remove(&mut self, id: u64) {
        let slot = self.model.remove(&id).unwrap();
        assert_eq!(self.map.find(id), Some(slot));
        let moves = self.map.remove(RowId(id), slot, &self.epoch);
        self.moved(&moves);
    }

    /// Takes rows from both ends until these meet.
    fn meet(&self, mut found: RowIter<'_>, mut ids: VecDeque<RowId>) {
        for step in 0..=ids.len() as u64 + 2 {
            let front = (step + self.map.len()) * 7 % 5 < 2;
            let given = if front { found.next() } else { found.next_back() };
            let expected = if front { ids.pop_front() } else { ids.pop_back() };
            assert_eq!(given.map(|(id, _)| id), expected);
            assert_eq!(found.clone().count(), ids.len());
        }
    }

    fn check(&self) {
        self.map.check().unwrap();
        let expected = self.model.iter().map(|(&id, &slot)| (RowId(id), slot));
        assert!(self.map.iter().eq(expected.clone()));
        assert!(self.map.iter().rev().eq(expected.rev()));
        for low in [0, 1, 2, 700, 1024, 1030, 2999, 4000, u64::MAX] {
            for high in [0, 2, 3, 710, 1023, 1031, 2048, 3000, u64::MAX] {
                let ids = low..high.max(low);
                let expected =
                    || self.model.range(ids.clone()).map(|(&id, &slot)| (RowId(id), slot));
                let found = self.map.range(low..high);
                assert!(found.clone().eq(expected()), "{low}..{high}");
                assert!(found.clone().rev().eq(expected().rev()), "{low}..{high}, backward");
                assert_eq!(found.clone().count(), expected().count(), "{low}..{high}");
                self.meet(found, expected().map(|(id, _)| id).collect());
            }
        }
        assert!((0..5000).all(|id| self.map.find(id) == self.model.get(&id).copied()));
    }
}

#[test]
fn appended_rows_lie_in_one_extent() {
    let mut case = Case::new();
    (0..3000).for_each(|id| case.insert(id));
    case.check();
    assert_eq!(case.map.extents.len(), 0);
    assert!(case.map.slots() < 3000 + 1024);
}

#[test]
fn a_crowded_block_gets_an_extent_and_a_thin_one_is_dissolved() {
    let mut case = Case::new();
    case.insert(5000);
    (0..1024).for_each(|i| case.insert(i * 5 % 1024));
    case.check();
    assert_eq!(case.map.extents.len(), 1);
    (0..1024).filter(|id| id % 50 != 0).for_each(|id| case.remove(id));
    case.check();
    assert!(case.map.extents.len() > 10);
    (0..1024).filter(|id| id % 50 == 0).for_each(|id| case.remove(id));
    case.check();
    assert_eq!(case.map.extents.len(), 0);
}

#[test]
fn random_histories_agree_with_a_map() {
    for seed in 1..6_u64 {
        let mut case = Case::new();
        let mut state = seed * 0x9e37_79b9;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        };
        for step in 0..1500 {
            let id = match random(4) {
                0 => case.map.next_id(),
                1 => case.map.next_id() + random(6),
                _ => random(3000),
            };
            let growing = step / 300 % 2 == 0;
            if !case.model.contains_key(&id) && (growing || random(3) == 0) {
                case.insert(id);
            } else {
                let near = case.model.range(id..).next().or(case.model.iter().next());
                near.map(|(&id, _)| id).into_iter().for_each(|id| case.remove(id));
            }
            if step % 100 == 0 {
                case.check();
                case.epoch.advance();
                case.map.begin();
            }
        }
        case.check();
    }
}

#[test]
fn what_was_rolled_back_is_not_alive_in_another_place() {
    let mut case = Case::new();
    case.insert(9000);
    let (published, model) = (case.map.clone(), case.model.clone());
    case.epoch.advance();
    case.map.begin();
    (9001..13_000).for_each(|id| case.insert(id));
    (case.map, case.model) = (published, model);
    case.epoch.advance();
    case.map.begin();
    case.insert(9003);
    case.insert(20_000);
    (0..800).for_each(|i| case.insert(i * 5 % 1024));
    case.check();
    assert!((9000..14_000).all(|id| case.map.find(id).is_some() == (id == 9000 || id == 9003)));
}

#[test]
fn runs_of_rows_fill_what_is_free() {
    let mut case = Case::new();
    let mut state = 5_u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % end
    };
    for round in 0..if cfg!(miri) { 30 } else { 400 } {
        let (id, count) = (below(4500), 1 + below(400));
        let used = case.map.first_in(id, count);
        assert_eq!(used, case.model.range(id..id + count).next().map(|(&id, _)| id));
        let mut at = id;
        let end = used.unwrap_or(id + count);
        while at < end {
            match case.map.insert_run(at, end - at, &case.epoch) {
                Some((slot, len)) => {
                    assert!(len > 0 && at + len <= end);
                    for offset in 0..len {
                        let slot = slot + usize::try_from(offset).unwrap();
                        assert_eq!(case.model.insert(at + offset, slot), None);
                    }
                    at += len;
                }
                None => {
                    case.insert(at);
                    at += 1;
                }
            }
        }
        let (from, many) = (below(4500), below(900));
        let gone: Vec<_> = case.model.range(from..from + many).map(|(&id, _)| id).collect();
        gone.into_iter().rev().for_each(|id| case.remove(id));
        let run = case.model.range(from..).zip(from..).take_while(|((id, _), at)| **id == *at);
        let run = run.count() as u64;
        let found = std::iter::successors(
            case.map.run_at(from, 5000).map(|r| (from, r.1)),
            |&(at, len)| case.map.run_at(at + len, 5000).map(|r| (at + len, r.1)),
        );
        assert_eq!(found.map(|(_, len)| len).sum::<u64>(), run);
        case.epoch.advance();
        case.map.begin();
        if round % 10 == 0 {
            case.check();
        }
    }
    case.check();
}
