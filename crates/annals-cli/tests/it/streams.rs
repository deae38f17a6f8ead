//! The shell at the end of a pipe, and commands whose output nobody reads.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::program::{annals, run, succeed};

#[test]
fn a_commit_is_told_before_the_next_line_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = annals(dir.path(), &["shell", "a.annals", "--level", "soft"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for txid in 1..=3 {
        writeln!(input, "comment \"number {txid}\"\ncommit").unwrap();
        let mut line = String::new();
        // If the program waited for more input, this would wait for ever.
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("committed txid={txid} position=")), "{line:?}");
        assert!(line.ends_with(" level=soft\n"), "{line:?}");
        // A reader sees it while the shell has the file open.
        let log = succeed(dir.path(), &["log", "a.annals"], "");
        assert_eq!(log.matches("comment").count(), txid);
    }
    writeln!(input, "comment \"lost\"\nrollback").unwrap();
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(child.wait().unwrap().success());
}

#[test]
fn nobody_need_read_what_is_told_besides() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "x y,x y\n1,2\n").unwrap();
    for (arguments, status) in [
        (["import", "csv", "a.csv", "b.annals"], 0),
        (["export", "joedb", "b.annals", "b.joedb"], 0),
        (["export", "joedb", "none.annals", "c.joedb"], 1),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended =
            annals(dir.path(), &arguments).stdout(Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{arguments:?}");
    }
    assert!(dir.path().join("b.joedb").exists());
}

#[test]
fn a_second_writer_is_told_who_is_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = annals(dir.path(), &["shell", "a.annals"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "create_table t\ncommit").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();

    let second = run(dir.path(), &["shell", "a.annals"], b"comment \"y\"\n");
    let message = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(message.contains(&format!("process {} ", child.id())), "{message}");
    assert_eq!(second.stdout, b"");

    // What the message advises works.
    let looked = succeed(dir.path(), &["shell", "a.annals", "--read-only"], "dump\ntable t\n");
    assert!(looked.contains("0 rows"), "{looked}");

    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn shared_shells_write_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let shared = ["shell", "--shared", "a.annals"];
    let mut command = annals(dir.path(), &shared);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answer = |script: &str| {
        writeln!(input, "{script}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let first = answer("create_table t\nadd_field t x int32\ncommit");
    assert!(first.starts_with("committed txid=1 "), "{first}");

    let second = succeed(dir.path(), &shared, "insert t 1\n");
    assert!(second.starts_with("committed txid=2 "), "{second}");
    assert_eq!(answer("pull"), "pulled up to txid=2\n");
    let refused = run(dir.path(), &["shell", "a.annals"], b"insert t 1\n");
    assert_eq!(refused.status.code(), Some(1));

    // Pending changes hold the turn; a reader needs none, and doesn't see them.
    assert_eq!(answer("insert t 2\nrecord t 1"), "id  1\n");
    assert_eq!(answer(""), "x   2\n");
    let options = annals::Options::new().shared(true);
    let hasty = options.lock_timeout(std::time::Duration::from_millis(50));
    let busy = hasty.open(dir.path().join("a.annals")).unwrap_err();
    assert_eq!(busy.kind(), annals::ErrorKind::Busy, "{busy}");
    let seen = succeed(dir.path(), &["shell", "--read-only", "a.annals"], "pull\ntable t\n");
    assert!(seen.starts_with("pulled up to txid=2\n") && seen.ends_with("\n1 row\n"), "{seen}");

    let third = answer("commit");
    assert!(third.starts_with("committed txid=3 "), "{third}");
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(succeed(dir.path(), &["check", "a.annals"], "").contains("2 rows"));
}

#[test]
fn a_killed_shell_loses_only_what_was_not_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = annals(dir.path(), &["shell", "a.annals", "--level", "soft"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "create_table t\nadd_field t x int32\ninsert t 1\ncommit\ninsert t 2").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    succeed(dir.path(), &["shell", "a.annals"], "insert t 3\n");
    let dump = succeed(dir.path(), &["dump", "a.annals"], "");
    assert!(dump.ends_with("insert_at t 0 1\ninsert_at t 1 3\n"), "{dump}");
}

#[test]
fn a_log_that_follows_prints_what_comes_through_kills_and_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let shell = |script: &str| {
        let mut command = annals(dir.path(), &["shell", "a.annals", "--level", "soft"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(script.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("committed "), "{line}");
        child
    };
    let mut first = shell("create_table t\nadd_field t x int32\ncommit\n");
    let mut command = annals(dir.path(), &["log", "a.annals", "--follow", "--table", "t"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(follower.stdout.take().unwrap());
    let mut lines = |count: usize| -> Vec<String> {
        let line = |_| {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.split(" at 2").next().unwrap().trim_end().to_owned()
        };
        (0..count).map(line).collect()
    };
    assert_eq!(lines(3), ["create_table t", "add_field t x int32", "commit soft"]);
    writeln!(first.stdin.as_mut().unwrap(), "insert t 1\ncommit\ncomment \"no\"\ncommit").unwrap();
    assert_eq!(lines(2), ["insert t 1", "commit soft"]);
    first.kill().unwrap();
    first.wait().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], "insert t 2\n");
    assert_eq!(lines(2), ["insert t 2", "commit checksummed"]);
    succeed(dir.path(), &["backfill", "a.annals", "--mode", "restart"], "");
    succeed(dir.path(), &["shell", "a.annals"], "comment \"yes\"\ninsert t 3\n");
    assert_eq!(lines(3), ["comment \"yes\"", "insert t 3", "commit checksummed"]);
    // Nobody reads it any more: it ends when it has something to say.
    drop(output);
    succeed(dir.path(), &["shell", "a.annals"], "insert t 4\n");
    let ended = follower.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]));
}

