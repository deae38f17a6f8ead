//! Finding a command of the shell in the table of all.

use annals::{Error, Result, Schema};
use annals_schema::Token;

use super::command::{Command, Kind, Run};
use super::commands::COMMANDS;
use super::schema;

/// Finds a command by its name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The handler of commands of the schema language without a line in the table.
static UNLISTED: Command = Command {
    name: "",
    form: "",
    help: "",
    more: "",
    kind: Kind::Schema,
    run: Run::Change(schema::change),
};

/// Finds the command that a line's first word names.
pub(crate) fn command_of(tokens: &[Token<'_>]) -> Result<&'static Command> {
    let name = match tokens.first() {
        Some(first) if !first.quoted => &first.text,
        first => return Err(unknown(first.map_or("", |first| &first.text))),
    };
    if let Some(command) = find(name) {
        return Ok(command);
    }
    // Whatever the language knows can be run, even where its line in the table is missing.
    match annals_schema::parse_command(&Schema::default(), tokens) {
        Ok(None) => Err(unknown(name)),
        Ok(Some(_)) | Err(_) => Ok(&UNLISTED),
    }
}

/// Returns the error for an unknown command, with a suggestion or how to list all.
pub(crate) fn unknown(name: &str) -> Error {
    let names = COMMANDS.iter().map(|command| command.name);
    let hint = match annals_schema::nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`help` lists the commands".to_owned(),
    };
    Error::invalid(format!("unknown command {:?}; {hint}", annals_schema::shorten(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once_and_helps_fit_on_a_line() {
        for (place, command) in COMMANDS.iter().enumerate() {
            assert!(std::ptr::eq(find(command.name).unwrap(), command), "{}", command.name);
            assert!(!command.help.is_empty() && command.help.len() <= 49, "{}", command.name);
            let kind = Kind::ALL.iter().position(|&kind| kind == command.kind);
            let before = COMMANDS.get(place.wrapping_sub(1)).unwrap_or(command);
            let kind_before = Kind::ALL.iter().position(|&kind| kind == before.kind);
            assert!(kind_before <= kind, "{} is not among its kind", command.name);
        }
    }

    #[test]
    fn the_table_has_the_commands_of_the_schema_language_and_no_others() {
        for name in annals_schema::COMMANDS {
            let kind = find(name).map(|command| command.kind);
            assert_eq!(kind, Some(Kind::Schema), "the table lacks {name}");
        }

        let commands = COMMANDS.iter().filter(|command| command.kind == Kind::Schema);
        for command in commands.filter(|command| command.name != "namespace") {
            let tokens = annals_schema::tokenize(command.name).unwrap();
            let parsed = annals_schema::parse_command(&annals::Schema::default(), &tokens);
            assert!(parsed.is_err(), "{}: nothing asks for its arguments", command.name);
        }
    }

    #[test]
    fn a_slip_is_told_from_a_word_that_is_none() {
        let message = unknown("isnert").to_string();
        assert_eq!(message, "unknown command \"isnert\"; did you mean `insert`?");
        assert!(unknown("frobnicate").to_string().ends_with("`help` lists the commands"));
    }
}
