//! A state that is opened again without a lost page is the same state, whatever else is under way.

use annals::{BackfillMode, Database, Options, Pending, Result, ValueRef};

use super::damage::{
    OBJECTS, TAG, UNIT, ask, content, copy, expected, flip, go_on, make, reported,
};
use super::image_of;

fn submit<'db>(db: &'db Database, text: &str) -> Result<Pending<'db>> {
    let mut tx = db.begin()?;
    tx.insert(TAG, &[ValueRef::String(text), ValueRef::Float64(1.0)])?;
    tx.submit()
}

/// One read fails, however much is lost: the root that is chosen then is verified.
#[test]
fn much_may_be_damaged_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    let sound = std::fs::read(image_of(&path)).unwrap();
    let mut lost = 0;
    for every in [2, 5, 20, 60] {
        let mut image = sound.clone();
        for unit in (OBJECTS..image.len()).step_by(UNIT).skip(every / 2).step_by(every) {
            image[unit + 200] ^= 1;
        }
        let path = copy(&path, folder.path(), &image);
        let db = Options::new().background(false).open(&path).unwrap();
        lost += usize::from(ask(&expected, || content(&db.read())));
        assert!(!reported(&db).is_empty());
        db.close().unwrap();
        let _ = std::fs::remove_file(path.with_file_name("b.annals-image-damaged"));
    }
    assert!(lost > 0, "each opening found it");
}

/// The published state, and those of the commits that wait, lie over the lost page.
#[test]
fn commits_that_wait_for_their_flush_are_shown_without_the_page_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let sound = std::fs::read(image_of(&path)).unwrap();
    let copied = || copy(&path, folder.path(), &sound);
    let mut states = vec![expected(&path)];
    let db = Options::new().background(false).open(copied()).unwrap();
    for text in ["one", "two"] {
        submit(&db, text).unwrap().wait().unwrap();
        states.push(content(&db.read()).unwrap());
    }
    drop(db);
    let mut lost = 0;
    for at in (OBJECTS..sound.len()).step_by(5 * UNIT) {
        let path = copied();
        let db = Options::new().background(false).open(&path).unwrap();
        flip(&image_of(&path), at + 4);
        // An insert looks at some pages.
        let Ok(one) = submit(&db, "one") else { continue };
        let Ok(two) = submit(&db, "two") else { continue };
        if ask(&states[0], || content(&db.read())) {
            lost += 1;
        }
        one.wait().unwrap();
        two.wait().unwrap();
        assert!(content(&db.read()).unwrap() == states[2], "{at}");
        db.close().unwrap();
    }
    assert!(lost > 5, "{lost}");
}

/// Others have brought the image beyond the state that is opened again, and that is opened from a root before.
#[test]
fn who_is_behind_the_image_stays_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let before = expected(&path);
    let (mut lost, mut replayed) = (0, 0);
    let sound = std::fs::read(image_of(&path)).unwrap();
    for at in (OBJECTS..sound.len()).step_by(4 * UNIT) {
        let path = copy(&path, folder.path(), &sound);
        let open = || Options::new().shared(true).open(&path).unwrap();
        let (one, two) = (open(), open());
        let reader = Options::new().shared(true).open_read_only(&path).unwrap();
        go_on(&two, 4, 0);
        two.backfill(BackfillMode::Full).unwrap();
        let after = content(&two.read()).unwrap();
        drop(two);
        flip(&image_of(&path), at + 4);
        for is_lost in
            [ask(&before, || content(&one.read())), ask(&before, || content(&reader.read()))]
        {
            lost += usize::from(is_lost);
        }
        let damage = [one.image_damage(), reader.image_damage()].concat();
        replayed += damage.iter().filter(|it| it.contains("the journal was replayed")).count();
        ask(&after, || content(&one.pull()?));
        ask(&after, || content(&reader.pull()?));
    }
    assert!(lost > 5 && replayed < lost / 2, "{lost} lost, {replayed} replayed");
}

/// Programs that ask once and end: one that verifies meets no lost page, and one that writes leaves none to the next.
#[test]
fn a_page_that_was_lost_once_is_lost_to_no_other_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    let sound = std::fs::read(image_of(&path)).unwrap();
    let mut lost = 0;
    for at in (OBJECTS..sound.len()).step_by(3 * UNIT) {
        let path = copy(&path, folder.path(), &sound);
        flip(&image_of(&path), at + 4);
        let verifying = Options::new().verify_image(true).open_read_only(&path).unwrap();
        assert!(content(&verifying.read()).unwrap() == expected, "{at}");
        let db = Options::new().background(false).open(&path).unwrap();
        let is_lost = ask(&expected, || content(&db.read()));
        db.close().unwrap();
        if is_lost {
            lost += 1;
            let next = Options::new().open_read_only(&path).unwrap();
            assert!(content(&next.read()).unwrap() == expected, "{at}");
            assert_eq!(next.image_damage(), Vec::<String>::new(), "{at}");
        }
    }
    assert!(lost > 5, "{lost}");
}
