//! Batches where the process matters: forks, signals and limits meanwhile. Each test starts this binary
//! again, for these concern whole processes.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(unsafe_code, reason = "forks, signals and limits are the C library's")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use annals::storage::{Batched, Directory as _, Engine, FileDirectory, Storage, join};

const SCENE: &str = "ANNALS_TEST_BATCH";
const PATH: &str = "ANNALS_TEST_BATCH_PATH";
/// Long enough for a ring, each by itself and all together.
const PAGE: usize = 80_000;
const PAGES: usize = 120;

/// The other half of the tests below: plays the scene that the environment names.
#[test]
fn actor() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    match std::env::var(SCENE).unwrap().as_str() {
        "others fork" => others_fork(&path),
        "signals come" => signals_come(&path),
        "there is no ring" => there_is_no_ring(&path),
        "files have a limit" => files_have_a_limit(&path),
        other => panic!("no such scene: {other}"),
    }
}

/// Plays a scene to its end; not where the system has no rings at all.
fn play(scene: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = create(folder.path(), "probe", Some(Engine::Uring));
    if write(&*file, 1).unwrap().engine != Engine::Uring {
        println!("there are no rings here: nothing is tested");
        return;
    }
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "batch_processes::actor", "--nocapture"])
        .env(SCENE, scene)
        .env(PATH, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{scene}: {}: {said}{errors}", ended.status);
}

fn create(folder: &Path, name: &str, engine: Option<Engine>) -> Arc<dyn Storage> {
    let directory = FileDirectory::new(folder);
    engine
        .map_or(directory, |engine| FileDirectory::new(folder).with_engine(engine))
        .create(name)
        .unwrap()
}

/// Writes pages with gaps between them, all full of one byte.
fn write(file: &dyn Storage, byte: u8) -> io::Result<Batched> {
    let page = vec![byte; PAGE];
    file.write_batch(&join((0..PAGES).map(|at| ((at * 2 * PAGE) as u64, &page[..]))))
}

fn check(file: &dyn Storage, byte: u8) {
    let mut content = vec![0; (2 * PAGES - 1) * PAGE];
    assert_eq!(file.read_at(0, &mut content).unwrap(), content.len());
    for (index, page) in content.chunks(PAGE).enumerate() {
        let expected = if index % 2 == 0 { byte } else { 0 };
        assert!(page.iter().all(|found| *found == expected), "page {index}");
    }
}

fn fork() -> libc::pid_t {
    // SAFETY: the child uses memory, which the C library makes ready for it, and ends without returning.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", io::Error::last_os_error());
    child
}

fn wait(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is there for the system to write to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn a_forked_child_disturbs_no_ring() {
    play("others fork");
}

fn others_fork(folder: &Path) {
    let file = create(folder, "x", Some(Engine::Uring));
    let writer = std::thread::spawn(move || {
        for byte in 1..=30 {
            write(&*file, byte).unwrap();
            check(&*file, byte);
        }
    });
    let mut forks = 0;
    while !writer.is_finished() {
        let child = fork();
        if child == 0 {
            // SAFETY: ends the process, and nothing else.
            unsafe { libc::_exit(0) }
        }
        wait(child);
        forks += 1;
    }
    writer.join().unwrap();
    assert!(forks > 10, "only {forks} forks");
}

#[test]
fn signals_interrupt_no_batch() {
    play("signals come");
}

fn signals_come(folder: &Path) {
    extern "C" fn count(_signal: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
    }
    static SIGNALS: AtomicU32 = AtomicU32::new(0);
    let handler: extern "C" fn(libc::c_int) = count;
    let often = libc::timeval { tv_sec: 0, tv_usec: 500 };
    let timer = libc::itimerval { it_interval: often, it_value: often };
    // SAFETY: both structures are whole (zeros are an empty set of signals and no flags: calls aren't
    // begun again), and the handler does nothing but count.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        assert_eq!(libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()), 0);
    }
    for engine in [Engine::Uring, Engine::Vectored] {
        let file = create(folder, &format!("{engine:?}"), Some(engine));
        for byte in 1..=5 {
            // A ring that is interrupted when it starts a thread gives way to `pwritev`.
            write(&*file, byte).unwrap();
            check(&*file, byte);
        }
    }
    assert!(SIGNALS.load(Ordering::Relaxed) > 10);
}

/// Sets a limit of this process, for all that follows.
fn limit(which: libc::__rlimit_resource_t, value: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there for the system to write to.
    assert_eq!(unsafe { libc::getrlimit(which, &raw mut limit) }, 0);
    limit.rlim_cur = value.min(limit.rlim_max);
    // SAFETY: it is whole, and only read.
    assert_eq!(unsafe { libc::setrlimit(which, &raw const limit) }, 0);
}

#[test]
fn without_a_ring_pwritev_writes_once_and_for_all() {
    play("there is no ring");
}

fn there_is_no_ring(folder: &Path) {
    let [file, other] = ["x", "y"].map(|name| create(folder, name, None));
    // No descriptor is so low; those that are open stay.
    limit(libc::RLIMIT_NOFILE, 0);
    assert_eq!(write(&*file, 1).unwrap().engine, Engine::Vectored);
    check(&*file, 1);
    limit(libc::RLIMIT_NOFILE, 256);
    assert_eq!(write(&*file, 2).unwrap().engine, Engine::Vectored);
    check(&*file, 2);
    assert_eq!(write(&*other, 3).unwrap().engine, Engine::Uring);
    check(&*other, 3);
}

#[test]
fn a_limit_in_the_middle_of_a_run_is_an_error_of_every_engine() {
    play("files have a limit");
}

fn files_have_a_limit(folder: &Path) {
    // SAFETY: to ignore a signal needs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let middle = (PAGES * PAGE + PAGE / 2) as u64;
    limit(libc::RLIMIT_FSIZE, middle);
    for engine in [Engine::Uring, Engine::Vectored, Engine::OneByOne] {
        let file = create(folder, &format!("{engine:?}"), Some(engine));
        let error = write(&*file, 7).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{engine:?}: {error}");
        // The kernel wrote the run that passes the limit in part, and said so; the rest it refused.
        assert!(file.len().unwrap() <= middle, "{engine:?}");
        if engine != Engine::Uring {
            assert_eq!(file.len().unwrap(), middle, "{engine:?}");
        }
    }
}
