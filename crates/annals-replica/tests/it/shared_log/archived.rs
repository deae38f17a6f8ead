//! A log whose messages an archive has, too: they are removed from the log, or were lost there.

use std::path::Path;
use std::sync::Arc;

use annals::ErrorKind;
use annals_replica::archive::{Archive, Bucket, Uploader};
use annals_replica::frames::Source;
use annals_replica::shared_log::Log as _;
use annals_storage::MemoryDirectory;

use super::simulated::{Faults, Simulated};
use super::{Member, add, create};

fn bucket(folder: &Path) -> Bucket {
    Bucket::open(&format!("file://{}", folder.display())).expect("a folder")
}

fn archive(folder: &Path) -> Arc<Archive> {
    Arc::new(Archive::new(bucket(folder)))
}

/// Uploads all that a node has.
fn upload(member: &Member, folder: &Path) {
    let source = Source::new(member.replica.database().clone());
    let mut uploader = Uploader::open(bucket(folder), &source).expect("an uploader");
    uploader.upload(&source).expect("it is uploaded");
}

fn begun(additions: u64) -> (Simulated, Member) {
    let log = Simulated::new(5, Faults::default());
    let member = Member::join(Arc::new(log.clone())).expect("a node");
    member.replica.transaction(create).expect("the schema");
    write(&member, 0..additions);
    (log, member)
}

fn write(member: &Member, numbers: std::ops::Range<u64>) {
    for number in numbers {
        member.replica.transaction(|tx| add(tx, &format!("{number}"))).expect("an addition");
    }
}

fn join(log: &Simulated, folder: &Path) -> annals::Result<Member> {
    Member::open_with(MemoryDirectory::new(), Arc::new(log.clone()), Some(archive(folder)))
}

#[test]
fn messages_leave_the_log_when_the_archive_has_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, member) = begun(10);
    let slow = join(&log, folder.path()).expect("without an archive yet");
    log.poison(b"garbage".to_vec());
    write(&member, 10..50);
    let before = log.extent().expect("an extent");
    let trim = |keep| member.log.trim(&*archive(folder.path()), keep);
    assert_eq!(trim(0).expect_err("no archive").kind(), ErrorKind::NotFound);
    upload(&member, folder.path());
    let archived = member.cursor();
    write(&member, 50..60);

    // Not what is to be kept, and not what came after the upload.
    let trimmed = trim(20).expect("it is trimmed");
    assert_eq!(
        (trimmed.first, log.extent().expect("an extent").first),
        (before.last - 10, before.last - 10)
    );
    let trimmed = trim(0).expect("it is trimmed");
    assert_eq!((trimmed.first, trimmed.txid), (before.last, archived.txid));
    assert_eq!(trim(0).expect("nothing new").removed, 0);

    let refused = Member::join(Arc::new(log.clone())).err().expect("its beginning isn't there");
    assert_eq!(refused.kind(), ErrorKind::Forgotten, "{refused}");
    assert!(refused.to_string().contains("archive"), "{refused}");
    let new = join(&log, folder.path()).expect("from the archive");
    assert_eq!(new.cursor(), member.cursor());
    slow.replica.pull().expect("from the archive, then from the log");
    assert_eq!(slow.cursor(), member.cursor());
    assert!(slow.log.counts().archived > 0, "{:?}", slow.log.counts());
    new.replica.transaction(|tx| add(tx, "more")).expect("an addition");
    member.replica.pull().expect("a pull");
    assert_eq!(new.cursor(), member.cursor());
}

#[test]
fn nothing_leaves_the_log_for_an_archive_that_differs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, member) = begun(20);
    upload(&member, folder.path());
    let frames = std::fs::read_dir(folder.path().join("frames")).expect("ranges");
    let largest = frames
        .map(|entry| entry.expect("a file").path())
        .max_by_key(|path| path.metadata().expect("a length").len());
    let path = largest.expect("a range");
    let whole = std::fs::read(&path).expect("its bytes");
    let mut bytes = whole.clone();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).expect("its bytes");
    let refused = member.log.trim(&*archive(folder.path()), 0).expect_err("a flipped bit");
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    assert_eq!(log.extent().expect("an extent").first, 1);

    // Whole, and of another journal.
    std::fs::write(&path, whole).expect("its bytes");
    let (other_log, other) = begun(20);
    let done = other.log.trim(&*archive(folder.path()), 0);
    assert!(done.is_err() || done.is_ok_and(|trimmed| trimmed.removed == 0));
    assert_eq!(other_log.extent().expect("an extent").first, 1);
    let refused = join(&other_log, folder.path()).err().expect("it is another journal");
    assert_eq!(refused.kind(), ErrorKind::Diverged, "{refused}");
    let empty = Simulated::new(6, Faults::default());
    let refused = join(&empty, folder.path()).err().expect("the log is empty");
    assert_eq!(refused.kind(), ErrorKind::Diverged, "{refused}");
}

#[test]
fn a_message_that_no_replica_has_comes_from_the_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, member) = begun(5);
    let slow = join(&log, folder.path()).expect("a node");
    write(&member, 5..30);
    upload(&member, folder.path());
    write(&member, 30..40);
    for lost in [10, 20, 21] {
        log.lose(lost);
    }
    slow.replica.pull().expect("what is lost is in the archive");
    assert_eq!(slow.cursor(), member.cursor());
    assert!(slow.log.counts().archived > 0, "{:?}", slow.log.counts());
}
