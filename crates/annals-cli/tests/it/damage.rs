//! `check` on files that are damaged: it says so with status 2, and never panics.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
            Some(2) => {
                assert!(errors.starts_with("error: "), "byte {place}: {errors}");
                let info = run(dir.path(), &["info", "a.annals"], b"");
                let shown = String::from_utf8(info.stdout).unwrap();
                let says = shown.contains("\ndamage: ") || info.status.code() == Some(2);
                assert!(says, "byte {place}: `check` finds {errors}`info` prints {shown}");
            }
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
fn a_flipped_byte_gives_no_wrong_history() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.annals");
    let script = format!("{SCRIPT}commit\nupdate t 0 s \"other\"\ncommit\ndelete_from t 1\n");
    succeed(dir.path(), &["shell", "a.annals"], &script);
    let sound = fs::read(&path).unwrap();
    let rows = ["0", "1", "2"];
    let expected = rows.map(|row| succeed(dir.path(), &["history", "a.annals", "t", row], ""));
    let (mut right, mut refused) = (0, 0);
    for place in (0..64).chain((64..16_384).step_by(1021)).chain((16_384..sound.len()).step_by(5)) {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        let row = place % rows.len();
        let output = run(dir.path(), &["history", "a.annals", "t", rows[row]], b"");
        match output.status.code() {
            Some(0) => {
                assert_eq!(String::from_utf8_lossy(&output.stdout), expected[row], "byte {place}");
                right += 1;
            }
            Some(1) => {
                assert!(output.stderr.starts_with(b"error: "), "byte {place}");
                refused += 1;
            }
            other => panic!("byte {place}: status {other:?}"),
        }
    }
    assert!(right > 10 && refused > 50, "{right} right, {refused} refused");
}

#[test]
fn what_cannot_be_looked_at_beside_the_journal_is_told_with_the_journals_state() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a"], SCRIPT);
    fs::create_dir(dir.path().join("a-image")).unwrap();
    let output = run(dir.path(), &["check", "a"], b"");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    for words in
        ["can't open the image, which is not a regular file", "remove it", "the journal is sound"]
    {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    // Everything else works without it.
    let output = run(dir.path(), &["history", "a", "t", "0"], b"");
    assert!(output.status.success() && !output.stdout.is_empty());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains("not a regular file"), "{told}");
}

#[test]
fn a_check_beside_a_writer_judges_one_end() {
    let dir = tempfile::tempdir().unwrap();
    let fill = "insert t \"some text that is there to make it larger\"\n".repeat(20_000);
    succeed(dir.path(), &["shell", "a"], &format!("{SCRIPT}{fill}"));
    succeed(dir.path(), &["backfill", "a", "--mode", "full"], "");
    let mut writer = crate::program::annals(dir.path(), &["shell", "a", "--level", "soft"]);
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let feeder = std::thread::spawn(move || {
        for number in 0..20_000_u64 {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            let rest = if number % 400 == 399 { "backfill restart\n" } else { "" };
            let line =
                format!("insert t \"number {number}\"\nupdate t 0 s \"{number}\"\ncommit\n{rest}");
            input.write_all(line.as_bytes()).unwrap();
        }
    });
    let before =
        ::annals_tools::inspect(&::annals::Options::new(), dir.path().join("a")).unwrap().end.txid;
    for _ in 0..8 {
        let output = run(dir.path(), &["check", "--replay", "a"], b"");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            told.contains("replay: it gives what the image and the journal behind it do"),
            "{told}"
        );
    }
    let after =
        ::annals_tools::inspect(&::annals::Options::new(), dir.path().join("a")).unwrap().end.txid;
    stop.store(true, Ordering::Relaxed);
    feeder.join().unwrap();
    assert!(writer.wait().unwrap().success());
    assert!(after > before + 8, "the writer wrote nothing meanwhile");
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

#[test]
fn one_wrong_stored_chain_keeps_nothing_from_being_copied_or_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let script = "create_table a\nadd_field a n int32\ninsert a 1\ncommit\ninsert a 2\ncommit\n\
                  insert a 3\ncommit\n";
    succeed(dir.path(), &["shell", "x.annals"], script);
    let dump = succeed(dir.path(), &["dump", "x.annals"], "");
    let path = dir.path().join("x.annals");
    let mut bytes = fs::read(&path).unwrap();
    bytes[16_447] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let check = run(dir.path(), &["check", "x.annals"], b"");
    assert_eq!(check.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&check.stderr).contains("the chain that the frame before"));
    let salvaged = succeed(dir.path(), &["recover", "x.annals", "--salvage", "s.annals"], "");
    assert!(
        salvaged.contains("3 transactions") && salvaged.contains("nothing was lost"),
        "{salvaged}"
    );
    succeed(dir.path(), &["backup", "x.annals", "b.annals"], "");
    succeed(dir.path(), &["push", "x.annals", "p.annals"], "");
    succeed(dir.path(), &["convert", "x.annals", "z.annals", "--compress"], "");
    for made in ["s.annals", "b.annals", "p.annals", "z.annals"] {
        succeed(dir.path(), &["check", made], "");
        assert_eq!(succeed(dir.path(), &["dump", made], ""), dump, "{made}");
    }
    assert_eq!(fs::read(&path).unwrap(), bytes, "the damaged file is as it was");
    succeed(dir.path(), &["erase", "x.annals", "a", "0", "--dry-run"], "");
}

