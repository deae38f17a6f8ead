//! An image's life: created, updated, opened, shrunk, renamed as damaged.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::world::{IDENTITY, NAME, World, change, object, open, point};
use crate::ErrorKind;
use crate::image::catalog::Kind;
use crate::image::file::Image;
use crate::image::format::{Identity, MAX_HEIGHT, OBJECTS_AT, UNIT};
use crate::image::open::Opened;
use crate::image::publish::NewRoot;
use crate::image::stored::{Source, Stored};
use annals_simulated::{Fault, Rng, SimulatedDisk};
use annals_storage::{Access, Directory, MemoryDirectory};

pub(super) const HEIGHTS: [(u8, Kind); 4] =
    [(1, Kind::Pages), (2, Kind::Pages), (1, Kind::Bytes), (0, Kind::Bytes)];

fn memory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

/// Draws some changes of arrays as [`HEIGHTS`] has them.
pub(super) fn draw(
    rng: &mut Rng,
    count: usize,
) -> BTreeMap<usize, super::super::miniature::Changes> {
    let numbers = [64, 4096, 64, 1];
    let longest = [16384, 5000, 70_000, 9000];
    let mut changes = Vec::new();
    for _ in 0..count {
        let array = rng.index(4);
        let bytes = object(1 + rng.index(longest[array]), rng.number());
        changes.push((array, rng.index(numbers[array]) as u64, rng.percent(80).then_some(bytes)));
    }
    change(&changes)
}

#[test]
fn it_holds_what_a_map_would() {
    let mut rng = Rng::new(5);
    for round in 0..20 {
        let mut world = World::create(memory(), &HEIGHTS).unwrap();
        let mut longest = 0;
        for txid in 1..30 {
            let count = rng.index(12);
            world.advance(txid, &draw(&mut rng, count), None).unwrap();
            world.check();
            if rng.percent(20) {
                world.reopen();
            }
            if rng.percent(20) {
                world.image.shrink(None).unwrap();
                world.check();
            }
            longest = longest.max(world.image.len().unwrap());
        }
        // Space is reused: the total of all writes is several times as much.
        assert!(longest < 3 << 20, "round {round}: {longest}");
    }
}

#[test]
fn nothing_has_the_name_before_its_first_root() {
    let directory = memory();
    let mut world = World::create(Arc::clone(&directory), &HEIGHTS).unwrap();
    assert!(matches!(
        Image::open(&directory, NAME, &IDENTITY, Access::Write).unwrap(),
        Opened::Missing
    ));
    assert_eq!(directory.list().unwrap().len(), 1, "the temporary file");
    world.advance(1, &BTreeMap::new(), None).unwrap();
    assert_eq!(directory.list().unwrap(), [NAME]);
    let error = World::create(Arc::clone(&directory), &HEIGHTS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse);
    drop(world);
    directory.remove(NAME).unwrap();
    drop(World::create(Arc::clone(&directory), &HEIGHTS).unwrap());
    assert!(directory.list().unwrap().is_empty(), "what got no root leaves nothing");
    directory.create(&format!("{NAME}.new-0123456789abcdef")).unwrap();
    let world = World::create(Arc::clone(&directory), &HEIGHTS).unwrap();
    assert_eq!(directory.list().unwrap().len(), 1, "a leftover is removed");
    drop(world);
}

#[test]
fn the_highest_array_reaches_every_number() {
    let mut world = World::create(memory(), &[(MAX_HEIGHT, Kind::Bytes)]).unwrap();
    let numbers = [0, 1, 1 << 33, u64::MAX];
    let changes = numbers.map(|number| (0, number, Some(object(10, number))));
    world.advance(1, &change(&changes), None).unwrap();
    world.check();
    assert_eq!(world.model[0].len(), 4);
}

