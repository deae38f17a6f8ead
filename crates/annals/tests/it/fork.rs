//! Forks, and signals: what a child inherits is nothing it can use, and interruptions are nobody's
//! business. Each test starts this binary again, for forks and signals concern whole processes.

#![cfg(unix)]
#![allow(unsafe_code, reason = "to fork is unsafe: another thread might hold a lock for ever")]
#![allow(clippy::disallowed_methods, reason = "a process that only lives has to sleep")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use annals::storage::{Access, FileDirectory, Hold, Lock, Storage, join};
use annals::{BackfillMode, Database, Error, ErrorKind, Options, TableNumber, ValueRef};

const SCENE: &str = "ANNALS_TEST_FORK";
const PATH: &str = "ANNALS_TEST_FORK_PATH";
const TABLE: TableNumber = TableNumber(0);

/// The other half of the tests below: plays the scene that the environment names.
#[test]
fn actor() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    match std::env::var(SCENE).unwrap().as_str() {
        "child tries everything" => child_tries_everything(&path),
        "child outlives its parent" => child_outlives_its_parent(&path),
        "files are opened while others fork" => files_are_opened_while_others_fork(&path),
        "a new image is made" => a_new_image_is_made(&path),
        "signals interrupt" => signals_interrupt(&path),
        "no program inherits" => no_program_inherits(&path),
        other => panic!("no such scene: {other}"),
    }
}

fn start(scene: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fork::actor", "--nocapture"])
        .env(SCENE, scene)
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Plays a scene to its end.
fn play(scene: &str) {
    let folder = tempfile::tempdir().unwrap();
    let ended = start(scene, &folder.path().join("db.annals")).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{scene}: {}: {said}", ended.status);
}

/// Forks; returns the child's number to the parent, and 0 to the child.
fn fork() -> libc::pid_t {
    // SAFETY: the child uses memory, which the C library makes ready for it, and ends without
    // returning; locks that other threads held are what is tested.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    child
}

/// Ends a child when it has acted: with code 0, or 1 if it panicked.
fn end_after(act: impl FnOnce()) -> ! {
    let code = i32::from(catch_unwind(AssertUnwindSafe(act)).is_err());
    // SAFETY: ends the process, and nothing else.
    unsafe { libc::_exit(code) }
}

/// Waits for a child and checks that all went well in it.
fn wait(child: libc::pid_t) {
    let mut status = 0;
    loop {
        // SAFETY: `status` is there for the system to write to.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if waited == child {
            break;
        }
        let error = std::io::Error::last_os_error();
        assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "{error}");
    }
    let status = std::process::ExitStatus::from_raw(status);
    assert!(status.success(), "the child: {status}");
}

fn open(path: &Path, background: bool) -> annals::Result<Database> {
    let schema = annals_schema::parse("create_table t\nadd_field t f string").unwrap().schema;
    Options::new().background(background).open_schema(path, &schema)
}

fn insert(database: &Database, text: &str) -> annals::Result<()> {
    database.write(|transaction| transaction.insert(TABLE, &[ValueRef::String(text)]).map(drop))
}

fn rows(database: &Database) -> u64 {
    database.read().table(TABLE).unwrap().len()
}

fn assert_refused<T>(result: Result<T, Error>) {
    let error = result.err().expect("it works in the child");
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    let text = error.to_string();
    assert!(text.contains("open the database again in the child"), "{text}");
    assert!(text.contains("db.annals"), "{text}");
}

/// Returns the descriptors of this process that lead to the file at a path.
#[cfg(target_os = "linux")]
fn descriptors_of(path: &Path) -> Vec<libc::c_int> {
    use std::os::unix::fs::MetadataExt as _;
    let number = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    let file = number(path).unwrap();
    let all = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap());
    // One of them, by which the folder is read, is gone by now.
    let ours = all.filter(|entry| number(&entry.path()).is_ok_and(|found| found == file));
    ours.map(|entry| entry.file_name().to_str().unwrap().parse().unwrap()).collect()
}

