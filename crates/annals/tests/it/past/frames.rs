//! Key frames: that they are used, stay within their budget, divide the journal evenly, and are never needed.

use annals::storage::{Access, Directory as _, MemoryDirectory};
use annals::{BackfillMode, ErrorKind, FieldNumber, RowId, Txid, ValueRef};

use super::{IMAGE, NAME, TABLE, World, content, options};

/// Writes and brings the image forward, so often.
fn grow(world: &mut World, rounds: usize) {
    for _ in 0..rounds {
        world.change();
        world.database().backfill(BackfillMode::Passive).unwrap();
    }
}

/// Makes zeros of a part of a file, which starts at this position, and is so long.
fn wipe(directory: &MemoryDirectory, name: &str, from: u64, len: usize) {
    let file = directory.open(name, Access::Write).unwrap();
    file.write_at(from, &vec![0; len]).unwrap();
}

/// What only key frames reach is there as long as they are.
pub(crate) fn kept() -> Result<(), String> {
    let mut world = World::new(1, options());
    for _ in 0..20 {
        grow(&mut world, 3);
        world.reopen();
        grow(&mut world, 2);
        if let Some(problem) = world.problem() {
            return Err(problem);
        }
    }
    match world.key_frames().len() {
        0..20 => Err(format!("only these are kept: {:?}", world.key_frames())),
        _ => Ok(()),
    }
}

#[test]
fn what_key_frames_reach_is_not_written_over() {
    kept().unwrap();
}

#[test]
fn what_is_before_a_key_frame_is_not_read() {
    let mut world = World::new(2, options());
    world.writes_blobs = false; // they stay in the journal
    grow(&mut world, 20);
    let frames = world.key_frames();
    assert_eq!(frames.len(), 19, "{frames:?}");
    // The journal of the first half is gone.
    let len = world.directory.open(NAME, Access::Read).unwrap().len().unwrap();
    let half = usize::try_from(len - 16384).unwrap() / 2;
    wipe(&world.directory, NAME, 16384, half);
    let mut found = 0;
    for (&txid, expected) in &world.states {
        match world.database().as_it_was(Txid(txid)) {
            Ok(then) => {
                assert!(content(&then) == *expected, "transaction {txid}");
                found += 1;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
        }
    }
    assert_eq!(found, 21, "those with a key frame need nothing before it");
}

#[test]
fn key_frames_stay_within_their_budget_and_divide_the_journal() {
    for budget in [0, 100 << 10, 1 << 20] {
        let mut world = World::new(3, options().key_frames(budget));
        grow(&mut world, 60);
        let frames = world.key_frames();
        assert_eq!(frames.is_empty(), budget == 0, "{budget}: {frames:?}");
        let check = world.check().unwrap();
        assert_eq!(check.problem, None);
        let gaps: Vec<_> = frames.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        let (least, most) = (gaps.iter().min(), gaps.iter().max());
        // Where one is taken away, its gap is twice as wide; transactions are of different lengths.
        assert!(
            frames.len() < 3 || least.unwrap() * 6 >= *most.unwrap(),
            "{budget}: {frames:?} have the gaps {gaps:?}"
        );
        let fresh = {
            let mut world = World::new(3, options().key_frames(0));
            grow(&mut world, 60);
            world.check().unwrap().used
        };
        let most = fresh + budget + (64 << 10);
        assert!(check.used <= most, "{} bytes, without {fresh}", check.used);
        world.look(true);
    }
}

#[test]
fn damaged_key_frames_are_passed_over() {
    let mut world = World::new(4, options());
    grow(&mut world, 12);
    let image = world.directory.open(IMAGE, Access::Write).unwrap();
    let len = image.len().unwrap();
    // Each unit after the head in turn: of some frame, of several, or the list.
    for unit in (3..len / 4096).step_by(3) {
        let mut before = vec![0; 4096];
        image.read_at(unit * 4096, &mut before).unwrap();
        image.write_at(unit * 4096, &[0xAA; 4096]).unwrap();
        for (&txid, expected) in world.states.iter().step_by(5) {
            let then = || world.database().as_it_was(Txid(txid)).unwrap();
            // A read that needs the unit fails; then another root is taken.
            if let Err(error) = then().check() {
                assert_eq!(error.kind(), ErrorKind::PageLost, "unit {unit}: {error}");
            }
            assert!(content(&then()) == *expected, "unit {unit}, transaction {txid}");
        }
        image.write_at(unit * 4096, &before).unwrap();
    }
    // And without any image.
    let _ = world.directory.remove(IMAGE); // it was set aside where all roots were damaged
    world.look(true);
}

#[test]
fn forgotten_history_leaves_no_key_frames() {
    let mut world = World::new(5, options());
    grow(&mut world, 10);
    world.restart(false);
    grow(&mut world, 5);
    assert!(world.key_frames().len() >= 15, "{:?}", world.key_frames());
    world.look(true);
    let first = *world.states.keys().last().unwrap();
    world.restart(true);
    let frames = world.key_frames();
    assert!(
        frames.iter().all(|txid| *txid >= annals::Txid(first)),
        "{frames:?} of forgotten history"
    );
    for txid in [0, 3, first - 1] {
        let error = world.database().at(Txid(txid)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().ends_with(&format!(" after transaction {first}")), "{error}");
    }
    grow(&mut world, 3);
    world.look(true);
}

/// What SQLite 3.46 takes for the rows of [`many`] with their index, in bytes.
const SQLITE: u64 = 2_097_152;

/// Inserts 20,000 rows.
fn many(world: &mut World) {
    world.write(|tx| {
        for row in 0..20_000 {
            let name =
                format!("account {} of the branch in street {}", row * 7919 % 20_000, row % 97);
            let number = ValueRef::Int64(row * 1_000_003 % 1_000_000);
            tx.insert(TABLE, &[ValueRef::String(&name), number, ValueRef::Null])?;
        }
        Ok(())
    });
}

#[test]
fn closing_leaves_an_image_without_gaps_and_with_all_key_frames() {
    for budget in [0, 2 << 20] {
        let mut world = World::new(8, options().key_frames(budget));
        many(&mut world);
        for round in 0..6 {
            world.write(|tx| {
                let mut rows = (round..20_000).step_by(50).map(RowId);
                rows.try_for_each(|id| {
                    let name = format!("account {} of the branch in street {round}", id.0);
                    tx.update(TABLE, id, FieldNumber(0), ValueRef::String(&name))
                })
            });
            world.database().backfill(BackfillMode::Passive).unwrap();
        }
        let (before, frames) = (world.check().unwrap(), world.key_frames());
        assert_eq!(frames.is_empty(), budget == 0);
        world.reopen();
        let after = world.check().unwrap();
        assert!(after.len + (1 << 20) <= before.len, "{} of {} bytes", after.len, before.len);
        assert_eq!((after.free, after.txid), (0, before.txid));
        assert_eq!(world.key_frames(), frames);
        assert!((after.len - budget) * 10 <= SQLITE * 13, "{} bytes", after.len);
        // What the copies of key frames reach isn't written over either.
        grow(&mut world, 3);
        assert_eq!(world.problem(), None);
        assert_eq!(world.key_frames().is_empty(), budget == 0);
        world.look(true);
    }
}