#[test]
fn what_is_read_is_verified() {
    let mut world = World::create(memory(), &HEIGHTS).unwrap();
    world.advance(1, &change(&[(3, 0, Some(object(5000, 1)))]), None).unwrap();
    let stored = world.catalog.arrays[3].root.unwrap();
    let file = world.directory.open(NAME, Access::Write).unwrap();
    file.write_at(stored.place + 4999, &[object(5000, 1)[4999] ^ 8]).unwrap();
    for error in [
        world.image.read(&stored, &mut [0; 5000]).unwrap_err(),
        world.image.verify(&stored).unwrap_err(),
    ] {
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        for part in [NAME, &stored.place.to_string(), &format!("{:016x}", stored.sum)] {
            assert!(text.contains(part), "{text}");
        }
    }
    file.set_len(stored.place + 10).unwrap();
    let error = world.image.read(&stored, &mut [0; 5000]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("the file ends at"), "{error}");
}

#[test]
fn what_cannot_be_used_is_set_aside_with_its_reason() {
    let other = Identity { journal_id: [1; 16], ..IDENTITY };
    let replaced = Identity { segment_hash: 1, ..IDENTITY };
    let directory = memory();
    for (identity, reason) in [(other, "another journal"), (replaced, "another segment")] {
        let mut world = World::create(Arc::clone(&directory), &HEIGHTS).unwrap();
        world.advance(1, &BTreeMap::new(), None).unwrap();
        drop(world);
        let open = |access| Image::open(&directory, NAME, &identity, access).unwrap();
        let Opened::SetAside(aside) = open(Access::Read) else { panic!("it was used") };
        assert!(aside.reason.contains(reason) && aside.kept_as.is_none(), "{aside:?}");
        let Opened::SetAside(aside) = open(Access::Write) else { panic!("it was used") };
        let damaged = format!("{NAME}-damaged");
        assert_eq!(aside.kept_as.as_deref(), Some(&*damaged));
        assert_eq!(directory.list().unwrap(), [damaged], "also in place of an older one");
        assert!(matches!(open(Access::Write), Opened::Missing));
    }
    // A journal that was restarted since still has it.
    let mut world = World::create(Arc::clone(&directory), &HEIGHTS).unwrap();
    world.advance(1, &BTreeMap::new(), None).unwrap();
    let later = Identity { segment: 3, segment_hash: 9, ..IDENTITY };
    let opened = Image::open(&directory, NAME, &later, Access::Write).unwrap();
    assert!(matches!(opened, Opened::Usable(_)));
    for content in [&b""[..], b"text", &[0; 20000]] {
        directory.remove(NAME).unwrap();
        directory.create(NAME).unwrap().write_at(0, content).unwrap();
        let opened = Image::open(&directory, NAME, &IDENTITY, Access::Write).unwrap();
        let Opened::SetAside(aside) = opened else { panic!("it was used") };
        assert!(aside.reason.contains("header doesn't verify"), "{aside:?}");
        directory.create(NAME).unwrap();
    }
}

#[test]
fn an_image_advances_and_only_from_its_newest_root() {
    let mut world = World::create(memory(), &HEIGHTS).unwrap();
    world.advance(5, &change(&[(0, 1, Some(object(100, 1)))]), None).unwrap();
    let error = world.advance(4, &BTreeMap::new(), None).unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("go back"), "{error}");
    world.check();
    let stale = open(&world.directory);
    world.advance(6, &BTreeMap::new(), None).unwrap();
    let draft = stale.image.space(None).unwrap();
    let new =
        NewRoot { segment: 0, point: point(7), time: 0, catalog: stale.root.catalog, frames: None };
    let error = draft.publish(&new).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "the catalog isn't its own: {error}");
    let mut draft = stale.image.space(None).unwrap();
    let catalog = draft.place(b"never written", 7).unwrap();
    let error = draft.publish(&NewRoot { catalog, ..new }).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Busy | ErrorKind::Invalid), "{error}");
    world.check();
}

