//! What is made from the table of commands: the manual, and the scripts that shells complete with.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::process::Command;

use crate::program::{run, succeed};

/// Returns the names of the commands below these words, from their help: `import`, then `csv`.
fn commands(words: &[&str]) -> Vec<String> {
    let help = succeed(Path::new("."), &[words, &["--help"]].concat(), "");
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter_map(|line| {
        // A further line of a long description stands deeper.
        let line = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
        line.split(' ').next().map(str::to_owned)
    });
    names.filter(|name| name != "help").collect()
}

/// Returns all commands, each with those that it is below: `annals`, `annals import`, ..
fn all_commands() -> Vec<String> {
    let mut all = vec!["annals".to_owned()];
    for name in commands(&[]) {
        all.push(format!("annals {name}"));
        all.extend(commands(&[&name]).iter().map(|below| format!("annals {name} {below}")));
    }
    assert!(all.len() > 12, "{all:?}");
    assert!(all.iter().any(|name| name == "annals import csv"), "{all:?}");
    all
}

#[test]
fn every_command_has_a_page_and_stands_in_those_above_it() {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["man", "share/man1"], "");
    let folder = dir.path().join("share/man1");
    let pages: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let all = all_commands();
    let expected: BTreeSet<String> =
        all.iter().map(|name| format!("{}.1", name.replace(' ', "-"))).collect();
    assert_eq!(pages, expected, "a page for each command, and nothing else");

    for name in &all {
        let dashed = name.replace(' ', "-");
        let page = fs::read_to_string(folder.join(format!("{dashed}.1"))).unwrap();
        let heading = format!(".TH {} 1 ", dashed.to_uppercase());
        assert!(page.contains(&heading), "{name}: {page}");
        assert!(page.contains(&format!("\\fB{name}\\fR")), "{name}: the synopsis says it");
        assert!(page.contains("Example"), "{name}");
        if let Some((above, _)) = name.rsplit_once(' ') {
            let above = folder.join(format!("{}.1", above.replace(' ', "-")));
            let link = format!("{}(1)", dashed.replace('-', "\\-"));
            assert!(fs::read_to_string(above).unwrap().contains(&link), "{name} isn't above");
        }
    }
    let main = fs::read_to_string(folder.join("annals.1")).unwrap();
    assert_eq!(succeed(dir.path(), &["man"], ""), main, "the same page on standard output");
}

#[test]
fn pages_that_cannot_be_written_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let output = run(dir.path(), &["man", "file"], b"");
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: cannot create file: "), "{message}");
}

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeed(Path::new("."), &["completions", shell], "");
        for name in all_commands() {
            let last = name.rsplit(' ').next().unwrap();
            let is_word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            assert!(script.split(is_word).any(|word| word == last), "{shell} misses {name}");
        }
        for option in ["format", "schema", "level"] {
            assert!(script.contains(option), "{shell} misses --{option}");
        }
    }
}

/// Asks bash what it would put in place of the last of these words, of which one is typed at
/// least in part.
#[cfg(unix)]
fn complete(script: &Path, words: &[&str]) -> Vec<String> {
    const ASK: &str = r#"
        source "$1" && shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        name=$(complete -p annals | sed 's/.*-F \([^ ]*\).*/\1/')
        "$name" annals "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", ASK, "bash"]).arg(script).args(words);
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[cfg(unix)]
#[test]
fn bash_completes() {
    if Command::new("bash").arg("--version").output().is_err() {
        return annals_untested::untested("bash isn't installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("annals");
    fs::write(&script, succeed(dir.path(), &["completions", "bash"], "")).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&script).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));

    assert_eq!(complete(&script, &["annals", "ex"]), ["explore", "export"]);
    assert_eq!(complete(&script, &["annals", "import", "c"]), ["csv", "changes"]);
    assert_eq!(complete(&script, &["annals", "shell", "--le"]), ["--level"]);
    assert_eq!(complete(&script, &["annals", "completions", "f"]), ["fish"]);
    let offered: BTreeSet<String> = complete(&script, &["annals", ""]).into_iter().collect();
    for name in commands(&[]) {
        assert!(offered.contains(&name), "{name} isn't offered: {offered:?}");
    }
}
