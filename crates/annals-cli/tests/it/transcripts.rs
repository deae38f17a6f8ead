//! Transcripts: what a person types, and what the program answers.
//!
//! A line `$ COMMAND` is typed; lines `| TEXT` below it are its standard input, with `\xNN` for any
//! byte. The rest, up to the next `$`, is the answer: standard output, then standard error with `! `
//! in front, then `[status N]` if that isn't 0. Above an answer that begins with `|` is a line `[answer]`. Commands are `annals ..`, whose words may stand in double quotes, and which may end with
//! `< FILE` or `> FILE`; `write FILE`, which writes its input; `append FILE`, which adds its input to the
//! file; `fixture FILE`, which brings it from the folder `files`; `copy FILE TO`; `flip FILE AT`, which flips the bits of a byte; `zero FILE FROM TO`; `gzip FILE`; `cat FILE`; and
//! `ls`.
//! Positions, chains, ids of journals and times of the clock are not the same in each run, so they
//! are written as `_`. `UPDATE=1` rewrites the answers.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::program;

#[test]
fn transcripts_are_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 5);
    let mut differing = Vec::new();
    for path in paths {
        let expected = fs::read_to_string(&path).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let actual = play(dir.path(), &expected);
        if actual == expected {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, actual).unwrap();
        } else {
            differing.push(format!("{}\n{}", path.display(), first_difference(&expected, &actual)));
        }
    }
    assert!(differing.is_empty(), "run with UPDATE=1 to rewrite:\n{}", differing.join("\n"));
}

fn first_difference(expected: &str, actual: &str) -> String {
    let lines = expected.lines().chain(["(end)"]).zip(actual.lines().chain(["(end)"]));
    let place = lines.clone().take_while(|(a, b)| a == b).count();
    let (a, b) = lines.clone().nth(place).unwrap_or(("", ""));
    format!("  line {}\n  expected: {a}\n  actual:   {b}", place + 1)
}

/// Runs all commands of a transcript in `dir`; returns the transcript as it really went.
fn play(dir: &Path, transcript: &str) -> String {
    let mut actual = String::new();
    let mut lines = transcript.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            // Above the first command, and in `#` lines between them, stands why.
            if line.starts_with('#') || line.is_empty() {
                writeln!(actual, "{line}").unwrap();
            }
            continue;
        };
        writeln!(actual, "{line}").unwrap();
        let mut input = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            writeln!(actual, "{line}").unwrap();
            let text = line.strip_prefix("| ").unwrap_or("");
            input.extend(unescape(text));
            input.push(b'\n');
        }
        while lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with('#')).is_some() {}
        let mut said = String::new();
        answer(&mut said, dir, command, input);
        if said.starts_with('|') {
            actual.push_str("[answer]\n");
        }
        actual += &said;
        actual.push('\n');
    }
    actual.truncate(actual.trim_end().len());
    actual + "\n"
}

fn answer(actual: &mut String, dir: &Path, command: &str, mut input: Vec<u8>) {
    let words = words(command);
    match words.as_slice() {
        ["write", file] => fs::write(dir.join(file), input).unwrap(),
        ["append", file] => {
            let mut bytes = fs::read(dir.join(file)).unwrap();
            bytes.append(&mut input);
            fs::write(dir.join(file), bytes).unwrap();
        }
        ["flip", file, at] => {
            let mut bytes = fs::read(dir.join(file)).unwrap();
            bytes[at.parse::<usize>().unwrap()] ^= 0xff;
            fs::write(dir.join(file), bytes).unwrap();
        }
        ["zero", file, from, to] => {
            let mut bytes = fs::read(dir.join(file)).unwrap();
            bytes[from.parse().unwrap()..to.parse().unwrap()].fill(0);
            fs::write(dir.join(file), bytes).unwrap();
        }
        ["fixture", file] => {
            let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/files");
            fs::copy(files.join(file), dir.join(file)).unwrap();
        }
        ["copy", file, to] => drop(fs::copy(dir.join(file), dir.join(to)).unwrap()),
        ["cat", file] => actual.push_str(&fs::read_to_string(dir.join(file)).unwrap()),
        ["gzip", file] => {
            let plain = fs::read(dir.join(file)).unwrap();
            let file = fs::File::create(dir.join(file)).unwrap();
            let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            packer.write_all(&plain).unwrap();
            packer.finish().unwrap();
        }
        ["ls"] => {
            let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names.iter().for_each(|name| writeln!(actual, "{}", stable(name)).unwrap());
        }
        ["annals", arguments @ ..] => {
            let (mut arguments, mut target) = (arguments, None);
            if let [before @ .., "<", file] = arguments {
                input = fs::read(dir.join(file)).unwrap();
                arguments = before;
            }
            if let [before @ .., ">", file] = arguments {
                target = Some(dir.join(file));
                arguments = before;
            }
            let output = program::run(dir, arguments, &input);
            match target {
                Some(target) => fs::write(target, &output.stdout).unwrap(),
                None => actual.push_str(&stable(&String::from_utf8(output.stdout).unwrap())),
            }
            for line in stable(&String::from_utf8(output.stderr).unwrap()).lines() {
                actual.push_str(format!("! {line}").trim_end());
                actual.push('\n');
            }
            match output.status.code() {
                Some(0) => {}
                status => writeln!(actual, "[status {}]", status.unwrap()).unwrap(),
            }
        }
        _ => panic!("no such command: {command}"),
    }
}

/// Returns the words of a command; one in double quotes may have blanks.
fn words(command: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let words = command.split(|c| {
        is_quoted ^= c == '"';
        c == ' ' && !is_quoted
    });
    words
        .map(|word| word.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(word))
        .collect()
}

/// Returns the bytes of a text with `\xNN` escapes.
fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

/// Replaces what changes from run to run, or with the format, by `_`.
fn stable(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        for key in
            ["position=", "position: ", "position ", "\"position\":", "durable up to: ", "size: "]
        {
            line = mask(&line, key, |c| c.is_ascii_digit());
        }
        for key in ["chain ", "journal: ", "\"chain\":\"", "\"journal\":\""] {
            line = mask(&line, key, |c| c.is_ascii_hexdigit());
        }
        for key in [".tail-", ".before-recovery-"] {
            line = mask(&line, key, |c| c.is_ascii_hexdigit() || c == '-');
        }
        for key in ["process ", "process: "] {
            line = mask(&line, key, |c| c.is_ascii_digit());
        }
        for key in [
            "created ",
            "committed ",
            "the last of ",
            "\"created\":\"",
            "commit soft at ",
            "commit checksummed at ",
            "\"time\":\"",
            "commit: ",
            "from ",
            "\"begun\":\"",
            "\"times\":[\"",
            "\"times\":[\"_\",\"",
        ] {
            // The clock's times have microseconds; those that a transcript gives don't.
            let from_clock = |time: &str| {
                let (_, fraction) = time.split_once('.').unwrap_or_default();
                fraction.bytes().take_while(u8::is_ascii_digit).count() > 2
            };
            if line.split_once(key).is_some_and(|(_, time)| from_clock(time)) {
                line = mask(&line, key, |c| c.is_ascii_digit() || "-T:.Z".contains(c));
            }
        }
        out.push_str(&line);
    }
    out
}

/// Replaces the characters that follow each `key`, as long as they are `of_value`.
fn mask(line: &str, key: &str, of_value: impl Fn(char) -> bool) -> String {
    let mut parts = line.split(key);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(&of_value);
        out.push_str(key);
        out.push_str(if rest.len() < part.len() { "_" } else { "" });
        out.push_str(rest);
    }
    out
}
