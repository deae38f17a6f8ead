//! The arguments of the program, before they are read.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};

/// Lets `--json` and `--format json` stand for each other where a command has only one of them: with `--format`
/// there are several formats, and `--json` takes the place of a text for people.
pub(crate) fn with_either_json(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let given: Vec<OsString> = given.collect();
    let cli = crate::Cli::command();
    let mut command = &cli;
    for word in given.iter().skip(1) {
        let Some(found) = command.find_subcommand(word) else { break };
        command = found;
    }
    let (json, format) = (has(command, "json"), has(command, "format"));
    if json == format {
        return given;
    }
    let (mut changed, mut rest) = (Vec::with_capacity(given.len()), given.into_iter().peekable());
    while let Some(word) = rest.next() {
        match word.to_str() {
            Some("--") => {
                changed.push(word);
                break;
            }
            Some("--json") if format => changed.push("--format=json".into()),
            Some("--format=json") if json => changed.push("--json".into()),
            Some("--format") if json && rest.next_if(|next| next == "json").is_some() => {
                changed.push("--json".into());
            }
            _ => changed.push(word),
        }
    }
    changed.extend(rest);
    changed
}

fn has(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_can_be_said_in_either_way() {
        let cases = [
            ("annals info a --format json", "annals info a --json"),
            ("annals info --format=json a", "annals info --json a"),
            ("annals info a --json", "annals info a --json"),
            ("annals info a --format text", "annals info a --format text"),
            ("annals dump a --json", "annals dump a --format=json"),
            ("annals dump a --format json", "annals dump a --format json"),
            ("annals log create --json", "annals log create --json"),
            ("annals info -- --format json", "annals info -- --format json"),
            ("annals nothing --json", "annals nothing --json"),
            ("annals", "annals"),
        ];
        for (given, wanted) in cases {
            let changed = with_either_json(given.split(' ').map(OsString::from));
            assert_eq!(changed.join(" ".as_ref()), *wanted, "{given}");
        }
    }

    /// A command with one of both can say JSON.
    #[test]
    fn each_format_has_json() {
        fn look(command: &Command) -> usize {
            let formats = command.get_arguments().filter(|it| it.get_long() == Some("format"));
            let found = formats.map(|format| {
                let names = format.get_possible_values();
                let has_json = names.iter().any(|name| name.matches("json", false));
                assert!(has_json, "{}", command.get_name());
            });
            found.count() + command.get_subcommands().map(look).sum::<usize>()
        }
        assert!(look(&crate::Cli::command()) >= 5);
    }
}
