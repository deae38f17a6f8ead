//! A database on a real block device: a loop device over a file, where this machine lets a test make
//! one.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ::annals::{Database, ErrorKind, Level, Options, Recovery, TableNumber, ValueRef};

use super::program::{annals, run};

const TABLE: TableNumber = TableNumber(0);
const LEN: u64 = 4 << 20;

/// A loop device, which ends with this value.
struct Loop {
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl Loop {
    /// Makes one, full of garbage but for its first 16 KiB; says so if it can't.
    fn make() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("medium");
        let mut content = vec![0xA5; usize::try_from(LEN).unwrap()];
        content[..16384].fill(0);
        fs::write(&file, content).unwrap();
        // Another program may take the one that was free a moment ago.
        for _ in 0..TRIES {
            let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
            match made {
                Ok(made) if made.status.success() => {
                    let path = String::from_utf8(made.stdout).unwrap().trim().into();
                    return Some(Self { path, folder });
                }
                Ok(made) if String::from_utf8_lossy(&made.stderr).contains("busy") => pause(),
                _ => break,
            }
        }
        annals_untested::untested("no loop device can be made; that needs losetup, and root");
        None
    }

    /// Runs the program in the folder, with a script as its input, once nobody has the device for a moment.
    fn run(&self, command: &str, input: &str) -> Output {
        let mut tries = 0;
        loop {
            let arguments = [command, self.path.to_str().unwrap()];
            let output = run(self.folder.path(), &arguments, input.as_bytes());
            let is_taken =
                String::from_utf8_lossy(&output.stderr).contains("part of another device");
            tries += 1;
            if !is_taken || tries == TRIES {
                return output;
            }
            pause();
        }
    }
}

/// How often something is tried again that another program may be in the way of: one that looks for a free loop
/// device, or that another test is just starting, which has all files open until it is another program.
const TRIES: usize = 100;

fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}

/// Opens a database, once nobody has its device for a moment.
fn open_when_free(open: impl Fn() -> ::annals::Result<Database>) -> Database {
    for _ in 1..TRIES {
        match open() {
            Err(error) if error.kind() == ErrorKind::Busy => pause(),
            opened => return opened.unwrap(),
        }
    }
    open().unwrap()
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

fn insert(database: &Database, text: &str, level: Level) -> ::annals::Result<()> {
    database.write(|transaction| {
        transaction.set_level(level);
        transaction.insert(TABLE, &[ValueRef::String(text)]).map(drop)
    })
}

fn rows(database: &Database) -> u64 {
    database.read().table(TABLE).unwrap().len()
}

#[test]
fn the_library_keeps_a_database_on_a_device() {
    let Some(device) = Loop::make() else { return };
    let schema = annals_schema::parse("create_table t\nadd_field t f string").unwrap().schema;
    let open = || Options::new().open_schema(&device.path, &schema);
    let database = open_when_free(open);
    let levels = [Level::Soft, Level::Half, Level::TwoPhase, Level::Checksummed];
    for level in levels {
        (0..5).for_each(|_| insert(&database, "some text", level).unwrap());
    }
    let error = open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("this process"), "{error}");
    assert_eq!(
        Options::new().open_read_only(&device.path).unwrap().read().txid(),
        annals::Txid(21)
    );
    database.close().unwrap();

    let database = open_when_free(open);
    assert!(!database.recovered().unclean);
    assert_eq!(rows(&database), 20);
    let long = "x".repeat(100_000);
    let mut fitted = 0;
    let error = loop {
        match insert(&database, &long, levels[fitted % 4]) {
            Ok(()) => fitted += 1,
            Err(error) => break error,
        }
    };
    assert!((30..42).contains(&fitted), "{fitted} of 100 kB in 4 MiB");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    insert(&database, "a small one fits", Level::TwoPhase).unwrap();
    drop(database);
    let options = Options::new().recovery(Recovery::Refuse);
    let database = open_when_free(|| options.open(&device.path));
    assert_eq!(rows(&database), 21 + fitted as u64);
}

#[test]
fn the_program_keeps_a_database_on_a_device() {
    let Some(device) = Loop::make() else { return };
    let script = "create_table t\nadd_field t f string\ninsert t \"one\"\n";
    let made = device.run("shell", script);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    // One that is killed leaves all that was acknowledged, and no lock.
    let mut child = annals(device.folder.path(), &["shell", device.path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"insert t \"two\"\ncommit\ntable t\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("two")));
    let busy = device.run("shell", "table t\n");
    let said = String::from_utf8_lossy(&busy.stderr).into_owned();
    assert!(!busy.status.success() && said.contains(&child.id().to_string()), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = device.run("shell", "table t\n");
    let said = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(said.contains("one") && said.contains("two"), "{said}");

    // What may hold a commit is saved, but not beside the device.
    let end = ::annals_tools::inspect(&Options::new(), &device.path).unwrap().end.position;
    let medium = OpenOptions::new().write(true).open(&device.path).unwrap();
    medium.write_all_at(b"may have been a commit", end + 64).unwrap();
    medium.sync_all().unwrap();
    drop(medium);
    let shown = device.run("shell", "table t\n");
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let name = device.path.file_name().unwrap().to_string_lossy().into_owned();
    let is_saved = |folder: &Path| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|found| found.to_string_lossy().starts_with(&format!("{name}.tail-"))).count()
    };
    assert_eq!((is_saved(device.folder.path()), is_saved(device.path.parent().unwrap())), (1, 0));
    let checked = device.run("check", "");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn no_output_goes_to_a_device() {
    let Some(device) = Loop::make() else { return };
    assert!(device.run("shell", "create_table t\ncomment \"precious\"\n").status.success());
    let dir = device.folder.path();
    run(dir, &["shell", "a"], b"create_table t\n");
    run(dir, &["export", "json", "a", "a.json"], b"");
    fs::write(dir.join("s.schema"), "create_table t\n").unwrap();
    let shown = device.path.to_str().unwrap();
    for output in [
        &["export", "json", "a", shown, "--replace"][..],
        &["export", "ndjson", "a", shown, "--replace"],
        &["export", "joedb", "a", shown, "--force"],
        &["export", "sqlite", "a", shown, "--replace"],
        &["compile", "s.schema", "-o", shown],
        &["backup", "a", shown],
        &["push", "a", shown],
        &["pack", "a", shown],
        &["convert", "a", shown],
        &["merge", shown, "a"],
        &["import", "json", "a.json", shown],
        &["recover", "a", "--salvage", shown],
    ] {
        let refused = run(dir, output, b"");
        assert_eq!(refused.status.code(), Some(1), "{output:?}");
        let log = String::from_utf8(device.run("log", "").stdout).unwrap();
        assert!(log.contains("precious"), "{output:?}");
    }
}

#[test]
fn a_device_with_something_on_it_is_left_alone() {
    let Some(device) = Loop::make() else { return };
    let medium = OpenOptions::new().write(true).open(&device.path).unwrap();
    medium.write_all_at(b"a partition table", 446).unwrap();
    drop(medium);
    let refused = device.run("shell", "create_table t\n");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let advice = format!("dd if=/dev/zero of={} bs=4096 count=4", device.path.display());
    assert!(!refused.status.success() && said.contains(&advice), "{said}");
}
