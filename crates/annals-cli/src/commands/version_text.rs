//! The transaction of a version of a row, as text: for `history` and `blame`.

use annals::{Error, ErrorKind, Result, Schema, Table, Timestamp, VersionKind};

use crate::language;
use crate::output::Output;

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
    let names = schema.tables().iter().map(|table| table.name.as_str());
    let why = match is_of_old {
        true => "a table of that name was dropped or renamed; `annals log` shows when".to_owned(),
        false => language::near(name, names) + "`annals info` lists the tables",
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
