//! `annals revert` where the file can't be written.

use annals::Options;
use annals_tools::Undo as _;

use crate::program::{run, succeed};

const SCRIPT: &str =
    "create_table city\nadd_field city name string\ncommit\ninsert city \"Lille\"\ncommit\n";

#[test]
fn a_file_that_another_writer_has_open_is_refused_unless_both_share_it() {
    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &["shell", "a.annals"], SCRIPT);
    let revert = |options: &[&str]| {
        let output = run(folder.path(), &[&["revert", "a.annals", "2"], options].concat(), b"");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let writer = Options::new().open(folder.path().join("a.annals")).unwrap();
    let (status, output, error) = revert(&[]);
    assert_eq!((status, output.as_str()), (Some(1), ""));
    assert!(error.contains("a.annals") && error.contains("open"), "{error}");
    drop(writer);
    let sharer = Options::new().shared(true).open(folder.path().join("a.annals")).unwrap();
    assert_eq!(sharer.read().txid(), annals::Txid(2));
    let (status, output, error) = revert(&["--shared", "--timeout", "5"]);
    assert_eq!((status, error.as_str()), (Some(0), ""));
    assert!(output.starts_with("committed txid=3 position="), "{output}");
    // What another process did is undone from here, and the other way round.
    sharer.write(|tx| tx.revert(annals::Txid(3))).unwrap();
    assert_eq!(sharer.read().txid(), annals::Txid(4));
    let (status, _, error) = revert(&["--shared"]);
    assert_eq!(status, Some(1));
    assert!(error.ends_with("table `city`, row 0: transaction 3 deleted it\n"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &["shell", "a.annals"], SCRIPT);
    let path = folder.path().join("a.annals");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        return; // this user may write everything
    }
    let before = std::fs::read(&path).unwrap();
    let output = run(folder.path(), &["revert", "a.annals", "2"], b"");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
    assert!(error.contains("a.annals") && error.contains("Permission denied"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
