//! Every engine keeps its rows, in every shape.

use super::*;

const ROWS: u64 = 300;
const LEVELS: [Level; 2] = [Level::Soft, Level::Durable];
const SHAPES: [Shape; 2] = [Shape::Small, Shape::Named];

#[test]
fn names_are_scattered_and_all_different() {
    let mut names: Vec<_> = (0..10_000).map(name).collect();
    assert!(!names.is_sorted());
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 10_000);
}

/// Inserts and updates by each operation that changes rows; returns how many rows there are then.
fn change(engine: &dyn Engine, folder: &Path, shape: Shape) -> u64 {
    engine.fill(folder, shape, ROWS).unwrap();
    let mut table = engine.open(folder, shape).unwrap();
    let mut rows = ROWS;
    let mut next = |count| {
        rows += count;
        rows - count..rows
    };
    let ids = next(2);
    table.insert(ids.clone(), &shape.names(ids)).unwrap();
    for level in LEVELS {
        let Some(mut writer) = table.writer(level).unwrap() else { continue };
        let ids = next(3);
        writer.insert(ids.clone(), &shape.names(ids)).unwrap();
        writer.update(&[5, ROWS], 6).unwrap();
    }
    table.update(&[3, ROWS, 3], 7).unwrap();
    table.close().unwrap();
    engine.forget(folder).unwrap();
    rows
}

#[test]
fn every_engine_keeps_what_it_was_told() {
    for (key, engine) in ENGINES {
        for shape in SHAPES {
            let folder = tempfile::tempdir().unwrap();
            let rows = change(*engine, folder.path(), shape);
            let mut table = engine.open(folder.path(), shape).unwrap();
            let mut named: Vec<_> = Vec::new();
            for id in 0..rows {
                let version = [(3, 7), (ROWS, 7), (5, 6)].iter().find(|(row, _)| *row == id);
                let expected = value(id, version.map_or(0, |(_, version)| *version));
                assert_eq!(table.read(&[id]).unwrap(), expected, "{key}: row {id}");
                assert!(is_value_of(id, expected) && !is_value_of(id + 1, expected));
                named.push((name(id), expected));
            }
            let sum: i64 = named.iter().map(|(_, value)| value).sum();
            assert_eq!(table.scan().unwrap(), sum, "{key}");
            assert!(table.read(&[rows]).is_err(), "{key}");
            if shape == Shape::Named {
                let names: Vec<_> = named.iter().map(|(name, _)| name.clone()).collect();
                assert_eq!(table.find(&names).unwrap(), sum, "{key}");
                named.sort_unstable();
                let ordered = named.iter().fold(0, |sum, (_, value)| in_order(sum, *value));
                assert_eq!(table.scan_by_name().unwrap(), ordered, "{key}");
            }
            assert!(table.find(&[name(rows)]).is_err(), "{key}");
            table.close().unwrap();
        }
    }
}

#[test]
fn every_engine_commits_from_several_threads() {
    for (key, engine) in ENGINES {
        let folder = tempfile::tempdir().unwrap();
        let mut table = engine.create(folder.path(), Shape::Small).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mut writer = table.writer(Level::Durable).unwrap().unwrap();
                scope.spawn(move || {
                    for id in thread * 10..(thread + 1) * 10 {
                        writer.insert(id..id + 1, &Names::SHORT).unwrap();
                    }
                });
            }
        });
        assert_eq!(table.scan().unwrap(), (0..40).sum::<i64>(), "{key}");
        table.close().unwrap();
    }
}
