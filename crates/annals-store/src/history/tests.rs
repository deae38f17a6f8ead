//! The tree beside plain maps, on random entries, saved and loaded.

use std::collections::BTreeMap;

use annals_simulated::Rng;
use annals_simulated::document::{compare_fields, variants};

use super::node::{self, Child};
use super::{Entry, FIRST_TABLE, HistoryIndex, Key};
use crate::pages::testing::{TestImage, load};

/// All places of each row, and all records.
#[derive(Default)]
struct Model {
    entries: Vec<Entry>,
    records: BTreeMap<(u64, u64), Vec<u64>>,
}

impl Model {
    fn places_of(&self, key: Key) -> Vec<u64> {
        let has = |entry: &&Entry| {
            let behind = key.row.checked_sub(entry.key.row);
            entry.key.table == key.table && behind.is_some_and(|behind| behind < entry.count)
        };
        let mut places: Vec<_> = self.entries.iter().filter(has).map(|entry| entry.place).collect();
        places.dedup();
        places
    }
}

fn row(random: &mut Rng) -> u64 {
    match random.below(20) {
        0 => (1 << 62) + random.below(3),
        1..=4 => 7,
        _ => random.below(3000),
    }
}

fn step(random: &mut Rng, model: &mut Model, place: &mut u64) -> Vec<Entry> {
    let mut new = Vec::new();
    for _ in 0..random.below(600) {
        *place += 1 + random.below(40);
        if random.percent(15) {
            let key = Key { table: random.below(3), row: *place };
            let numbers: Vec<u64> = (0..1 + random.below(9)).map(|_| random.number()).collect();
            new.extend(numbers.iter().map(|&place| Entry { key, count: 0, place }));
            model.records.insert((key.table, key.row), numbers);
        } else {
            let key = Key { table: FIRST_TABLE + random.below(2), row: row(random) };
            let count = if random.percent(80) { 1 } else { 1 + random.below(500) };
            new.push(Entry { key, count, place: *place });
        }
    }
    model.entries.extend(new.iter().filter(|entry| entry.count > 0));
    new
}

fn compare(index: &HistoryIndex, model: &Model, random: &mut Rng) {
    index.check().unwrap();
    for _ in 0..30 {
        let key = Key { table: FIRST_TABLE + random.below(2), row: row(random) };
        assert_eq!(index.places_of(key).unwrap(), model.places_of(key), "{key:?}");
    }
    for table in 0..3 {
        let row = random.below(model.entries.last().map_or(1, |entry| entry.place + 100));
        let expected = model.records.range((table, 0)..=(table, row)).next_back();
        let found = index.record_at(Key { table, row }).unwrap();
        let found = found.map(|record| (record.row, record.numbers));
        assert_eq!(found, expected.map(|((_, row), numbers)| (*row, numbers.clone())));
        let mut all = Vec::new();
        index
            .records_back(Key { table, row }, &mut |record| {
                all.push(record.row);
                true
            })
            .unwrap();
        let expected = model.records.range((table, 0)..=(table, row)).rev();
        assert_eq!(all, expected.map(|((_, row), _)| *row).collect::<Vec<_>>());
    }
}

#[test]
fn it_finds_what_was_added_whenever_it_is_saved() {
    for seed in 0..40 {
        let mut random = Rng::new(seed);
        let (mut model, mut place) = (Model::default(), 0);
        let (image, pager) = TestImage::new(u64::MAX, random.percent(50));
        let mut index = HistoryIndex::default();
        for _ in 0..random.below(12) {
            let new = step(&mut random, &mut model, &mut place);
            index.add(new, vec![1]).unwrap();
            compare(&index, &model, &mut random);
            if random.percent(50) {
                let saved = image.save(&pager, |out| index.save(out));
                index.rebase(&saved);
                let loaded = load(&saved, &pager, HistoryIndex::load).unwrap();
                compare(&loaded, &model, &mut random);
                assert!(loaded.is_over(&loaded.clone()));
                assert!(loaded.entries() == 0 || !loaded.is_over(&index));
                if random.percent(50) {
                    index = loaded;
                }
                compare(&index, &model, &mut random);
            }
        }
        // A filter leaves what it should.
        let least = random.below(place + 1);
        let left = index.filtered(&|entry| entry.count == 0 || entry.place >= least, vec![2]);
        model.entries.retain(|entry| entry.place >= least);
        compare(&left.unwrap(), &model, &mut random);
    }
}

#[test]
fn damaged_nodes_are_errors_or_nothing() {
    let mut random = Rng::new(5);
    let (mut model, mut place) = (Model::default(), 0);
    let mut index = HistoryIndex::default();
    for _ in 0..4 {
        index.add(step(&mut random, &mut model, &mut place), vec![1]).unwrap();
    }
    for number in 0..index.next {
        let good = index.node(number).unwrap();
        for _ in 0..200 {
            let mut bytes = good.to_vec();
            let at = random.index(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
            bytes.truncate(bytes.len() - random.index(3));
            let mut bad = index.clone();
            bad.nodes.put(usize::try_from(number).unwrap(), bytes.into());
            let key = Key { table: FIRST_TABLE, row: row(&mut random) };
            let _ = bad.places_of(key);
            let _ = bad.record_at(Key { table: 1, row: place });
            let _ = bad.check();
            let _ = bad.add(vec![Entry { key, count: 1, place: place + 1 }], vec![1]);
        }
    }
}

#[test]
fn inner_nodes_are_laid_out_as_documented() {
    let base = Child { first: Key::default(), end: Key::default(), node: 0 };
    let encode = |child: &Child| node::encode(&[*child]).to_vec();
    let variants = variants![base, encode;
        "first_table": first.table = u64::MAX,
        "first_row": first.row = u64::MAX,
        "end_table": end.table = u64::MAX,
        "end_row": end.row = u64::MAX,
        "node": node = u64::MAX,
    ];
    let bytes = encode(&base);
    compare_fields("Nodes of the history index", &bytes, &variants, bytes.len());
}
