//! The commands of indexes.

use std::borrow::Cow;

use super::expect::Line;
use super::scope::{Mistake, Scope};
use crate::{Collated, Command, Diagnostic, Field, Token, Type, canonical_locale};

pub(super) fn create(
    scope: &Scope<'_>,
    tokens: &[Token<'_>],
    unique: bool,
) -> Result<Command, Mistake> {
    let usage = if unique {
        "create_unique_index NAME TABLE FIELD [collate LOCALE] [desc][,FIELD ..]"
    } else {
        "create_index NAME TABLE FIELD [collate LOCALE] [desc][,FIELD ..]"
    };
    let line = Line::new(tokens, usage);
    let name = line.word(1, "the index's name")?;
    let table = scope.table(line.word(2, "the table's name")?)?;
    let names = split_at_commas(tokens.get(3..).unwrap_or(&[]));
    let (mut fields, mut descending, mut collated) = (Vec::new(), Vec::new(), Vec::new());
    let mut expect_field = true;
    let mut names = names.iter().peekable();
    while let Some(token) = names.next() {
        match (token.is(","), expect_field) {
            (false, true) => {
                let field = scope.field(table, token)?;
                if fields.contains(&field.number) {
                    let message = format!("the index has the field `{}` twice", field.name);
                    return Err(Diagnostic::new(token, message)
                        .hint("name each field once")
                        .into());
                }
                fields.push(field.number);
                if let Some(word) = names.next_if(|word| word.is("collate")) {
                    let locale = names.next().ok_or_else(|| line.missing("a locale"))?;
                    collated.push(collation(field, word, locale)?);
                }
                if names.next_if(|word| word.is("desc")).is_some() {
                    descending.push(field.number);
                }
            }
            (true, false) => {}
            _ => return Err(line.unexpected(token).into()),
        }
        expect_field = !expect_field;
    }
    if expect_field {
        return Err(line.missing("a field").into());
    }
    let table = table.number;
    let command = Command::CreateIndex {
        name: name.text.clone().into_owned(),
        table,
        fields,
        descending,
        collated,
        unique,
    };
    scope.check(command, name)
}

/// Reads the collation of a field: the word `collate` and a locale.
fn collation(field: &Field, word: &Token<'_>, locale: &Token<'_>) -> Result<Collated, Diagnostic> {
    if field.ty != Type::String {
        let message = format!("field `{}` is no string", field.name);
        let hint = "only a field of type `string` has a collation: leave out `collate`";
        return Err(Diagnostic::new(word, message).hint(hint));
    }
    let canonical = canonical_locale(&locale.text).map_err(|why| {
        Diagnostic::new(locale, why)
            .hint("write a locale such as `de`, or `und-u-ks-level2` to ignore case")
    })?;
    Ok(Collated { field: field.number, locale: canonical, version: String::new() })
}

pub(super) fn drop(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "drop_index NAME");
    let name = line.word(1, "the index's name")?;
    let index = scope.index(name)?.number;
    line.end(2)?;
    scope.check(Command::DropIndex { index }, name)
}

/// Splits names and commas into separate tokens: the language allows blanks around commas.
fn split_at_commas<'t>(tokens: &'t [Token<'_>]) -> Vec<Token<'t>> {
    let mut parts = Vec::new();
    for token in tokens {
        if token.quoted {
            parts.push(token.clone());
            continue;
        }
        let mut column = token.column;
        for part in token.text.split_inclusive(',') {
            let name = part.strip_suffix(',').unwrap_or(part);
            for text in [name, part.get(name.len()..).unwrap_or("")] {
                if !text.is_empty() {
                    let length = text.chars().count();
                    parts.push(Token { text: Cow::Borrowed(text), column, length, quoted: false });
                    column += length;
                }
            }
        }
    }
    parts
}
