//! Files and directories that a user may not write or read. Root may do everything: then a child does
//! this as nobody.

#![allow(unsafe_code, reason = "a process gives up its user only through the system's call")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use annals::{Database, Error, ErrorKind, Options};
use annals_tools::{inspect, scan};

use super::child::{self, Child};
use super::ledger::{audit, schema, write};
use crate::hostile::journals::Log;

/// The number of `nobody`, and of its group, on most systems; it need not have a name.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: the call takes nothing, always succeeds and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// Becomes a user who is bound by permissions. The other threads of this process become so too.
fn become_nobody() {
    // SAFETY: a null list of length 0 is read by nobody; numbers are checked by the system.
    let became = unsafe {
        libc::setgroups(0, std::ptr::null()) == 0
            && libc::setgid(NOBODY) == 0
            && libc::setuid(NOBODY) == 0
    };
    assert!(became, "{}", std::io::Error::last_os_error());
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn missing_permissions_are_named() {
    if !is_root() {
        return check_permissions();
    }
    let mut child = Child::start("processes::permissions::child_as_nobody", &["check"]);
    child.wait_for("checked");
    assert!(child.end().success());
}

#[test]
fn child_as_nobody() {
    if child::job().is_none() {
        return;
    }
    become_nobody();
    check_permissions();
    child::say("checked");
}

#[track_caller]
fn says(opened: annals::Result<()>, words: &[&str], path: &Path) {
    let error: Error = opened.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let text = error.to_string();
    for word in words.iter().copied().chain([path.to_str().unwrap()]) {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

fn check_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked.annals");
    let database = Options::new().open_schema(&path, &schema()).unwrap();
    database.write(|tx| write(tx, 1, 0, 1, 0)).unwrap();
    let unclean = folder.path().join("unclean.annals");
    fs::copy(&path, &unclean).unwrap();
    database.close().unwrap();

    set_mode(&path, 0o000);
    says(Options::new().create(false).open(&path).map(drop), &["permission"], &path);
    says(Options::new().open_read_only(&path).map(drop), &["permission"], &path);
    says(scan(&Options::new(), &path, &mut Log::default()), &["permission"], &path);
    says(inspect(&Options::new(), &path).map(drop), &["permission"], &path);

    set_mode(&path, 0o444);
    says(Database::open(&path).map(drop), &["permission", "open it read-only"], &path);
    assert_eq!(audit(&Options::new().open_read_only(&path).unwrap().read()).of(1), 1);

    // Nothing can be made in the directory, but what is there is written.
    set_mode(&path, 0o644);
    set_mode(folder.path(), 0o555);
    let new = folder.path().join("new.annals");
    says(Database::open(&new).map(drop), &["can't create it", "denied"], &new);
    for (number, path) in [(1, &path), (1, &unclean)] {
        let database = Database::open(path).unwrap();
        database.write(|tx| write(tx, 1, number, 1, 0)).unwrap();
        database.close().unwrap();
        assert_eq!(audit(&Options::new().open_read_only(path).unwrap().read()).of(1), 2);
    }
    set_mode(folder.path(), 0o000);
    says(Database::open(&path).map(drop), &["permission"], &path);
    says(Options::new().open_read_only(&path).map(drop), &["permission"], &path);
    set_mode(folder.path(), 0o755);
}