#[test]
fn a_failed_flush_stops_the_image() {
    let disk = SimulatedDisk::new(1);
    let mut world = World::create(Arc::new(disk.clone()), &HEIGHTS).unwrap();
    world.advance(1, &change(&[(0, 1, Some(object(100, 1)))]), None).unwrap();
    let begin = disk.operations();
    // A write of objects that fails leaves the image good; what a root rests on doesn't: the name, which
    // is flushed again, the first copy, the flush, the second copy.
    for (operation, stops) in [(0, true), (1, false), (2, true), (3, true), (4, true)] {
        let disk = disk.fork();
        disk.fail_at(begin + operation, Fault::Io);
        let directory: Arc<dyn Directory> = Arc::new(disk.clone());
        let usable = open(&directory);
        let (image, catalog) = (usable.image, usable.catalog);
        let model = world.model.clone();
        let mut again = World {
            directory,
            image,
            catalog,
            model,
            root: Some(usable.root),
            keeps_frames: false,
        };
        let changes = change(&[(1, 1, Some(object(100, 2)))]);
        let error = again.advance(2, &changes, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        let next = again.advance(3, &changes, None);
        match stops {
            false => next.unwrap(),
            true => {
                assert_eq!(next.unwrap_err().kind(), ErrorKind::Poisoned);
                let error = again.image.write(&[]).unwrap_err();
                assert!(error.to_string().contains("reopen"), "{error}");
                let root = open(&again.directory).root;
                assert!((1..=2).contains(&root.point.txid.0));
            }
        }
    }
}

#[test]
fn a_full_disk_fails_a_backfill_and_no_more() {
    let disk = SimulatedDisk::new(1);
    let mut world = World::create(Arc::new(disk.clone()), &HEIGHTS).unwrap();
    world.advance(1, &BTreeMap::new(), None).unwrap();
    disk.limit_space(20 * 4096);
    let large = change(&[(2, 1, Some(object(200_000, 2)))]);
    let error = world.advance(2, &large, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    world.check();
    world.advance(2, &change(&[(2, 1, Some(object(2000, 2)))]), None).unwrap();
    disk.free_space();
    world.advance(3, &large, None).unwrap();
    world.check();
}

#[test]
fn the_head_alone_is_all_that_an_empty_store_takes() {
    let mut world = World::create(memory(), &HEIGHTS).unwrap();
    world.advance(1, &BTreeMap::new(), None).unwrap();
    assert_eq!(world.image.len().unwrap(), OBJECTS_AT + UNIT);
}

#[test]
fn the_recipe_of_publishing_is_kept() {
    let disk = SimulatedDisk::new(1);
    let mut world = World::create(Arc::new(disk.clone()), &HEIGHTS).unwrap();
    let changes = change(&[(0, 1, Some(object(100, 1))), (0, 2, Some(object(16384, 2)))]);
    world.advance(1, &changes, None).unwrap();
    let temporary = disk.transcript().lines().next().unwrap().replace("create ", "");
    let transcript = disk.transcript().replace(&temporary, "new");
    // The objects: two pages, their node, the catalog.
    assert_eq!(
        transcript,
        "create new\n\
         write new 0..12288\n\
         write new 12288..40960\n\
         write new 4608..4800\n\
         flush new\n\
         write new 5120..5312\n\
         link new some.annals-image\n\
         remove new\n\
         flush directory\n"
    );
    disk.clear_transcript();
    world.advance(2, &change(&[(0, 1, Some(object(100, 3)))]), None).unwrap();
    world.advance(3, &change(&[(0, 1, Some(object(100, 4)))]), None).unwrap();
    // Only now no root on disk reaches what the first one alone did.
    world.advance(4, &change(&[(0, 1, Some(object(100, 5)))]), None).unwrap();
    world.reopen();
    world.image.shrink(None).unwrap();
    assert_eq!(
        disk.transcript(),
        "write some.annals-image 40960..53248\n\
         write some.annals-image 8704..8896\n\
         flush some.annals-image\n\
         write some.annals-image 9216..9408\n\
         write some.annals-image 53248..65536\n\
         write some.annals-image 4608..4800\n\
         flush some.annals-image\n\
         write some.annals-image 5120..5312\n\
         write some.annals-image 12288..16384\n\
         write some.annals-image 32768..40960\n\
         write some.annals-image 8704..8896\n\
         flush some.annals-image\n\
         write some.annals-image 9216..9408\n"
    );
}

#[test]
fn an_object_at_a_wrong_place_does_not_verify() {
    let bytes = object(64, 9);
    assert_ne!(Stored::sum_of(12288, &bytes), Stored::sum_of(16384, &bytes));
}
