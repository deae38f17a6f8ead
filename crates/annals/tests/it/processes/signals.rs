//! A storm of signals: every call of the system that can be interrupted is.

#![allow(unsafe_code, reason = "handlers and timers are set only through the system's calls")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::{Database, Level, Options};
use annals_tools::inspect;

use super::child::{self, Child};
use super::effort;
use super::ledger::{NOBODY, audit, schema, write};

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Lets a signal come many times in each millisecond, whose handler doesn't let calls continue.
fn begin_the_storm() {
    let handler = count as extern "C" fn(libc::c_int);
    // SAFETY: all fields of both structures may be zero; they outlive the calls, which only read
    // them. The handler does nothing but add to an atomic, which a handler may do.
    let begun = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t; // no SA_RESTART among its flags
        let every = libc::timeval { tv_sec: 0, tv_usec: 300 };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) == 0
            && libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) == 0
    };
    assert!(begun, "{}", std::io::Error::last_os_error());
}

#[test]
fn child_in_the_storm() {
    let Some(job) = child::job() else { return };
    let path = Path::new(&job[0]);
    begin_the_storm();
    let mut number = 0;
    for _ in 0..effort(6, 100) {
        let database = Options::new().open_schema(path, &schema()).unwrap();
        commit_at_all_levels(&database, &mut number);
        let reader = Options::new().open_read_only(path).unwrap();
        assert_eq!(audit(&reader.read()).of(1), number);
        database.close().unwrap();
    }
    assert!(inspect(&Options::new(), path).unwrap().is_closed());
    child::say(&format!("{number} transactions"));
    let signals = SIGNALS.load(Ordering::Relaxed);
    assert!(signals > 100, "only {signals} signals came");
}

fn commit_at_all_levels(database: &Database, number: &mut u64) {
    for level in Level::ALL {
        for bulk in [0, 0, 1_500_000] {
            let mut transaction = database.begin().unwrap();
            transaction.set_level(level);
            write(&mut transaction, 1, *number, 2, bulk).unwrap();
            transaction.commit().unwrap();
            *number += 1;
            let mut transaction = database.begin().unwrap();
            write(&mut transaction, NOBODY, 0, 2, bulk).unwrap();
            transaction.rollback().unwrap();
        }
    }
}

#[test]
fn signals_interrupt_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("storm.annals");
    let mut child =
        Child::start("processes::signals::child_in_the_storm", &[path.to_str().unwrap()]);
    let number = effort(6, 100) * 12;
    child.wait_for(&format!("{number} transactions"));
    assert!(child.end().success());
    let database = Database::open(&path).unwrap();
    assert_eq!(audit(&database.read()).of(1), number);
}
