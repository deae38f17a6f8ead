//! Advice of messages and documents, compared with the existing commands and options.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use crate::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the texts of all files below a folder with this ending, each literal of several lines as one line.
fn texts(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path, ending));
        } else if path.extension().is_some_and(|found| found == ending) {
            let text = fs::read_to_string(&path).unwrap();
            let pieces: Vec<_> = text.split("\\\n").map(str::trim_start).collect();
            found.push((path, pieces.concat()));
        }
    }
    found
}

/// Returns the source of the library, all layers of it.
fn library() -> Vec<(PathBuf, String)> {
    let layers = ["annals-store", "annals-journal", "annals-event", "annals", "annals-storage"];
    layers
        .iter()
        .flat_map(|name| texts(&root().join("crates").join(name).join("src"), "rs"))
        .collect()
}

fn sources() -> Vec<(PathBuf, String)> {
    let others = ["crates/annals-cli/src", "crates/annals-schema/src"];
    let others = others.iter().flat_map(|folder| texts(&root().join(folder), "rs"));
    library().into_iter().chain(others).collect()
}

/// Returns the text up to the next backtick or end of the line.
fn quoted<'t>(text: &'t str, begin: &'static str) -> impl Iterator<Item = &'t str> {
    text.split(begin)
        .skip(1)
        .map(|rest| rest.split(['`', '\n', '|', '"']).next().unwrap_or_default())
}

/// Returns the part of a command line that doesn't exist.
fn wrong(line: &str) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    let mut words = line.split_whitespace().peekable();
    let mut depth = 0;
    while let Some(below) = words.peek().and_then(|word| command.find_subcommand(word)) {
        command = below.clone();
        words.next();
        depth += 1;
    }
    let first = words.peek().copied().unwrap_or_default();
    let is_name = first.starts_with(|c: char| c.is_ascii_lowercase());
    if depth == 0 && is_name {
        return Some(format!("there is no command `{first}`"));
    }
    let is_known = |option: &str| {
        command.get_arguments().any(|argument| argument.get_long() == Some(option))
            || matches!(option, "help" | "version")
    };
    words.find_map(|word| {
        let option = word.strip_prefix("--")?.split(['=', ',', '.', ')', ';', ':']).next()?;
        let is_option = option.starts_with(|c: char| c.is_ascii_lowercase());
        (is_option && !is_known(option)).then(|| format!("there is no option --{option}"))
    })
}

#[test]
fn commands_that_are_advised_are_there() {
    assert!(wrong("no-such FILE").is_some() && wrong("check --no-such FILE").is_some());
    let docs = texts(&root().join("docs"), "md");
    let readme = (root().join("README.md"), fs::read_to_string(root().join("README.md")).unwrap());
    let (mut mistakes, mut looked_at) = (Vec::new(), 0);
    for (path, text) in sources().into_iter().chain(docs).chain([readme]) {
        let examples = if path.extension().is_some_and(|it| it == "rs") {
            "\n  annals "
        } else {
            "\n$ annals "
        };
        for line in quoted(&text, "`annals ").chain(quoted(&text, examples)) {
            looked_at += 1;
            mistakes.extend(wrong(line).map(|what| format!("{}: {line}: {what}", path.display())));
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(looked_at > 200, "only {looked_at} were found");
}

#[test]
fn options_and_settings_that_messages_name_are_there() {
    let mut all = Vec::new();
    let mut commands = vec![Cli::command()];
    while let Some(command) = commands.pop() {
        all.extend(
            command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)),
        );
        commands.extend(command.get_subcommands().cloned());
    }
    let code: String = library().iter().map(|(_, text)| text.as_str()).collect();
    let mut mistakes = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| !path.ends_with("advice.rs")) {
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        // Other programs have options, too.
        let is_ours = |line: &&str| !line.trim_start().starts_with("//") && !line.contains("psql");
        for line in product.lines().filter(is_ours) {
            let options = line.split([' ', '(', '`']).filter_map(|word| word.strip_prefix("--"));
            for option in options {
                let end = option.find(|c: char| !c.is_ascii_lowercase() && c != '-');
                let option = option.get(..end.unwrap_or(option.len())).unwrap_or_default();
                if !option.is_empty() && !all.iter().any(|there| there == option) {
                    mistakes.push(format!("{}: --{option}", path.display()));
                }
            }
            for setting in ["`Options::", "`Database::"].iter().flat_map(|of| quoted(line, of)) {
                let name = setting.split('(').next().unwrap_or_default();
                if !code.contains(&format!("fn {name}")) {
                    mistakes.push(format!("{}: {setting}", path.display()));
                }
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn messages_speak_of_settings_by_a_name_that_can_be_found() {
    // A bare name, as `lock_timeout`, is no option of the program, and means nothing to its users.
    let options = texts(&root().join("crates/annals/src/db"), "rs");
    let (_, text) = options.iter().find(|(path, _)| path.ends_with("options.rs")).unwrap();
    let settings: Vec<_> = quoted(text, "pub const fn ")
        .filter_map(|line| line.split_once("(mut self"))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    assert!(settings.contains(&"`lock_timeout`".to_owned()), "{settings:?}");
    let mut mistakes = Vec::new();
    for (path, text) in library() {
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines.filter(|line| settings.iter().any(|name| line.contains(name.as_str()))) {
            mistakes.push(format!("{}: {}", path.display(), line.trim()));
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
