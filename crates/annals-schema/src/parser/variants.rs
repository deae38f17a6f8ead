//! The commands of the variants of enums.

use super::expect::Line;
use super::scope::{Mistake, Scope};
use crate::diagnostics::suggest;
use crate::{Command, Diagnostic, Field, Token, Type, Variant, shorten};

pub(super) fn add(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "add_variant TABLE FIELD NAME");
    let table = scope.table(line.word(1, "the table's name")?)?;
    let field = scope.field(table, line.word(2, "the field's name")?)?.number;
    let name = line.word(3, "the new variant's name")?;
    line.end(4)?;
    let new = name.text.clone().into_owned();
    scope.check(Command::AddVariant { table: table.number, field, name: new }, name)
}

pub(super) fn rename(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "rename_variant TABLE FIELD VARIANT NAME");
    let table = scope.table(line.word(1, "the table's name")?)?;
    let field = scope.field(table, line.word(2, "the field's name")?)?;
    let variant = variant(field, line.word(3, "the variant's name")?)?.number();
    let name = line.word(4, "the new name")?;
    line.end(5)?;
    let (table, field, new) = (table.number, field.number, name.text.clone().into_owned());
    scope.check(Command::RenameVariant { table, field, variant, name: new }, name)
}

pub(super) fn drop(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "drop_variant TABLE FIELD VARIANT");
    let table = scope.table(line.word(1, "the table's name")?)?;
    let field = scope.field(table, line.word(2, "the field's name")?)?;
    let name = line.word(3, "the variant's name")?;
    let variant = variant(field, name)?.number();
    line.end(4)?;
    let (table, field) = (table.number, field.number);
    scope.check(Command::DropVariant { table, field, variant }, name)
}

/// Finds a variant of a field by its name.
fn variant(field: &Field, token: &Token<'_>) -> Result<Variant, Diagnostic> {
    let Type::Enum(variants) = field.ty else {
        let message = format!("field `{}` is no enum", field.name);
        return Err(Diagnostic::new(token, message).hint("only an enum has variants"));
    };
    variants.named(&token.text).ok_or_else(|| {
        let names = variants.iter().map(Variant::name);
        let message = format!("field `{}` has no variant `{}`", field.name, shorten(&token.text));
        Diagnostic::new(token, message).hint(suggest(&token.text, "variant", names))
    })
}
