//! The parser of schema text.
//!
//! A mistake never hides another: a wrong line is reported and skipped. Names that it would have
//! defined or freed are remembered, so that lines that depend on them aren't reported too.

mod elsewhere;
mod expect;
mod fate;
mod fields;
mod file;
mod indexes;
mod joedb;
mod rust_type;
mod scope;
mod tables;
mod variants;

pub use file::{Ignored, SchemaFile, parse, parse_files};

use fate::Fates;
use scope::{Mistake, Scope};

use crate::{Command, Diagnostic, Schema, Token};

/// The commands of the schema language, `namespace` included.
pub const COMMANDS: [&str; 17] = [
    "create_table",
    "drop_table",
    "rename_table",
    "add_field",
    "drop_field",
    "rename_field",
    "add_variant",
    "rename_variant",
    "drop_variant",
    "create_index",
    "create_unique_index",
    "drop_index",
    "set_single_row",
    "history_index",
    "no_history_index",
    "custom",
    "namespace",
];

/// Parses one command of the schema language, already split into tokens; `None` if the first token
/// is no command of it, or there is no token. `namespace` is for files only, and is none here; `as PATH` of a field is,
/// too, and has no effect.
///
/// # Errors
/// The first mistake of the line. Its [`line`](Diagnostic::at) is for the caller to say.
pub fn parse_command(schema: &Schema, tokens: &[Token<'_>]) -> Result<Option<Command>, Diagnostic> {
    let parsed = command(&Scope::new(schema, &Fates::default()), tokens);
    let parsed = parsed.or_else(|_| {
        // Only an error justifies the time to find the fate of a name.
        let fates = Fates::of(schema);
        command(&Scope::new(schema, &fates), tokens).map_err(|mistake| *mistake.diagnostic)
    })?;
    Ok(parsed.map(|parsed| parsed.command))
}

/// A line of a schema.
struct Parsed {
    command: Command,
    /// What follows `as`, which is no part of the schema.
    rust_type: Option<String>,
}

impl From<Command> for Parsed {
    fn from(command: Command) -> Self {
        Self { command, rust_type: None }
    }
}

fn command(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Option<Parsed>, Mistake> {
    let Some(first) = tokens.first().filter(|first| !first.quoted) else {
        return Ok(None);
    };
    match first.text.as_ref() {
        "create_table" => tables::create(scope, tokens),
        "drop_table" => tables::drop(scope, tokens),
        "rename_table" => tables::rename(scope, tokens),
        "set_single_row" => tables::set_single_row(scope, tokens),
        "history_index" => tables::set_history_index(scope, tokens, true),
        "no_history_index" => tables::set_history_index(scope, tokens, false),
        "custom" => tables::custom(scope, tokens),
        "add_field" => return fields::add(scope, tokens).map(Some),
        "drop_field" => fields::drop(scope, tokens),
        "rename_field" => fields::rename(scope, tokens),
        "add_variant" => variants::add(scope, tokens),
        "rename_variant" => variants::rename(scope, tokens),
        "drop_variant" => variants::drop(scope, tokens),
        "create_index" | "create_unordered_index" => indexes::create(scope, tokens, false),
        "create_unique_index" | "create_unordered_unique_index" => {
            indexes::create(scope, tokens, true)
        }
        "drop_index" => indexes::drop(scope, tokens),
        _ => return Ok(None),
    }
    .map(|command| Some(command.into()))
}
