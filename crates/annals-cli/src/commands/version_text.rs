//! The transaction of a version of a row, as text and as JSON: for `history` and `blame`.

use annals::{Error, ErrorKind, Result, Schema, Table, Timestamp, VersionKind};

use crate::output::Output;
use crate::{json, language};

/// The transaction that made a version.
pub(super) struct Origin<'v> {
    pub(super) txid: u64,
    pub(super) time: Timestamp,
    pub(super) comments: &'v [String],
    pub(super) kind: VersionKind,
}

/// Finds a table by its current name. If there is none, the error says whether one of that name was dropped or renamed.
pub(super) fn find<'s>(schema: &'s Schema, name: &str) -> Result<&'s Table> {
    if let Some(table) = schema.table_named(name) {
        return Ok(table);
    }
    let is_of_old = schema.commands().iter().any(|command| match command {
        annals::Command::CreateTable { name: created } => created == name,
        annals::Command::RenameTable { name: renamed, .. } => renamed == name,
        _ => false,
    });
    let why = match is_of_old {
        true => "a table of that name was dropped or renamed; `annals log` shows when",
        false => "`annals info` lists the tables",
    };
    Err(Error::new(ErrorKind::NotFound, format!("there is no table `{name}`: {why}")))
}

/// Prints the transaction, its effect on the row, and its comments.
pub(super) fn text(origin: &Origin<'_>, before: &str, output: &mut Output) -> Result<()> {
    let what = match origin.kind {
        VersionKind::Insert => "inserted",
        VersionKind::Update => "changed",
        VersionKind::Delete => "deleted",
        VersionKind::State => "was there when the history begins",
    };
    output.line(&format!("{before}txid {}, {}: {what}", origin.txid, origin.time))?;
    for comment in origin.comments {
        let mut line = "  comment ".to_owned();
        language::write_value(comment.as_str().into(), &mut line);
        output.line(&line)?;
    }
    Ok(())
}

/// Appends `txid`, `time`, `comment` and `kind`. Several comments are one, with a line for each; without comments it
/// is null.
pub(super) fn push_json(json: &mut String, origin: &Origin<'_>) {
    json.push_str(&format!("\"txid\":{},\"time\":\"{}\",\"comment\":", origin.txid, origin.time));
    match origin.comments {
        [] => json.push_str("null"),
        comments => json::push_string(json, &comments.join("\n")),
    }
    json.push_str(&format!(",\"kind\":\"{}\"", origin.kind.name()));
}
