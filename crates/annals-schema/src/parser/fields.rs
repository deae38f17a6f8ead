//! The commands of fields.

use std::borrow::Cow;

use super::expect::Line;
use super::scope::{Mistake, Scope};
use super::{Parsed, elsewhere, rust_type};
use crate::diagnostics::{nearest, suggest};
use crate::{Command, Diagnostic, OnDelete, Schema, Token, Type, Value, parse_value, shorten};

const ADD: &str = "add_field TABLE NAME TYPE [null] [default VALUE] [as PATH]";
const REFERENCE: &str =
    "add_field TABLE NAME references TABLE [restrict|cascade|set_null] [required] [default VALUE]";
const RULES: [&str; 3] = ["restrict", "cascade", "set_null"];

pub(super) fn add(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Parsed, Mistake> {
    let line = Line::new(tokens, ADD);
    let table = scope.table(line.word(1, "the table's name")?)?;
    let name = line.word(2, "the field's name")?;
    let word = line.word(3, "the field's type")?;
    let (ty, line, mut behind) = if word.is("references") {
        let line = Line::new(tokens, REFERENCE);
        let target = scope.table(line.word(4, "the table that it references")?)?.number;
        let rule = tokens.get(5).filter(|word| !word.quoted);
        match rule.and_then(|word| OnDelete::named(&word.text)) {
            Some(rule) => (Type::Reference(target, rule), line, 6),
            None if tokens.get(5).is_some_and(|word| word.is("required")) => {
                (Type::Reference(target, OnDelete::Restrict), line, 5)
            }
            None => (Type::Reference(target, OnDelete::Dangle), line, 5),
        }
    } else {
        let (word, behind) = joined(tokens, 3);
        (find_type(scope.schema, &word)?, line, behind)
    };
    let required = tokens.get(behind).filter(|word| word.is("required"));
    let required = required.filter(|_| matches!(ty, Type::Reference(..)));
    if let (Some(word), Type::Reference(_, OnDelete::SetNull)) = (required, ty) {
        return Err(Diagnostic::new(word, "a required reference can't be set to null")
            .hint("write `restrict` or `cascade`, or leave `required` out")
            .into());
    }
    behind += usize::from(required.is_some());
    let nullable = ty.carries_null() && required.is_none();
    let options = options(ty, nullable, &line, behind)?;
    let command = Command::AddField {
        table: table.number,
        name: name.text.clone().into_owned(),
        ty,
        nullable: options.nullable,
        default: options.default,
    };
    Ok(Parsed { command: scope.check(command, name)?, rust_type: options.rust_type })
}

pub(super) fn drop(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "drop_field TABLE FIELD");
    let table = scope.table(line.word(1, "the table's name")?)?;
    let name = line.word(2, "the field's name")?;
    let field = scope.field(table, name)?.number;
    line.end(3)?;
    scope.check(Command::DropField { table: table.number, field }, name)
}

pub(super) fn rename(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "rename_field TABLE FIELD NAME");
    let table = scope.table(line.word(1, "the table's name")?)?;
    let field = scope.field(table, line.word(2, "the field's name")?)?.number;
    let name = line.word(3, "the new name")?;
    line.end(4)?;
    let new = name.text.clone().into_owned();
    scope.check(Command::RenameField { table: table.number, field, name: new }, name)
}

struct Options {
    nullable: bool,
    default: Option<Value>,
    rust_type: Option<String>,
}

/// Reads `null` and `default VALUE` (or `= VALUE`), in either order, then `as PATH`.
fn options(
    ty: Type,
    nullable: bool,
    line: &Line<'_>,
    behind: usize,
) -> Result<Options, Diagnostic> {
    let mut options = Options { nullable, default: None, rust_type: None };
    let mut default_at = None;
    let mut rest = line.tokens.get(behind..).unwrap_or(&[]);
    while let [first, after @ ..] = rest {
        rest = after;
        if first.is("null") && (nullable || !ty.carries_null()) {
            options.nullable = true;
            continue;
        }
        if first.is("as") {
            options.rust_type = Some(rust_type::read(ty, line, first, after)?);
            break;
        }
        let glued = first.text.strip_prefix('=').filter(|text| !first.quoted && !text.is_empty());
        let value = match (glued, after) {
            (Some(text), _) => Cow::Owned(behind_equals(first, text)),
            (None, [value, after @ ..]) if first.is("=") || first.is("default") => {
                rest = after;
                Cow::Borrowed(value)
            }
            (None, []) if first.is("=") || first.is("default") => {
                return Err(line.missing("the default"));
            }
            _ => return Err(no_option(ty, line, first)),
        };
        if options.default.is_some() {
            return Err(
                Diagnostic::new(first, "there is a default already").hint("keep one of them")
            );
        }
        if ty == Type::Blob && !value.is("null") {
            return Err(Diagnostic::new(&value, "a blob can't be a default")
                .hint("leave the default out: a row begins without a blob"));
        }
        options.default = Some(parse_value(ty, &value).map_err(|message| {
            let (what, hint) = message.split_once(": ").unwrap_or((message.as_str(), ""));
            Diagnostic::new(&value, what).hint(hint)
        })?);
        default_at = Some(value);
    }
    match (&options.default, default_at) {
        (Some(Value::Null), Some(token)) if !options.nullable => {
            Err(Diagnostic::new(&token, "the default is null, but the field can't be null")
                .hint("write `null` in front of the default, or give another default"))
        }
        _ => Ok(options),
    }
}

