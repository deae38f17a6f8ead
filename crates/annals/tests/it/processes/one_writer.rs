//! Other processes: one writer among all, readers beside it, and a writer that is killed.

use std::path::Path;

use annals::{Database, ErrorKind, Level, Options, ValueRef};

use super::child::{self, Child};
use crate::hostile::journals::{CITY, Log, city_named, schema};

const COMMITS: u64 = 400;

/// Opens the database, commits, says so, and waits.
#[test]
fn child_that_writes() {
    let Some(job) = child::job() else { return };
    let database = Options::new().level(Level::Soft).open_schema(&job[0], &schema()).unwrap();
    for number in 0..COMMITS {
        let name = format!("city {number}");
        let values = [ValueRef::String(&name), ValueRef::Null];
        database.write(|transaction| transaction.insert(CITY, &values)).unwrap();
        if number == 0 {
            child::say("writing");
        }
    }
    child::say("written");
    child::wait_for_the_parent();
}

fn start_writer(path: &Path) -> Child {
    Child::start("processes::one_writer::child_that_writes", &[path.to_str().unwrap()])
}

#[test]
fn a_second_writer_in_another_process_is_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.annals");
    let mut writer = start_writer(&path);
    writer.wait_for("written");
    let error = Database::open(&path).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let text = error.to_string();
    assert!(text.contains(&format!("process {}", writer.pid())), "{text}");
    assert!(text.contains("open read-only") && text.contains(path.to_str().unwrap()), "{text}");
    assert_eq!(annals_tools::inspect(&Options::new(), &path).unwrap().holder(), Some(writer.pid()));
    assert!(writer.end().success());
    let database = Database::open(&path).unwrap();
    assert!(!database.recovered().unclean);
    assert_eq!(database.read().table(CITY).unwrap().len(), COMMITS);
}

#[test]
fn reading_while_another_process_writes_gives_whole_commits_and_never_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("moving.annals");
    let mut writer = start_writer(&path);
    writer.wait_for("writing");
    let (mut last, mut looks) = (0, 0);
    while last < COMMITS + 1 && looks < 20_000 {
        let snapshot = Options::new().open_read_only(&path).unwrap().read();
        let rows = snapshot.table(CITY).unwrap().len();
        assert_eq!(snapshot.txid(), annals::Txid(rows + 1), "a commit is whole");
        assert!(
            snapshot.txid() >= annals::Txid(last),
            "{last} commits were there, now {}",
            snapshot.txid()
        );
        if rows > 0 {
            assert!(city_named(&snapshot, &format!("city {}", rows - 1)).is_some());
        }
        last = snapshot.txid().0;
        let mut log = Log::default();
        annals_tools::scan(&Options::new(), &path, &mut log).unwrap();
        assert!(log.after.len() as u64 >= last);
        annals_tools::inspect(&Options::new(), &path).unwrap();
        looks += 1;
    }
    assert_eq!(last, COMMITS + 1, "after {looks} looks");
    writer.wait_for("written");
    assert!(writer.end().success());
}

#[test]
fn a_killed_writer_loses_no_acknowledged_commit_and_leaves_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.annals");
    let mut writer = start_writer(&path);
    writer.wait_for("written");
    writer.kill();
    let database = Database::open(&path).unwrap();
    assert!(database.recovered().unclean && database.recovered().cut.is_none());
    assert_eq!(database.read().table(CITY).unwrap().len(), COMMITS);
    database.close().unwrap();
    assert!(annals_tools::inspect(&Options::new(), &path).unwrap().is_closed());
}