#[test]
fn nobody_reads_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let comments = "comment \"nobody will read this\"\n".repeat(20_000);
    succeed(dir.path(), &["shell", "a.annals"], &comments);
    for arguments in [["log", "a.annals"].as_slice(), &["log", "a.annals", "--format", "json"]] {
        let mut command = annals(dir.path(), arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut start = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "its reader wanted no more");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "which is no news");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], "create_table t\n");
    for name in ["log", "dump", "info", "check"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = annals(dir.path(), &[name, "a.annals"])
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(message.starts_with("error: cannot write to standard output"), "{message}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_file_is_written_to_and_links_stay() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.schema"), "create_table t\n").unwrap();
    let printed = succeed(dir.path(), &["compile", "a.schema"], "");
    // Our standard output is a pipe here, which is reached through a link.
    let piped = succeed(dir.path(), &["compile", "a.schema", "-o", "/proc/self/fd/1"], "");
    assert_eq!(piped, printed, "through the pipe");
    let full = run(dir.path(), &["compile", "a.schema", "-o", "/dev/full"], b"");
    assert_eq!(full.status.code(), Some(1), "the device is full");

    std::fs::write(dir.path().join("old.rs"), "old").unwrap();
    for (link, target) in [("to_old.rs", "old.rs"), ("to_new.rs", "new.rs")] {
        std::os::unix::fs::symlink(target, dir.path().join(link)).unwrap();
        succeed(dir.path(), &["compile", "a.schema", "-o", link], "");
        assert!(dir.path().join(link).is_symlink(), "{link}");
        let written = std::fs::read_to_string(dir.path().join(target)).unwrap();
        assert_eq!(written, printed, "{target}");
    }
}

/// What an export keeps in memory is bounded, whatever the number of rows.
#[cfg(target_os = "linux")]
#[test]
fn exports_of_many_rows_fit_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut script = "create_table t\nadd_field t s string\n".to_owned();
    for number in 0..250_000_u64 {
        // Digits in no order, so that compressed pages don't make the image small.
        let digits = |part: u64| (number * 13 + part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let text: String = (0..13).map(|part| format!("{:016x}", digits(part))).collect();
        script += &format!("insert t \"row {number} {text}\"\n");
    }
    succeed(dir, &["shell", "a.annals"], &script);
    assert!(std::fs::metadata(dir.join("a.annals-image")).unwrap().len() > 50_000_000);
    let exports = [
        "export csv a.annals csv",
        "export ndjson a.annals lines",
        "export joedb a.annals joedb",
        "dump a.annals --format json",
        "log a.annals",
    ];
    for export in exports {
        let mut command = std::process::Command::new("sh");
        // In KiB: what a program may have of memory that is of no file.
        let limited = format!("ulimit -d 45000 && exec \"$0\" {export}");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_annals")]).current_dir(dir);
        let ended = command.stdout(Stdio::null()).status().unwrap();
        assert!(ended.success(), "{export}");
    }
}
