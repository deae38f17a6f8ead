//! `as PATH`: the Rust type that a program has for a field.
//!
//! It is for the code that is generated from a schema file, and no part of the schema.

use super::expect::Line;
use crate::names::is_name;
use crate::{Diagnostic, Token, Type, shorten};

/// Reads the path after `as`, which ends the line.
pub(super) fn read(
    ty: Type,
    line: &Line<'_>,
    word: &Token<'_>,
    rest: &[Token<'_>],
) -> Result<String, Diagnostic> {
    let refused = match ty {
        Type::Reference(..) => Some("a reference is an id of its own type already"),
        Type::Enum(_) => Some("an enum is a type of its own in Rust already"),
        Type::Blob => Some("a blob is read from the journal, and has no other type"),
        _ => None,
    };
    if let Some(why) = refused {
        return Err(Diagnostic::new(word, why).hint("leave `as` and what follows out"));
    }
    let [path, after @ ..] = rest else {
        return Err(line.missing("the path of a Rust type"));
    };
    let names: Vec<_> = path.text.split("::").collect();
    let is_absolute = names.len() > 1 && !names.first().is_some_and(|first| is_relative(first));
    let is_path = !path.quoted && names.iter().all(|name| is_name(name));
    let hint = if !is_path {
        "write names joined by `::`, such as `crate::Email`; a type with parameters needs a name of its own: \
         `type Name = ..`"
    } else if !is_absolute {
        "begin with `crate` or with the name of another crate: `crate::Email`"
    } else if names.iter().skip(1).any(|name| *name == "crate" || is_relative(name)) {
        "`crate` stands at the beginning only, and `self`, `super` and `_` nowhere"
    } else {
        return match after.first() {
            None => Ok(path.text.clone().into_owned()),
            Some(extra) => {
                Err(line.unexpected(extra).hint("`as` and its path are the end of a line"))
            }
        };
    };
    let message = format!("`{}` is not the path of a Rust type", shorten(&path.text));
    Err(Diagnostic::new(path, message).hint(hint))
}

fn is_relative(name: &str) -> bool {
    ["self", "super", "Self", "_"].contains(&name)
}