#[cfg(not(target_os = "linux"))]
fn descriptors_of(_path: &Path) -> Vec<libc::c_int> {
    Vec::new()
}

fn is_close_on_exec(descriptor: libc::c_int) -> bool {
    // SAFETY: it only looks at the flags of a descriptor, open or not.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    assert!(flags >= 0, "descriptor {descriptor}: {}", std::io::Error::last_os_error());
    flags & libc::FD_CLOEXEC != 0
}

#[test]
fn a_child_gets_errors_and_changes_nothing() {
    play("child tries everything");
}

#[test]
fn a_child_leaves_the_new_image_of_its_parent_alone() {
    play("a new image is made");
}

fn a_new_image_is_made(path: &Path) {
    let database = open(path, false).unwrap();
    insert(&database, "before").unwrap();
    let mut database = Some(database);
    let (mut children, mut is_child) = (Vec::new(), false);
    let made = database.as_ref().unwrap().backfill_watched(BackfillMode::Full, &mut |_| {
        children.push(fork());
        is_child = children.last() == Some(&0);
        if is_child {
            return ControlFlow::Break(());
        }
        wait(*children.last().unwrap());
        ControlFlow::Continue(())
    });
    if is_child {
        end_after(|| {
            assert!(made.is_err());
            drop(database.take());
        });
    }
    assert!(!children.is_empty());
    made.unwrap();
    assert!(
        annals_tools::check_image(&Options::new(), path)
            .unwrap()
            .is_some_and(|it| it.problem.is_none())
    );
}

fn child_tries_everything(path: &Path) {
    let database = open(path, false).unwrap();
    insert(&database, "before").unwrap();
    let blob = database.write(|transaction| transaction.write_blob(&b"some bytes"[..])).unwrap();
    let (directory, _) = FileDirectory::split(path).unwrap();
    let file = directory.create("file").unwrap();
    assert!(file.try_lock(Lock::Tail, Hold::Exclusive).unwrap_or(true));
    let descriptors = descriptors_of(path);
    assert_eq!(descriptors.len(), usize::from(cfg!(target_os = "linux")));
    let bytes = fs::read(path).unwrap();

    let reader = annals::Reader::open(&*directory, "db.annals").unwrap();
    let before = database.read();
    let mut transaction = database.begin().unwrap();
    transaction.insert(TABLE, &[ValueRef::String("within")]).unwrap();
    let child = fork();
    if child == 0 {
        let statements =
            [transaction.insert(TABLE, &[ValueRef::Null]).map(drop), transaction.comment("child")];
        let committed = transaction.commit();
        end_after(|| {
            statements.into_iter().for_each(assert_refused);
            assert_refused(committed);
            // Of an inherited snapshot what is in memory can be read, what isn't can't.
            assert_eq!(before.table(TABLE).unwrap().len(), 1);
            assert!(before.table(TABLE).unwrap().get(annals::RowId(0)).is_ok());
            assert!(before.blob(blob).and_then(|mut blob| blob.to_vec(100)).is_err());
            for now in [database.read(), reader.read()] {
                let table = now.table(TABLE).unwrap();
                assert_refused(table.get(annals::RowId(0)));
                assert_refused(table.find(annals::RowId(7)));
                assert_refused(table.rows().collect::<annals::Result<Vec<_>>>());
                assert_refused(table.rows().next_back().unwrap());
                assert!(now.blob(blob).and_then(|mut blob| blob.to_vec(100)).is_err());
                assert_refused(now.changes(..).map(drop));
                assert_refused(now.differences(annals::Txid(1), annals::Txid(2)));
            }
            check_reader(&reader);
            assert_refused(database.at(annals::Txid(1)));
            assert_refused(database.history_of(TABLE, annals::RowId(0)).map(drop));
            assert_refused(database.changes(..).map(drop));
            assert_refused(database.backfill(BackfillMode::Full));
            assert_refused(database.subscribe().next().unwrap());
            assert_refused(database.begin());
            assert_refused(insert(&database, "child"));
            assert_refused(database.soft_checkpoint());
            assert_refused(database.hard_checkpoint());
            check_storage(&*file);
            for descriptor in descriptors {
                assert!(is_close_on_exec(descriptor));
            }
            let error = open(path, false).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            drop(file);
            assert_refused(database.close());

            // One of its own works, and ends with it.
            let own = open(&path.with_file_name("child.annals"), true).unwrap();
            insert(&own, "child").unwrap();
            own.close().unwrap();
        })
    }
    wait(child);
    assert_eq!(fs::read(path).unwrap(), bytes, "the child changed the file");
    let child = Database::open(path.with_file_name("child.annals")).unwrap();
    assert_eq!(rows(&child), 1);

    assert!(file.try_lock(Lock::Tail, Hold::Exclusive).unwrap_or(true));
    transaction.commit().unwrap();
    insert(&database, "after").unwrap();
    assert_eq!(Database::open(path).err().unwrap().kind(), ErrorKind::Busy);
    database.close().unwrap();
    let again = Database::open(path).unwrap();
    assert!(!again.recovered().unclean);
    assert_eq!(rows(&again), 3);
}

