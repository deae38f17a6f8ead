//! Forks while other threads ask with SQL. The test starts this binary again, for forks concern whole processes.

#![cfg(unix)]
#![allow(unsafe_code, reason = "to fork is unsafe: another thread might hold a lock for ever")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use annals::{Database, ErrorKind};
use annals_sql::{Connection, Parameters, SqlError, Value};

const SCENE: &str = "ANNALS_TEST_SQL_FORK";
/// A child that hangs is killed after so many seconds.
const PATIENCE: u32 = 20;

fn ask(database: &Database) -> Result<Vec<Vec<Value>>, SqlError> {
    Connection::open(database.clone())?
        .rows("SELECT max(txid), upper(hex(randomblob(8))) > '' FROM annals_log", &Parameters::None)
}

/// The other half of the test below.
#[test]
fn actor() {
    if std::env::var_os(SCENE).is_none() {
        return;
    }
    let is_full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let forks = if is_full { 300 } else { 100 };
    let database = Database::in_memory().unwrap();
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    ask(&database).unwrap();
                }
            });
        }
        let all = catch_unwind(AssertUnwindSafe(|| (0..forks).for_each(|_| fork(&database))));
        end.store(true, Ordering::Relaxed);
        all.unwrap();
    });
}

fn fork(database: &Database) {
    // SAFETY: the child uses memory, which the C library makes ready for it, and ends without returning; locks that
    // other threads held are what is tested.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: its signal ends the child.
        unsafe { libc::alarm(PATIENCE) };
        let went_well = catch_unwind(AssertUnwindSafe(|| {
            let refused = annals::Error::from(ask(database).unwrap_err());
            assert_eq!(refused.kind(), ErrorKind::Poisoned, "{refused}");
            assert!(refused.to_string().contains("open the database again in the child"));
            let own = Database::in_memory().unwrap();
            assert_eq!(ask(&own).unwrap().len(), 1);
        }));
        // SAFETY: ends the process, and nothing else.
        unsafe { libc::_exit(i32::from(went_well.is_err())) }
    }
    assert!(child > 0, "{}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: the system writes to `status`, which is borrowed for that.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "14: it hung");
}

#[test]
fn a_child_asks_a_database_of_its_own_while_others_are_in_sql() {
    let mut actor = Command::new(std::env::current_exe().unwrap());
    let ended = actor.args(["--exact", "forks::actor", "--nocapture"]).env(SCENE, "1").output();
    let ended = ended.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
