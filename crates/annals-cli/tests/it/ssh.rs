//! URLs of ssh, with a program in place of ssh that runs the command here.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::program::{annals, succeed};
use crate::served::create;

/// Writes a program that takes the arguments of ssh, notes them, and runs the command.
fn write_ssh(dir: &Path) -> PathBuf {
    let path = dir.join("ssh");
    let text =
        "#!/bin/sh\necho \"$@\" >> ssh.txt\nfor command; do :; done\nexec sh -c \"$command\"\n";
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

struct Remote<'d> {
    dir: &'d Path,
    ssh: PathBuf,
}

impl Remote<'_> {
    /// Runs the program; returns whether it succeeded, and what it printed.
    fn run(&self, arguments: &[&str], script: &str) -> (bool, String, String) {
        let mut command = annals(self.dir, arguments);
        let here = command.get_program().to_owned();
        command.env("ANNALS_SSH", &self.ssh).env("ANNALS_REMOTE", here);
        let output = crate::program::feed(command, script.as_bytes());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    fn succeed(&self, arguments: &[&str], script: &str) -> String {
        let (is_done, printed, errors) = self.run(arguments, script);
        assert!(is_done, "{arguments:?}: {errors}");
        printed
    }
}

#[test]
fn a_file_on_another_machine_is_reached_through_ssh() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let remote = Remote { dir, ssh: write_ssh(dir) };
    let path = dir.join("a.annals");
    let url = format!("ssh://ada@there:2222{}", path.display());
    assert_eq!(
        remote.succeed(&["clone", &url, "b.annals"], ""),
        "b.annals: fetched 1 transaction, up to transaction 1\n"
    );
    let asked = std::fs::read_to_string(dir.join("ssh.txt")).unwrap();
    assert!(asked.starts_with("-p 2222 ada@there "), "{asked}");
    assert!(asked.contains(&format!(" serve --stdio '{}'", path.display())), "{asked}");
    let script = "insert page one\ncommit\ninsert page two\n";
    let printed = remote.succeed(&["shell", "b.annals", "--replica-of", &url], script);
    assert_eq!(printed, "committed txid=2 runs=1\ncommitted txid=3 runs=1\n");
    // The file is closed when the program has ended: it can be used here at once.
    let here = succeed(dir, &["dump", "a.annals"], "");
    assert_eq!(remote.succeed(&["dump", &url], ""), here);
    assert_eq!(remote.succeed(&["log", &url], ""), succeed(dir, &["log", "a.annals"], ""));
    succeed(dir, &["shell", "b.annals"], "insert page three\n");
    assert!(remote.succeed(&["push", "b.annals", &url], "").contains("pushed 1 transaction"));
    assert!(succeed(dir, &["dump", "a.annals"], "").contains("three"));
}

#[test]
fn what_goes_wrong_with_ssh_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let broken = dir.join("broken");
    std::fs::write(&broken, "#!/bin/sh\necho no route to host >&2\nexit 255\n").unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (ssh, what) in [(dir.join("nothing"), "cannot run"), (broken, "exit status: 255")] {
        let remote = Remote { dir, ssh };
        let (is_done, _, errors) = remote.run(&["dump", "ssh://there/some.annals"], "");
        assert!(!is_done && errors.contains(what), "{errors}");
    }
    let remote = Remote { dir, ssh: write_ssh(dir) };
    for url in ["ssh://-oProxyCommand=touch%20x/a.annals", "ssh:///a.annals", "ssh://there/"] {
        let (is_done, _, errors) = remote.run(&["dump", url], "");
        assert!(!is_done && errors.contains("URL of a database"), "{url}: {errors}");
    }
    assert!(!dir.join("ssh.txt").exists(), "nothing was run");
}

#[test]
fn standard_output_carries_nothing_but_answers() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let request = "GET /v1/a/t/page/0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let output =
        crate::program::feed(annals(dir, &["serve", "a.annals", "--stdio"]), request.as_bytes());
    assert!(output.status.success());
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.ends_with('}'), "{answer}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
