//! The row map against a map from ids to slots.

use std::collections::{BTreeMap, VecDeque};

use annals_schema::RowId;

use super::{RowIter, RowMap};
use crate::Result;
use crate::pages::page::Epoch;
use crate::pages::testing::{TestImage, load};

struct Case {
    map: RowMap,
    model: BTreeMap<u64, usize>,
    epoch: Epoch,
}

impl Case {
    fn new() -> Self {
        Self { map: RowMap::new(0), model: BTreeMap::new(), epoch: Epoch::first() }
    }

    fn moved(&mut self, moves: &[(usize, usize)]) {
        let new: BTreeMap<_, _> = moves.iter().copied().collect();
        self.model.values_mut().for_each(|slot| *slot = new.get(slot).copied().unwrap_or(*slot));
    }

    fn insert(&mut self, id: u64) {
        let slot = self.map.insert(RowId(id), &self.epoch).unwrap();
        assert!(self.model.values().all(|&other| other != slot), "slot {slot} has a row");
        assert_eq!(self.model.insert(id, slot), None);
        let moves = self.map.crowd(RowId(id), slot, &self.epoch).unwrap();
        self.moved(&moves);
    }

    fn remove(&mut self, id: u64) {
        let slot = self.model.remove(&id).unwrap();
        assert_eq!(self.map.find(id).unwrap(), Some(slot));
        let moves = self.map.remove(RowId(id), slot, &self.epoch).unwrap();
        self.moved(&moves);
    }

    /// Takes rows from both ends until these meet.
    fn meet(&self, mut found: RowIter<'_>, mut ids: VecDeque<RowId>) {
        for step in 0..=ids.len() as u64 + 2 {
            let front = (step + self.map.len()) * 7 % 5 < 2;
            let given = if front { found.next() } else { found.next_back() };
            let expected = if front { ids.pop_front() } else { ids.pop_back() };
            assert_eq!(given.transpose().unwrap().map(|(id, _)| id), expected);
            assert_eq!(found.clone().count(), ids.len());
        }
    }