/// In a child: checks that every call of a reader of its parent's is an error.
fn check_reader(reader: &annals::Reader) {
    assert_refused(reader.pull());
    assert_refused(reader.at(annals::Txid(1)));
    assert_refused(reader.as_it_was(annals::Txid(1)));
    assert_refused(reader.txid_of(annals::Moment::Comment("x".to_owned())));
    assert_refused(reader.history_of(TABLE, annals::RowId(0)).map(drop));
    assert_refused(reader.blame(TABLE, annals::RowId(0)));
    assert_refused(reader.changes(..).map(drop));
}

/// In a child: checks that every call of a file of its parent's is an error.
fn check_storage(file: &dyn Storage) {
    let results = [
        file.len().map(drop),
        file.read_at(0, &mut [0]).map(drop),
        file.write_at(0, b"child"),
        file.write_batch(&join([(0, &b"child"[..])])).map(drop),
        file.flush(),
        file.set_len(1),
        file.try_lock(Lock::Head, Hold::Exclusive).map(drop),
        file.try_lock(Lock::Head, Hold::Shared).map(drop),
        file.unlock(Lock::Tail),
        file.is_linked().map(drop),
    ];
    for (number, result) in results.into_iter().enumerate() {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("open the database again in the child"), "{number}: {text}");
    }
}

#[test]
fn the_lock_of_a_killed_parent_is_free_when_its_child_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.annals");
    let mut parent = start("child outlives its parent", &path);
    let input = parent.stdin.take().unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let mut missing = vec!["the child lives", "the parent goes on"];
    while !missing.is_empty() {
        let said = lines.next().unwrap().unwrap();
        missing.retain(|line| *line != said);
    }
    assert_eq!(Database::open(&path).err().unwrap().kind(), ErrorKind::Busy);
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The child has the descriptors, too.
    assert_eq!(Database::open(&path).err().unwrap().kind(), ErrorKind::Busy);
    drop(input);
    wait_for(&mut lines, "the child was refused");
    let database = open_when_free(&path);
    assert_eq!(rows(&database), 2, "what was acknowledged is there");
    insert(&database, "after").unwrap();
    database.close().unwrap();
}

fn wait_for(lines: &mut std::io::Lines<BufReader<ChildStdout>>, line: &str) {
    assert!(lines.any(|found| found.unwrap() == line), "nobody said: {line}");
}

