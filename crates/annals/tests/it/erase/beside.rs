//! What is erased besides the values of the journal, and what is left.

use std::sync::Arc;

use annals::reports::Older;
use annals::storage::Directory;
use annals::{BackfillMode, ErrorKind};
use annals_simulated::{SimulatedClock, SimulatedDisk};
use annals_tools::Erase;
use annals_tools::scan_in;

use super::{
    IMAGE, Log, NAME, NOW, SECRET, define, erase, journal, leaks, log, of, options, others, secret,
    try_open,
};

#[test]
fn what_only_has_the_name_of_a_file_beside_the_journal_is_left_and_named() {
    let disk = SimulatedDisk::new(1);
    journal(&disk, Older::Kept);
    let other = SimulatedDisk::new(2);
    let clock = Arc::new(SimulatedClock::new(8));
    options().open_in(Arc::new(other.clone()), NAME, clock).unwrap().write(define).unwrap();
    let other = other.content(NAME).unwrap();
    let strange = [
        ("db-image-damaged", &other[..]),
        ("db-segment-000007", &other),
        ("db.before-recovery-3-0123456789abcdef", &other),
        ("db.next-fedcba9876543210", b"somebody's notes"),
        ("db.tail-7-0123456789abcdef", b"of a history that isn't this one"),
    ];
    let image = disk.content(IMAGE).unwrap();
    for (name, content) in strange {
        disk.install(name, content).unwrap();
    }
    let planned = erase(&disk, &Erase { dry_run: true, ..of("person", 1, None) }).unwrap();
    assert_eq!(planned.unproven, strange.map(|(name, _)| disk.display(name)));
    assert!(planned.removed.contains(&disk.display(IMAGE)), "{:?}", planned.removed);
    assert_eq!(disk.content(IMAGE).unwrap(), image, "nothing was done");
    assert_eq!(erase(&disk, &of("person", 1, None)).unwrap(), planned);
    for (name, content) in strange {
        assert!(disk.content(name).unwrap() == content, "{name}");
    }
    for name in &planned.removed {
        assert!(disk.list().unwrap().iter().all(|left| disk.display(left) != *name), "{name}");
    }
    assert_eq!(leaks(&disk), [] as [&str; 0]);
}

#[test]
fn comments_are_erased_on_request_with_what_they_were_written_with() {
    let disk = SimulatedDisk::new(1);
    let database = try_open(&disk).unwrap();
    database.write(define).unwrap();
    let comment = |text: &str| database.write(|tx| tx.comment(text)).unwrap();
    database.write(|tx| others(tx, 1)).unwrap();
    comment("nobody is named here");
    database
        .write(|tx| {
            tx.comment("Anastasia came")?;
            secret(tx)
        })
        .unwrap();
    database.restart(Older::Kept, NOW).unwrap();
    comment("Anastasia left");
    database.close().unwrap();
    let comments = |disk: &SimulatedDisk| {
        let events = log(disk).events.join("\n");
        let lines = events.lines().filter(|line| line.starts_with("comment"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = comments(&disk);
    assert_eq!(before.len(), 4);
    let what = Erase { comments: true, ..of("person", 1, None) };
    let planned = erase(&disk, &Erase { dry_run: true, ..what.clone() }).unwrap();
    assert_eq!(planned.comments, 2);
    assert_eq!(erase(&disk, &what).unwrap(), planned);
    let erased = r#"comment "erased: table person, row 1""#;
    let empty = r#"comment """#;
    assert_eq!(comments(&disk), [&before[0], empty, empty, &before[3], erased]);
    // The values are gone by now; a comment elsewhere may still name the person.
    let what = Erase { comments_of: vec![5], ..of("person", 1, None) };
    let done = erase(&disk, &what).unwrap();
    assert_eq!((done.comments, done.values, done.held, done.segments), (1, 0, (5, 5), 1));
    assert_eq!(comments(&disk), [&before[0], empty, empty, empty, erased, erased]);
    let error = erase(&disk, &what).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn old_files_are_overwritten_before_they_are_removed_if_that_is_asked_for() {
    for overwrite in [true, false] {
        let disk = SimulatedDisk::new(1);
        journal(&disk, Older::Kept);
        let names = disk.list().unwrap();
        // Whoever has them open sees what becomes of them.
        let open: Vec<_> = names
            .iter()
            .filter(|name| leaks(&disk).contains(name))
            .map(|name| (name, disk.open(name, annals::storage::Access::Read).unwrap()))
            .collect();
        assert!(open.len() > 3, "{names:?}");
        erase(&disk, &Erase { overwrite, ..of("person", 1, None) }).unwrap();
        assert_eq!(leaks(&disk), [] as [&str; 0]);
        for (name, file) in open {
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
            file.read_at(0, &mut bytes).unwrap();
            let secret = &SECRET.as_bytes()[5..25];
            let is_there = bytes.windows(secret.len()).any(|found| found == secret);
            assert!(!overwrite || !is_there, "{name}");
            assert!(overwrite || is_there || !name.starts_with("db-segment"), "{name}");
        }
        assert!(try_open(&disk).is_ok());
    }
}

/// The image, which erasing removes, may be all that is left of what an older copy of the journal lacks.
#[test]
fn an_older_copy_of_the_journal_beside_its_image_is_refused() {
    let disk = SimulatedDisk::new(1);
    let database = try_open(&disk).unwrap();
    database.write(define).unwrap();
    database.write(|tx| others(tx, 1)).unwrap();
    database.hard_checkpoint().unwrap();
    let older = disk.content(NAME).unwrap();
    database.write(|tx| others(tx, 2)).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    disk.install(NAME, &older).unwrap();
    let image = disk.content(IMAGE);
    for dry_run in [true, false] {
        let error = erase(&disk, &Erase { dry_run, ..of("person", 0, None) }).unwrap_err();
        assert!(error.to_string().contains("but the image beside it stands for"), "{error}");
    }
    assert_eq!((disk.content(NAME), disk.content(IMAGE)), (Some(older), image));
    // Nor is the rest of it told as if it were all.
    let error = scan_in(&annals::Options::new(), &disk, NAME, &mut Log::default()).unwrap_err();
    assert!(error.to_string().contains("but the image beside it stands for"), "{error}");
}
