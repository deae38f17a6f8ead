//! `check` on files that are damaged: it says so with status 2, and never panics.

use std::fs;

use crate::program::{run, succeed};

const SCRIPT: &str = "create_table t\nadd_field t s string\ninsert t \"first\"\ncommit\n\
                      insert t \"second\"\ncommit\ninsert t \"third\"\n";

#[test]
fn a_flipped_byte_is_found_or_did_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.annals");
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    let sound = fs::read(&path).unwrap();
    let dump = succeed(dir.path(), &["dump", "a.annals"], "");
    assert!(succeed(dir.path(), &["check", "a.annals"], "").starts_with("ok: 3 transactions"));

    let frames = 16_384..sound.len();
    let places = (0..64).chain((64..frames.start).step_by(1021)).chain(frames.clone().step_by(7));
    let mut found = 0;
    for place in places {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        let output = run(dir.path(), &["check", "a.annals"], b"");
        let errors = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(0) => assert_eq!(succeed(dir.path(), &["dump", "a.annals"], ""), dump),
            Some(2) => assert!(errors.starts_with("error: "), "byte {place}: {errors}"),
            other => panic!("byte {place}: status {other:?}: {errors}"),
        }
        if frames.contains(&place) && output.status.code() == Some(2) {
            found += 1;
        }
    }
    // Everything was durable, so that all of it counts; padding between frames is no data.
    assert!(found * 7 > frames.len() / 2, "found {found} of {}", frames.len() / 7);
}

#[test]
fn a_truncated_file_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.annals");
    succeed(dir.path(), &["shell", "a.annals"], SCRIPT);
    let sound = fs::read(&path).unwrap();
    for len in [0, 1, 100, 4096, 10_000, 16_384, sound.len() - 8] {
        fs::write(&path, &sound[..len]).unwrap();
        let output = run(dir.path(), &["check", "a.annals"], b"");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{len} bytes: {errors}");
        let info = run(dir.path(), &["info", "a.annals"], b"");
        let shown = String::from_utf8(info.stdout).unwrap();
        // Where a header is left, that is shown, and the damage.
        assert_eq!(info.status.code(), Some(i32::from(len < 4096)), "{len} bytes: {shown}");
        assert_eq!(shown.contains("\ndamage: "), len >= 4096, "{len} bytes: {shown}");
        for command in ["dump", "log", "shell"] {
            let output = run(dir.path(), &[command, "a.annals"], b"");
            assert_eq!(output.status.code(), Some(1), "{command} of {len} bytes");
            assert!(output.stderr.starts_with(b"error: "), "{command} of {len} bytes");
        }
        assert_eq!(
            fs::read(&path).unwrap(),
            &sound[..len],
            "a file that is refused stays as it is"
        );
    }
}