#[test]
fn salvage_of_a_file_that_lost_its_beginning_does_not_say_that_nothing_was_lost() {
    let dir = tempfile::tempdir().unwrap();
    succeed(
        dir.path(),
        &["shell", "x.annals"],
        "create_table a\nadd_field a n int32\ninsert a 1\n",
    );
    let bytes = fs::read(dir.path().join("x.annals")).unwrap();
    for lost in [4096, 4608, 8192] {
        fs::write(dir.path().join("d"), &bytes[lost..]).unwrap();
        let output = run(dir.path(), &["recover", "d", "--salvage", &format!("s{lost}")], b"");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{lost}: {text}");
        assert!(!text.contains("nothing was lost"), "{lost}: {text}");
    }
    succeed(dir.path(), &["shell", "empty"], "");
    let text = succeed(dir.path(), &["recover", "empty", "--salvage", "s"], "");
    assert!(text.contains("0 transactions") && text.contains("nothing was lost"), "{text}");
}

#[test]
fn a_damaged_compressed_file_is_damage_and_not_an_error_of_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "x.annals"], SCRIPT);
    succeed(dir.path(), &["convert", "x.annals", "z", "--compress"], "");
    let sound = fs::read(dir.path().join("z")).unwrap();
    for place in (0..sound.len()).step_by(3) {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        fs::write(dir.path().join("z"), damaged).unwrap();
        let output = run(dir.path(), &["check", "z"], b"");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(1), "byte {place}: {errors}");
    }
}

/// Programs that ask once and end would meet the page each time.
#[test]
fn a_lost_page_of_the_image_stops_no_program_twice() {
    const ASK: &str = "SELECT count(*), sum(length(note)), max(name) FROM person";
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut script =
        "create_table person\nadd_field person name string\nadd_field person note string\n"
            .to_owned();
    script += "create_unique_index by_name person name\ncommit\n";
    for row in 0..1500_u64 {
        let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        script += &format!("insert person \"{mixed:016x}\" \"{:o}\"\n", mixed.rotate_left(17));
    }
    succeed(dir, &["shell", "a.annals"], &script);
    succeed(dir, &["backfill", "a.annals"], "");
    let (journal, image) = (dir.join("a.annals"), dir.join("a.annals-image"));
    let sound = [&journal, &image].map(|file| fs::read(file).unwrap());
    let ask = |words: &[&str], input: &str| run(dir, words, input.as_bytes());
    let reading: [(&[&str], &str); 4] = [
        (&["sql", "a.annals", ASK], ""),
        (&["sql", "a.annals"], ASK),
        (&["dump", "a.annals"], ""),
        (&["export", "csv", "a.annals", "person"], ""),
    ];
    let wanted = reading.map(|(words, input)| succeed(dir, words, input));
    let (mut met, mut refused) = (0, 0);
    for place in (12_288..sound[1].len()).step_by(4096) {
        let _ = fs::remove_file(dir.join("a.annals-image-damaged"));
        let mut damaged = sound[1].clone();
        damaged[place + 12] ^= 1;
        fs::write(&journal, &sound[0]).unwrap();
        fs::write(&image, damaged).unwrap();
        for ((words, input), wanted) in reading.iter().zip(&wanted) {
            let output = ask(words, input);
            let errors = String::from_utf8_lossy(&output.stderr);
            let is_right = output.status.success() && output.stdout == wanted.as_bytes();
            assert!(is_right, "{words:?}, {place}: {errors}");
            met += usize::from(errors.contains("damaged"));
        }
        // A transaction isn't begun again by the program; but its end leaves an image without the page.
        let insert = ["shell", "a.annals"];
        if !ask(&insert, "insert person \"x\" \"1\"\n").status.success() {
            refused += 1;
            succeed(dir, &insert, "insert person \"x\" \"1\"\n");
        }
        succeed(dir, &insert, "insert person \"y\" \"1\"\n");
        let rows = succeed(dir, &["sql", "a.annals", "SELECT count(*) FROM person"], "");
        assert!(rows.contains("1502"), "{place}: {rows}");
    }
    assert!(met > 40 && refused > 0, "{met} met, {refused} refused");
}

/// What was written before the page was met isn't written twice.
#[test]
fn a_long_output_goes_on_after_a_lost_page() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut script = "create_table t\nadd_field t text string\n".to_owned();
    for row in 0..30_000_u64 {
        let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        script += &format!("insert t \"{mixed:064b}\"\n");
    }
    succeed(dir, &["shell", "a.annals"], &script);
    succeed(dir, &["backfill", "a.annals"], "");
    let wanted = succeed(dir, &["dump", "a.annals"], "");
    assert!(wanted.len() > 2 << 20, "more than is held back");
    let image = dir.join("a.annals-image");
    let sound = fs::read(&image).unwrap();
    let mut met = 0;
    for place in (12_288..sound.len()).step_by(8 * 16_384) {
        let mut damaged = sound.clone();
        damaged[place + 12] ^= 1;
        fs::write(&image, damaged).unwrap();
        let output = run(dir, &["dump", "a.annals"], b"");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == wanted.as_bytes(), "{place}: {errors}");
        met += usize::from(errors.contains("damaged"));
    }
    assert!(met > 5, "only {met}");
}