/// Opens a database as soon as the process that holds its lock has ended.
fn open_when_free(path: &Path) -> Database {
    for _ in 0..1000 {
        match Database::open(path) {
            Err(error) if error.kind() == ErrorKind::Busy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("the lock of a process that ended is held");
}

fn say(line: &str) {
    // In one write, since a child says something too.
    let mut output = std::io::stdout();
    output.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}

fn child_outlives_its_parent(path: &Path) {
    let database = open(path, true).unwrap();
    insert(&database, "before").unwrap();
    let child = fork();
    if child == 0 {
        end_after(|| {
            say("the child lives");
            let input = std::io::stdin().read_line(&mut String::new());
            assert_eq!(input.unwrap(), 0, "the test closes its end");
            assert_refused(insert(&database, "child"));
            drop(database);
            say("the child was refused");
        })
    }
    insert(&database, "beside the child").unwrap();
    say("the parent goes on");
    wait(child);
    unreachable!("the parent should have been killed");
}

#[test]
fn files_can_be_opened_while_other_threads_fork() {
    play("files are opened while others fork");
}

fn files_are_opened_while_others_fork(path: &Path) {
    let (directory, name) = FileDirectory::split(path).unwrap();
    drop(directory.create(&name).unwrap());
    let opener = std::thread::spawn(move || {
        for number in 0..2000 {
            let created = directory.create(&format!("{name}.{number}")).unwrap();
            assert!(created.try_lock(Lock::Head, Hold::Exclusive).unwrap());
            // A lock that a living child kept would be in the way.
            let file = directory.open(&name, Access::Write).unwrap();
            assert!(file.try_lock(Lock::Head, Hold::Exclusive).unwrap());
            file.write_at(0, &[1]).unwrap();
        }
    });
    let mut children = Vec::new();
    while !opener.is_finished() {
        let child = fork();
        if child == 0 {
            end_after(|| std::thread::sleep(Duration::from_millis(20)))
        }
        children.push(child);
        if children.len() > 20 {
            wait(children.remove(0));
        }
    }
    opener.join().unwrap();
    children.into_iter().for_each(wait);
}

#[test]
fn interruptions_are_nobody_s_business() {
    play("signals interrupt");
}

/// Commits in a process of one thread, which so gets all signals, and the checkpointer's.
fn signals_interrupt(path: &Path) {
    extern "C" fn count(_signal: libc::c_int) {
        SIGNALS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    static SIGNALS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let child = fork();
    if child == 0 {
        end_after(|| {
            let handler: extern "C" fn(libc::c_int) = count;
            let often = libc::timeval { tv_sec: 0, tv_usec: 200 };
            let timer = libc::itimerval { it_interval: often, it_value: often };
            // SAFETY: both structures are whole (zeros are an empty set of signals and no flags: calls
            // aren't begun again), and the handler does nothing but count.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as libc::sighandler_t;
                assert_eq!(
                    libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()),
                    0
                );
                let started =
                    libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
                assert_eq!(started, 0);
            }
            for round in 0..20 {
                let database = open(path, round % 2 == 0).unwrap();
                for _ in 0..20 {
                    insert(&database, "in spite of it").unwrap();
                }
                database.hard_checkpoint().unwrap();
                database.close().unwrap();
            }
            assert!(SIGNALS.load(std::sync::atomic::Ordering::Relaxed) > 20);
            assert_eq!(rows(&open(path, false).unwrap()), 400);
        })
    }
    wait(child);
}

#[cfg(target_os = "linux")]
#[test]
fn programs_inherit_no_descriptor() {
    play("no program inherits");
}

fn no_program_inherits(path: &Path) {
    let database = open(path, true).unwrap();
    insert(&database, "x").unwrap();
    let ours = descriptors_of(path);
    assert!(!ours.is_empty() && ours.into_iter().all(is_close_on_exec));
    let list = || Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let seen = String::from_utf8(list().stdout).unwrap();
    assert!(seen.contains("/proc/") && !seen.contains("db.annals"), "{seen}");
    // As the standard library does when it can't use `posix_spawn`.
    let child = fork();
    if child == 0 {
        end_after(|| {
            let after = String::from_utf8(list().stdout).unwrap();
            assert_eq!(after.matches("pipe:").count(), seen.matches("pipe:").count(), "{after}");
        })
    }
    wait(child);
}