    fn check(&self) {
        self.map.check().unwrap();
        let expected = self.model.iter().map(|(&id, &slot)| (RowId(id), slot));
        assert!(self.map.iter().map(Result::unwrap).eq(expected.clone()));
        assert!(self.map.iter().rev().map(Result::unwrap).eq(expected.rev()));
        for low in [0, 1, 2, 700, 1024, 1030, 2999, 4000, u64::MAX] {
            for high in [0, 2, 3, 710, 1023, 1031, 2048, 3000, u64::MAX] {
                let ids = low..high.max(low);
                let expected =
                    || self.model.range(ids.clone()).map(|(&id, &slot)| (RowId(id), slot));
                let found = self.map.range(low..high);
                assert!(found.clone().map(Result::unwrap).eq(expected()), "{low}..{high}");
                assert!(
                    found.clone().rev().map(Result::unwrap).eq(expected().rev()),
                    "{low}..{high}, backward"
                );
                assert_eq!(found.clone().count(), expected().count(), "{low}..{high}");
                self.meet(found, expected().map(|(id, _)| id).collect());
            }
        }
        assert!((0..5000).all(|id| self.map.find(id).unwrap() == self.model.get(&id).copied()));
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
    assert!(
        (9000..14_000).all(|id| case.map.find(id).unwrap().is_some() == (id == 9000 || id == 9003))
    );
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
        let used = case.map.first_in(id, count).unwrap();
        assert_eq!(used, case.model.range(id..id + count).next().map(|(&id, _)| id));
        let mut at = id;
        let end = used.unwrap_or(id + count);
        while at < end {
            match case.map.insert_run(at, end - at, &case.epoch).unwrap() {
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
            case.map.run_at(from, 5000).unwrap().map(|r| (from, r.1)),
            |&(at, len)| case.map.run_at(at + len, 5000).unwrap().map(|r| (at + len, r.1)),
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

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

impl Case {
    /// Inserts and removes rows; more are inserted if it is `growing`.
    fn steps(&mut self, count: usize, growing: bool, random: &mut Random) {
        for _ in 0..count {
            let id = match random.below(4) {
                0 => self.map.next_id(),
                1 => self.map.next_id() + random.below(6),
                _ => random.below(3000),
            };
            if !self.model.contains_key(&id) && (growing || random.below(3) == 0) {
                self.insert(id);
            } else {
                let near = self.model.range(id..).next().or(self.model.iter().next());
                near.map(|(&id, _)| id).into_iter().for_each(|id| self.remove(id));
            }
        }
    }

    /// Checks the same as `check`, for fewer ranges.
    fn glance(&self) {
        self.map.check().unwrap();
        let expected = self.model.iter().map(|(&id, &slot)| (RowId(id), slot));
        assert!(self.map.iter().map(Result::unwrap).eq(expected));
        let found = (0..4000).step_by(7).map(|id| (id, self.map.find(id).unwrap()));
        found.for_each(|(id, slot)| assert_eq!(slot, self.model.get(&id).copied(), "{id}"));
        let expected = self.model.range(700..2500).rev().map(|(&id, _)| RowId(id));
        assert!(self.map.range(700..2500).rev().map(|row| row.unwrap().0).eq(expected));
        assert_eq!(self.map.range(700..2500).count(), self.model.range(700..2500).count());
    }

    fn publish(&mut self) {
        self.epoch.advance();
        self.map.begin();
    }
}

/// After each round the published map is saved while the writer continues; then the next round continues
/// from the map over its new base, or from what was loaded, and some of that is rolled back.
#[test]
fn random_histories_go_on_from_what_was_saved() {
    for (seed, keeps) in (1..5).flat_map(|seed| [(seed, true), (seed, false)]) {
        let mut random = Random(seed);
        let (image, pager) = TestImage::new(40_000, keeps);
        let mut case = Case::new();
        let mut views = Vec::new();
        for round in 0..if cfg!(miri) { 2 } else { 12 } {
            case.steps(200, round % 4 < 3, &mut random);
            case.publish();
            let view =
                Case { map: case.map.clone(), model: case.model.clone(), epoch: Epoch::first() };
            case.steps(60, true, &mut random);
            let saved = image.save(&pager, |out| view.map.save(out));
            let map = load(&saved, &pager, RowMap::load).unwrap();
            let mut loaded = Case { map, model: view.model.clone(), epoch: Epoch::first() };
            loaded.glance();
            if round % 3 == 1 {
                loaded.epoch.advance();
                loaded.steps(50, false, &mut random);
                case = loaded;
            } else {
                case.map.rebase(&saved);
                if round % 3 == 2 {
                    // Rolled back to what was published, which had the old base.
                    (case.map, case.model) = (view.map.clone(), view.model.clone());
                    case.map.rebase(&saved);
                    case.publish();
                }
            }
            case.glance();
            views.push(view);
        }
        views.iter().for_each(Case::glance);
        case.check();
    }
}

/// Does whatever can be done with a map; errors are welcome, panics are not.
fn use_all(map: &RowMap) {
    let mut epoch = Epoch::first();
    epoch.advance();
    let _ = map.check();
    let _ = (map.iter().count(), map.range(10..2000).rev().count());
    let _: Result<Vec<_>> = map.iter().take(10_000).collect();
    let _: Result<Vec<_>> = map.range(3..5000).rev().take(10_000).collect();
    for id in [0, 1, 3, 30, 700, 1023, 1024, 2050, 5000, RowId::MAX.0] {
        let mut map = map.clone();
        map.begin();
        let _ = (map.first_in(id, 100), map.run_at(id, 100));
        match map.find(id) {
            Ok(Some(slot)) => drop(map.remove(RowId(id), slot, &epoch)),
            Ok(None) => {
                let inserted = map.insert(RowId(id), &epoch);
                let _ = inserted.and_then(|slot| map.crowd(RowId(id), slot / 16 * 16, &epoch));
            }
            Err(_) => {}
        }
        let _ = map.insert_run(map.next_id(), 100, &epoch);
        let _ = map
            .first_in(id + 1, 100)
            .map(|used| used.is_none().then(|| map.insert_run(id + 1, 100, &epoch)));
    }
}

fn sparse() -> Case {
    let mut case = Case::new();
    (0..40).for_each(|id| case.insert(id));
    (0..700).for_each(|i| case.insert(2000 + i * 5 % 1024));
    case.insert(5000);
    (2000..2020)
        .filter(|id| case.model.contains_key(id))
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|id| case.remove(id));
    case
}

#[test]
fn extents_that_nobody_wrote_lead_to_errors() {
    let case = sparse();
    use_all(&case.map);
    let numbers = [0, 1, 37, 700, 1024, 5000, 1 << 40, RowId::MAX.0, u64::MAX];
    let mut errors = 0;
    for start in [1, 37, 700, 2500, 4999, 5002, RowId::MAX.0, u64::MAX] {
        for base in numbers {
            for len in numbers {
                let mut map = case.map.clone();
                let mut value = [0; 16];
                value[..8].copy_from_slice(&base.to_le_bytes());
                value[8..].copy_from_slice(&len.to_le_bytes());
                map.extents.make_mut().insert(&super::key_of(start), &value, &case.epoch).unwrap();
                errors += usize::from(map.check().is_err());
                use_all(&map);
            }
        }
    }
    assert!(errors > 500, "{errors}");
}

#[test]
fn bytes_changed_in_what_was_saved_of_a_map_are_not_believed() {
    let case = sparse();
    let (image, pager) = TestImage::new(1 << 20, true);
    let mut saved = image.save(&pager, |out| case.map.save(out));
    let good = saved.metadata.clone();
    let mut refused = 0;
    for at in 0..good.len() {
        for byte in [0, 1, 0x20, 0xfa] {
            saved.metadata.clone_from(&good);
            saved.metadata[at] = byte;
            match load(&saved, &pager, RowMap::load) {
                Ok(map) => use_all(&map),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 10, "{refused}");
}