/// Returns the error for a word after the type.
fn no_option(ty: Type, line: &Line<'_>, token: &Token<'_>) -> Diagnostic {
    let wrong = line.unexpected(token);
    if token.quoted {
        return wrong;
    }
    let is_reference = matches!(ty, Type::Reference(..));
    let lower = token.text.to_ascii_lowercase();
    if ["not", "not_null", "notnull"].contains(&lower.as_str()) {
        return wrong.hint(match ty {
            Type::Reference(..) => "write `required` instead of `not null`",
            Type::Blob => "a blob may always be null: leave `not null` out",
            _ => "a field is never null unless its line says `null`: leave `not null` out",
        });
    }
    if lower == "on" && is_reference {
        return wrong.hint("write `restrict`, `cascade` or `set_null` alone");
    }
    if OnDelete::named(&token.text).is_some() {
        let hint = if is_reference {
            "one rule is enough; it stands right behind the table"
        } else {
            "only a field that `references` a table has such a rule"
        };
        return wrong.hint(hint);
    }
    if token.is("null") {
        return wrong.hint("a required reference is never null: leave one of the two words out");
    }
    let rules = RULES.into_iter().filter(|_| is_reference);
    if token.is("required") {
        let hint = if is_reference {
            "`required` stands once, after the table and its rule"
        } else {
            "only a reference may be null unless it is `required`: leave the word out"
        };
        return wrong.hint(hint);
    }
    if let Some(mend) = elsewhere::find(elsewhere::OPTIONS, &token.text) {
        return wrong.hint(mend);
    }
    let rules = rules.chain(["required"].into_iter().filter(|_| is_reference));
    match nearest(&token.text, rules.chain(["null", "default"])) {
        Some(near) => wrong.hint(format!("did you mean `{near}`?")),
        None => wrong,
    }
}

/// Returns the value of `=VALUE` as a separate token.
fn behind_equals<'t>(token: &Token<'_>, text: &str) -> Token<'t> {
    Token {
        text: Cow::Owned(text.to_owned()),
        column: token.column + 1,
        length: token.length - 1,
        quoted: false,
    }
}

/// Returns the word of a type, whose parameter in brackets may have blanks, and the place after it.
fn joined<'t>(tokens: &[Token<'t>], first: usize) -> (Token<'t>, usize) {
    let words = tokens.get(first..).unwrap_or(&[]);
    let is_open = words.first().is_some_and(|word| !word.quoted && word.text.contains('('))
        || words.get(1).is_some_and(|word| !word.quoted && word.text.starts_with('('));
    let last = words.iter().position(|word| !word.quoted && word.text.ends_with(')'));
    let count = last.filter(|_| is_open).map_or(1, |last| last + 1);
    let words = words.get(..count).unwrap_or(&[]);
    let text: String = words.iter().map(|word| word.text.as_ref()).collect();
    let (column, end) = match words {
        [first, .., last] => (first.column, last.column + last.length),
        [only] => (only.column, only.column + only.length),
        [] => (1, 1),
    };
    let quoted = words.iter().any(|word| word.quoted);
    (Token { text: Cow::Owned(text), column, length: end - column, quoted }, first + count)
}

fn find_type(schema: &Schema, token: &Token<'_>) -> Result<Type, Diagnostic> {
    Type::named(&token.text).filter(|_| !token.quoted).ok_or_else(|| {
        let word = token.text.split('(').next().unwrap_or_default();
        let hint = if schema.table_named(&token.text).is_some() {
            format!("to refer to a row of that table, write `references {}`", token.text)
        } else if word == "decimal" {
            "say how many digits stand after the point, 0 to 38, as in `decimal(2)`".to_owned()
        } else if word == "enum" {
            "name its variants, none twice, as in `enum(ready,running,done)`".to_owned()
        } else if word == "bytes" {
            "say how many bytes, 1 to 4096, as in `bytes(16)`; `bytes` alone has any number"
                .to_owned()
        } else if let Some(name) = elsewhere::find(elsewhere::TYPES, word) {
            format!("write `{name}`")
        } else if let Some(mend) = elsewhere::find(elsewhere::OPTIONS, word) {
            mend.to_owned()
        } else {
            let names = Type::PLAIN.iter().map(|ty| ty.name());
            suggest(
                word,
                "type",
                names.chain(["decimal(2)", "bytes(16)", "enum(a,b)", "references"]),
            )
        };
        Diagnostic::new(token, format!("there is no type `{}`", shorten(&token.text))).hint(hint)
    })
}
